"""Other programs read from a table what the Parquet files have, after all that a table goes through in its life.

That is: a column more, a file less, other partitions twice, files merged to one and then removed, and upkeep, which
merges manifests, expires snapshots and removes their files. Each program spells its values by the same function, so
that equal texts are equal values.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.adapters.iceberg.iceberg_table import IcebergTable
from compactor.adapters.iceberg.opening import CatalogPlace, open_catalog
from compactor.adapters.local.store import LocalStore
from compactor.core.documents.table_records import MergedPart
from compactor.core.partitions import parse_fields
from compactor.engines.partitioned.buckets import bucket_of
from compactor.schema.schema import RESCUED_COLUMN, SchemaVersion
from compactor.table.catalog import FilePartition, TableChange, TableFile
from compactor.table.merging.writing import MergedFiles
from tests.support import extras
from tests.support.iceberg_tables import NAME, client, metadata_folder, rest_place, sql_place, written
from tests.support.rest_catalog import FOR_SPARK, SPARK_OF_CATALOG, RestCatalogServer
from tests.support.table_upkeep import OWNER, maintainer
from tests.unit.adapters.test_iceberg_files import MOMENT, ROW, typed

SPELLED = """
def spelled(value):
    if isinstance(value, (list, tuple)):
        return sorted(map(spelled, value))
    if isinstance(value, dict):
        return sorted([key, spelled(each)] for key, each in value.items())
    return "NULL" if value is None else repr(value) if isinstance(value, float) else str(value)
"""
"""The text of a value of a column, whatever program read it. Moments come as microseconds, and maps as dictionaries."""

FILTERS = {
    "everything": "true",
    "of a partition": "c3 = 2",
    "of a bucket": "c1 = 'bob'",
    "of a day": "c7 >= '2025-01-01T00:00:00+00:00' AND c7 < '2025-01-02T00:00:00+00:00'",
    "of a date of files": "file_date = '2026-01-01'",
    "of nothing": "c3 = 77",
}

IN_DUCKDB = (
    SPELLED
    + """
import json, sys
import duckdb
from duckdb_extensions import import_extension
for name in ("avro", "iceberg"):
    import_extension(name)
connection = duckdb.connect()
for name in ("avro", "iceberg"):
    connection.execute("LOAD " + name)
connection.execute("SET TimeZone = 'UTC'")
found = {}
moments = ", ".join(f"epoch_us({each}) AS {each}" for each in ("c7", "_processed_at"))
for name, filter in json.loads(sys.argv[2]).items():
    rows = connection.table_function("iceberg_scan", [sys.argv[1]]).filter(filter).project(f"* REPLACE ({moments})")
    names = [each[0] for each in rows.description]
    found[name] = [{name: spelled(value) for name, value in zip(names, row)} for row in rows.fetchall()]
print(json.dumps(found))
"""
)

IN_SPARK = (
    SPARK_OF_CATALOG
    + SPELLED
    + """
found = {}
for label, filter in json.loads(paths[0]).items():
    rows = spark.table(name).where(filter)
    for each in ("c7", "_processed_at"):
        rows = rows.selectExpr(*[f"unix_micros({c}) AS {c}" if c == each else c for c in rows.columns])
    found[label] = [{c: spelled(value) for c, value in row.asDict().items()} for row in rows.collect()]
