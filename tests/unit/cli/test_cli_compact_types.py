"""Promises of types in `compactor compact`: inferred or given once, kept with DST, and exact."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner

from compactor.api.folder_run import FolderRun
from compactor.cli.entry import compactor as command
from compactor.cli.ui.progress import CompactProgress
from compactor.cli.ui.signals import StopSignals
from compactor.settings.compact_paths import Options, parse_compact_paths
from compactor.wiring.folder import folder_settings
from tests.support import extras
from tests.support.compacting import call, write

pytestmark = extras.NATIVE.needed

ID_IS_LONG = '[[columns]]\nname = "id"\ntype = "long"\n'


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same batches on every machine."""
    monkeypatch.setattr("compactor.adapters.local.native.threads.os.sched_getaffinity", lambda _pid: {0}, raising=False)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    write(folder / "a.ndjson", b'{"id": 1, "x": 1.5}\n{"id": 2, "x": null}\n')
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "rows"


def read_by(out: Path, *words: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, ["--config", f"{out}.compactor/compactor.toml", *words, "--json"])
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def types(out: Path) -> dict[str, str]:
    table = duckdb.read_parquet(f"{out}/**/*.parquet", union_by_name=True)
    return {name: str(kind) for name, kind in zip(table.columns, table.types, strict=True)}


def test_types_are_inferred_once(raw: Path, out: Path) -> None:
    """The first call chooses the types and keeps them; later values that do not fit are rescued and counted."""
    dry = call(raw, out, "--types", "infer", "--dry-run")
    assert (dry.exit_code, list(raw.parent.iterdir())) == (0, [raw])
    first = call(raw, out, "--types", "infer")
    assert first.exit_code == 0, first.output
    kept = Path(f"{out}.compactor/schema.toml").read_text()
    assert f"types     {out}.compactor/schema.toml" in first.stdout
    assert "misfits" not in first.stdout
    assert types(out) == {"id": "BIGINT", "x": "DOUBLE", "_rescued_data": "MAP(VARCHAR, VARCHAR)"}
    write(raw / "b.ndjson", b'{"id": "two", "x": "n/a"}\n{"id": 3, "x": [1]}\n')
    for again in (call(raw, out, "--types", "infer"), call(raw, out)):
        assert (again.exit_code, Path(f"{out}.compactor/schema.toml").read_text()) == (0, kept)
        assert "misfits   3 values of a different type, kept in _rescued_data\n          2 x, 1 id\n" in again.stdout
    verified = read_by(out, "verify", "--deep")
    assert (verified["rescued_values"], verified["misfits"], verified["discrepancies"]) == (3, {"x": 2, "id": 1}, [])
    assert read_by(out, "status")["misfits"] == {"commits": 2, "values": 3, "by_column": {"x": 2, "id": 1}}


def test_suggested_nested_types(raw: Path, out: Path) -> None:
    """`schema suggest --nested` types arrays and objects; readers find their parts; a new key is a misfit in words."""
    lines = b'{"id": 1, "user": {"name": "Ann", "tags": ["a"]}, "labels": {"app/x": "y"}}\n'
    write(raw / "a.ndjson", lines)
    suggested = CliRunner().invoke(command, ["schema", "suggest", "--nested", str(raw)])
    assert suggested.exit_code == 0
    (raw.parent / "schema.toml").write_text(suggested.stdout)
    assert call(raw, out, "--schema", str(raw.parent / "schema.toml")).exit_code == 0
    write(raw / "b.ndjson", b'{"id": 2, "user": {"name": "Bob", "age": 7}}\n')
    assert "1 user" in call(raw, out).stdout
    kinds = {"id": "BIGINT", "labels": "MAP(VARCHAR, VARCHAR)", "user": 'STRUCT("name" VARCHAR, tags VARCHAR[])'}
    assert types(out) == {**kinds, "_rescued_data": "MAP(VARCHAR, VARCHAR)"}
    parts = duckdb.read_parquet(f"{out}/**/*.parquet").order("id").project("user.name, user.tags[1], labels['app/x']")
    assert parts.fetchall() == [("Ann", "a", "y"), ("Bob", None, None)]
    found = pl.read_parquet(out).sort("id")["user"].to_list()
    assert found == [{"name": "Ann", "tags": ["a"]}, {"name": "Bob", "tags": None}]
    assert read_by(out, "verify", "--deep")["misfits"] == {"user": 1}


