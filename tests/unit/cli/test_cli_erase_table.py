"""`compactor data erase` where a real table in SQLite lists the output: no snapshot has the rows any more."""

from pathlib import Path

import pytest
from pyiceberg.table import Table

from compactor.adapters.iceberg.opening import open_catalog
from compactor.adapters.local.store import LocalStore
from compactor.cli.ui.failures import ExitCode
from tests.support import extras
from tests.support.erasing import ALICE, ESCAPED, OTHERS, PLAIN, holding_in
from tests.support.iceberg_tables import NAME, sql_place
from tests.support.table_workspace import table_workspace
from tests.support.workspace import Workspace

pytestmark = extras.NATIVE.needed


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Two manifests in a table."""
    lines = {"hers": PLAIN + ESCAPED, "others": OTHERS}
    return table_workspace(tmp_path, lines, {ExitCode.DONE, ExitCode.NEEDS_OPERATOR})


def bounds(table: Table) -> list[bytes]:
    """The lowest and highest values that the current snapshot knows of any file, listed or removed."""
    current = table.current_snapshot()
    assert current is not None
    entries = [
        entry.data_file
        for manifest in current.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    ]
    return [value for each in entries for known in (each.lower_bounds, each.upper_bounds) for value in known.values()]


def test_a_person_goes_from_the_table(workspace: Workspace) -> None:
    """One snapshot is left, without the rows; no file has them as bounds, and no other manifests are left."""
    values = workspace.root / "values.txt"
    values.write_text(ALICE)
    words = ("data", "erase", "--key", "user_id", "--value-file", str(values), "--inputs", "delete", "--yes")
    document, code = workspace.json(*words)
    assert (code, [each["rows"] for each in document["erased"]]) == (ExitCode.DONE, [2])
    assert workspace.call(*words).exit_code == ExitCode.DONE
    values.unlink()
    table = open_catalog(sql_place(workspace.root)).load_table(NAME)
    assert len(table.snapshots()) == 1
    assert sorted(table.scan().to_arrow().column("n").to_pylist()) == ["2", "4", "5", "9"]
    assert (b"bob" in bounds(table), ALICE.encode() in bounds(table)) == (True, False)
    verified, code = workspace.json("verify")
    assert (verified["rows"], verified["erased_lines"], verified["discrepancies"]) == (4, 2, [])
    assert holding_in(LocalStore(), f"{workspace.root}/") == []
    folder = workspace.root / "warehouse" / "lake" / "events" / "metadata"
    current = table.current_snapshot()
    assert current is not None
    named = {current.manifest_list, *(each.manifest_path for each in current.manifests(table.io))}
    assert {each.name for each in folder.glob("*.avro")} == {each.rpartition("/")[2] for each in named}


def test_a_person_goes_from_merged_files(workspace: Workspace) -> None:
    """The merged file that has the rows goes with them, whatever had them before; other rows come back as they were."""
    assert workspace.json("table", "merge")[0]["merged_files"] == 2
    [merged] = list((workspace.root / "o" / "_table" / "merged").iterdir())
    left = merged.with_name(merged.name.replace("00000002", "00000001"))  # of a merger that died before its record
    left.write_bytes(merged.read_bytes())
    values = workspace.root / "values.txt"
    values.write_text(ALICE)
    document, code = workspace.json(
        "data", "erase", "--key", "user_id", "--value-file", str(values), "--inputs", "delete", "--yes"
    )
    assert (code, [each["rows"] for each in document["erased"]]) == (ExitCode.DONE, [2])
    values.unlink()
    assert holding_in(LocalStore(), f"{workspace.root}/") == []
    assert not merged.parent.exists()
    table = open_catalog(sql_place(workspace.root)).load_table(NAME)
    assert sorted(table.scan().to_arrow().column("n").to_pylist()) == ["2", "4", "5", "9"]
    assert workspace.json("verify", "--deep")[0]["discrepancies"] == []
    assert workspace.json("table", "merge")[0]["merged_files"] == 2
    table = open_catalog(sql_place(workspace.root)).load_table(NAME)
    assert sorted(table.scan().to_arrow().column("n").to_pylist()) == ["2", "4", "5", "9"]
    assert workspace.json("verify")[0]["discrepancies"] == []


@pytest.mark.parametrize(
    ("key", "value", "rows"),
    [
        ("/profile/id", "100", 1),
        ("profile", '{"id":1e2}', 1),
        ("profile", '{"id": 100}', 0),
        ("profile", '{"id":["100"]}', 0),
        ("profile", '{ "id":[100.0] }', 1),
    ],
)
def test_numbers_and_objects(tmp_path: Path, key: str, value: str, rows: int) -> None:
    """Rows and input have the same ones, by how they are written."""
    lines = (
        b'{"n": 1, "profile": {"id": 1e2}}\n{"n": 2, "profile": {"id": [100.0]}}\n{"n": 3, "profile": {"id": "100"}}\n'
    )
    root = tmp_path / "of-100"  # a value in the name of a folder that the settings name is no finding
    root.mkdir()
    workspace = table_workspace(root, {"a": lines})
    values = root / "values.txt"
    values.write_text(value)
    words = ("data", "erase", "--key", key, "--value-file", str(values), "--inputs", "delete", "--yes")
    document, code = workspace.json(*words)
    assert (code, [each["rows"] for each in document["erased"]]) == (ExitCode.DONE, [rows] if rows else [])
    assert any((root / "raw").iterdir()) is (rows == 0)