print(json.dumps(found))
"""
)

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class LivedTable:
    """A table with a past.

    Attributes:
        place: Where its catalog is.
        name: Its name there.
        files: The files that it has.
    """

    place: CatalogPlace
    name: str
    files: Sequence[Path]

    def expected(self) -> Rows:
        """The rows of the files themselves, in no order."""
        tables = [pq.read_table(path) for path in self.files]
        return rows_of(pa.concat_tables(tables, promote_options="default"))


class Life:
    """Takes a table from one state to the next. A further kind of change is a further method here."""

    def __init__(self, table: IcebergTable, folder: Path) -> None:
        self._table, self._folder = table, folder
        self.files: list[Path] = []

    def add(
        self, name: str, schema: SchemaVersion, rows: Rows, *, day: str = "2026-01-02", partition_by: Sequence[str] = ()
    ) -> None:
        """A file, whose rows are all of one partition."""
        path = self._folder / f"{name}.parquet"
        file = written(path, schema, rows, day)
        partition = tuple(_partition(schema, rows[0], text) for text in partition_by)
        self._commit(TableFile(file.uri, file.size_bytes, file.records, file.date, partition), schema=schema)
        self.files.append(path)

    def remove(self, name: str) -> None:
        """A file that a rebuild has replaced."""
        [gone] = [path for path in self.files if path.stem == name]
        self._commit(removed=(gone.as_uri(),))
        self.files.remove(gone)
        gone.unlink()

    def merge_rows(self, name: str, *names: str, day: str = "2026-01-02") -> None:
        """One file in the place of several of one date, which are removed as upkeep does it in the end."""
        merged, paths = self._folder / f"{name}.parquet", [path for path in self.files if path.stem in names]
        counted = [(path, pq.read_metadata(path).num_rows, path.stat().st_size) for path in paths]
        parts = [
            MergedPart(date=day, manifest_id=path.stem, uri=path.as_uri(), rows=rows, size_bytes=size_bytes)
            for path, rows, size_bytes in counted
        ]
        uris = [part.uri for part in parts]
        rows, size_bytes = MergedFiles(LocalStore(), "snappy").write(merged.as_uri(), parts, uris)
        self._commit(TableFile(merged.as_uri(), size_bytes, rows, day), removed=uris, keeps_rows=True)
        for path in paths:
            self.files.remove(path)
            path.unlink()
        self.files.append(merged)

    def keep_up(self) -> None:
        """All that `compactor table maintain` does, once its files are old."""
        head = self._table.head()
        assert head is not None
        for path in metadata_folder(self._table.place, self._table.name).iterdir():
            os.utime(path, (0, 0))
        report = maintainer(self._table, datetime.now(UTC) + timedelta(days=2), batches=head.fence).maintain()
        assert (report.snapshots, report.expired_snapshots > 0, report.removed_files > 0) == (1, True, True)

    def merge(self) -> None:
        """Fewer manifests, as upkeep does it once there are many."""
        head = self._table.head()
        assert head is not None
        self._table.merge_manifests(head)

    def _commit(
        self,
        *added: TableFile,
        removed: Sequence[str] = (),
        schema: SchemaVersion | None = None,
        keeps_rows: bool = False,
    ) -> None:
        head = self._table.head() or self._table.create(OWNER, typed(1))
        needs = schema is not None and schema.version > head.schema_version
        change = TableChange(head.fence + 1, added, tuple(removed), schema if needs else None, keeps_rows=keeps_rows)
        self._table.commit(head, change)


def _partition(schema: SchemaVersion, row: dict[str, Any], text: str) -> FilePartition:
    [field] = parse_fields([text])
    [column] = [each for each in schema.columns if each.key == field.key]
    value = row[field.key]
    named: dict[str, Callable[[], str]] = {
        "day": lambda: value.date().isoformat(),
        "bucket": lambda: str(bucket_of(value, field.buckets)),
        "identity": lambda: str(value),
    }
    text = named[field.transform]()
    return FilePartition(field.name, field.transform, column.field_id, column.type, field.buckets, text)


def lived(place: CatalogPlace, name: str, folder: Path) -> LivedTable:
    """A table that has been through everything."""
    life = Life(client(place, name), folder)
    life.add("older", typed(1), [ROW | {RESCUED_COLUMN: None}, {"c3": 1, "c5": Decimal("0.01")}], day="2026-01-01")
    life.add("gone", typed(1), [{}])
    life.add("newer", typed(2), [ROW, {"c3": 2, "c4": float("inf")}])
    life.remove("gone")
    by_day_and_bucket = ("day(c7)", "bucket(c1, 4)")
    life.add("late", typed(2), [ROW | {"c7": MOMENT - timedelta(days=400)}], partition_by=by_day_and_bucket)
    life.add("bob", typed(2), [{"c1": "bob", "c7": MOMENT, "c6": date(2000, 2, 29)}], partition_by=by_day_and_bucket)
    life.merge()
    life.add("two", typed(2), [{"c3": 2}, {"c3": 2, RESCUED_COLUMN: [("a", "b")]}], partition_by=["identity(c3)"])
    life.add("plain", typed(2), [{"c2": False}])
    life.add("first", typed(1), [{"c3": 2, "c5": Decimal("0.02")}])
    life.merge_rows("merged", "newer", "plain", "first")
    life.keep_up()
    return LivedTable(place, name, life.files)


def rows_of(table: pa.Table) -> Rows:
    """The rows of an Arrow table, spelled."""
    namespace: dict[str, Any] = {}
    exec(SPELLED, namespace)  # noqa: S102 - as the other programs do
    for name in ("c7", "_processed_at"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))
    rows = table.to_pylist(maps_as_pydicts="strict")
    return [{name: namespace["spelled"](value) for name, value in row.items()} for row in rows]


def check(found: dict[str, Rows], expected: Rows) -> None:
    """The rows are those of the files, in any order, whatever is asked for."""
    day = range(1735689600000000, 1735776000000000)
    asked = {
        "everything": expected,
        "of a partition": [row for row in expected if row["c3"] == "2"],
        "of a bucket": [row for row in expected if row["c1"] == "bob"],
        "of a day": [row for row in expected if row["c7"] != "NULL" and int(row["c7"]) in day],
        "of a date of files": [row for row in expected if row["file_date"] == "2026-01-01"],
        "of nothing": [],
    }
    assert {name: len(rows) for name, rows in asked.items()} == {name: len(rows) for name, rows in found.items()}
    for name, rows in asked.items():
        assert sorted(map(as_text, found[name])) == sorted(map(as_text, rows)), name


def as_text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


def in_another_program(python: str, program: str, *arguments: str) -> dict[str, Rows]:
    done = subprocess.run([python, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Rows] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_pyiceberg(tmp_path: Path) -> None:
    """The library that the compactor itself commits with."""
    table = lived(sql_place(tmp_path), NAME, tmp_path)
    opened = open_catalog(table.place).load_table(NAME)
    assert len({entry.file.spec_id for entry in opened.scan().plan_files()}) == 3
    filters = {name: "c1 = c1 or c1 is null" if text == "true" else text for name, text in FILTERS.items()}
    filters["everything"] = "True"
    check({name: rows_of(opened.scan(text).to_arrow()) for name, text in filters.items()}, table.expected())


@pytest.mark.full
@extras.READERS.needed
def test_duckdb(tmp_path: Path) -> None:
    """DuckDB with its own reader of Iceberg."""
    table = lived(sql_place(tmp_path), NAME, tmp_path)
    place = open_catalog(table.place).load_table(NAME).metadata_location.removeprefix("file://")
    found = in_another_program(str(extras.readers_python()), IN_DUCKDB, place, json.dumps(FILTERS))
    check(found, table.expected())


@pytest.mark.large
@pytest.mark.timeout(1800)
@extras.ON_SPARK.needed
def test_spark(rest_catalog: RestCatalogServer, tmp_path: Path) -> None:
    """Spark and Iceberg in the releases of Glue 6.0, from a REST catalog."""
    table = lived(rest_place(rest_catalog.url), f"lake.{tmp_path.name}", tmp_path)
    jars = ",".join(str(path) for path in FOR_SPARK.glob("*.jar"))
    found = in_another_program(
        sys.executable, IN_SPARK, jars, rest_catalog.url, f"lake.{table.name}", json.dumps(FILTERS)
    )
    check(found, table.expected())