def test_types_of_several_sources(raw: Path, out: Path) -> None:
    """They are inferred from the files that the call takes, elements among them, and from no others."""
    write(raw / "b.json", b'[{"id": 2},\n{"id": 3}]')
    write(raw / "c.txt", b'{"id": "no"}\n')
    write(raw / ".d.ndjson", b'{"id": "no"}\n')
    called = call(f"{raw}/*.ndjson", raw / "b.json", out, "--types", "infer", "--format", "json")
    assert (called.exit_code, types(out)["id"]) == (0, "BIGINT"), called.output


def test_a_watch_chooses_the_types_of_its_first_files(raw: Path, out: Path) -> None:
    """It keeps nothing before there are any, and then chooses once."""
    (raw / "a.ndjson").rename(raw.parent / "a")
    folder = folder_settings(parse_compact_paths(str(raw), str(out)), Options(types="infer"), {})
    run = FolderRun(folder, CompactProgress(), StopSignals, may_be_empty=True)
    assert (run.run().exit_code, set(raw.parent.iterdir())) == (0, {raw, raw.parent / "a"})
    write(raw / "b.ndjson", b'{"id": 1}\n')
    assert run.run().exit_code == 0
    kept = Path(f"{out}.compactor/schema.toml").read_text()
    write(raw / "c.ndjson", b'{"id": "no", "new": 1}\n{"id": 2}\n')
    assert (run.run().exit_code, Path(f"{out}.compactor/schema.toml").read_text()) == (0, kept)
    assert types(out)["id"] == "BIGINT"


def test_columns_that_have_no_types_keep_none(raw: Path, out: Path) -> None:
    """A column never changes its type, so the types of a table that is there are not chosen again."""
    call(raw, out)
    result = call(raw, out, "--types", "infer")
    assert (
        result.exit_code,
        "already has columns, whose types never change -> expected a new DST" in result.stderr,
    ) == (2, True)
    assert not Path(f"{out}.compactor/schema.toml").exists()
    assert call(raw, out).exit_code == 0


def test_of_two_first_calls_one_chooses_the_types(raw: Path, out: Path) -> None:
    """A call that finds the schema file of a faster one takes it, and refuses to go on if it cannot be read."""
    kept = Path(f"{out}.compactor/schema.toml")
    kept.parent.mkdir()
    kept.write_text("[[columns]]\n")
    assert call(raw, out, "--types", "infer").exit_code == 2
    kept.write_text(ID_IS_LONG)
    assert call(raw, out, "--types", "infer").exit_code == 0
    assert types(out) == {"id": "BIGINT", "x": "VARCHAR", "_rescued_data": "MAP(VARCHAR, VARCHAR)"}


