"""Tables of version 3 of the format: each row has an id, which no other row of the table ever has."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import MANIFEST_ENTRY_SCHEMAS, MANIFEST_LIST_FILE_SCHEMAS
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from compactor.adapters.iceberg.change import Change
from compactor.adapters.iceberg.opening import open_catalog
from compactor.adapters.iceberg.schemas import PLACEHOLDER
from compactor.table.catalog import TableChange, TableHead
from tests.support.iceberg_tables import NAME, iceberg_case, sql_place
from tests.support.table_catalogs import OWNER, CatalogCase, now, version

DELETED = 2


@pytest.fixture
def case(tmp_path: Path) -> CatalogCase:
    return iceberg_case(sql_place(tmp_path), tmp_path, format_version=3)


def table(folder: Path) -> Table:
    return open_catalog(sql_place(folder)).load_table(NAME)


def records(found: Table, path: str, schema: Any) -> Iterator[dict[str, Any]]:
    """What an Avro file has, read by the schema of the format's version 3."""
    with AvroFile[Any](found.io.new_input(path), schema) as reader:
        for record in reader:
            yield named(record, schema.fields)


def named(record: Any, fields: Any) -> dict[str, Any]:
    return {field.name: value for field, value in zip(fields, record._data, strict=True)}


def row_ids(found: Table, snapshot: Snapshot | None = None) -> dict[str, range]:
    """The ids of the rows of each file, as a reader gives them by the rules of the format."""
    snapshot = snapshot or found.current_snapshot()
    assert snapshot is not None
    ids = dict[str, range]()
    fields = MANIFEST_ENTRY_SCHEMAS[3].find_field("data_file").field_type.fields
    for manifest in records(found, snapshot.manifest_list, MANIFEST_LIST_FILE_SCHEMAS[3]):
        following = manifest["first_row_id"]
        for entry in records(found, manifest["manifest_path"], MANIFEST_ENTRY_SCHEMAS[3]):
            file = named(entry["data_file"], fields)
            if entry["status"] == DELETED:
                continue
            first = file["first_row_id"]
            if first is None:
                first, following = following, following + file["record_count"]
            ids[file["file_path"]] = range(first, first + file["record_count"])
    return ids


def committed(case: CatalogCase, head: TableHead, change: TableChange) -> TableHead:
    case.catalog.commit(head, change)
    return now(case)


def test_ids_stay(case: CatalogCase, tmp_path: Path) -> None:
    """Whatever becomes of manifests; and no id is given twice."""
    head = case.catalog.create(OWNER, version(1))
    given: dict[str, range] = {}
    for batch in range(1, 8):
        removed = (case.file("f3").uri,) if batch == 5 else ()
        head = committed(case, head, TableChange(batch, (case.file(f"f{batch}"), case.file(f"g{batch}")), removed))
        if batch == 4:
            case.catalog.merge_manifests(head)
            head = now(case)
        found = row_ids(table(tmp_path))
        assert found.keys() == {file.uri for file in case.catalog.live_files()}
        assert [found[uri] for uri in found if uri in given] == [given[uri] for uri in found if uri in given]
        given |= found
    every = [number for ids in given.values() for number in ids]
    assert len(every) == len(set(every)) == 14 * 3
    snapshots = table(tmp_path).metadata.snapshots
    for before, after in pairwise(snapshots):
        assert after.first_row_id == before.first_row_id + before.added_rows
    assert max(every) < table(tmp_path).metadata.next_row_id


def test_a_table_is_raised(tmp_path: Path) -> None:
    """With the next commit, and for ever: its older rows get ids then, and its older snapshots stay without."""
    two = iceberg_case(sql_place(tmp_path), tmp_path)
    head = two.catalog.create(OWNER, version(1))
    head = committed(two, head, TableChange(1, (two.file("a"), two.file("b"))))
    assert table(tmp_path).metadata.format_version == 2
    three = iceberg_case(sql_place(tmp_path), tmp_path, format_version=3)
    head = committed(three, now(three), TableChange(2, (three.file("c"),), (three.file("a").uri,)))
    found = table(tmp_path)
    assert found.metadata.format_version == 3
    assert sorted(number for ids in row_ids(found).values() for number in ids) == [*range(6)]
    assert [each.first_row_id for each in found.metadata.snapshots] == [None, 0]
    # A process whose settings are those of before goes on.
    committed(two, now(two), TableChange(3, (two.file("d"),)))
    found = table(tmp_path)
    assert found.metadata.format_version == 3
    assert row_ids(found)[two.file("d").uri] == range(6, 9)


def test_a_change_that_adds_nothing(case: CatalogCase, tmp_path: Path) -> None:
    """Gives no id."""
    head = committed(case, case.catalog.create(OWNER, version(1)), TableChange(1, (case.file("a"),)))
    head = committed(case, head, TableChange(2, ()))
    committed(case, head, TableChange(3, (), (case.file("a").uri,)))
    found = table(tmp_path)
    assert (row_ids(found), found.metadata.next_row_id) == ({}, 3)


def test_a_table_of_version_1(tmp_path: Path) -> None:
    """Stays as it is, until version 3 is asked for."""
    catalog = open_catalog(sql_place(tmp_path))
    catalog.create_namespace("lake")
    older = catalog.create_table("lake.older", PLACEHOLDER, properties={"format-version": "1"})
    for version_, expected in ((2, 1), (3, 3)):
        change = Change(older)
        change.use_format(version_)
        assert change.table_metadata.format_version == expected
    change.send(catalog)
    found = catalog.load_table("lake.older").metadata
    assert (found.format_version, found.next_row_id) == (3, 0)
