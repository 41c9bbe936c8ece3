"""Snapshots of version 3 of the format, which gives each row an id. pyiceberg reads that version, and writes none.

A file is written without the id of its first row. It has that of its manifest, and more by the rows of the files
without one before it there; a manifest gets its id when a snapshot lists it for the first time. An entry that goes to
another manifest takes its id along. See "Row Lineage" in https://iceberg.apache.org/spec.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Self

from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.io import FileIO, OutputFile
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriter,
    ManifestWriterV2,
    PartitionFieldSummary,
    _inherit_from_manifest,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate, UpdatesAndRequirements
from pyiceberg.table.update.snapshot import _SnapshotProducer

from compactor.core.errors import OperatorError
from compactor.settings.types import FORMAT_3

_ENTRY_TYPES: dict[int, Any] = {-1: ManifestEntry, 2: DataFile}
_ENTRY_ENUMS: dict[int, Any] = {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent}
_FIRST_ROW_ID = "first_row_id"
_FIRST_OF_FILE = [field.name for field in DATA_FILE_TYPE[FORMAT_3].fields].index(_FIRST_ROW_ID)
_FIRST_OF_MANIFEST = [field.name for field in MANIFEST_LIST_FILE_SCHEMAS[FORMAT_3].fields].index(_FIRST_ROW_ID)
"""The places of the id in the records of files and of manifests."""


def new_data_file(format_version: int, **values: Any) -> DataFile:
    """An entry for a new file, as manifests of this version have it."""
    return DataFile.from_args(FORMAT_3 if format_version >= FORMAT_3 else 2, **values)


class _ManifestWriter(ManifestWriterV2):
    """Writes a manifest whose entries have the ids of their first rows, where they are known."""

    @property
    def version(self) -> Any:
        return FORMAT_3

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        schema = self._with_partition(FORMAT_3)
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=schema,
            record_schema=schema,
            schema_name="manifest_entry",
            metadata=self._meta,
        )


class _ListWriter(ManifestListWriterV2):
    """Writes the list of a snapshot's manifests, and gives ids to those that have none."""

    def __init__(self, output: OutputFile, first_row_id: int, known: dict[str, int | None], **values: Any) -> None:
        super().__init__(output_file=output, **values)
        self._format_version = FORMAT_3
        self._meta["format-version"] = str(FORMAT_3)
        self._known = known
        self.next_row_id = first_row_id

    def __enter__(self) -> Self:
        self._writer = AvroOutputFile[ManifestFile](
            output_file=self._output_file,
            record_schema=MANIFEST_LIST_FILE_SCHEMAS[FORMAT_3],
            file_schema=MANIFEST_LIST_FILE_SCHEMAS[FORMAT_3],
            schema_name="manifest_file",
            metadata=self._meta,
        )
        self._writer.__enter__()
        return self

    def prepare_manifest(self, manifest_file: ManifestFile) -> ManifestFile:
        made = super().prepare_manifest(manifest_file)
        first = self._known.get(made.manifest_path)
        if first is None and made.content == ManifestContent.DATA:
            first = self.next_row_id
            self.next_row_id += (made.added_rows_count or 0) + (made.existing_rows_count or 0)
        made._data = [*made._data[:_FIRST_OF_MANIFEST], first]  # noqa: SLF001 - the record has no name for it
        return made


