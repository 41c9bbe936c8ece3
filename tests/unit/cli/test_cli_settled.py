"""A quarantined version of a file is settled by rows of a later version, and all commands say so."""

import gzip
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from compactor import trace, verify
from compactor.adapters.local.machine import person
from compactor.adapters.local.store import LocalStore
from compactor.core.errors import AccessError, ExitCode
from compactor.core.ports import ObjectInfo
from compactor.sources.folders.waiting import PatientPlanner
from compactor.sources.plan import Plan
from tests.support import extras
from tests.support.terminals import call

pytestmark = extras.NATIVE.needed

ROWS = b"".join(b'{"id": %d}\n' % number for number in range(400))
CUT = gzip.compress(ROWS)[:60]
QUESTIONS = {"verify": ["verify", "rows"], "report": ["report", "rows"], "again": ["compact", "raw", "rows"]}


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one good file, which is the current one's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    put(tmp_path / "raw" / "a.ndjson", b'{"id": 1000}\n', days=9)
    return tmp_path / "raw"


def put(path: Path, data: bytes, *, days: float) -> Path:
    """A file of some days ago."""
    path.write_bytes(data)
    os.utime(path, (time.time() - 86_400 * days,) * 2)
    return path


def document(*arguments: object) -> Any:
    return json.loads(call(*map(str, arguments), "--json").stdout)


def codes(path: Path) -> dict[str, int]:
    """How the commands end that ask of the destination and of one file."""
    asked = QUESTIONS | {"trace": ["trace", "--in", "rows", str(path)]}
    return {name: call(*words).exit_code for name, words in asked.items()}


def compact(*options: str) -> int:
    return call("compact", "raw", "rows", *options).exit_code


def open_files() -> set[int]:
    """How many quarantined files wait for a person, as each command counts them."""
    status, report = document("status", "rows")["quarantined_files"], document("report", "rows")["quarantined_files"]
    verified = verify("rows").quarantined_files
    redriven = document("redrive", "files", "--in", "rows", "--dry-run")
    return {
        status["open"],
        sum(not (each["settled_by"] or each["redriven"]) for each in report["latest"]),
        sum(not each.is_settled for each in verified),
        sum(each["files"] for each in redriven["redriven"]) + len(redriven["refused"]),
    }


def test_a_file_that_is_delivered_whole_later(raw: Path) -> None:
    """A second broken version settles nothing; a whole one settles both, whatever its time is, and though it goes."""
    path = put(raw / "b.ndjson", CUT, days=2)
    assert compact() == 3
    put(path, CUT[:-1], days=1)
    assert compact() == 3
    assert set(codes(path).values()) == {3}
    assert open_files() == {2}
    assert [each.settled_by for each in trace("rows", path).quarantined] == ["", ""]
    put(path, gzip.compress(ROWS), days=5)
    assert compact() == 0
    told = trace("rows", path)
    for _ in range(2):
        assert set(codes(path).values()) == {0}
        assert open_files() == {0}
        path.unlink(missing_ok=True)
    assert (told.state, told.rows, [each.settled_by for each in told.quarantined]) == (
        "done",
        400,
        [told.manifest_id] * 2,
    )
    state, verdict = document("status", "rows")["state"], document("report", "rows")["verdict"]
    assert (state["word"], verdict["severity"], verdict["points"]) == ("idle", "in_order", [])
    assert "Redrove 0 files of 0 manifests" in call("redrive", "files", "--in", "rows").output
    for each in told.quarantined:
        assert call("trace", "--in", "rows", each.manifest_id).exit_code == 0
        assert document("trace", "--in", "rows", each.manifest_id)["next_moves"] == []
        assert verify("rows", manifest_id=each.manifest_id).complete
        assert (
            "a later version was compacted"
            in call("redrive", "files", "--in", "rows", "--manifest", each.manifest_id).output
        )
    assert "unreadable in manifest" in call("trace", "--in", "rows", str(path)).output


def test_an_earlier_version_settles_nothing(raw: Path) -> None:
    """Nor does it help that the file is gone. An empty line in its place says that its lines are given up."""
    path = put(raw / "b.ndjson", ROWS, days=2)
    assert compact() == 0
    put(path, CUT, days=1)
    assert compact("--on-replaced", "append") == 3
    assert open_files() == {1}
    path.unlink()
    assert set(codes(path).values()) == {3}
    assert open_files() == {1}
    put(path, b"\n", days=0.5)
    assert compact("--on-replaced", "append") == 0
    assert set(codes(path).values()) == {0}
    assert open_files() == {0}


STRAY = b"a,b\n1,2\n"


