"""Wrong and odd files, each alone and among good ones: exit code, words and counts; every good line is a row."""

import gzip
import json
import os
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from compactor.cli.entry import compactor as command
from compactor.cli.ui.compact_screen import quarantined_lines
from compactor.core.documents.records import FileStatus
from compactor.ledger.accounts.account import QuarantinedFile
from tests.support import extras
from tests.support.sampling import few
from tests.unit.cli.zoo import CASES, EXPECTED, GOOD_IDS, NO_DATA, Case, ids, lines

pytestmark = extras.NATIVE.needed

READ_IT = "read it     pandas"


def write(folder: Path, name: str, content: bytes) -> None:
    """A file that was written an hour ago."""
    (folder / name).write_bytes(content)
    os.utime(folder / name, ((folder / name).stat().st_mtime - 3600,) * 2)


def call(raw: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, ["compact", str(raw), f"{raw}-rows", *options])
    return result.exit_code, result.stdout if "--json" in options else result.output


def rows_of(raw: Path) -> Counter[str | None]:
    if not Path(f"{raw}-rows").exists():
        return Counter()
    table = ds.dataset(f"{raw}-rows", format="parquet").to_table()
    return Counter(table.column("id").to_pylist() if "id" in table.column_names else [None] * len(table))


def verified(document: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document)["verified"]
    return found


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("case", few(CASES, 12), ids=lambda case: case.name)
def test_alone(raw: Path, case: Case) -> None:
    """A call says what is wrong, and offers to read rows only if there are any."""
    write(raw, case.name, case.content)
    code, output = call(raw)
    assert (code, rows_of(raw)) == (case.code, Counter(case.ids)), output
    assert case.words in output
    assert (READ_IT in output) is bool(case.ids)
    for reason, number in case.rejects.items():
        assert f"{number} {reason}" in output


def test_among_good_files(raw: Path) -> None:
    """Each is treated as if it were alone, and the files beside it are complete."""
    for case in CASES:
        write(raw, case.name, case.content)
    write(raw, "good.ndjson", lines("good", len(GOOD_IDS)))
    code, output = call(raw, "--json")
    found = verified(output)
    assert rows_of(raw) == Counter([*GOOD_IDS, *(each for case in CASES for each in case.ids)])
    quarantined = {Path(each["uri"]).name: each for each in found["quarantined_files"]}
    assert quarantined.keys() == {case.name for case in CASES if case.status != "compacted"}
    for case in CASES:
        if each := quarantined.get(case.name):
            assert (each["status"], case.words in each["detail"]) == (case.status, True)
    rejects = sum((Counter(case.rejects) for case in CASES), Counter())
    assert (code, found["rejects_by_reason"], found["discrepancies"]) == (3, dict(rejects), [])


def test_what_is_said_of_many(raw: Path) -> None:
    """The first file of each kind with its words, five kinds of them, and how many more there are."""
    for name in ("a.csv", "b.csv", "c.csv"):
        write(raw, name, b"id,text\n1,a\n2,b\n")
    write(raw, "d.html", b"<!doctype html>\n")
    for number in (1, 2):
        write(raw, f"e{number}.gz", gzip.compress(lines("cut", 99 * number))[:-9])
    for name, content in (("f", b"[{}]"), ("g", b"%PDF-1.7\n%\xe2\xe3"), ("h", b"Obj\x01"), ("i", b"{\n}\n")):
        write(raw, name, content)
    write(raw, "good", lines("good", 20))
    _, _, said = call(raw)[1].partition("quarantined  ")
    first, html, cut, *_, more = (line.strip() for line in said.partition("\n\n")[0].splitlines())
    assert first == f"{raw}/a.csv (looks like CSV; convert it to NDJSON) and 2 more"
    assert html == f"{raw}/d.html (looks like an HTML page; check where it was downloaded from)"
    assert re.fullmatch(
        rf"{raw}/e1.gz \(truncated gzip: ends at about byte \d+ without an end marker\) and 1 more", cut
    )
    assert more == "and 1 file of other kinds"


def test_a_file_that_may_not_be_read_is_named_once(raw: Path) -> None:
    """Its name is not in the reason again."""
    uri = f"{raw}/a.ndjson"
    moment = datetime.now(UTC)
    detail = f"cannot read {uri}: permission denied"
    file = QuarantinedFile("m", uri, FileStatus.FORBIDDEN, detail, moment, None, moment)
    assert quarantined_lines([file]) == [f"{uri} (permission denied)"]


