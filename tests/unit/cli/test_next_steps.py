"""What to do about input that waits for a person: compact, verify, status, report, trace and the documents agree."""

import gzip
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compactor.core.documents.manifest import REASONS
from compactor.core.documents.records import NEEDS_OPERATOR, FileStatus
from compactor.core.rules.next_steps import (
    READ_AS_JSON,
    Cause,
    cause_of,
    giving_up,
    left_out_cause,
    letter_step,
    letter_steps,
    next_step,
    quarantined_steps,
)
from compactor.core.text.safe_text import Suggestions
from compactor.sources.candidates import LINKS
from tests.support import extras
from tests.support.terminals import call

DOCS = Path(__file__).parents[3] / "docs"
DISMISS = "compactor dismiss --in rows"
FOLDER = Suggestions("rows", "compactor compact SRC rows")
LEFT_OUT = (
    "replaced",
    "compressed",
    "forbidden",
    "changed",
    "undecided",
    "unfinished",
    "unsettled",
    "bad_name",
    *LINKS,
)
OF_FILES = [*(Cause(str(status)) for status in sorted(NEEDS_OPERATOR)), Cause.JSON, Cause.RANGE]  # type: ignore[call-arg]
ROWS = b"".join(b'{"id": %d}\n' % number for number in range(400))

# By cause: the content of a file that is quarantined for it, and the settings with which it is.
STRAYS: dict[Cause, tuple[str, bytes, dict[str, str]]] = {
    Cause.NOT_NDJSON: ("b.csv", b"a,b\n1,2\n", {}),
    Cause.JSON: ("b.json", b'[{"id": 1},\n{"id": 2}]', {}),
    Cause.UNREADABLE: ("b.gz", gzip.compress(ROWS)[:60], {}),
    Cause.TOO_LARGE: ("b.ndjson", ROWS, {"INPUT__MAX_DECOMPRESSED_BYTES": "100"}),
    Cause.TOO_MANY_REJECTS: (
        *("b.ndjson", b"no\n" * 3 + ROWS),
        {"INPUT__MAX_REJECTED_LINES": "1", "INPUT__ON_TOO_MANY_REJECTS": "quarantine"},
    ),
}


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    return put(tmp_path / "raw" / "a.ndjson", b'{"id": 1}\n').parent


def put(path: Path, data: bytes, *, days: float = 2) -> Path:
    path.write_bytes(data)
    os.utime(path, (time.time() - 86_400 * days,) * 2)
    return path


def document(*words: object) -> Any:
    return json.loads(call(*map(str, words), "--json").stdout)


def next_lines(output: str) -> list[str]:
    return re.findall(r"^next +(.*)$", output, re.MULTILINE)


@extras.NATIVE.needed
@pytest.mark.parametrize("cause", STRAYS)
def test_all_commands_agree(raw: Path, monkeypatch: pytest.MonkeyPatch, cause: Cause) -> None:
    """They say the same in the same words; trace adds the file and its manifest."""
    name, data, settings = STRAYS[cause]
    for key, value in settings.items():
        monkeypatch.setenv(f"COMPACTOR_{key}", value)
    path, rows = put(raw / name, data), raw.with_name("rows")
    again = call("compact", "raw", "rows")
    assert again.exit_code == 3
    expected = quarantined_steps({cause: 1}, Suggestions(str(rows), f"compactor compact {raw} {rows}"), [str(path)])
    assert next_lines(again.stdout) == next_lines(call("verify", "rows").stdout) == expected
    status, report = document("status", "rows")["state"], document("report", "rows")["verdict"]["points"]
    assert status["next_move"] == "; ".join(expected)
    assert [each["next_move"].replace("`", "") for each in report] == [status["next_move"]]
    traced = document("trace", "--in", "rows", path)
    manifest_id = traced["manifest_id"]
    told = ", then ".join([*traced["fixes"], *traced["next_moves"][:-1]]).replace(f" --manifest {manifest_id}", "")
    assert told == expected[0]
    assert traced["next_moves"][-1] == f"compactor dismiss --in {rows} {path} --why <TEXT>"
    assert {call(*words).exit_code for words in (("status", "rows"), ("status", "rows", "--json"))} == {3}


