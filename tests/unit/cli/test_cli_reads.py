"""Promises of plan, status, verify, trace and clean: their text, their JSON and their exit codes."""

import json
import os
import re
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.cli.commands.job import plan as plan_module
from compactor.cli.ui.output import SHOWN
from tests.support.workspace import DAY, FLAWED, GOOD, Workspace, make_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Two input files, one of them with a bad line, and nothing planned."""
    return make_workspace(tmp_path)


def test_plan_as_json(workspace: Workspace) -> None:
    """A plan names each manifest with its day, its files and their bytes."""
    document, code = workspace.json("plan", str(workspace.root / "raw"))
    assert code == 0
    [manifest] = document.pop("manifests")
    assert manifest.pop("manifest_id").startswith(DAY)
    assert manifest == {"date": DAY, "files": 2, "bytes": len(GOOD) + len(FLAWED)}
    [dated] = document.pop("dated")
    assert (dated["rule"], dated["files"], dated["first_date"], dated["last_date"]) == ("name", 2, DAY, DAY)
    left = {
        "touched": 0,
        "renamed": 0,
        "grown": 0,
        "left_out": [],
        "held": 0,
        "held_until": None,
        "left_manifests": 0,
        "left_files": 0,
        "stalled": False,
        "inventory": None,
        "log": None,
    }
    assert document == {"dry_run": False, "skipped": {}, "planned_before": 0, "misdated": 0, **left}


def test_plan_of_files_that_changed(workspace: Workspace) -> None:
    """A touched or renamed file is known, of a grown one the new line is planned, and a replaced one is left out."""
    raw, day = workspace.root / "raw", f"{DAY}-"
    for name in ("touched", "renamed", "grown", "replaced"):
        (raw / f"{day}{name}.ndjson").write_text(f'{{"id": "{name}"}}\n')
    workspace.plan()
    workspace.compact()
    os.utime(raw / f"{day}touched.ndjson", (time.time() - 3600,) * 2)
    (raw / f"{day}renamed.ndjson").rename(raw / f"{day}new-name.ndjson")
    with (raw / f"{day}grown.ndjson").open("a") as file:
        file.write('{"id": "more"}\n')
    (raw / f"{day}replaced.ndjson").write_text('{"id": "other"}\n')
    document, code = workspace.json("plan", str(raw))
    assert [document[name] for name in ("touched", "renamed", "grown", "planned_before")] == [1, 1, 1, 4]
    assert ([each["reason"] for each in document["left_out"]], code) == (["replaced"], 3)
    shown = workspace.call("plan", str(raw))
    again = f"compactor plan {raw} --on-replaced append"
    assert again in shown.stdout
    assert again in workspace.call("verify").stdout
    document, code = workspace.json("plan", str(raw), "--on-replaced", "append")
    assert (sum(each["files"] for each in document["manifests"]), code) == (1, 0)


def test_plan_in_steps(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option and the usual limit bound a plan, which says what is left and which dates are wrong."""
    for day in ("2025-12-20", "9999-12-31"):
        (workspace.root / "raw" / f"{day}-x\x1b[2J.ndjson").write_bytes(GOOD)
    first = workspace.call("plan", str(workspace.root / "raw"), "--max-manifests", "1").stdout
    assert "Wrote 1 manifest of 1 file" in first
    assert "Left for the next plan: 2 manifests of 3 files; run the command again\n" in first
    document, code = workspace.json("plan", str(workspace.root / "raw"), "--dry-run", "--max-manifests", "1")
    assert (len(document["manifests"]), document["left_manifests"], document["left_files"], code) == (1, 1, 1, 0)
    monkeypatch.setattr(plan_module, "MAX_MANIFESTS_PER_PLAN", 1)
    shown = workspace.call("plan", str(workspace.root / "raw"), "--dry-run").stdout
    assert "Left for the next plan: 1 manifest of 1 file;" in shown
    monkeypatch.undo()
    rest = workspace.call("plan", str(workspace.root / "raw")).stdout
    assert "Dated by arrival: 1 file with a date before 2000, or over 31 days after arrival, in the name" in rest
    assert "\x1b" not in rest


