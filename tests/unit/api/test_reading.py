"""Promises of `compactor.verify`, `rejects` and `trace`: what the commands tell, as values."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import compactor
from compactor.cli.entry import compactor as command
from tests.support import extras
from tests.support.compacting import write
from tests.support.sampling import few_rows

pytestmark = extras.NATIVE.needed

LINES = b'{"id": 1}\nno json\n{"id": "\xff"}\n[1]\n{"id": 2}\n{"id": 3}\n{"id": 4}\n{"id": 5}\n'


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, list(map(str, arguments)))


@pytest.fixture
def compacted(raw: Path) -> Path:
    """The folder of input, of which `rows` was made."""
    write(raw / "2026-01-02.ndjson", LINES)
    write(raw / "2026-01-03.ndjson", b'{"id": "x"\n' + b'{"id": 9}\n' * 3)
    write(raw / "2026-01-03.xml", b"<html><body>no</body></html>\n")
    assert compactor.compact(raw, "rows").exit_code == 3
    return raw


@pytest.mark.usefixtures("compacted")
def test_verify_tells_what_the_command_tells() -> None:
    """Each figure of `verify --json` is in the result; a day or a manifest can be verified alone."""
    told = json.loads(run("verify", "rows", "--json").stdout)
    found = compactor.verify("rows")
    assert (found.complete, found.needs_operator, run("verify", "rows").exit_code) == (False, True, 3)
    figures = [name for name, value in told.items() if isinstance(value, int | dict) and name != "deep"]
    assert {name: getattr(found, name) for name in figures} == {name: told[name] for name in figures}
    assert [each.uri for each in found.quarantined_files] == [each["uri"] for each in told["quarantined_files"]]
    days = [compactor.verify("rows", date=each) for each in ("2026-01-02", date(2026, 1, 3))]
    assert [each.lines for each in days] == [8, 4]
    manifest_id = compactor.rejects("rows", date="2026-01-02")["manifest_id"][0].as_py()
    assert compactor.verify("rows", manifest_id=manifest_id, deep=True).inputs_compared == 1


@pytest.mark.usefixtures("compacted")
def test_a_discrepancy_is_a_result() -> None:
    """What does not add up raises nothing."""
    next(Path("rows").rglob("*.parquet")).unlink()
    found = compactor.verify("rows")
    assert (found.complete, len(found.discrepancies)) == (False, 1)


@pytest.mark.usefixtures("compacted")
def test_rejects_are_a_table() -> None:
    """It has what `rejects --json` tells, and the exact bytes; options select as those of the command."""
    told = json.loads(run("rejects", "rows", "--json").stdout)["rejects"]
    table = compactor.rejects("rows")
    names = [
        "line_number",
        "column",
        "reason",
        "message",
        "length_bytes",
        "byte_offset",
        "kept",
        "is_sample",
        "manifest_id",
    ]
    assert [{name: row[name] for name in names} for row in table.to_pylist()] == [
        {name: each[name] for name in names} for each in told
    ]
    assert table["source_uri"].to_pylist() == [each["uri"] for each in told]
    assert [row["raw"] for row in table.to_pylist() if row["date"] == "2026-01-02"] == LINES.split(b"\n")[1:4]
    some = {
        "reason": compactor.rejects("rows", reason="not_an_object"),
        "file": compactor.rejects("rows", file=Path("raw/2026-01-03.ndjson")),
        "date": compactor.rejects("rows", date=date(2026, 1, 3)),
        "limit": compactor.rejects("rows", limit=2),
        "none": compactor.rejects("rows", limit=0),
    }
    assert {name: each.num_rows for name, each in some.items()} == {
        "reason": 1,
        "file": 1,
        "date": 1,
        "limit": 2,
        "none": 0,
    }
    assert {each.schema for each in some.values()} == {table.schema}


@pytest.mark.usefixtures("compacted")
def test_a_large_table_has_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No chunk has more lines or bytes than it may, and the table is the same."""
    whole = compactor.rejects("rows")
    monkeypatch.setattr("compactor.api.rejects.CHUNK_BYTES", 8)
    by_bytes = compactor.rejects("rows")
    monkeypatch.setattr("compactor.api.rejects.CHUNK_LINES", 2)
    monkeypatch.setattr("compactor.api.rejects.CHUNK_BYTES", 1 << 20)
    by_lines = compactor.rejects("rows")
    assert (whole.num_rows, by_bytes["raw"].num_chunks, by_lines["raw"].num_chunks) == (4, 4, 2)
    assert by_bytes.combine_chunks() == by_lines.combine_chunks() == whole.combine_chunks()