@extras.NATIVE.needed
def test_a_replaced_file(raw: Path) -> None:
    """All commands say the same of it, until it is given up, as it was, gone, or compacted."""
    assert call("compact", "raw", "rows").exit_code == 0
    good, rows = (raw / "a.ndjson").read_bytes(), raw.with_name("rows")
    moment = (raw / "a.ndjson").stat().st_mtime_ns
    path = put(raw / "a.ndjson", b'{"id": 2}\n', days=1)
    made = call("compact", "raw", "rows")
    suggest = Suggestions(str(rows), f"compactor compact {raw} {rows}")
    expected = quarantined_steps({Cause.REPLACED: 1}, suggest, [str(path)])
    assert next_lines(made.stdout) == next_lines(call("verify", "rows").stdout) == expected
    assert document("status", "rows")["state"]["next_move"] == "; ".join(expected)
    traced, move = document("trace", "--in", "rows", path), next_step(Cause.REPLACED, suggest)
    assert (traced["fixes"], traced["next_moves"]) == (
        [move.fix],
        [*move.commands, giving_up(Cause.REPLACED, suggest, str(path))],
    )
    asked = [["compact", "raw", "rows"], ["verify", "rows"], ["status", "rows"], ["report", "rows"]]
    asked.append(["trace", "--in", "rows", str(path)])
    codes = lambda: {call(*words).exit_code for words in asked}  # noqa: E731
    assert codes() == {3}
    path.write_bytes(good)
    os.utime(path, ns=(moment, moment))
    assert codes() == {0}
    put(path, b'{"id": 2}\n', days=1)
    assert codes() == {3}
    assert call("dismiss", "--in", "rows", str(path), "--why", "known").exit_code == 0
    assert codes() == {0}
    put(path, b'{"id": 3}\n', days=1)  # only the version before was given up
    assert codes() == {3}
    gone = path.rename(raw.with_name("a.ndjson"))
    assert codes() == {0}
    gone.rename(path)
    assert codes() == {3}
    assert call("compact", "raw", "rows", "--on-replaced", "rebuild").exit_code == 0
    assert codes() == {0}


def test_each_status_and_reason_has_a_cause() -> None:
    """No input waits without a next move."""
    assert {cause_of("/a", status, "") for status in NEEDS_OPERATOR} == set(OF_FILES) - {Cause.JSON, Cause.RANGE}
    assert cause_of("/a", FileStatus.NOT_NDJSON, f"looks like one JSON array; {READ_AS_JSON}") is Cause.JSON
    assert cause_of("kafka://c/t/0?from=0&to=2", FileStatus.MISSING, "gone") is Cause.RANGE
    assert {left_out_cause(reason) for reason in LEFT_OUT} == set(Cause) - set(OF_FILES)


@pytest.mark.parametrize("suggest", [FOLDER, Suggestions()], ids=["folder", "job"])
@pytest.mark.parametrize("cause", Cause)
def test_each_step_names_a_command(cause: Cause, suggest: Suggestions) -> None:
    """What is quarantined can be given up; what is left out is found again by the next call."""
    move = next_step(cause, suggest, "m1")
    assert move.commands
    assert all(command.startswith("compactor ") for command in move.commands)
    if cause in OF_FILES:
        lines = quarantined_steps(Counter({cause: 2}), suggest)
        assert lines[0] == next_step(cause, suggest).text
        assert giving_up(cause, suggest) in lines[-1]
        assert suggest.again_with() in move.commands[-1]
    elif suggest is FOLDER:
        assert all(command.startswith(FOLDER.again) for command in move.commands)
    else:
        option = " --on-replaced append" if cause is Cause.REPLACED else ""
        assert move.commands == (f"compactor plan <PREFIX>{option}",)