def test_plan_twice(workspace: Workspace) -> None:
    """A second plan writes nothing, and says that all is planned."""
    workspace.plan()
    document, code = workspace.json("plan", str(workspace.root / "raw"))
    assert (document["manifests"], document["planned_before"], code) == ([], 2, 0)
    assert "Already in a manifest: 2 files" in workspace.call("plan", str(workspace.root / "raw")).stdout


def test_plan_dry_run(workspace: Workspace) -> None:
    """A dry run shows what would be written, and writes nothing."""
    before = sorted(workspace.root.rglob("*"))
    result = workspace.call("plan", str(workspace.root / "raw"), "--dry-run")
    assert result.stdout.startswith(f"Would write 1 manifest of 2 files (55 bytes) to {workspace.root}/m/\n")
    assert sorted(workspace.root.rglob("*")) == before


@pytest.mark.parametrize(
    ("option", "reason"), [(("--date", "2025-12-22"), "other_date"), (("--since", "2999-01-01T00:00:00Z"), "too_old")]
)
def test_plan_less(workspace: Workspace, option: tuple[str, str], reason: str) -> None:
    """--date and --since leave files out, and say how many."""
    document, _ = workspace.json("plan", str(workspace.root / "raw"), *option)
    assert (document["manifests"], document["skipped"]) == ([], {reason: 2})


def test_plan_outside(workspace: Workspace) -> None:
    """A prefix outside the allowed ones is a fault of usage that names them, and so is a folder that does not exist."""
    missing = workspace.call("plan", str(workspace.root / "elsewhere"))
    assert (missing.exit_code, "elsewhere does not exist" in missing.stderr) == (2, True)
    (workspace.root / "elsewhere").mkdir()
    result = workspace.call("plan", str(workspace.root / "elsewhere"))
    assert result.exit_code == 2
    assert str(workspace.root / "raw") in result.stderr


def test_status_of_nothing(workspace: Workspace) -> None:
    """There is a status before any work, and reading it writes nothing."""
    before = sorted(workspace.root.rglob("*"))
    document, code = workspace.json("status")
    assert code == 0
    backlog = document["backlog"]
    assert (backlog["manifests"], backlog["begun_manifests"], document["recent"]) == (0, 0, [])
    assert document["state"]["word"] == "empty"
    assert sorted(workspace.root.rglob("*")) == before


def test_status_as_json(workspace: Workspace) -> None:
    """Status counts what waits, what was committed and what became a dead letter."""
    workspace.plan()
    waiting = workspace.json("status")[0]
    assert (waiting["state"]["word"], waiting["state"]["next_move"]) == (
        "stopped",
        "compactor run",
    )
    assert (waiting["backlog"]["manifests"], waiting["backlog"]["input_bytes"]) == (1, len(GOOD) + len(FLAWED))
    (workspace.root / "m" / "broken.json").write_text("{")
    workspace.compact()
    document, code = workspace.json("status")
    assert code == 3
    assert (document["backlog"]["manifests"], document["dead_letters"]["by_reason"]) == (0, {"not_json": 1})
    assert document["state"]["word"] == "needs_you"
    assert (document["schema"]["columns"], document["schema"]["newest_column"]) == (2, "price")
    assert [commit["records"] for commit in document["recent"]] == [3]
    assert document["rejects"] == {"commits": 1, "lines": 1, "by_reason": {"invalid_json": 1}}
    assert document["rates"]["at_work_bytes_per_second"] > 0
    assert document["latency"]["times"] == 2


def test_status_fits_a_terminal(workspace: Workspace) -> None:
    """The text form keeps to 80 columns, and to one screen."""
    workspace.plan()
    workspace.compact()
    lines = workspace.call("status").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("scope", ["all", "day", "manifest"])
def test_verify_as_json(workspace: Workspace, scope: str, deep: bool) -> None:
    """Lines are the sum of rows, rejects and blanks, for all manifests, one day or one manifest."""
    manifest_id = workspace.plan()
    workspace.compact()
    which = {"all": [], "day": ["--date", DAY], "manifest": ["--manifest", manifest_id]}[scope]
    document, code = workspace.json("verify", *which, *(["--deep"] if deep else []))
    assert code == 0
    assert (document["manifests"], document["files_by_status"]) == (1, {"compacted": 2})
    assert [document[name] for name in ("lines", "rows", "rejected_lines", "blank_lines")] == [5, 3, 1, 1]
    assert document["rejects_by_reason"] == {"invalid_json": 1}
    assert (document["discrepancies"], document["needs_operator"]) == ([], False)
    assert (document["deep"], document["inputs_compared"]) == (deep, 2 if deep else 0)


