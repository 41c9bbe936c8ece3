"""The columns file: a Parquet file without rows that has every column of the output, and sorts before all other files.

pandas and pyarrow take a folder's columns from its first file, and silently drop all others. Polars and DuckDB do so,
too, and refuse files with other columns unless told to fill in nulls.
"""

import io
from collections.abc import Collection
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.errors import ObjectNotFound
from compactor.core.layout import Layout
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import DAMAGED, arrow_field, type_name
from compactor.schema.field_ids import METADATA_IDS
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import METADATA_COLUMNS, METADATA_TYPES, RETIRED_TYPE, SchemaVersion, metadata_names


@dataclass(slots=True)
class ColumnsFile:
    """Keeps the columns file as wide as the output. It can be rebuilt from the registry.

    With a single schema version there is no such file: all output files have the same columns.

    Attributes:
        partition: The folders of the file below its date folder, so that readers of Hive folders see each level.
    """

    store: ObjectStore
    layout: Layout
    registry: SchemaRegistry
    metadata_columns: Collection[str]
    partition: str = ""
    _covered: int = field(default=1, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def cover(self, version: int) -> None:
        """Add the columns of a schema version, before files with these columns become visible.

        Processes that know different versions may write at the same time, and the last one wins. So after writing, a
        process checks for a newer version, and then writes again. If it dies in between, the next process does so.
        """
        with self._lock:
            while version > self._covered:
                newest = self._newest()
                self._write(newest)
                self._covered = max(version, newest.version)
                version = self._newest().version

    def _newest(self) -> SchemaVersion:
        self.registry.refresh()
        return self.registry.latest()

    def _write(self, version: SchemaVersion) -> None:
        """Write the file wherever it lacks a column. Keeps columns that are in no version: former metadata columns."""
        place = self.layout.columns_file(self.partition)
        found = {place: b""}
        # With earlier settings it had other folders. It may sort before this one there, so it is kept up to date, too.
        for info in self.store.list(self.layout.columns_folder):
            if self.layout.is_columns_file(info.uri):
                found[info.uri] = self._read(info.uri)
        fields = {each.name: each for each in _fields(version, self.metadata_columns)}
        known = (each for data in found.values() for each in _schema(data))
        # guard: a damaged name is no column
        former = {each.name: each for each in known if each.name not in fields and each.name in METADATA_COLUMNS}
        wanted = io.BytesIO()
        pq.ParquetWriter(wanted, pa.schema([*fields.values(), *former.values()]), store_schema=False).close()
        for uri, data in found.items():
            if data != wanted.getvalue():
                self.store.put(uri, wanted.getvalue())

    def _read(self, uri: str) -> bytes:
        try:
            return self.store.read(uri)
        except ObjectNotFound:
            return b""


def _schema(data: bytes) -> pa.Schema:
    """The columns of a stored file; empty if it is damaged or missing."""
    try:
        return pq.read_schema(io.BytesIO(data))
    except DAMAGED:
        return pa.schema([])


def columns_fault(data: bytes, version: SchemaVersion) -> str:
    """How a stored file misleads readers, in words; empty if it does not. It may lack the latest columns."""
    try:
        file = pq.ParquetFile(io.BytesIO(data))
    except DAMAGED as exc:
        return str(exc)
    known = list(map(_described, _fields(version, METADATA_COLUMNS)))
    others = [each for each in file.schema_arrow if _described(each) not in known]
    if others:
        return f"a column {others[0].name} of type {type_name(others[0].type)}"
    return f"{file.metadata.num_rows} rows" if file.metadata.num_rows else ""


def _described(field: pa.Field) -> tuple[object, ...]:
    return field.name, type_name(field.type), field.metadata


def _fields(version: SchemaVersion, metadata_columns: Collection[str]) -> list[pa.Field]:
    """The columns of all files up to a version, including retired ones, in id order."""
    metadata = [
        arrow_field(name, METADATA_TYPES[name], METADATA_IDS[name]) for name in metadata_names(metadata_columns)
    ]
    columns = [(each.field_id, each.name, each.type) for each in version.columns]
    columns += [(each.field_id, each.name, RETIRED_TYPE) for each in version.retired]
    return metadata + [arrow_field(name, type_, number) for number, name, type_ in sorted(columns)]