def test_a_stray_file_that_is_removed(raw: Path) -> None:
    """The next call says so in one line and ends well; it counts again if it comes back, and no longer if it goes."""
    path = put(raw / "b.csv", STRAY, days=2)
    assert compact() == 3
    assert compact() == 3
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.unlink()
    assert call("verify", "rows").exit_code == 3
    assert open_files() == {1}
    said = call("compact", "raw", "rows")
    assert said.exit_code == 0
    assert re.findall("^settled +(.*)", said.output, re.MULTILINE) == [
        f"{path} is gone, which settles it: it had no rows"
    ]
    assert "settled" not in call("compact", "raw", "rows").output
    assert set(codes(path).values()) == {0}
    assert open_files() == {0}
    [file] = trace("rows", path).quarantined
    assert (file.dismissed, file.settled_by.partition(" at ")[0]) == ("removed", f"found removed by {person()}")
    path.write_bytes(STRAY)
    os.utime(path, ns=times)
    assert set(codes(path).values()) == {3}
    assert document("compact", "raw", "rows")["planned_before"] == 2
    path.unlink()
    assert set(codes(path).values()) == {0}
    path.write_bytes(STRAY)
    os.utime(path, ns=times)
    assert call("dismiss", "--in", "rows", str(path), "--why", "not a log").exit_code == 0
    assert set(codes(path).values()) == {0}  # whether the file is there or not


def test_a_stray_file_in_a_folder_that_is_renamed(raw: Path) -> None:
    """It counts once, under its new name."""
    put(raw / "b.csv", STRAY, days=2)
    assert compact() == 3
    raw.rename("moved")
    assert call("compact", "moved", "rows").exit_code == 3
    assert [each.uri for each in verify("rows").open_files] == [str(raw.parent / "moved" / "b.csv")]