@pytest.mark.usefixtures("compacted")
def test_rejects_that_cannot_be_read() -> None:
    """They are an error, unless the caller takes each with what is wrong; then all others are read."""
    damaged = next(Path("rows.compactor/state/rejects").rglob("*2026-01-02*.parquet"))
    damaged.write_bytes(b"PAR1")
    with pytest.raises(compactor.RecordUnreadable, match="compactor rebuild") as raised:
        compactor.rejects("rows")
    told: list[str] = []
    table = compactor.rejects("rows", on_unreadable=told.append)
    assert told == [str(raised.value)]
    assert set(table["date"].to_pylist()) == {"2026-01-03"}
    assert run("rejects", "rows").exit_code == 3


@pytest.mark.parametrize(
    ("thing", "code"),
    [("raw/2026-01-02.ndjson", 0), ("raw/2026-01-03.xml", 3), ("raw/none.ndjson", 1)],
)
def test_trace_tells_what_the_command_tells(compacted: Path, thing: str, code: int) -> None:
    """State, place, counts and next moves; what no record names is found to be unknown."""
    result = run("trace", "--in", "rows", thing, "--json")
    told = json.loads(result.stdout)
    found = compactor.trace("rows", Path(thing))
    assert (result.exit_code, found.found, found.needs_operator) == (code, code != 1, code == 3)
    same = ["uri", "kind", "state", "meaning", "exists", "manifest_id", "manifest_uri", "date", "message", "searched"]
    assert {name: getattr(found, name) for name in same} == {name: told[name] for name in same}
    assert list(found.outputs) == told["outputs"]
    assert list(found.next_moves) == told["next_moves"]
    if code == 0:
        assert (found.lines, found.rows, found.rejected_lines, found.blank_lines) == (8, 5, 3, 0)
        by_id = compactor.trace("rows", found.manifest_id)
        assert (by_id.kind, by_id.state, compactor.trace("rows", found.outputs[0]).kind) == (
            *("manifest", "done"),
            "output",
        )
    assert compacted.name == "raw"


ERRORS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("verify", {"dst": "none"}, ["none"]),
    (
        "verify",
        {"dst": "rows", "manifest_id": "m", "date": "2026-01-02"},
        ["rows", "--manifest", "m", "--date", "2026-01-02"],
    ),
    ("verify", {"dst": "rows", "manifest_id": "m"}, ["rows", "--manifest", "m"]),
    ("rejects", {"dst": "none"}, ["none"]),
    ("trace", {"dst": "none", "file": "a"}, ["a", "--in", "none"]),
    ("trace", {"dst": "rows", "file": "http://x/y"}, ["http://x/y", "--in", "rows"]),
]


@pytest.mark.usefixtures("compacted")
@pytest.mark.parametrize(("name", "keywords", "arguments"), few_rows(ERRORS, 3))
def test_errors_are_those_of_the_command(name: str, keywords: dict[str, Any], arguments: list[str]) -> None:
    """An error has the text that the command shows; one of the settings ends it with 2."""
    with pytest.raises(compactor.CompactorError) as raised:
        getattr(compactor, name)(**keywords)
    result = run(name, *arguments)
    assert result.exit_code == (2 if isinstance(raised.value, compactor.SettingsError) else 1)
    assert f"compactor: {raised.value}" in result.stderr


@pytest.mark.usefixtures("compacted")
@pytest.mark.parametrize(
    ("name", "keywords", "fault"),
    [
        ("verify", {"manifest_id": "../x"}, "'../x' is not a manifest id; expected 1 to 200 letters"),
        ("verify", {"date": "2026-02-30"}, "'2026-02-30' is not a calendar day; expected yyyy-mm-dd"),
        ("rejects", {"reason": "wrong"}, "--reason: 'wrong' -> expected one of invalid_utf8, "),
        ("rejects", {"limit": -1}, "limit: -1 -> expected 0 or more, or None for all"),
        ("trace", {"file": "a", "days": 0}, "days: 0 -> expected 1 or more"),
    ],
)
def test_what_the_command_line_checks_itself(name: str, keywords: dict[str, Any], fault: str) -> None:
    """Python's arguments are checked as strictly."""
    with pytest.raises(compactor.SettingsError) as raised:
        getattr(compactor, name)("rows", **keywords)
    assert fault in str(raised.value)


def test_the_table_of_no_rejects_has_its_columns(raw: Path) -> None:
    """A folder without rejects gives an empty table, with the types of a full one."""
    write(raw / "a.ndjson", b'{"id": 1}\n')
    compactor.compact(raw, "rows")
    table = compactor.rejects("rows")
    assert (table.num_rows, table.schema.field("raw").type) == (0, pa.binary())
