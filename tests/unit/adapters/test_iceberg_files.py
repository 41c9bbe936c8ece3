"""Files in a table of Iceberg: its values are those of the files, and a file that would read as NULL is refused."""

import random
import tracemalloc
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.table import Table
from pyiceberg.types import StringType

from compactor.adapters.iceberg.data_files import MAX_COLUMNS_WITH_BOUNDS, live_data_files
from compactor.adapters.iceberg.iceberg_table import IcebergTable
from compactor.adapters.iceberg.opening import open_catalog
from compactor.core.errors import OperatorError, SettingsError, StoreUnavailable, TableRefused
from compactor.schema.schema import RESCUED_COLUMN, RESCUED_TYPE, Column, SchemaVersion
from compactor.table.catalog import TableChange, TableFile, TableHead
from tests.support.iceberg_tables import NAME, arrow_schema, client, sql_place, written
from tests.support.table_catalogs import DATE, OWNER, version

NESTED = ("list<decimal(9,2)>", "struct<a:timestamp_ntz,`b c`:map<string,list<long>>>")
TYPED = ("string", "boolean", "long", "double", "decimal(10,2)", "date", "timestamp", *NESTED)
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ROW: dict[str, Any] = {
    "c1": "é" * 40,
    "c2": True,
    "c3": -(2**62),
    "c4": 0.1,
    "c5": Decimal("-12345678.90"),
    "c6": date(1969, 12, 31),
    "c7": MOMENT,
    "c8": [Decimal("0.50"), None],
    "c9": {"a": datetime(2026, 1, 2, 3, tzinfo=UTC).replace(tzinfo=None), "b c": [("k", [1, None]), ("n", None)]},
    RESCUED_COLUMN: [("k", "1e400"), ("null", None)],
}


def typed(number: int) -> SchemaVersion:
    """A version with a column of each type, and from the second on one for rescued data."""
    columns = [
        Column(key=f"c{at}", name=f"c{at}", added_in=1, type=kind, field_id=10 * at) for at, kind in enumerate(TYPED, 1)
    ]
    if number > 1:
        columns.append(
            Column(key=None, name=RESCUED_COLUMN, added_in=2, type=RESCUED_TYPE, field_id=10 * len(TYPED) + 10)
        )
    return SchemaVersion(version=number, created_at=MOMENT, manifest_id="m", columns=tuple(columns))


@pytest.fixture
def table(tmp_path: Path) -> IcebergTable:
    return client(sql_place(tmp_path))


def loaded(folder: Path) -> Table:
    """The table as another program opens it."""
    return open_catalog(sql_place(folder)).load_table(NAME)


def created(table: IcebergTable, schema: SchemaVersion) -> TableHead:
    return table.create(OWNER, schema)


def test_equal_values(table: IcebergTable, tmp_path: Path) -> None:
    """What pyiceberg reads is what the files have, with NULL for columns that a file is too old for."""
    older = written(tmp_path / "older.parquet", typed(1), [{**ROW, RESCUED_COLUMN: None}, {}], "2026-01-01")
    newer = written(tmp_path / "newer.parquet", typed(2), [ROW])
    table.commit(created(table, typed(1)), TableChange(1, (older,)))
    head = table.head()
    assert head is not None
    table.commit(head, TableChange(2, (newer,), (), typed(2)))
    rows = loaded(tmp_path).scan().to_arrow().sort_by("file_date")
    expected = [pq.read_table(tmp_path / name).to_pylist() for name in ("older.parquet", "newer.parquet")]
    filled = [{RESCUED_COLUMN: None, **row} for rows in expected for row in rows]
    assert sorted(map(str, map(sorted_items, rows.to_pylist()))) == sorted(map(str, map(sorted_items, filled)))
    assert loaded(tmp_path).scan(f"file_date = '{DATE}'").to_arrow().num_rows == 1
    assert loaded(tmp_path).scan("c3 = 5").to_arrow().num_rows == 0