def test_what_is_not_settled_by_itself(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another source, one that may not be asked for, and one that was gone before its call could read it."""
    stray = put(raw / "b.csv", STRAY, days=2)
    assert compact() == 3
    stray.unlink()
    (raw.parent / "other").mkdir()
    put(raw.parent / "other" / "c.ndjson", ROWS, days=2)
    assert call("compact", "other", "rows").exit_code == 3
    with monkeypatch.context() as patched:
        real = LocalStore.stat

        def stat(store: LocalStore, uri: str) -> ObjectInfo | None:
            if uri.endswith("b.csv"):
                raise AccessError(uri)
            return real(store, uri)

        patched.setattr(LocalStore, "stat", stat)
        assert compact() == 3
    assert compact() == 0
    brief = put(raw / "d.ndjson", ROWS, days=2)
    plan = PatientPlanner.plan

    def then_gone(*words: Any, **options: Any) -> Plan:
        planned = plan(*words, **options)
        brief.unlink(missing_ok=True)
        return planned

    monkeypatch.setattr(PatientPlanner, "plan", then_gone)
    assert compact() == 3
    assert compact() == 0


def test_a_stray_file_that_is_dismissed(raw: Path) -> None:
    """Who, when and why is shown by all commands, which need no person any more; a good version is taken later."""
    path = put(raw / "b.csv", STRAY, days=2)
    assert compact() == 3
    words = ["dismiss", "--in", "rows", "raw/b.csv", "--why", "not a log"]
    assert call(*words, "--dry-run").exit_code == 0
    assert set(codes(path).values()) == {3}
    redriven = call("redrive", "files", "--in", "rows")
    assert (redriven.exit_code, "expected a new version" in redriven.output) == (3, True)
    assert f"{path}: not_ndjson in manifest " in call(*words).output
    assert set(codes(path).values()) == {0}
    assert open_files() == {0}
    shown = f"dismissed by {person()} at "
    [file] = verify("rows").quarantined_files
    assert (file.settled_by.startswith(shown), file.settled_by.endswith(": not a log")) == (True, True)
    assert shown in call("trace", "--in", "rows", "raw/b.csv").output
    assert re.search("^settled files +1 dismissed$", call("verify", "rows").output, re.MULTILINE)
    assert "; 1 dismissed" in call("status", "rows").output
    assert call("report", "rows", "--out", "page.html").exit_code == 0
    assert shown in Path("page.html").read_text()
    again = call(*words)
    assert (again.exit_code, f"{path}: not quarantined: {shown}" in again.output) == (3, True)
    put(path, b'{"id": 7}\n', days=1)
    assert compact() == 0
    assert trace("rows", path).rows == 1


def test_a_stray_file_that_is_excluded(raw: Path) -> None:
    """It is settled, on record, in this call and all later ones, which count it as skipped."""
    path = put(raw / "b.csv", STRAY, days=2)
    assert compact() == 3
    said = call("compact", "raw", "rows", "--exclude", "*.txt", "--exclude", "raw/*.csv")
    assert said.exit_code == 0
    assert re.search(rf"^settled +{path} is excluded, which settles it$", said.output, re.MULTILINE)
    assert f'input.exclude = ["*.txt", "{raw}/*.csv"]' in said.output
    assert re.search(r"^skipped +b.csv \(excluded\)$", said.output, re.MULTILINE)
    put(raw / "c.csv", STRAY, days=1)
    assert document("compact", "raw", "rows")["skipped"] == {"excluded": 2}
    assert set(codes(path).values()) == {0}
    assert [each.dismissed for each in trace("rows", path).quarantined] == ["excluded"]
    assert call("compact", "raw", "rows", "--exclude", "*.gz").exit_code == 0
    settings = raw.parent / "rows.compactor" / "compactor.toml"
    kept = settings.read_text()
    assert f'exclude = ["*.txt", "{raw}/*.csv", "*.gz"]' in kept
    settings.write_text(kept.replace(f'"{raw}/*.csv", ', ""))
    assert set(codes(path).values()) == {3}  # it counts only while the settings exclude it


def test_a_folder_of_which_all_is_excluded(raw: Path) -> None:
    """The first call says so."""
    refused = call("compact", "raw", "rows", "--exclude", str(raw))
    assert (refused.exit_code, "(1 excluded file)" in refused.stderr) == (2, True)


@pytest.mark.usefixtures("raw")
def test_what_cannot_be_dismissed() -> None:
    """A file that has rows, one that no record names, and a range of a topic."""
    assert compact() == 0
    for name, why in [
        ("raw/a.ndjson", "not quarantined: done: "),
        ("raw/none", "not quarantined: unknown: "),
        ("kafka://main/events/0?from=0&to=2", "not quarantined: unknown: "),
    ]:
        refused = call("dismiss", "--in", "rows", name, "--why", "late")
        assert (refused.exit_code, why in refused.output) == (3, True), refused.output
    assert "`compactor verify " in call("dismiss", "--in", "rows", "raw/none", "--why", "late").output
    assert call("dismiss", "--in", "rows", "--why", "late").exit_code == 2
    assert "rows is an output of `compact`" in call("dismiss", "rows", "--why", "late").output


def test_lost_output_that_is_dismissed(raw: Path) -> None:
    """Only what cannot be rebuilt, of a manifest that is named; all commands then show it, and ask for nothing."""
    path = raw / "a.ndjson"
    assert compact() == 0
    [output] = raw.with_name("rows").glob("*/*.parquet")
    manifest_id = trace("rows", path).manifest_id
    words = ["dismiss", "--in", "rows", "--why", "too late", "--yes", "--manifest", manifest_id]
    assert "no files were quarantined" in call(*words).output
    output.unlink()
    refused = call(*words)
    assert (refused.exit_code, "Gave up nothing" in refused.output, "compactor rebuild" in refused.output) == (
        ExitCode.NEEDS_OPERATOR,
        True,
        True,
    )
    assert set(codes(output).values()) == {0, 3}
    moment = path.stat().st_mtime_ns
    path.unlink()
    asked = [QUESTIONS["verify"], ["trace", "--in", "rows", str(output)], ["trace", "--in", "rows", manifest_id]]
    asked += [["trace", "--in", "rows", str(path)], ["rebuild", "rows"]]
    assert [call(*each).exit_code for each in asked] == [3] * len(asked)
    assert document(*asked[1])["next_moves"][0].startswith("compactor rebuild ")
    assert call(*words, "--dry-run").exit_code == 0
    assert f"Gave up 1 lost file with 1 line\n  {output}: 1 line of manifest {manifest_id}" in call(*words).output
    assert [call(*each).exit_code for each in asked] == [0] * len(asked)
    assert document(*asked[1])["next_moves"] == []
    shown = f"dismissed by {person()} at "
    for each in asked[:-1]:
        assert shown in call(*each).output
    assert "1 expired or given up" in call("rebuild", "rows").output
    assert "(1 lost and dismissed)" in call("verify", "rows").output
    put(path, b'{"id": 1000}\n', days=9)
    os.utime(path, ns=(moment, moment))
    assert call("rebuild", "rows", "--manifest", manifest_id, "--force").exit_code == 0
    assert trace("rows", output).state == "done"
    output.unlink()
    assert call("verify", "rows").exit_code == ExitCode.NEEDS_OPERATOR  # only the earlier generation was given up


def test_samples_of_a_version_that_is_settled(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rejects` shows lines of a file with too many rejects until a better version has rows."""
    monkeypatch.setenv("COMPACTOR_INPUT__MAX_REJECTED_LINES", "100")
    monkeypatch.setenv("COMPACTOR_INPUT__ON_TOO_MANY_REJECTS", "quarantine")
    path = put(raw / "b.ndjson", b"no\n" * 101 + ROWS, days=2)
    assert compact() == 3
    assert "1 file quarantined completely" in call("rejects", "rows").output
    put(path, b"no\n" * 3 + ROWS, days=1)
    assert compact() == 0
    found = document("rejects", "rows")
    assert (found["lines"], [each["is_sample"] for each in found["rejects"]]) == (3, [False] * 3)
    assert "quarantined" not in call("rejects", "rows").output
    assert document("verify", "rows")["rejected_lines"] == 3
