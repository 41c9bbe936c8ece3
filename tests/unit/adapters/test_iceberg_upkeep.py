"""What upkeep finds in the folder of a table's metadata, and in its properties."""

import shutil
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyiceberg.table
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate, update_table_metadata
from pyiceberg.table.update.snapshot import _ManifestMergeManager

from compactor.adapters.iceberg import iceberg_table
from compactor.adapters.iceberg.change import Change
from compactor.adapters.iceberg.iceberg_table import IcebergTable
from compactor.adapters.iceberg.opening import CatalogPlace, open_catalog
from compactor.adapters.iceberg.upkeep import listed
from compactor.core.errors import OperatorError, TableRefused
from compactor.table.catalog import TableChange, TableHead
from compactor.table.upkeep import MetadataFile, TableFolder, TableRef, leftovers
from tests.support.iceberg_tables import NAME, client, iceberg_case, metadata_folder, sql_place
from tests.support.table_catalogs import CatalogCase, now, version
from tests.support.table_upkeep import OWNER


@pytest.fixture
def case(tmp_path: Path) -> CatalogCase:
    """A table with two batches, whose files are old."""
    made = iceberg_case(sql_place(tmp_path), tmp_path)
    committed(made, 2)
    made.age(9)
    return made


def committed(case: CatalogCase, batches: int) -> TableHead:
    head = case.catalog.create(OWNER, version(1))
    for number in range(1, batches + 1):
        case.catalog.commit(head, TableChange(number, (case.file(f"f{number}"),)))
        head = now(case)
    return head


def loaded(tmp_path: Path) -> Table:
    return open_catalog(sql_place(tmp_path)).load_table(NAME)


def folder(case: CatalogCase) -> TableFolder:
    found = case.catalog.folder()
    assert found is not None
    return found


def going(case: CatalogCase) -> set[str]:
    """What would be removed, if the current snapshot were made now."""
    found = folder(case)
    latest = max(each.written_at for each in found.files) + timedelta(days=9)
    return {each.name for each in leftovers(TableFolder(found.files, found.named, latest), latest + timedelta(days=9))}


def test_metadata_that_the_catalog_did_not_take(case: CatalogCase, tmp_path: Path) -> None:
    """It is of this table, and nothing names it. What cannot be read may be of any table."""
    current = Path(loaded(tmp_path).metadata_location.removeprefix("file://"))
    left, broken, cut = (
        f"00009-{uuid.uuid4()}{end}" for end in (".metadata.json", ".metadata.json", ".gz.metadata.json")
    )
    shutil.copy(current, current.with_name(left))
    current.with_name(broken).write_bytes(current.read_bytes()[:-9])
    current.with_name(cut).write_bytes(b"\x1f\x8b")
    assert going(case) == {left}


