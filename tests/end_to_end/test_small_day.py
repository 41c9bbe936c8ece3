"""The example of the documents: its manifest and its commands, run."""

import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compactor.adapters.local.native.module import is_installed
from compactor.core.documents.changes import Commit
from compactor.settings.settings import parse_settings
from compactor.wiring import operating, streaming
from compactor.wiring.app import App
from tests.support import extras
from tests.support.engines import NATIVE, PLAIN, engine_without_spark
from tests.support.memory_store import MemoryStore
from tests.support.small_day import FOLDER, MANIFEST, expected, input_files, shown_rejects, shown_rows

RAW = "s3://raw/small_day/"
ENGINES = [NATIVE, PLAIN] if is_installed() else [PLAIN]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_manifest_gives_the_expected_rows_and_rejects(engine: str) -> None:
    """A job that is given the example's files and manifest commits what `expected` shows, and it adds up."""
    store = MemoryStore()
    for name, data in input_files().items():
        store.put(RAW + name, data)
    store.put("s3://own/manifests/small-day.json", MANIFEST.read_bytes())
    paths = {place: f"s3://own/{place}" for place in ("manifests", "output", "state")}
    document = {
        "paths": paths,
        "input": {"allowed_prefixes": ["s3://raw"]},
        "schema": {"metadata_columns": []},
        "metrics": {"sink": "none"},
    }
    app = App(parse_settings(document), store=store)
    runner = streaming.scheduler(app, engine_without_spark(engine, app, rows_per_file=100, target_file_bytes=1 << 20))
    batch = runner.run(["s3://own/manifests/small-day.json"])
    assert (batch.failures, batch.stuck) == ({}, {})
    [commit] = [result.outcome for result in batch.finished]
    assert isinstance(commit, Commit)

    def read(uri: str) -> list[dict[str, object]]:
        return pq.read_table(io.BytesIO(store.read(uri))).to_pylist()

    assert shown_rows(row for file in commit.outputs for row in read(file.final)) == expected("rows.ndjson")
    assert shown_rejects(row for file in commit.rejects for row in read(file.final)) == expected("rejects.ndjson")
    assert not operating.verifier(app, deep=True).verify_all().needs_operator


def test_the_manifest_names_the_files() -> None:
    """Each input file is in the manifest with its length, and nothing else is."""
    named = dict(re.findall(rf'"{RAW}([^"]+)", "size_bytes": (\d+)', MANIFEST.read_text()))
    assert named == {name: str(len(data)) for name, data in input_files().items()}


@extras.NATIVE.needed
def test_the_commands_of_its_readme_run(tmp_path: Path) -> None:
    """As written, beside a copy of the example; the rows and the rejects that they print are those expected."""
    copy = shutil.copytree(FOLDER, tmp_path / "examples" / "small_day")
    [block] = re.findall(r"```sh\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for path in (copy / "input").iterdir():
        os.utime(path, (1, 1))  # settled long ago, so that nothing waits
    done = subprocess.run(
        ["bash", "-ec", block], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    for row in expected("rows.ndjson") + expected("rejects.ndjson"):
        assert repr(row.get("id") or row["reason"]) in done.stdout
