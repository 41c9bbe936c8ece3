"""`compactor compact` from prefix to prefix of S3: without a table, and as exact as on a disk."""

import io
import json
import os
import shutil
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from compactor.adapters.aws.s3.store import S3Store
from compactor.adapters.local.sqlite.seen_files import LocalSummarisedFiles
from compactor.api.compact import folder_run
from compactor.api.progress import ProgressDisplay
from compactor.cli.entry import compactor as command
from compactor.settings.compact_paths import Options
from compactor.sources.folders.history import StoredSummarisedFiles
from compactor.wiring.app import App
from tests.support.extras import NATIVE
from tests.support.sampling import few

pytestmark = NATIVE.needed


@pytest.fixture(autouse=True)
def aws(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables by which a call finds the stand-in for S3."""
    monkeypatch.setenv("COMPACTOR_AWS__ENDPOINT_URL", aws_endpoint)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def call(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, [*arguments, "--json"])
    assert result.exit_code == 0, result.stderr
    return dict(json.loads(result.stdout))


def test_a_prefix_becomes_rows(s3: Any, bucket: str, tmp_path: Path) -> None:
    """Rows and rejects are on S3, with a journal of claims; a second call takes what is new and finds its settings."""
    store = S3Store(s3)
    store.put(f"s3://{bucket}/raw/a ü.ndjson", b'{"id": 1}\nno json\n')
    words = ("compact", f"s3://{bucket}/raw", f"s3://{bucket}/rows")
    assert call(*words)["verified"]["rows"] == 1
    store.put(f"s3://{bucket}/raw/b.ndjson", b'{"id": 2}\n')
    second = call(*words)
    assert (second["new_files"], second["planned_before"], second["verified"]["rejected_lines"]) == (1, 1, 1)
    assert call("--config", second["settings_file"], "status")["backlog"]["manifests"] == 0
    [rejected] = call("rejects", words[2])["rejects"]
    assert (rejected["uri"], rejected["line_number"], rejected["column"]) == (f"{words[1]}/a ü.ndjson", 2, 1)
    outputs = [info.uri for info in store.list(f"s3://{bucket}/rows/")]
    rows = [row["id"] for uri in outputs for row in pq.read_table(io.BytesIO(store.read(uri))).to_pylist()]
    assert Counter(rows) == {"1": 1, "2": 1}
    claims = [info.uri for info in store.list(f"s3://{bucket}/rows.compactor/state/claims/")]
    assert len(claims) == 2
    # From S3 to a disk as well: only what is the compactor's own has to be where the rows are.
    assert call("compact", f"s3://{bucket}/raw", str(tmp_path / "rows"))["verified"]["rows"] == 2


@pytest.fixture
def folder_to_s3(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A local folder with two files, and a destination on S3."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    for name in ("a", "b"):
        written = tmp_path / "raw" / f"{name}.ndjson"
        written.parent.mkdir(exist_ok=True)
        written.write_bytes(b'{"id": "%b"}\n' % name.encode())
        os.utime(written, (1_700_000_000, 1_700_000_000))
    return str(tmp_path / "raw"), f"s3://{bucket}/rows"


def test_local_files_are_remembered_where_the_state_is_on_s3(folder_to_s3: tuple[str, str]) -> None:
    """A renamed file is known, and one that was rewritten with its length and its time set back is not."""
    assert call("compact", *folder_to_s3)["verified"]["rows"] == 2
    files = Path(folder_to_s3[0])
    (files / "a.ndjson").rename(files / "c.ndjson")
    (files / "b.ndjson").write_bytes(b'{"id": "B"}\n')
    os.utime(files / "b.ndjson", (1_700_000_000, 1_700_000_000))
    second = CliRunner().invoke(command, ["compact", *folder_to_s3, "--json"])
    found = json.loads(second.stdout)
    assert (second.exit_code, found["new_files"], found["verified"]["rows"]) == (3, 0, 2)
    assert [(each["uri"], each["reason"]) for each in found["left_out"]] == [(str(files / "b.ndjson"), "replaced")]


@pytest.mark.parametrize("lost", few(["folder for caches", "the file", "no folder"], 1))
def test_what_is_remembered_may_be_lost(
    folder_to_s3: tuple[str, str], lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, a call reads records again, and plans nothing twice."""
    assert call("compact", *folder_to_s3)["new_files"] == 2
    if lost == "no folder":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.delenv("HOME")
    elif lost == "the file":
        [kept] = (tmp_path / "caches" / "compactor").iterdir()
        kept.write_bytes(b"no database")
    else:
        shutil.rmtree(tmp_path / "caches")
        (tmp_path / "caches").write_text("a file is in the way")
    files = Path(folder_to_s3[0])
    (files / "a.ndjson").rename(files / "c.ndjson")
    (files / "d.ndjson").write_bytes(b'{"id": "d"}\n')
    os.utime(files / "d.ndjson", (1_700_000_000, 1_700_000_000))
    third = call("compact", *folder_to_s3)
    assert (third["new_files"], third["verified"]["rows"]) == (1, 3)


@pytest.mark.parametrize(
    ("source", "destination", "with_caches", "index"),
    [
        ("/raw", "/rows", True, LocalSummarisedFiles),
        ("/raw", "s3:/rows", True, LocalSummarisedFiles),
        ("/raw", "s3:/rows", False, type(None)),
        ("s3:/raw", "s3:/rows", False, StoredSummarisedFiles),
        ("s3:/raw", "/rows", False, LocalSummarisedFiles),
    ],
)
def test_files_of_closed_dates_are_looked_up(
    source: str,
    destination: str,
    with_caches: bool,
    index: type,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Local files may be renamed and appended to: only for files on S3 the index of names on S3 is enough."""
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    if with_caches:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    places = [
        each.replace("s3:", f"s3://{bucket}") if "s3:" in each else f"{tmp_path}{each}"
        for each in (source, destination)
    ]
    display = ProgressDisplay(None)
    run = folder_run(
        places[:1], places[1], None, Options(), display, lambda: nullcontext(display), on_replaced="quarantine"
    )
    assert type(run.folder_planner(App(run.folder.settings)).summarised) is index