def test_verify_as_text(workspace: Workspace) -> None:
    """The text form shows the sum that was proved."""
    workspace.plan()
    workspace.compact()
    result = workspace.call("verify")
    assert "5 = 3 rows + 1 reject + 1 blank" in result.stdout
    assert result.exit_code == 0


def test_verify_finds_what_is_gone(workspace: Workspace) -> None:
    """An output file that is gone is a discrepancy with its place, and the exit code asks for an operator."""
    workspace.plan()
    workspace.compact()
    [output] = (workspace.root / "o").rglob("*.parquet")
    output.unlink()
    document, code = workspace.json("verify")
    assert code == 3
    assert [each["where"] for each in document["discrepancies"]] == [str(output)]
    result = workspace.call("verify")
    assert result.exit_code == 3
    assert str(output) in result.stdout


def test_verify_finds_one_too_many(workspace: Workspace) -> None:
    """A file in a day's folder that no commit names is a discrepancy."""
    workspace.plan()
    workspace.compact()
    [output] = (workspace.root / "o").rglob("*.parquet")
    output.with_name("stranger.parquet").write_bytes(output.read_bytes())
    document, code = workspace.json("verify")
    assert code == 3
    assert [each["where"] for each in document["discrepancies"]] == [str(output.with_name("stranger.parquet"))]


def test_verify_deep_finds_another_value(workspace: Workspace) -> None:
    """Inputs whose values differ from the rows are found by --deep alone."""
    manifest_id = workspace.plan()
    workspace.compact()
    [output] = (workspace.root / "o").rglob("*.parquet")
    table = pq.read_table(output)
    prices = table["price"].to_pylist()
    changed = pa.array(["1.1" if price == "1.10" else price for price in prices], pa.string())
    sink = pa.BufferOutputStream()
    pq.write_table(table.set_column(table.schema.get_field_index("price"), "price", changed), sink)
    output.write_bytes(sink.getvalue().to_pybytes())
    [record] = (workspace.root / "s" / "ledger").rglob("outcome.json")
    outcome = json.loads(record.read_text())
    outcome["outputs"][0]["size_bytes"] = output.stat().st_size  # so that only the value differs
    record.write_text(json.dumps(outcome))
    assert workspace.json("verify", "--manifest", manifest_id)[1] == 0
    document, code = workspace.json("verify", "--manifest", manifest_id, "--deep")
    assert code == 3
    assert document["discrepancies"]


def test_verify_counts_dead_letters(workspace: Workspace) -> None:
    """A dead letter needs an operator."""
    (workspace.root / "m").mkdir()
    (workspace.root / "m" / "broken.json").write_text("{")
    workspace.compact()
    document, code = workspace.json("verify")
    assert (document["dead_letters"], document["needs_operator"], code) == (1, True, 3)


def test_verify_lists_quarantined_files_and_dead_letters(workspace: Workspace) -> None:
    """Quarantined files and dead letters are listed with their reasons: all as JSON, the first few as text."""
    manifest_id = workspace.plan()
    gone = Path(workspace.raw(f"{DAY}-good.ndjson"))
    gone.unlink()
    for number in range(SHOWN + 1):
        (workspace.root / "m" / f"broken-{number:02d}.json").write_text("{")
    workspace.compact()
    document, code = workspace.json("verify")
    assert code == 3
    [file] = document["quarantined_files"]
    assert (file["manifest_id"], file["uri"], file["status"], file["redriven"]) == (
        manifest_id,
        str(gone),
        "missing",
        False,
    )
    letters = document["dead_letter_manifests"]
    assert [each["manifest_id"] for each in letters] == [f"broken-{number:02d}" for number in range(SHOWN + 1)]
    assert {each["reason"] for each in letters} == {"not_json"}
    text = workspace.call("verify").stdout
    assert f"{gone}: missing (manifest {manifest_id})" in text
    assert "broken-00: not_json" in text
    assert f"broken-{SHOWN:02d}" not in text
    assert "and 1 more; --json shows all" in text


