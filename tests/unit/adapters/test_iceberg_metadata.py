"""Metadata of tables is read once and never copied, so no change may touch what is there."""

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table, update
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, new_table_metadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import NestedField, StringType

from compactor.adapters.iceberg.iceberg_table import IcebergTable
from compactor.adapters.iceberg.shared_metadata import SharedMetadata, shared
from compactor.table.catalog import FilePartition, TableChange
from tests.support.iceberg_tables import iceberg_case, sql_place
from tests.support.table_catalogs import OWNER, CatalogCase, now, version


@pytest.fixture
def case(tmp_path: Path) -> CatalogCase:
    """A table with three batches."""
    made = iceberg_case(sql_place(tmp_path), tmp_path)
    made.catalog.create(OWNER, version(1))
    for number in range(1, 4):
        made.catalog.commit(now(made), TableChange(number, (made.file(f"f{number}"),)))
    return made


def remembered(case: CatalogCase) -> Table:
    """The table as the process has it in memory."""
    assert isinstance(case.catalog, IcebergTable)
    table = case.catalog._load()
    assert table is not None
    return table


def in_the_file(table: Table) -> str:
    """The metadata of a table as another process reads it."""
    return TableMetadataUtil.parse_raw(
        Path(table.metadata_location.removeprefix("file://")).read_text()
    ).model_dump_json()


