"""Lines that are not one JSON object: each is rejected with its exact bytes, and its neighbours become rows."""
# ruff: noqa: E501 - tables read best in full lines

import json

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from compactor.ndjson.inspection import BLANK
from compactor.wiring.opening import job_registry
from tests.support.torture_lines import BAD_LINES

MAX_LINE_BYTES = 4096


def test_bad_lines_are_rejected_and_their_neighbours_kept(new_workspace):
    """Each bad line is a reject with file, line number, offset, reason and bytes; every line around it is a row."""
    workspace = new_workspace()
    lines: list[bytes] = []
    for number, (bad, _) in enumerate(BAD_LINES):
        lines += [b'{"id":"%d before"}' % number, bad, b'{"id":"%d after"}\r' % number]
    compacted = workspace.compact(
        {"all": b"\n".join(lines), "last": b'{"id":"good"}\n{"id":', "clean": b'{"id":"clean"}'}
    )
    good = {f"{number} {side}" for number in range(len(BAD_LINES)) for side in ("before", "after")}
    assert set(compacted.by("id")) == good | {"good", "clean"}
    found = [(row["line_number"], row["reason"], row["raw"]) for row in compacted.rejects[:-1]]
    assert found == [(3 * number + 2, reason, bad) for number, (bad, reason) in enumerate(BAD_LINES)]
    for row in compacted.rejects[:-1]:
        assert row["source_uri"] == workspace.raw + "all"
        assert row["byte_offset"] == len(b"\n".join([*lines[: row["line_number"] - 1], b""]))
    last = compacted.rejects[-1]
    assert (last["source_uri"], last["line_number"], last["raw"]) == (workspace.raw + "last", 2, b'{"id":')


def test_over_long_lines_are_rejected_in_pieces(new_workspace):
    """A line that is longer than allowed is kept whole, in pieces; one of just that length is a row."""
    workspace = new_workspace(input={"max_line_bytes": MAX_LINE_BYTES})
    longest = b'{"id":"%s"}' % (b"x" * (MAX_LINE_BYTES - 9))
    too_long = b'{"id":"%s"}' % (b"y" * 10_000)
    compacted = workspace.compact({"a": b"\n".join([longest, too_long, b'{"id":"z"}'])})
    assert {len(record["id"]) for record in compacted.records} == {1, MAX_LINE_BYTES - 9}
    assert b"".join(row["raw"] for row in compacted.rejects) == too_long
    assert [len(row["raw"]) for row in compacted.rejects] == [4096, 4096, 1817]


def test_numbers_beyond_a_double_are_not_lost(workspace):
    """A number that no double holds is a value like any other, kept as it is written."""
    lines = [b'{"id":1e400}', b'{"id":%s}' % (b"7" * 400), b'{"id":"x"}']
    compacted = workspace.compact({"a": b"\n".join(lines)})
    assert {record["id"] for record in compacted.records} == {"1e400", "7" * 400, "x"}
    assert not compacted.rejects


GOOD_LINES = st.sampled_from(
    [b'{"a":1}', b'{"a":"\xc3\xa9","b":[1, 2]}', b' {"b" : {"c":"\\u00e9"}} ', b"{}", b'{"a":null}\r', b'{"":"\\n"}']
)
PIECES = st.sampled_from([b"{", b"}", b'"', b":", b",", b"[", b"]", b"\n", b"\r", b" ", b"\\", b"\\u", b"\xff", b"\xef\xbb\xbf",
                          b"\x00", b"1", b"-", b"e", b"null", b"\x1f\x8b\x08", b"\xc3", b"/", b"'", b"NaN", b"\t"])  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Good lines, a few bytes of which are cut out or replaced."""
    data = b"\n".join(draw(st.lists(GOOD_LINES, max_size=5)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(PIECES) + data[at + draw(st.integers(0, 2)) :]
    return data


def is_object(line: bytes) -> bool:
    """What Python's own parser says; on lines like these it agrees with the standard but for NaN and surrogates."""
    try:
        text = line.decode()
        document = json.loads(text, parse_constant=float)
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "NaN" not in text


@seed(20251221)
@settings(
    max_examples=2,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(st.one_of(st.binary(max_size=60), mutated(), mutated()), min_size=30, max_size=50))
def test_any_bytes_become_rows_rejects_or_blanks(new_workspace, drawn):
    """Whatever bytes a file holds, its lines are rows, rejects or blanks, and each reject is a line as it was."""
    workspace = new_workspace(schema={"metadata_columns": ["_source_file"]})
    compacted = workspace.compact({f"{number:03d}": data for number, data in enumerate(drawn)})
    for number, data in enumerate(drawn):
        uri = f"{workspace.raw}{number:03d}"
        report = compacted.report(f"{number:03d}")
        if report.status != "compacted":
            assert report.codec != "none" or report.status == "not_ndjson"
            continue
        text = data.removeprefix(b"\xef\xbb\xbf")
        lines = text.split(b"\n") if text else []
        if lines and not lines[-1]:
            lines.pop()
        rows = sum(row["_source_file"] == uri for row in compacted.rows)
        rejects = {row["line_number"]: row["raw"] for row in compacted.rejects if row["source_uri"] == uri}
        blank = sum(not line.strip(BLANK) for line in lines)
        assert (rows, report.blank_lines) == (sum(map(is_object, lines)), blank), data
        assert rejects == {at: line for at, line in enumerate(lines, 1) if line.strip(BLANK) and not is_object(line)}, (
            data
        )


@pytest.mark.parametrize("data", [b"", b"\n\n \t\r\n", b"nothing good\n"], ids=["empty", "blank", "bad"])
def test_a_manifest_may_hold_no_record(workspace, data):
    """Files without one record are a commit without output."""
    compacted = workspace.compact({"a": data})
    assert compacted.commit.outputs == []
    assert len(compacted.rejects) == (1 if data.startswith(b"nothing") else 0)


def test_a_file_with_too_many_rejects(new_workspace):
    """It is quarantined with samples beside good neighbours; or its rows are kept, and all its lines accounted for."""
    data = b'{"id":"1"}\n' + b"bad\n" * 60 + b'{"id":"2","%s":3}\n' % (b"k" * 300)
    files = {"good": b'{"id":"3"}\nflawed\n', "bad": data, "also": b'{"id":"4"}'}
    workspace = new_workspace(input={"max_rejected_lines": 50})
    compacted = workspace.compact(files)
    assert sorted(row["id"] for row in compacted.rows) == ["3", "4"]
    assert (compacted.report("bad").status, compacted.report("bad").reject_rows) == ("too_many_rejects", 50)
    assert len(compacted.rejects) == 51
    keeping = new_workspace(input={"max_rejected_lines": 50, "on_too_many_rejects": "keep_rows"})
    compacted = keeping.compact(files)
    assert sorted(row["id"] for row in compacted.rows) == ["1", "2", "3", "4"]
    bad = compacted.report("bad")
    assert (bad.rejected_lines, bad.unkept_rejects, bad.reject_rows) == (60, {"invalid_json": 10}, 50)
    assert len(compacted.rejects) == 51


def test_a_place_of_a_retired_column(new_workspace):
    """A column of the running job is retired: its key is rescued, and another key has the place."""
    workspace = new_workspace(schema={"max_columns": 2})
    workspace.compact({"a": b'{"id":"1","junk":2}'}, "m1")
    job_registry(workspace.app).retire(["junk"])
    assert workspace.compact({"b": b'{"id":"2","junk":3,"new":4,"more":5}'}, "m2").rows == [
        {"id": "2", "new": "4", "_rescued_data": [("junk", "3"), ("more", "5")]}
    ]