def test_a_commit_while_the_folder_is_listed(case: CatalogCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are seen as needed: the table is read after they were listed."""

    def after_a_commit(table: Table) -> tuple[MetadataFile, ...] | None:
        case.other().commit(now(case), TableChange(3, (case.file("f3"),)))
        return listed(table)

    monkeypatch.setattr(iceberg_table, "listed", after_a_commit)
    found = folder(case)
    assert {each.name for each in found.files} <= found.named


def test_a_folder_that_another_table_has_too(case: CatalogCase, tmp_path: Path) -> None:
    """Its files stay, even if some of them are lost; what is left in the folder of this one goes."""
    before = {each.name for each in folder(case).files}
    assert case.drop is not None
    case.drop()
    committed(case, 1)
    gone = next(each for each in sorted(before) if each.startswith("snap-"))
    (metadata_folder(sql_place(tmp_path)) / gone).unlink()
    left = f"{uuid.uuid4()}-m0.avro"
    case.leave(left)
    assert going(case) <= {left, *(each for each in before if each.endswith("-m0.avro"))}
    assert left in going(case)
    assert len(before & going(case)) <= 1  # what only the lost file named


def test_a_table_that_lacks_a_file(case: CatalogCase, tmp_path: Path) -> None:
    """What else it needs is not known: nothing is removed."""
    [first, _] = sorted(metadata_folder(sql_place(tmp_path)).glob("snap-*"))
    first.unlink()
    with pytest.raises(OperatorError, match=f"{first.name}.*restore this one, or drop the table in its catalog"):
        case.other().folder()


@pytest.mark.usefixtures("case")
def test_files_that_cannot_be_listed(tmp_path: Path) -> None:
    """Another library reads them; or the catalog keeps them where no other program lists them."""
    table = loaded(tmp_path)
    assert listed(table)
    table.io = FsspecFileIO({})
    assert listed(table) is None
    place = sql_place(tmp_path)
    managed = client(place)
    managed.place = CatalogPlace(kind="s3tables", uri=place.uri, warehouse=place.warehouse)
    managed._opened = open_catalog(place)
    assert managed.folder() is None


def test_what_a_table_asks_for(case: CatalogCase, tmp_path: Path) -> None:
    """Its properties, and those of a branch, may keep more than the settings."""
    table = loaded(tmp_path)
    current = table.metadata.current_snapshot_id
    assert current is not None
    with table.transaction() as change:
        change.set_properties({"history.expire.max-snapshot-age-ms": "60000", "commit.manifest.target-size-bytes": "9"})
    table.manage_snapshots().create_branch(
        current, "slow", max_snapshot_age_ms=90_000, min_snapshots_to_keep=7
    ).commit()
    found = case.catalog.history()
    assert found is not None
    minute, longer = timedelta(minutes=1), timedelta(seconds=90)
    assert set(found[1].refs) == {TableRef(current, True, minute, 1), TableRef(current, True, longer, 7)}
    assert (found[1].manifest_target_bytes, found[1].keeps_all) == (9, False)
    with table.transaction() as change:
        change.set_properties({"gc.enabled": "FALSE"})
    found = case.catalog.history()
    assert found is not None
    assert found[1].keeps_all


TARGET = "commit.manifest.target-size-bytes"


def test_how_long_manifests_become(case: CatalogCase, tmp_path: Path) -> None:
    """So short that no commit writes many entries anew, also of an older table, unless a person set it."""
    for before, expected in [(None, "1048576"), ("9", "9")]:
        assert loaded(tmp_path).properties[TARGET] == "1048576"
        with loaded(tmp_path).transaction() as change:
            change.remove_properties(TARGET)
            if before:
                change.set_properties({TARGET: before})
        head = now(case)
        case.catalog.commit(head, TableChange(head.fence + 1, (case.file(f"f{head.fence + 1}"),)))
        assert loaded(tmp_path).properties[TARGET] == expected


def test_a_merge_that_would_lose_files(case: CatalogCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is not sent."""
    merge = _ManifestMergeManager.merge_manifests
    monkeypatch.setattr(_ManifestMergeManager, "merge_manifests", lambda *arguments: merge(*arguments)[:0])
    head = now(case)
    with pytest.raises(TableRefused, match="as before"):
        case.catalog.merge_manifests(head)
    assert case.catalog.head() == head


@pytest.mark.parametrize("branch", ["main", "slow"])
def test_a_branch_that_moved_before_a_change_arrived(case: CatalogCase, tmp_path: Path, branch: str) -> None:
    """The catalog refuses the change, which no other check has seen to be too late."""
    table = loaded(tmp_path)
    first, last = (each.snapshot_id for each in table.snapshots())
    table.manage_snapshots().create_branch(first, "slow").commit()
    case.catalog.merge_manifests(now(case))
    change = Change(loaded(tmp_path))
    change.expire([last])
    if branch == "main":
        case.catalog.merge_manifests(now(case))
    else:
        table.manage_snapshots().remove_branch("slow").commit()
        table.refresh().manage_snapshots().create_branch(last, "slow").commit()
    with pytest.raises(CommitFailedException):
        change.send(open_catalog(sql_place(tmp_path)))
    assert last in {each.snapshot_id for each in loaded(tmp_path).snapshots()}


def test_a_change_is_applied_once_a_stage(case: CatalogCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time, all snapshots are copied: what a commit costs would be that of many copies."""
    applied = list[int]()

    def counted(metadata: TableMetadata, updates: tuple[TableUpdate, ...], *others: Any) -> TableMetadata:
        applied.append(len(updates))
        return update_table_metadata(metadata, updates, *others)

    monkeypatch.setattr(pyiceberg.table, "update_table_metadata", counted)
    case.catalog.commit(now(case), TableChange(3, (case.file("f3"),)))
    assert len(applied) == len(set(applied)) <= 3
    assert now(case).fence == 3


def test_metadata_that_a_change_replaces(case: CatalogCase, tmp_path: Path) -> None:
    """Goes once there are more versions than the table keeps, also by changes of upkeep."""
    table = loaded(tmp_path)
    with table.transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "2"})
    assert isinstance(case.catalog, IcebergTable)
    for _ in range(3):
        case.catalog.merge_manifests(now(case))
    versions = sorted(metadata_folder(sql_place(tmp_path)).glob("*.metadata.json"))
    assert len(versions) <= 1 + 2 + 1


def test_schemas_that_nothing_needs(case: CatalogCase, tmp_path: Path) -> None:
    """Go with the snapshots that had them. One with a column that a person dropped stays: files may have it still."""
    for number in range(2, 8):
        head = now(case)
        change = TableChange(head.fence + 1, (case.file(f"v{number}", number),), (), version(number))
        case.catalog.commit(head, change)
    with loaded(tmp_path).update_schema() as update:
        update.delete_column("c5")
    head = now(case)
    case.catalog.commit(head, TableChange(head.fence + 1, (case.file("late", 7),)))
    snapshots = loaded(tmp_path).metadata.snapshots
    tagged = snapshots[3]
    case.tag(tagged.snapshot_id)
    columns = loaded(tmp_path).scan(snapshot_id=tagged.snapshot_id).to_arrow().column_names
    case.catalog.expire(now(case), [each.snapshot_id for each in snapshots[:-1] if each is not tagged])
    found = loaded(tmp_path)
    assert {each.schema_id for each in found.metadata.schemas} == {
        0,  # the placeholder
        3,  # of the snapshot that is kept
        5,  # the earliest with the column that was dropped
        found.metadata.current_schema_id,
    }
    assert found.scan(snapshot_id=tagged.snapshot_id).to_arrow().column_names == columns
    head = now(case)
    case.catalog.commit(head, TableChange(head.fence + 1, (case.file("later", 7),), (), version(8)))
    assert loaded(tmp_path).scan().to_arrow().num_rows == 3 * (2 + 6 + 2)
    assert case.other().head() == now(case)
