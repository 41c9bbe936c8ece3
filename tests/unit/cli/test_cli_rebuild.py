"""Promises of `compactor rebuild` on plain folders, with the native engine: what it does, prints and ends with."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner, Result

from compactor.cli.commands import rebuild as rebuild_module
from compactor.cli.entry import compactor as command
from compactor.core.errors import StoreUnavailable
from compactor.engines.engine import Staged, StageRequest
from compactor.wiring import rebuilding
from tests.support import extras
from tests.support.fakes import PlainEngine

pytestmark = extras.NATIVE.needed

DAY = "2025-12-21"


class Lake:
    """A folder that `compact` has turned into another one."""

    def __init__(self, root: Path) -> None:
        self.raw, self.out = root / "raw", root / "rows"
        self.raw.mkdir()
        for number in range(3):
            path = self.raw / f"{DAY}-{number}.ndjson"
            path.write_bytes(b'{"id": %d, "price": 1.10}\nno json\n' % number)
            os.utime(path, (0, 0))
        assert CliRunner().invoke(command, ["compact", str(self.raw), str(self.out)]).exit_code == 0

    def call(self, *arguments: str) -> Result:
        settings = f"{self.out}.compactor/compactor.toml"
        result = CliRunner().invoke(command, ["--config", settings, *arguments])
        assert "Traceback" not in result.stderr
        return result

    def json(self, *arguments: str) -> tuple[Any, int]:
        result = self.call(*arguments, "--json")
        return json.loads(result.stdout), result.exit_code

    @property
    def outputs(self) -> list[Path]:
        return sorted(self.out.rglob("*.parquet"))

    @property
    def rejects(self) -> list[Path]:
        return sorted(Path(f"{self.out}.compactor/state/rejects").rglob("*.parquet"))

    @property
    def manifest_id(self) -> str:
        return self.json("rebuild", "--dry-run")[0]["rebuilt"][0]["manifest_id"]  # type: ignore[no-any-return]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_lost_files_come_back(lake: Lake) -> None:
    """An output and the rejects are deleted; verify says so, rebuild makes them again, and every value is there."""
    for path in (*lake.outputs, *lake.rejects):
        path.unlink()
    assert lake.call("verify").exit_code == 3
    result = lake.call("rebuild")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "Rebuilt 1 manifest with 3 rows")
    assert "2 of 2 files lost or damaged" in result.stdout
    assert lake.call("verify", "--deep").exit_code == 0
    assert sorted(ds.dataset(lake.out, format="parquet").to_table().column("price").to_pylist()) == ["1.10"] * 3
    assert len(lake.rejects) == 1
    again = lake.call("rebuild", "--date", DAY)
    assert (again.exit_code, again.stdout) == (0, "Rebuilt 0 manifests with 0 rows; 1 intact\n")


def test_a_damaged_file_is_the_same_again(lake: Lake) -> None:
    """A file that is made again in the place of a damaged one has the bytes that it had."""
    [path] = lake.outputs
    before = path.read_bytes()
    path.write_bytes(before[: len(before) // 2])
    assert lake.call("rebuild").exit_code == 0
    assert lake.outputs == [path]
    assert path.read_bytes() == before


def test_lost_input_is_refused(lake: Lake) -> None:
    """Without the versions that were compacted, the manifest is refused with exit code 3, and nothing is written."""
    lake.outputs[0].unlink()
    (lake.raw / f"{DAY}-1.ndjson").write_bytes(b"{}\n")
    document, code = lake.json("rebuild")
    assert (code, document["rebuilt"], document["failed"]) == (3, [], [])
    assert "1 of 3 input files changed or missing" in document["refused"][0]["why"]
    assert lake.outputs == []
    assert "Refused: 1" in lake.call("rebuild").stdout


def test_dry_run(lake: Lake) -> None:
    """A dry run shows what would be rebuilt; it starts no engine and writes nothing."""
    lake.outputs[0].unlink()
    result = lake.call("rebuild", "--manifest", lake.manifest_id, "--dry-run")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "Would rebuild 1 manifest with 3 rows")
    assert lake.outputs == []


def test_force(lake: Lake) -> None:
    """A named manifest is rebuilt although it adds up, if that is asked for."""
    path = lake.outputs[0]
    manifest_id = path.name.removesuffix("-00000.snappy.parquet")
    before = path.stat().st_mtime_ns
    assert lake.json("rebuild", "--manifest", manifest_id)[0]["intact"] == 1
    assert path.stat().st_mtime_ns == before
    assert lake.json("rebuild", "--manifest", manifest_id, "--force")[0]["rebuilt"][0]["generation"] == 2
    assert path.stat().st_mtime_ns > before
    assert lake.call("verify", "--deep").exit_code == 0


@pytest.mark.parametrize("arguments", [("--force",), ("m1", "--date", DAY), ("../m1",)], ids=" ".join)
def test_wrong_usage(lake: Lake, arguments: tuple[str, ...]) -> None:
    """Wrong usage ends with 2, and nothing on stdout."""
    result = lake.call("rebuild", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_failure_ends_with_1(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that fails says why and how to go on."""

    class Broken(PlainEngine):
        def stage(self, _: StageRequest) -> Staged:
            raise StoreUnavailable("the disk is on fire")

    made = rebuilding.rebuilder
    monkeypatch.setattr(rebuilding, "rebuilder", lambda app: made(app, lambda _: Broken(app.store)))
    lake.outputs[0].unlink()
    result = lake.call("rebuild")
    assert result.exit_code == 1
    assert "Failed: 1" in result.stdout
    assert "the disk is on fire" in result.stdout
    assert "next: run it again" in result.stderr


def test_spark_is_started_only_for_work(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the Spark engine, Java is only asked for if there is something to rebuild."""
    asked = []
    monkeypatch.setenv("COMPACTOR_CONVERT__ENGINE", "spark")
    monkeypatch.setattr(rebuild_module, "check_java", lambda: asked.append(1))
    made = rebuilding.rebuilder
    monkeypatch.setattr(
        rebuilding,
        "rebuilder",
        lambda app: made(app, lambda _: PlainEngine(app.store, metadata_columns=app.settings.metadata_columns)),
    )
    lake.call("rebuild")
    lake.outputs[0].unlink()
    lake.call("rebuild", "--dry-run")
    assert asked == []
    assert lake.call("rebuild").exit_code == 0
    assert asked == [1]
