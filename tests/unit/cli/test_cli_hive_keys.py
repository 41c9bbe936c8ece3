"""Promises of `--hive-keys`: folders such as country=DE are ordinary columns, and stay so whatever happens to files."""

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from compactor.cli.entry import compactor as command
from tests.support import extras

pytestmark = extras.NATIVE.needed


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same batches on every machine."""
    monkeypatch.setattr("compactor.adapters.local.native.threads.os.sched_getaffinity", lambda _pid: {0}, raising=False)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    write(folder / "dt=20260105" / "country=S%C3%A3o" / "a", b'{"id": 1}\n{}\n{"id": 2, "country": "own"}\nbad\n')
    write(folder / "dt=20260106" / "country=DE" / "b", b'{"id": 3}\n\n {"country": null, "id": 4}')
    write(folder / "c", b'{"id": 5}\n')
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "rows"


def write(path: Path, data: bytes) -> None:
    """A file that was written an hour ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (path.stat().st_mtime - 3600,) * 2)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments)])


def with_settings(out: Path, *words: object) -> Result:
    return call("--config", f"{out}.compactor/compactor.toml", *words)


def rows(out: Path) -> list[Any]:
    table = duckdb.read_parquet(f"{out}/**/*.parquet", union_by_name=True)
    return table.project("id, dt, country").order("dt, id, country").fetchall()


FIRST = [
    (None, "20260105", "São"),
    ("1", "20260105", "São"),
    ("2", "20260105", "own"),
    ("3", "20260106", "DE"),
    ("4", "20260106", None),
    ("5", None, None),
]


def by_text(found: list[Any]) -> list[Any]:
    return sorted(found, key=lambda row: [str(value) for value in row])


def test_folders_are_columns(raw: Path, out: Path) -> None:
    """Every row has the values of its folders, unless its line has the key itself; rejects keep their bytes."""
    result = call("compact", raw, out, "--hive-keys", "--deep")
    assert result.exit_code == 0, result.output
    assert by_text(rows(out)) == by_text(FIRST)
    [rejects] = duckdb.read_parquet(f"{out}.compactor/state/rejects/**/*.parquet").fetchall()
    assert (rejects[2:4], rejects[-2:]) == ((4, 41), (b"bad", None))
    write(raw / "dt=20260107" / "d", b'{"id": 6}\n')
    assert call("compact", raw, out).exit_code == 0
    assert ("6", "20260107", None) in rows(out)
    assert with_settings(out, "verify", "--deep").exit_code == 0


def test_columns_of_folders_come_again(raw: Path, out: Path) -> None:
    """Rows that are made again, and lines that are redriven, have them; typed columns take them."""
    typed = call("schema", "suggest", raw, "--hive-keys").stdout
    assert 'name = "dt"\ntype = "string"' in typed
    (out.parent / "types.toml").write_text(typed.replace('"dt"\ntype = "string"', '"dt"\ntype = "long"'))
    assert call("compact", raw, out, "--hive-keys", "--schema", out.parent / "types.toml").exit_code == 0
    first = rows(out)
    assert ({row[1] for row in first}, first[0][0]) == ({20260105, 20260106, None}, 1)
    for file in out.rglob("*.parquet"):
        file.unlink()
    assert with_settings(out, "rebuild").exit_code == 0
    assert by_text(rows(out)) == by_text(first)
    assert with_settings(out, "verify", "--deep").exit_code == 0


def test_the_rules_that_dated_files(raw: Path, out: Path) -> None:
    """A dry run shows each rule with its files and days; the rule of a file is on record."""
    call("compact", raw, out)
    write(raw / "2026" / "03" / "05" / "x", b'{"id": 7}\n')
    write(raw / "2026" / "03" / "06" / "13" / "x", b'{"id": 8}\n')
    write(raw / "app-20260307.ndjson", b'{"id": 9}\n')
    shown = with_settings(out, "plan", raw, "--dry-run").stdout.splitlines()
    assert [" ".join(line.split()) for line in shown if line.startswith("Dated by")] == [
        f"Dated by yyyy/mm/dd in its key 2 files 2 days 2026-03-05 to 2026-03-06, such as {raw}/2026/03/05/x",
        f"Dated by yyyymmdd in its name 1 file 1 day 2026-03-07, such as {raw}/app-20260307.ndjson",
    ]
    document = json.loads(with_settings(out, "plan", raw, "--dry-run", "--json").stdout)
    assert [(each["rule"], each["files"]) for each in document["dated"]] == [("path", 2), ("name_digits", 1)]
    accepted = [json.loads(file.read_text()) for file in Path(f"{out}.compactor/state/accepted").iterdir()]
    rules = {Path(file["uri"]).name: file["dated_by"] for each in accepted for file in each["manifest"]["files"]}
    assert rules == {"a": "hive", "b": "hive", "c": "arrival"}
    traced = with_settings(out, "trace", raw / "dt=20260105" / "country=S%C3%A3o" / "a").stdout
    assert "2026-01-05 (dt= or date= with yyyymmdd in its key)" in traced


def test_redriven_lines_keep_their_folders(raw: Path, out: Path) -> None:
    """A line that was rejected for its length is a row of its folders once the limit allows it."""
    assert call("compact", raw, out, "--hive-keys").exit_code == 0
    settings = Path(f"{out}.compactor/compactor.toml")
    kept = settings.read_text()
    settings.write_text(kept.replace("[input]", "[input]\nmax_line_bytes = 20"))
    write(raw / "dt=20260108" / "e", b'{"id": "e"}\n{"id": "a rather long one"}\n')
    assert call("compact", raw, out).exit_code == 0
    settings.write_text(kept)
    assert with_settings(out, "redrive", "rejects", "--reason", "line_too_long").exit_code == 0
    assert call("compact", raw, out, "--deep").exit_code == 0
    assert ("a rather long one", "20260108", None) in rows(out)