def sorted_items(row: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(row.items())


def test_what_the_table_knows_of_a_file(table: IcebergTable, tmp_path: Path) -> None:
    """Its sizes and counts, and bounds of so many columns as are worth their room."""
    wide = version(MAX_COLUMNS_WITH_BOUNDS + 5)
    file = written(tmp_path / "wide.parquet", wide, [{name.name: "x" for name in wide.columns}, {}])
    table.commit(created(table, wide), TableChange(1, (file,)))
    found = loaded(tmp_path)
    snapshot = found.current_snapshot()
    assert snapshot is not None
    [entry] = live_data_files(found.io, snapshot)
    assert (entry.record_count, entry.file_size_in_bytes) == (2, file.size_bytes)
    assert entry.null_value_counts[1] == 1
    assert entry.column_sizes.keys() == {field.field_id for field in found.schema().fields}
    assert 1 in entry.lower_bounds
    assert MAX_COLUMNS_WITH_BOUNDS + 5 not in entry.lower_bounds


def changed(path: Path, **columns: pa.Array) -> None:
    """Write a file anew with other columns."""
    table = pq.read_table(path)
    for name, values in columns.items():
        table = table.set_column(
            table.schema.get_field_index(name), table.schema.field(name).with_type(values.type), values
        )
    pq.write_table(table, path)


def refused(table: IcebergTable, file: TableFile, match: str, **figures: Any) -> None:
    """A commit of a file raises, and nothing is changed."""
    head = table.head() or created(table, version(1))
    path = Path(file.uri.removeprefix("file://"))
    size_bytes = path.stat().st_size if path.exists() else 1
    named = TableFile(file.uri, figures.get("size_bytes", size_bytes), figures.get("records", file.records), file.date)
    with pytest.raises(OperatorError, match=match):
        table.commit(head, TableChange(head.fence + 1, (named,)))
    assert table.head() == head


def test_files_that_do_not_fit(table: IcebergTable, tmp_path: Path) -> None:
    """A file that readers could not read as it is stops the commit, with what was expected instead."""
    path = tmp_path / "a.parquet"
    file = written(path, version(1), [{"c1": "x"}])
    refused(table, file, r"1 rows in \d+ bytes -> expected 2 rows", records=2)
    refused(table, file, r"expected 1 rows in 1 bytes", size_bytes=1)
    other_day = TableFile(file.uri, file.size_bytes, 1, "2026-01-03")
    refused(table, other_day, "the column file_date is not 2026-01-03 in every row")
    changed(path, file_date=pa.array([None], pa.date32()))
    refused(table, file, "the column file_date is not 2026-01-02 in every row")
    written(path, version(1), [{"c1": "x"}])
    changed(path, c1=pa.array([5], pa.int64()))
    refused(table, file, "column 'c1' has field id 1 and type long -> expected string")
    pq.write_table(pq.read_table(path).cast(arrow_schema(version(1), without_ids=True)), path)
    refused(table, file, "columns without field ids")
    written(path, version(2), [{"c1": "x"}])
    refused(table, file, "column 'c2' has field id 2 and type string -> expected an id as in the table")
    path.write_bytes(b"PAR1 not at all PAR1")
    refused(table, file, "not a Parquet file")
    path.unlink()
    refused(table, file, "not found -> expected the file in the ledger")


def damage(path: Path, seed: int) -> None:
    """Write over some bytes of a footer, or over all of them."""
    found, chance = bytearray(path.read_bytes()), random.Random(seed)
    length = int.from_bytes(found[-8:-4], "little")
    begin = len(found) - 8 - length
    if not seed:
        found[begin:-8] = bytes(length)
    for _ in range(8):
        found[begin + chance.randrange(length)] = chance.randrange(256)
    path.write_bytes(found)


def test_a_file_with_a_false_length_of_its_footer(table: IcebergTable, tmp_path: Path) -> None:
    """It is not read whole, however long it is."""
    head, path = created(table, version(1)), tmp_path / "long.parquet"
    file = written(path, version(1), [{"c1": "x"}])
    path.write_bytes(bytes(5_000_000) + (5_000_000).to_bytes(4, "little") + b"none")
    tracemalloc.start()
    try:
        with pytest.raises(TableRefused, match="damaged footer"):
            table.commit(head, TableChange(1, (replace(file, size_bytes=5_000_008),)))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 3_000_000


def test_too_little_memory_is_no_fault_of_a_file(
    table: IcebergTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is trouble that may pass."""
    head, file = created(table, version(1)), written(tmp_path / "a.parquet", version(1), [{"c1": "x"}])

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("compactor.adapters.iceberg.data_files.pq.read_metadata", fail)
    with pytest.raises(StoreUnavailable, match="not enough memory for its footer"):
        table.commit(head, TableChange(1, (file,)))


def test_footers_that_are_damaged(table: IcebergTable, tmp_path: Path) -> None:
    """Whatever the library makes of one, the file is to blame, by its whole name, and not the store."""
    path = tmp_path / f"{'long' * 50}.parquet"
    head, refusals = created(table, version(1)), list[str]()
    for seed in range(60):
        file = written(path, version(1), [{"c1": "x"}])
        damage(path, seed)
        try:
            table.commit(head, TableChange(head.fence + 1, (file,)))
            head = table.head() or head
        except TableRefused as error:
            refusals.append(str(error))
    assert len(refusals) > 30
    assert all(error.startswith(file.uri) for error in refusals)
    assert any("not a Parquet file, or one with a damaged footer" in error for error in refusals)


def test_a_store_that_fails_to_read_a_file(
    table: IcebergTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is trouble that passes: the file may be well."""
    head, file = created(table, version(1)), written(tmp_path / "a.parquet", version(1), [{"c1": "x"}])
    opened = PyArrowFile.open

    def failing(self: PyArrowFile, *arguments: Any) -> Any:
        if self.location == file.uri:
            raise OSError(5, "Input/output error")
        return opened(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(PyArrowFile, "open", failing)
        with pytest.raises(StoreUnavailable, match="Input/output error"):
            table.commit(head, TableChange(1, (file,)))
    table.commit(head, TableChange(1, (file,)))


def test_a_long_footer(table: IcebergTable, tmp_path: Path) -> None:
    """Is read as a whole, also where it is longer than what is read first."""
    wide = version(800)
    file = written(tmp_path / "wide.parquet", wide, [{name.name: "x" for name in wide.columns}])
    assert pq.read_metadata(tmp_path / "wide.parquet").serialized_size > 64 * 1024
    table.commit(created(table, wide), TableChange(1, (file,)))
    assert [each.records for each in table.live_files()] == [1]


def test_columns_of_others(table: IcebergTable, tmp_path: Path) -> None:
    """A column that a person added stays, and gets no values of ours; one that has our name stops the commit."""
    head = created(table, version(1))
    with loaded(tmp_path).update_schema() as update:
        update.add_column("remark", StringType())
    file = written(tmp_path / "b.parquet", version(2), [{"c1": "x", "c2": "y"}])
    table.commit(head, TableChange(1, (file,), (), version(2)))
    assert loaded(tmp_path).scan().to_arrow().select(["c1", "c2", "remark"]).to_pylist() == [
        {"c1": "x", "c2": "y", "remark": None}
    ]
    with loaded(tmp_path).update_schema() as update:
        update.add_column("C3", StringType())
    now = table.head()
    assert now is not None
    with pytest.raises(OperatorError, match="has columns c3 from another writer"):
        table.commit(now, TableChange(2, (), (), version(3)))


def test_a_column_that_a_person_dropped(table: IcebergTable, tmp_path: Path) -> None:
    """Stays away, and stops nothing; a later version that is equal to an earlier one is no new one."""
    head = created(table, version(2))
    with loaded(tmp_path).update_schema() as update:
        update.delete_column("c2")
    file = written(tmp_path / "b.parquet", version(2), [{"c1": "x", "c2": "y"}])
    table.commit(head, TableChange(1, (file,)))
    assert "c2" not in loaded(tmp_path).scan().to_arrow().column_names
    now = table.head()
    assert now is not None
    table.commit(now, TableChange(2, (), (), version(2)))
    again = loaded(tmp_path)
    assert again.scan().to_arrow().select(["c1", "c2"]).to_pylist() == [{"c1": "x", "c2": "y"}]
    assert again.schema().schema_id == 1
    snapshot = again.current_snapshot()
    assert snapshot is not None
    assert snapshot.schema_id == 1


def test_a_nested_column_that_a_person_dropped(table: IcebergTable, tmp_path: Path) -> None:
    """Later files have it still, with all its parts, and so the rescued data; no reader finds it."""
    head = created(table, typed(2))
    with loaded(tmp_path).update_schema() as update:
        update.delete_column("c9")
        update.delete_column(RESCUED_COLUMN)
    file = written(tmp_path / "a.parquet", typed(2), [ROW])
    table.commit(head, TableChange(1, (file,)))
    rows = loaded(tmp_path).scan().to_arrow().to_pylist()
    assert [row.keys() & ROW.keys() for row in rows] == [ROW.keys() - {"c9", RESCUED_COLUMN}]
    assert rows[0]["c8"] == ROW["c8"]


def test_metadata_columns_that_come_later(table: IcebergTable, tmp_path: Path) -> None:
    """The settings name more of them one day; the next commit adds them to the table."""
    first = IcebergTable(place=sql_place(tmp_path), name=NAME, metadata_columns=["file_date"])
    head = created(first, version(1))
    file = written(tmp_path / "a.parquet", version(1), [{"c1": "x", "_manifest_id": "m"}])
    refused(first, file, "column '_source_file' has field id 10000001")
    table.commit(head, TableChange(1, (file,)))
    assert loaded(tmp_path).scan().to_arrow().select(["c1", "_manifest_id"]).to_pylist() == [
        {"c1": "x", "_manifest_id": "m"}
    ]


def test_a_file_without_rows(table: IcebergTable, tmp_path: Path) -> None:
    """Stops nothing."""
    table.commit(created(table, version(1)), TableChange(1, (written(tmp_path / "a.parquet", version(1), []),)))
    assert loaded(tmp_path).scan().to_arrow().num_rows == 0


def test_other_partitions(table: IcebergTable, tmp_path: Path) -> None:
    """Files are in no other partitions than those of their dates."""
    head = created(table, version(1))
    with loaded(tmp_path).update_spec() as update:
        update.add_identity("c1")
    with pytest.raises(OperatorError, match="its partitions are not by file_date"):
        table.commit(head, TableChange(1, (written(tmp_path / "a.parquet", version(1), [{}]),)))


def test_a_stream_without_the_column_of_the_partitions(tmp_path: Path) -> None:
    """It has no table."""
    table = IcebergTable(place=sql_place(tmp_path), name=NAME, metadata_columns=())
    with pytest.raises(SettingsError, match="file_date"):
        table.create(OWNER, version(1))
