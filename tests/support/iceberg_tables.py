"""Tables in catalogs that pyiceberg opens, and Parquet files for them as the engines write them."""

import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.adapters.iceberg.iceberg_table import IcebergTable
from compactor.adapters.iceberg.opening import CatalogPlace, open_catalog
from compactor.engines.parquet_files import arrow_field
from compactor.schema.schema import METADATA_COLUMNS, SchemaVersion
from compactor.table.catalog import TableFile
from compactor.table.columns import table_columns
from tests.support.table_catalogs import DATE, CatalogCase, version

NAME = "lake.events"


def sql_place(folder: Path) -> CatalogPlace:
    """A catalog in SQLite."""
    return CatalogPlace(kind="sql", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=(folder / "warehouse").as_uri())


def rest_place(url: str) -> CatalogPlace:
    """A catalog that a server has."""
    return CatalogPlace(kind="rest", uri=url)


def client(place: CatalogPlace, name: str = NAME) -> IcebergTable:
    """A client of a table, with connections of its own."""
    return IcebergTable(place=place, name=name, metadata_columns=METADATA_COLUMNS)


def iceberg_case(place: CatalogPlace, folder: Path, name: str = NAME) -> CatalogCase:
    """A table in a catalog, and files of three rows."""

    def file(named: str, number: int = 1) -> TableFile:
        path = folder / f"{named}-{number}.parquet"
        rows = [{f"c{each}": f"{named} {row} {each}" for each in range(1, number + 1)} for row in range(3)]
        return written(path, version(number), rows) if not path.exists() else _found(path, len(rows))

    def other() -> IcebergTable:
        return client(place, name)

    def tag(snapshot_id: int) -> None:
        open_catalog(place).load_table(name).manage_snapshots().create_tag(snapshot_id, f"kept-{snapshot_id}").commit()

    def age(days: float) -> None:
        for path in metadata_folder(place, name).iterdir():
            then = path.stat().st_mtime - days * 24 * 3600
            os.utime(path, (then, then))

    def leave(named: str) -> None:
        (metadata_folder(place, name) / named).write_bytes(b"left")

    return CatalogCase(other(), other, file, tag, leave, age, lambda: open_catalog(place).drop_table(name))


def metadata_folder(place: CatalogPlace, name: str = NAME) -> Path:
    """The folder with the metadata of a table."""
    return Path(urlparse(open_catalog(place).load_table(name).metadata_location).path).parent


def written(path: Path, schema: SchemaVersion, rows: Sequence[Mapping[str, Any]], day: str = DATE) -> TableFile:
    """Write a file of a schema version with all metadata columns."""
    fields = arrow_schema(schema)
    filled = [{**dict.fromkeys(fields.names), "file_date": date.fromisoformat(day), **row} for row in rows]
    pq.write_table(pa.Table.from_pylist(filled, schema=fields), path)
    return _found(path, len(rows), day)


def arrow_schema(schema: SchemaVersion, *, without_ids: bool = False) -> pa.Schema:
    """The columns of such a file."""
    columns = table_columns(schema, METADATA_COLUMNS)
    return pa.schema([arrow_field(each.name, each.type, 0 if without_ids else each.field_id) for each in columns])


def _found(path: Path, records: int, day: str = DATE) -> TableFile:
    return TableFile(path.as_uri(), path.stat().st_size, records, day)