@pytest.mark.parametrize("manifest_id", ["../escape", "a b", ".hidden", "x" * 201, ""])
def test_verify_takes_ids_only(workspace: Workspace, manifest_id: str) -> None:
    """What cannot be a manifest id is wrong usage, with one clear line."""
    result = workspace.call("verify", "--manifest", manifest_id)
    assert result.exit_code == 2
    assert "is not a manifest id; expected 1 to 200 letters" in result.stderr


def test_verify_a_day_that_is_not_on_record(workspace: Workspace) -> None:
    """A Parquet file in the folder of a day that is not in the ledger is found by that day and by all."""
    workspace.plan()
    workspace.compact()
    [output] = (workspace.root / "o").rglob("*.parquet")
    copy = Path(str(output).replace(f"-{DAY}/", "-2030-01-01/"))
    copy.parent.mkdir()
    copy.write_bytes(output.read_bytes())
    for which in ((), ("--date", "2030-01-01")):
        document, code = workspace.json("verify", *which)
        assert ([each["where"] for each in document["discrepancies"]], code) == ([str(copy)], 3)
    assert workspace.json("verify", "--date", DAY)[1] == 0


def test_verify_without_the_record_of_acceptance(workspace: Workspace) -> None:
    """A manifest whose record of acceptance is gone or damaged is found by its other records, and the fault named."""
    manifest_id = workspace.plan()
    workspace.compact()
    record = workspace.root / "s" / "accepted" / f"{manifest_id}.json"
    for damage in (lambda: record.write_text("{"), record.unlink):
        damage()
        document, code = workspace.json("verify", "--manifest", manifest_id)
        assert ([each["where"] for each in document["discrepancies"]], code) == ([str(record)], 3)


def test_clean(workspace: Workspace) -> None:
    """Clean shows what it would delete, deletes it, and finds nothing the second time."""
    manifest_id = workspace.plan()
    workspace.compact()
    [archived] = (workspace.root / "s" / "archive").rglob("*.json")
    assert workspace.json("data", "clean")[0]["removed"]["archived_manifests"] == 0  # too young
    document, code = workspace.json("data", "clean", "--archive-days", "0", "--dry-run")
    assert (document["removed"]["archived_manifests"], document["dry_run"], code) == (1, True, 0)
    assert archived.exists()
    result = workspace.call("data", "clean", "--archive-days", "0")
    assert result.exit_code == 0
    assert re.search(r"^archived manifests +1$", result.stdout, re.MULTILINE)
    assert not archived.exists()
    document, _ = workspace.json("data", "clean", "--archive-days", "0")
    assert (sum(document["removed"].values()), document["kept"]) == (0, {})
    assert workspace.json("verify", "--manifest", manifest_id, "--deep")[1] == 0


def test_clean_keeps_and_says_why(workspace: Workspace) -> None:
    """Files of a manifest that is not committed and done are kept and listed with the reason."""
    workspace.plan()
    workspace.compact()
    [done] = (workspace.root / "s" / "ledger").rglob("done.json")
    done.unlink()
    [archived] = (workspace.root / "s" / "archive").rglob("*.json")
    text = workspace.call("data", "clean", "--archive-days", "0").stdout
    assert archived.exists()
    assert f"  {archived}\n    its commit is not done\n" in text


def test_clean_checkpoints(workspace: Workspace) -> None:
    """Checkpoints without recent writes are deleted, others only by force; without it one line says why not."""
    written = workspace.root / "s" / "checkpoint" / "run-1" / "offsets" / "0"
    written.parent.mkdir(parents=True)
    written.write_text("x")
    result = workspace.call("data", "clean", "--checkpoints")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"compactor: checkpoint {workspace.root}/s/checkpoint/run-1/: written to 0 s ago")
    assert written.exists()
    assert workspace.call("data", "clean", "--force").exit_code == 2
    document, code = workspace.json("data", "clean", "--checkpoints", "--force")
    assert (document["removed"]["checkpoint_files"], code) == (1, 0)
    assert not written.exists()


def test_verify_unknown(workspace: Workspace) -> None:
    """An unknown manifest is an error with nothing on stdout; the error of a waiting one says that it waits."""
    result = workspace.call("verify", "--manifest", "no-such-manifest", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"compactor: manifest no-such-manifest: {workspace.root}/s has no record of it")
    result = workspace.call("verify", "--manifest", workspace.plan())
    assert result.exit_code == 1
    assert "it waits for its first attempt" in result.stderr