def test_a_schema_file_is_kept(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A later call reads the copy, from whichever folder it is started."""
    (tmp_path / "types.toml").write_text(ID_IS_LONG)
    monkeypatch.chdir(tmp_path)
    assert call(raw, out, "--schema", "types.toml").exit_code == 0
    (tmp_path / "types.toml").unlink()
    monkeypatch.chdir("/")
    write(raw / "b.ndjson", b'{"id": 3}\n')
    assert call(raw, out).exit_code == 0
    assert types(out)["id"] == "BIGINT"
    assert Path(f"{out}.compactor/schema.toml").read_text() == ID_IS_LONG


def test_a_longer_schema_file_takes_its_place(raw: Path, out: Path, tmp_path: Path) -> None:
    """Columns may be added; one that has rows cannot be changed."""
    file = tmp_path / "types.toml"
    file.write_text(ID_IS_LONG)
    call(raw, out, "--schema", file)
    file.write_text(ID_IS_LONG + '[[columns]]\nname = "new"\ntype = "date"\n')
    write(raw / "b.ndjson", b'{"id": 3, "new": "2026-01-05"}\n')
    assert call(raw, out, "--schema", file).exit_code == 0
    assert types(out)["new"] == "DATE"
    file.write_text(ID_IS_LONG.replace("long", "double"))
    result = call(raw, out, "--schema", file)
    assert (result.exit_code, "type 'double' -> expected 'long'" in result.stderr) == (2, True)
    assert "date" in Path(f"{out}.compactor/schema.toml").read_text()


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]], ids=["run", "dry"])
def test_a_schema_file_that_cannot_be_used(raw: Path, out: Path, tmp_path: Path, dry_run: list[str]) -> None:
    """It ends the call at once, also when there is nothing new; so does a copy that is gone."""
    assert call(raw, out, "--schema", tmp_path / "no.toml", *dry_run).exit_code == 2
    assert not out.exists()
    call(raw, out)
    for content in (None, b"\xff", b"[[columns]]\nname = 1\n", b'[[columns]]\nname = "id"\ntype = "long"\n'):
        file = tmp_path / "types.toml"
        if content is not None:
            file.write_bytes(content)
        result = call(raw, out, "--schema", file, *dry_run)
        assert (result.exit_code, result.stdout) == (2, ""), content
        assert not Path(f"{out}.compactor/schema.toml").exists()
    assert call(raw, out, "--schema", tmp_path, *dry_run).exit_code == 2
    file.write_text('[[columns]]\nname = "later"\ntype = "long"\n')
    assert call(raw, out, "--schema", file).exit_code == 0
    Path(f"{out}.compactor/schema.toml").unlink()
    result = call(raw, out, *dry_run)
    assert (result.exit_code, "schema.file: " in result.stderr) == (2, True)


def test_a_path_that_an_earlier_release_kept(raw: Path, out: Path, tmp_path: Path) -> None:
    """Its file is copied now, and is missed at once if it is gone."""
    file = tmp_path / "types.toml"
    file.write_text(ID_IS_LONG)
    call(raw, out, "--schema", file)
    settings, copy = Path(f"{out}.compactor/compactor.toml"), Path(f"{out}.compactor/schema.toml")
    settings.write_text(settings.read_text().replace(str(copy), str(file)))
    copy.unlink()
    assert (call(raw, out).exit_code, copy.read_text()) == (0, ID_IS_LONG)
    settings.write_text(settings.read_text().replace(str(copy), "gone/types.toml"))
    assert call(raw, out).exit_code == 2


def test_wrong_usage(raw: Path, out: Path) -> None:
    """Types are given or inferred, not both."""
    assert call(raw, out, "--types", "infer", "--schema", "x").exit_code == 2


def test_typed_rows_equal_what_an_independent_parser_reads(raw: Path, out: Path) -> None:
    """DuckDB reads the same values from the lines and from the typed rows, each of them."""
    offsets = ["Z", "+02:00", "-0930", "+05"]
    lines = [
        f'{{"id": {number}, "small": {number - 500}, "big": {2**63 + number * 10**18}, "rate": {number / 7!r}, '
        f'"exp": {number}e-{number % 30}, "money": {10**16 + number}.{number % 100:02d}, '
        f'"ok": {json.dumps(number % 3 == 0)}, "day": "20{number % 90 + 10}-0{number % 9 + 1}-1{number % 10}", '
        f'"code": "0{number}", "list": [{number}, 1.10], '
        f'"at": "2026-01-05T{number % 24:02d}:00:{number % 60:02d}.{number:03d}{offsets[number % 4]}"}}'
        for number in range(1000)
    ]
    write(raw / "a.ndjson", "\n".join(lines).encode())
    assert call(raw, out, "--types", "infer").exit_code == 0
    assert list(types(out).values())[:11] == [
        *("BIGINT", "BIGINT", "DECIMAL(38,0)", "DOUBLE", "DOUBLE", "DECIMAL(38,2)", "BOOLEAN"),
        *("DATE", "VARCHAR", "VARCHAR", "TIMESTAMP WITH TIME ZONE"),
    ]
    text = {name: f"(json->>'$.{name}')" for name in types(out)}
    pairs = [
        ("small", f"{text['small']}::BIGINT"),
        ("rate", f"{text['rate']}::DOUBLE"),
        ("exp", f"{text['exp']}::DOUBLE"),
        ("ok", f"{text['ok']}::BOOLEAN"),
        ("day", f"{text['day']}::DATE"),
        ("code", text["code"]),
        ("at", f"{text['at']}::TIMESTAMPTZ"),
    ]
    same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM {value}" for name, value in pairs)
    rows = f"read_parquet('{out}/**/*.parquet')"
    source = f"read_ndjson_objects('{raw}/a.ndjson')"
    joined = f"FROM {rows} r JOIN {source} ON r.id = {text['id']}::BIGINT"
    assert duckdb.sql(f"SELECT count(*), count(*) FILTER ({same}), count(_rescued_data) {joined}").fetchall() == [
        (1000, 1000, 0)
    ]
    # DuckDB would read long numbers as doubles, so these are left to Python's parser.
    exact = {row["id"]: row for row in (json.loads(line, parse_float=Decimal) for line in lines)}
    for number, big, money in duckdb.read_parquet(f"{out}/**/*.parquet").project("id, big, money").fetchall():
        assert (big, money) == (exact[number]["big"], exact[number]["money"])