def test_json_is_read_where_it_is_asked_for(raw: Path) -> None:
    """Every element is a row; files of other kinds stay quarantined, and lines stay lines."""
    for case in CASES:
        write(raw, case.name, case.content)
    code, output = call(raw, "--format", "json", "--json", "--deep")
    found = verified(output)
    expected = [each for case in CASES for each in (case.json_ids or case.ids)]
    assert rows_of(raw) == Counter(expected)
    assert len(found["quarantined_files"]) == sum(not case.json_ids and case.status != "compacted" for case in CASES)
    assert (code, found["discrepancies"]) == (3, [])
    assert found["inputs_compared"] == sum(bool(case.json_ids) or case.status == "compacted" for case in CASES) - 1


def test_quarantined_json_is_read_in_a_second_call(raw: Path) -> None:
    """After a redrive, as the first call says; the trace then counts elements."""
    write(raw, "array.json", b'[{"id":"a"}, 1,\n{"id":"b"}]')
    code, output = call(raw)
    [move] = re.findall(r"^next +compactor redrive files --in \S+, then (.+)$", output, re.MULTILINE)
    assert move == f"compactor compact {raw} {raw}-rows --format json"
    settings = f"{raw}-rows.compactor/compactor.toml"
    assert CliRunner().invoke(command, ["--config", settings, "redrive", "files"]).exit_code == 0
    code, output = call(raw, "--format", "json")
    assert (code, rows_of(raw)) == (0, Counter("ab")), output
    traced = CliRunner().invoke(command, ["--config", settings, "trace", str(raw / "array.json")])
    assert re.search(r"^elements +3 = 2 rows \+ 1 reject \+ 0 blank$", traced.output, re.MULTILINE)
    rejects = ds.dataset(f"{raw}-rows.compactor/state/rejects", format="parquet").to_table().to_pylist()
    assert [(each["line_number"], each["byte_offset"], each["raw"]) for each in rejects] == [(2, 13, b"1")]


def test_a_rebuild_reads_files_as_they_were_read(raw: Path) -> None:
    """Whatever the settings are today, lost rows come again."""
    write(raw, "array.json", b'[{"id":"a"}, 1]')
    write(raw, "lines", lines("line"))
    assert call(raw, "--format", "json")[0] == 0
    for file in Path(f"{raw}-rows").rglob("*.parquet"):
        file.unlink()
    settings = Path(f"{raw}-rows.compactor/compactor.toml")
    settings.write_text(settings.read_text().replace('format = "json"', 'format = "ndjson"'))
    assert call(raw)[0] == 3
    rebuilt = CliRunner().invoke(command, ["--config", str(settings), "rebuild"])
    assert (rebuilt.exit_code, rows_of(raw)) == (0, Counter(["a", *ids("line")])), rebuilt.output
    assert CliRunner().invoke(command, ["--config", str(settings), "verify", "--deep"]).exit_code == 0


def test_redriven_elements_are_lines(raw: Path) -> None:
    """An array that was rejected as an element is refused again, and its elements do not become rows."""
    write(raw, "rows.json", b'[{"id":"a"}, {"id":"b"}, [{"id":\n"no"}, {"id":"no"}]]')
    assert call(raw, "--format", "json")[0] == 0
    settings = f"{raw}-rows.compactor/compactor.toml"
    redriven = CliRunner().invoke(command, ["--config", settings, "redrive", "rejects"])
    assert (redriven.exit_code, "still invalid" in redriven.output) == (3, True)
    _, output = call(raw, "--json")
    assert verified(output)["files_by_status"] == {"compacted": 1}
    assert rows_of(raw) == Counter("ab")


def test_a_call_that_brings_few_rows_says_so(raw: Path) -> None:
    """Also if earlier calls brought many; a call without new files goes by all of them."""
    write(raw, "good", lines("good", 9))
    assert call(raw)[0] == 0
    write(raw, "bad", b"one\ntwo\n")
    code, output = call(raw)
    assert (code, EXPECTED in output, READ_IT in output) == (3, True, False)
    assert call(raw)[0] == 0
    write(raw, "worse", b"bad\n" * 9)
    assert [call(raw)[0], call(raw)[0]] == [3, 3]


def test_there_are_forty() -> None:
    """Each kind of file is there, under its own name."""
    assert len({case.name for case in CASES}) == len(CASES) >= 40
    assert [case.name for case in CASES if case.code == NO_DATA] == ["empty"]