def test_verify_one_or_a_day(workspace: Workspace) -> None:
    """A manifest and a day together are wrong usage."""
    assert workspace.call("verify", "some", "--date", DAY).exit_code == 2


def test_trace_from_unknown_to_done(workspace: Workspace) -> None:
    """A file is followed from no manifest, to one that waits, to its rows and rejects."""
    flawed = workspace.raw(f"{DAY}-flawed.ndjson")
    document, code = workspace.json("trace", flawed)
    assert (document["state"], document["exists"], code) == ("unknown", True, 1)
    manifest_id = workspace.plan()
    document, code = workspace.json("trace", flawed)
    assert (document["state"], document["manifest_id"], code) == ("waiting", manifest_id, 0)
    workspace.compact()
    document, code = workspace.json("trace", flawed)
    assert (document["state"], document["report"]["records"], code) == ("done", 1, 0)
    assert document["outputs"] == [str(path) for path in (workspace.root / "o").rglob("*.parquet")]
    assert document["rejects"] == [str(path) for path in (workspace.root / "s" / "rejects").rglob("*.parquet")]
    text = workspace.call("trace", flawed).stdout
    assert document["outputs"][0] in text
    assert "2 = 1 row + 1 reject + 0 blank" in text


def test_trace_a_quarantined_file(workspace: Workspace) -> None:
    """A quarantined file is found with the reason, and needs an operator."""
    workspace.plan()
    good = Path(workspace.raw(f"{DAY}-good.ndjson"))
    good.unlink()
    workspace.compact()
    document, code = workspace.json("trace", str(good))
    assert (document["state"], document["exists"], code) == ("quarantined", False, 3)
    assert document["message"].startswith("missing: ")
    assert workspace.json("verify")[1] == 3


def test_asking_leaves_no_trace(workspace: Workspace) -> None:
    """Verify and trace write nothing, not even a table of claims."""
    before = sorted(workspace.root.rglob("*"))
    workspace.call("trace", workspace.raw(f"{DAY}-good.ndjson"))
    workspace.call("verify")
    assert sorted(workspace.root.rglob("*")) == before


def test_verify_names_both_manifests_of_a_doubled_file(workspace: Workspace) -> None:
    """A file that two manifests have compacted needs an operator, who is told both ids."""
    first = workspace.plan()
    planned = json.loads((workspace.root / "m" / f"{first}.json").read_bytes())
    again = {**planned, "manifest_id": "by-hand", "files": planned["files"][:1]}
    (workspace.root / "m" / "by-hand.json").write_text(json.dumps(again))
    workspace.compact()
    for option in ((), ("--date", DAY)):
        report, code = workspace.json("verify", *option)
        assert (code, report["needs_operator"]) == (3, True)
        [doubled] = report["discrepancies"]
        assert doubled["where"] == planned["files"][0]["uri"]
        other = "by-hand" if doubled["manifest_id"] == first else first
        assert doubled["found"] == f"compacted by manifest {other} as well"
    shown = workspace.call("verify")
    assert shown.exit_code == 3
    assert first in shown.stdout
    assert "by-hand" in shown.stdout


def test_close(workspace: Workspace) -> None:
    """A date is closed when it is quiet; then `verify` says so, and by the records it says the same."""
    workspace.plan()
    workspace.compact()
    left = workspace.call("data", "close")
    assert (left.exit_code, left.stdout.splitlines()[:2]) == (0, ["Closed 0 dates", "Left open: 1"])
    assert "it can be closed in 2 d" in left.stdout or "it can be closed in 1 d 23 h" in left.stdout
    long_ago = time.time() - 49 * 3600
    for file in (workspace.root / "s").rglob("*.json"):
        os.utime(file, (long_ago, long_ago))
    closed = workspace.call("data", "close")
    assert (closed.exit_code, closed.stdout) == (0, f"Closed 1 date\n  {DAY}: 1 manifest, 2 files\n")
    assert "closed dates   1, by their summaries" in workspace.call("verify").stdout
    by_summary, by_records = (workspace.json("verify", *options)[0] for options in ((), ("--closed",)))
    of_summaries = {"closed_dates": 1, "output_files_verified": 0, "output_files_summed": 1}
    assert by_summary == {**by_records, **of_summaries}
