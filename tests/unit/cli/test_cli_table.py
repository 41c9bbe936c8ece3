"""The commands on a real table, in a catalog in SQLite: they name what strangers did, and go on without the catalog."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from compactor.adapters.iceberg.opening import open_catalog
from compactor.cli.ui.failures import ExitCode
from tests.support import extras
from tests.support.iceberg_tables import NAME, sql_place
from tests.support.table_workspace import table_workspace
from tests.support.workspace import DAY, FLAWED, GOOD, Workspace, make_workspace

pytestmark = extras.NATIVE.needed


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Two manifests in a table."""
    return table_workspace(tmp_path, {"good": GOOD, "flawed": FLAWED})


def table_of(workspace: Workspace) -> Table:
    return open_catalog(sql_place(workspace.root)).load_table(NAME)


def verified(workspace: Workspace, *arguments: str) -> tuple[Any, int]:
    return workspace.json("verify", *arguments)


def test_all_commands_agree(workspace: Workspace) -> None:
    """On the number of batches, on what waits, and on the snapshot."""
    table = table_of(workspace)
    current = table.current_snapshot()
    assert current is not None
    found, code = verified(workspace)
    assert (code, found["discrepancies"], found["table"]["error"]) == (ExitCode.DONE, [], "")
    assert {key: found["table"][key] for key in ("files", "rows", "last_batch", "snapshot_id", "waiting")} == {
        "files": 2,
        "rows": 3,
        "last_batch": 2,
        "snapshot_id": current.snapshot_id,
        "waiting": 0,
    }
    assert workspace.json("verify", "--date", DAY)[0]["table"] == found["table"]
    seen = workspace.json("status")[0]["table"]
    assert (seen["name"], seen["last_batch"], seen["waiting"], seen["error"]) == (NAME, 2, 0, "")
    flawed = workspace.json("trace", workspace.raw(f"{DAY}-flawed.ndjson"))[0]["table"]
    assert (flawed["state"], flawed["batch"], flawed["snapshot_id"]) == ("listed", 2, current.snapshot_id)
    shown = workspace.call("verify").stdout
    assert f"{NAME}: 2 files with 3 rows, up to batch 2" in shown
    assert "no manifest waits for the table" in shown
    assert "no manifest waits for the table" in workspace.call("status").stdout


def test_what_strangers_did(workspace: Workspace) -> None:
    """A removed file is named, and one that was appended, with its place."""
    table = table_of(workspace)
    [gone] = [task.file.file_path for task in table.scan().plan_files() if task.file.record_count == 1]
    table.delete("id == '3'")
    found, code = verified(workspace)
    assert code == ExitCode.NEEDS_OPERATOR
    assert [(each["where"], each["found"]) for each in found["discrepancies"]] == [
        (gone, "the table does not have the file")
    ]
    table = table_of(workspace)
    table.append(table.scan().to_arrow())
    found, code = verified(workspace, "--date", DAY)
    assert code == ExitCode.NEEDS_OPERATOR
    [stranger] = [each for each in found["discrepancies"] if each["where"] != gone]
    assert "no commit names it" in stranger["expected"]
    assert stranger["where"].startswith(sql_place(workspace.root).warehouse)


def test_without_the_catalog(workspace: Workspace) -> None:
    """`verify` says so and verifies the rest; `trace` knows the batch; `status` does not ask."""
    (workspace.root / "catalog.db").unlink()
    (workspace.root / "catalog.db").mkdir()
    found, code = verified(workspace)
    assert (code, found["manifests"], found["discrepancies"]) == (ExitCode.FAILED, 2, [])
    assert found["table"]["error"]
    result = workspace.call("verify")
    assert result.exit_code == ExitCode.FAILED
    assert f"compactor: table {NAME}: not compared: " in result.stderr
    assert f"{NAME}: not compared" in result.stdout
    traced, code = workspace.json("trace", workspace.raw(f"{DAY}-good.ndjson"))
    assert (code, traced["table"]["batch"], traced["table"]["snapshot_id"]) == (ExitCode.DONE, 1, None)
    assert traced["table"]["error"]
    assert workspace.json("status")[0]["table"]["last_batch"] == 2


def test_upkeep(workspace: Workspace) -> None:
    """Snapshots expire by the settings or the options; a dry run changes nothing; all commands agree as before."""
    before = table_of(workspace).metadata
    nothing, code = workspace.json("table", "maintain")
    assert (code, nothing["expired_snapshots"], nothing["snapshots"]) == (ExitCode.DONE, 0, 2)
    options = ("table", "maintain", "--keep-days", "0", "--keep-snapshots", "1")
    foreseen = workspace.json(*options, "--dry-run")[0]
    assert foreseen["expired_snapshots"] == 1
    shown = workspace.call(*options, "--dry-run").stdout.split()
    assert " ".join(shown) == "would expire 1 snapshot; 1 left would merge none would remove 0 files, 0 bytes"
    assert table_of(workspace).metadata == before
    done = workspace.json(*options)[0]
    assert done == {**foreseen, "dry_run": False}
    shown = workspace.call(*options).stdout.split()
    assert " ".join(shown) == "expired 0 snapshots; 1 left merged none removed 0 files, 0 bytes"
    after = table_of(workspace)
    assert (after.properties, len(after.snapshots())) == (before.properties, 1)
    assert workspace.call("table", "check").exit_code == ExitCode.DONE
    assert verified(workspace)[1] == ExitCode.DONE