def test_a_commit_reads_no_metadata(case: CatalogCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even its own: what it wrote is known."""
    read, parsed = list[str](), FromInputFile.table_metadata

    def counted(file: Any, *others: Any) -> TableMetadata:
        read.append(file.location)
        return parsed(file, *others)

    monkeypatch.setattr(FromInputFile, "table_metadata", counted)
    case.catalog.commit(now(case), TableChange(4, (case.file("f4"),)))
    assert read == [], "SqlCatalog of this pyiceberg reads metadata elsewhere than in _convert_orm_to_iceberg"
    other = case.other()
    assert other.head() == now(case)
    assert len(read) == 1, "metadata is no longer read through FromInputFile: count it where it is"
    assert other.head() == now(case)
    assert len(read) == 1


def test_a_commit_copies_no_snapshot(case: CatalogCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take time for each that did not expire."""
    copied = list[str]()
    copy = BaseModel.__deepcopy__

    def counted(self: BaseModel, memo: dict[int, Any] | None = None) -> BaseModel:
        copied.append(type(self).__name__)
        return copy(self, memo)

    monkeypatch.setattr(BaseModel, "__deepcopy__", counted)
    case.catalog.commit(now(case), TableChange(4, (case.file("f4"),)))
    assert copied == [], "this pyiceberg copies metadata otherwise than by model_copy"


def test_changes_of_another_process(case: CatalogCase) -> None:
    """Are seen at once: the database tells which metadata is that of the table."""
    other = case.other()
    assert other.head() == now(case)
    case.catalog.commit(now(case), TableChange(4, (case.file("f4"),)))
    found = other.head()
    assert found is not None
    assert found.fence == 4
    other.commit(found, TableChange(5, (case.file("f5"),)))
    assert now(case).fence == 5


def test_all_that_is_done_to_a_table(case: CatalogCase) -> None:
    """What is in memory stays as it was, and is what the file says."""
    by_c1 = (FilePartition("c1_bucket", "bucket", 1, "string", 4, "2"),)
    changes = [
        lambda: case.catalog.commit(now(case), TableChange(4, (case.file("f4"),), (case.file("f1").uri,))),
        lambda: case.catalog.commit(now(case), TableChange(5, (case.file("f5", 2),), (), version(2))),
        lambda: case.catalog.commit(
            now(case), TableChange(6, (case.file("f6"),), (case.file("f2").uri,), keeps_rows=True)
        ),
        lambda: case.catalog.commit(now(case), TableChange(7, (replace(case.file("f7"), partition=by_c1),))),
        lambda: case.catalog.commit(now(case), TableChange(8, (), is_refused=True)),
        lambda: case.catalog.merge_manifests(now(case)),
        lambda: case.catalog.expire(now(case), [remembered(case).metadata.snapshots[0].snapshot_id]),
        lambda: remembered(case).update_schema().add_column("remark", StringType()).commit(),
    ]
    before = list[tuple[TableMetadata, str]]()
    for change in changes:
        found = remembered(case).metadata
        before.append((found, found.model_dump_json()))
        change()
        assert isinstance(remembered(case).metadata, SharedMetadata)
        assert remembered(case).metadata.model_dump_json() == in_the_file(remembered(case))
    for found, said in before:
        assert found.model_dump_json() == said


def examples(metadata: TableMetadata) -> list[BaseModel]:
    """An update of each kind, in an order in which all can be applied."""
    last = metadata.snapshots[-1]
    summary = Summary(Operation.APPEND, **{"added-records": "1"})
    snapshot = last.model_copy(update={"snapshot_id": 5, "sequence_number": 100, "summary": summary})
    field = NestedField(999, "more", StringType(), required=False)
    fields = metadata.schema().fields
    statistics = StatisticsFile.model_validate(
        {"snapshot-id": last.snapshot_id, "statistics-path": "s", "file-size-in-bytes": 1}
        | {"file-footer-size-in-bytes": 1, "blob-metadata": []}
    )
    of_partitions = PartitionStatisticsFile.model_validate(
        {"snapshot-id": last.snapshot_id, "statistics-path": "p", "file-size-in-bytes": 1}
    )
    return [
        update.AssignUUIDUpdate(uuid=uuid.uuid4()),
        update.UpgradeFormatVersionUpdate(format_version=2),
        update.AddSchemaUpdate(schema_=Schema(*fields, field, schema_id=50)),
        update.SetCurrentSchemaUpdate(schema_id=50),
        update.RemoveSchemasUpdate(schema_ids=[metadata.current_schema_id]),
        update.AddPartitionSpecUpdate(spec=PartitionSpec(PartitionField(1, 2000, BucketTransform(2), "b"), spec_id=50)),
        update.SetDefaultSpecUpdate(spec_id=50),
        update.RemovePartitionSpecsUpdate(spec_ids=[metadata.default_spec_id]),
        update.AddSortOrderUpdate(sort_order=SortOrder(order_id=50)),
        update.SetDefaultSortOrderUpdate(sort_order_id=50),
        update.AddSnapshotUpdate(snapshot=snapshot),
        update.SetSnapshotRefUpdate(ref_name="main", type=SnapshotRefType.BRANCH, snapshot_id=5),
        update.SetStatisticsUpdate(statistics=statistics),
        update.SetPartitionStatisticsUpdate(partition_statistics=of_partitions),
        update.RemoveStatisticsUpdate(snapshot_id=last.snapshot_id),
        update.RemovePartitionStatisticsUpdate(snapshot_id=last.snapshot_id),
        update.RemoveSnapshotsUpdate(snapshot_ids=[last.snapshot_id]),
        update.RemoveSnapshotRefUpdate(ref_name="main"),
        update.SetLocationUpdate(location="file:///elsewhere"),
        update.SetPropertiesUpdate(updates={"a": "b"}),
        update.RemovePropertiesUpdate(removals=["a"]),
    ]


def test_no_update_changes_what_is_there(case: CatalogCase) -> None:
    """Of none of the kinds that pyiceberg has; with or without copies, the same comes of it."""
    base = remembered(case).metadata
    updates = examples(base)
    kinds = set(get_args(get_args(update.TableUpdate)[0]))
    assert {type(each) for each in updates} == kinds, "this pyiceberg has other updates: see whether they copy"
    plain = TableMetadataUtil.parse_raw(base.model_dump_json())
    steps, found = list[tuple[TableMetadata, str]](), base
    for each in updates:
        steps.append((found, found.model_dump_json()))
        found = update.update_table_metadata(found, (each,), metadata_location="file:///m.json")
        plain = update.update_table_metadata(plain, (each,), metadata_location="file:///m.json")
        assert without_times(found) == without_times(plain)
    for earlier, said in steps:
        assert earlier.model_dump_json() == said


def without_times(metadata: TableMetadata) -> dict[str, Any]:
    said = metadata.model_dump(exclude={"last_updated_ms", "metadata_log", "snapshot_log"})
    return said | {"logs": (len(metadata.metadata_log), len(metadata.snapshot_log))}


@pytest.mark.parametrize("number", ["1", "3"])
def test_tables_in_other_formats(number: str) -> None:
    """Are left as pyiceberg has them."""
    made = new_table_metadata(Schema(), PartitionSpec(), SortOrder(), "/lake", {"format-version": number})
    assert shared(made) is made