@pytest.mark.parametrize("suggest", [FOLDER, Suggestions(failed="/w/failed/")], ids=["folder", "job"])
@pytest.mark.parametrize("reason", REASONS)
def test_each_dead_letter_has_a_next_step(reason: str, suggest: Suggestions) -> None:
    """It is redriven or given up; the document names the file to correct, and calls of `dismiss` in the same way."""
    move = letter_step(reason, "m1", suggest)
    [row] = [row for row in cells("not-processed.md", "Dead letters: `") if row[0] == f"`{reason}`"]
    assert (move.fix == f"correct {suggest.failed}m1.json") == (row[2].startswith("correct"))
    is_given_up = move.commands[0].startswith("compactor dismiss ")
    assert is_given_up or any(command.startswith("compactor redrive manifests ") for command in move.commands)
    assert bool(suggest.again) == move.commands[-1].startswith("compactor compact ") or is_given_up
    lines = letter_steps([(reason, "m1"), (reason, "m2")], suggest)
    assert lines[0].startswith(f"2 {reason}: ")
    assert any("compactor dismiss " in line for line in lines)


def test_several_causes() -> None:
    """The most frequent one comes first; giving up is said once."""
    found = quarantined_steps({Cause.UNREADABLE: 1, Cause.NOT_NDJSON: 3, Cause.RANGE: 1}, FOLDER)
    missing = quarantined_steps({Cause.MISSING: 1}, FOLDER)
    assert (
        missing[-1] == "or give it up: compactor compact SRC rows, or compactor dismiss --in rows <FILE> --why <TEXT>"
    )
    assert found == [
        "3 not_ndjson: convert it to NDJSON under its name, then compactor compact SRC rows",
        f"1 range: check that its brokers respond, then compactor redrive files --in rows, then {FOLDER.again}",
        "1 unreadable: have it delivered complete under its name, then compactor compact SRC rows",
        f"or give it up: remove it, or {DISMISS} <FILE> --why <TEXT>, or {DISMISS} <RANGE> --why <TEXT>",
    ]


def cells(name: str, heading: str) -> Iterator[list[str]]:
    """The cells of all rows of the tables below a heading of a document."""
    below = (DOCS / name).read_text().partition(f"# {heading}")[2]
    for line in below.partition("\n#")[0].splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def in_operate(cause: Cause) -> str:
    """What the row of a status says; `redrive` in it is the command of the section."""
    [row] = [
        row
        for row in cells("not-processed.md", "Files: `compactor redrive files`")
        if row[0] == f"`{FileStatus(str(cause))}`"
    ]
    return re.sub(r"(?<!compactor )redrive\b", "compactor redrive files", row[2])


def in_folder(cause: Cause) -> str:
    [row] = [row for row in cells("folder.md", "Quarantined files") if row[0].startswith(f"`{cause}`")]
    return row[1]


@pytest.mark.parametrize(
    ("told", "cause"), [(in_operate, each) for each in OF_FILES if each in set(map(str, FileStatus))]
)
def test_the_documents_say_the_same_of_jobs(told: Callable[[Cause], str], cause: Cause) -> None:
    """The table of statuses begins with the fix, and names each command."""
    text = told(cause).replace("`", "")
    move = next_step(cause, Suggestions())
    assert text.startswith(move.fix)
    assert all(command in text for command in move.commands)


@pytest.mark.parametrize("cause", [*STRAYS, Cause.MISSING, Cause.FORBIDDEN, Cause.REPLACED])
def test_the_documents_say_the_same_of_folders(cause: Cause) -> None:
    """The table has the whole step, for SRC and DST."""
    suggest = Suggestions("DST", "compactor compact SRC DST")
    assert in_folder(cause).replace("`", "") == next_step(cause, suggest).text