class WithRowIds(_SnapshotProducer[Any]):
    """Makes snapshots of the version of the table."""

    @property
    def parent(self) -> Snapshot | None:
        """The snapshot before this one."""
        number = self._parent_snapshot_id
        return None if number is None else self._transaction.table_metadata.snapshot_by_id(number)

    @property
    def _has_row_ids(self) -> bool:
        return self._transaction.table_metadata.format_version >= FORMAT_3

    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        if not self._has_row_ids:
            return super().new_manifest_writer(spec)
        output = self.new_manifest_output()
        return _ManifestWriter(spec, self.schema(), output, self._snapshot_id, self._compression)

    def fetch_manifest_entry(self, manifest: ManifestFile, discard_deleted: bool = True) -> list[ManifestEntry]:
        if not self._has_row_ids:
            return super().fetch_manifest_entry(manifest, discard_deleted)
        entries = _entries(self._io, manifest, self._first_row_ids.get(manifest.manifest_path))
        return [each for each in entries if not discard_deleted or each.status != ManifestEntryStatus.DELETED]

    def _commit(self) -> UpdatesAndRequirements:
        if not self._has_row_ids:
            return super()._commit()
        metadata = self._transaction.table_metadata
        first_row_id = getattr(metadata, "next_row_id", None)
        if first_row_id is None:
            raise OperatorError("the table has no next-row-id -> expected one, as its format version has ids of rows")
        manifests = self._manifests()
        location = self._transaction._table.location_provider().new_metadata_location(  # noqa: SLF001
            f"snap-{self._snapshot_id}-0-{self.commit_uuid}.avro"
        )
        self._written_manifest_lists.append(location)
        writer = _ListWriter(
            self._io.new_output(location),
            first_row_id,
            self._first_row_ids,
            snapshot_id=self._snapshot_id,
            parent_snapshot_id=self._parent_snapshot_id,
            sequence_number=metadata.next_sequence_number(),
            compression=self._compression,
        )
        with writer:
            writer.add_manifests(manifests)
        snapshot = Snapshot(
            snapshot_id=self._snapshot_id,
            parent_snapshot_id=self._parent_snapshot_id,
            manifest_list=location,
            sequence_number=metadata.next_sequence_number(),
            summary=self._summary(self.snapshot_properties),
            schema_id=metadata.current_schema_id,
            first_row_id=first_row_id,
            added_rows=writer.next_row_id - first_row_id,
        )
        return self._updates(snapshot)

    def _updates(self, snapshot: Snapshot) -> UpdatesAndRequirements:
        added, branch = AddSnapshotUpdate(snapshot=snapshot), MAIN_BRANCH
        ref = self._transaction.table_metadata.refs.get(branch)
        moved = SetSnapshotRefUpdate(
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            ref_name=branch,
            type=SnapshotRefType.BRANCH,
            max_ref_age_ms=None,
            max_snapshot_age_ms=None,
            min_snapshots_to_keep=None,
        )
        return (added, moved), (AssertRefSnapshotId(ref=branch, snapshot_id=ref.snapshot_id if ref else None),)

    @cached_property
    def _first_row_ids(self) -> dict[str, int | None]:
        """The ids that the manifests of the snapshot before have."""
        snapshot = self.parent
        if snapshot is None or snapshot.first_row_id is None:  # before the table had ids
            return {}
        return {each.manifest_path: each._data[_FIRST_OF_MANIFEST] for each in _listed(self._io, snapshot)}  # noqa: SLF001


def _listed(io: FileIO, snapshot: Snapshot) -> Sequence[ManifestFile]:
    """The manifests of a snapshot, with their ids."""
    with AvroFile[ManifestFile](
        io.new_input(snapshot.manifest_list),
        MANIFEST_LIST_FILE_SCHEMAS[FORMAT_3],
        read_types={-1: ManifestFile, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    ) as reader:
        return list(reader)


def _entries(io: FileIO, manifest: ManifestFile, first_row_id: int | None) -> Iterator[ManifestEntry]:
    """The entries of a manifest, each with the id of its first row."""
    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[FORMAT_3],
        read_types=_ENTRY_TYPES,
        read_enums=_ENTRY_ENUMS,
    ) as reader:
        for each in reader:
            entry = _inherit_from_manifest(each, manifest)
            values = entry.data_file._data  # noqa: SLF001 - the record has no name for it
            if (
                first_row_id is not None
                and entry.status != ManifestEntryStatus.DELETED
                and values[_FIRST_OF_FILE] is None
            ):
                values[_FIRST_OF_FILE] = first_row_id
                first_row_id += entry.data_file.record_count
            yield entry