def test_upkeep_of_a_table_that_others_need(workspace: Workspace) -> None:
    """Its property says so; nothing of it goes."""
    with table_of(workspace).transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    shown = workspace.call("table", "maintain", "--keep-days", "0", "--keep-snapshots", "1").stdout
    assert "expired 0 snapshots; 2 left" in " ".join(shown.split())
    assert "gc.enabled is false: nothing expires and nothing is removed" in shown


def test_options_of_upkeep(workspace: Workspace) -> None:
    """Go with no other command."""
    for arguments in (["check", "--dry-run"], ["repair", "--keep-days", "1"], ["merge", "--undo", "F", "--dry-run"]):
        assert workspace.call("table", *arguments).exit_code == ExitCode.WRONG_USAGE
    assert "'today'" in workspace.call("table", "merge", "--date", "today").stderr


def test_upkeep_of_a_table_that_is_not_there(workspace: Workspace) -> None:
    """Has nothing to do."""
    open_catalog(sql_place(workspace.root)).drop_table(NAME)
    result = workspace.call("table", "maintain")
    assert (result.exit_code, result.stdout) == (ExitCode.DONE, f"{NAME}: there is no such table\n")


def test_merging(workspace: Workspace) -> None:
    """Small files become one, in one change that readers may pass over; all commands agree before, then and after."""
    before = sorted(table_of(workspace).scan().to_arrow().to_pylist(), key=str)
    foreseen, code = workspace.json("table", "merge", "--dry-run", "--date", DAY)
    assert (code, foreseen["merged_files"], foreseen["made_files"], foreseen["dry_run"]) == (ExitCode.DONE, 2, 1, True)
    assert len(table_of(workspace).snapshots()) == 2
    shown = " ".join(workspace.call("table", "merge").stdout.split())
    assert shown.startswith("merged 2 files, ")
    assert "hit rate by bytes 0.0 % -> 100.0 %" in shown
    table = table_of(workspace)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.summary.operation.value, len(table.snapshots())) == ("replace", 3)
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == before
    [entry] = [task.file for task in table.scan().plan_files()]
    compared = workspace.json("table", "check")[0]
    assert (compared["files"], compared["merged"], compared["rows"], compared["needs_operator"]) == (1, 1, 3, False)
    assert verified(workspace, "--deep")[1] == ExitCode.DONE
    traced = workspace.json("trace", workspace.raw(f"{DAY}-flawed.ndjson"))[0]["table"]
    assert (traced["state"], traced["merged_files"]) == ("listed", [entry.file_path])
    assert "its rows are in 1 merged file" in workspace.call("trace", workspace.raw(f"{DAY}-flawed.ndjson")).stdout
    open_catalog(sql_place(workspace.root)).drop_table(NAME)
    assert workspace.json("table", "repair")[0]["needs_operator"] is False
    assert [task.file.file_path for task in table_of(workspace).scan().plan_files()] == [entry.file_path]
    undone, code = workspace.json("table", "merge", "--undo", entry.file_path)
    assert (code, undone["taken_apart"], undone["after"]["files"]) == (ExitCode.DONE, 1, 2)
    assert sorted(table_of(workspace).scan().to_arrow().to_pylist(), key=str) == before
    assert workspace.call("table", "merge", "--undo", entry.file_path).exit_code == ExitCode.FAILED
    workspace.call("table", "maintain", "--keep-days", "0", "--keep-snapshots", "1")
    assert workspace.json("table", "merge", "--date", "2020-01-01")[0]["removed_files"] == 1
    assert not Path(entry.file_path).exists()
    assert verified(workspace)[1] == ExitCode.DONE


def test_a_damaged_merged_file(workspace: Workspace) -> None:
    """Is named, with what brings back the files that were merged, which are still there."""
    workspace.call("table", "merge")
    [entry] = [task.file for task in table_of(workspace).scan().plan_files()]
    Path(entry.file_path).write_bytes(b"damaged")
    found, code = verified(workspace)
    assert (code, [each["where"] for each in found["discrepancies"]]) == (ExitCode.NEEDS_OPERATOR, [entry.file_path])
    assert "--undo" in found["discrepancies"][0]["expected"]
    assert workspace.call("table", "merge", "--undo", entry.file_path).exit_code == ExitCode.DONE
    assert verified(workspace)[1] == ExitCode.DONE


def test_merging_without_a_table(tmp_path: Path) -> None:
    """Is refused, with the reason."""
    result = make_workspace(tmp_path).call("table", "merge")
    assert result.exit_code == ExitCode.WRONG_USAGE
    assert "only a table replaces them in one step" in result.stderr
