"""One change to a table: prepared on the table state that was read, and sent once."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSchemasUpdate,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSpecUpdate,
    TableUpdate,
)
from pyiceberg.table.update.snapshot import _MergeAppendFiles, _OverwriteFiles, _SnapshotProducer
from pyiceberg.typedef import EMPTY_DICT

from compactor.adapters.iceberg.schemas import unneeded_schemas
from compactor.core.errors import OperatorError

_NO_PARTITIONS = TableProperties.WRITE_PARTITION_SUMMARY_LIMIT_DEFAULT


class _Mixed(_SnapshotProducer[Any]):
    def _manifests(self) -> list[ManifestFile]:
        added, by_spec = self._added_data_files, defaultdict[int, list[DataFile]](list)
        for file in added:
            by_spec[file.spec_id].append(file)
        self._added_data_files = by_spec.pop(self._transaction.table_metadata.default_spec_id, [])
        try:
            others = [self._written(spec_id, files) for spec_id, files in sorted(by_spec.items())]
            return others + super()._manifests()
        finally:
            self._added_data_files = added

    def _written(self, spec_id: int, files: list[DataFile]) -> ManifestFile:
        with self.new_manifest_writer(self.spec(spec_id)) as writer:
            for file in files:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        return writer.to_manifest_file()

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        metadata = self._transaction.table_metadata
        specs, schema, collector = metadata.specs(), metadata.schema(), SnapshotSummaryCollector()
        named = TableProperties.WRITE_PARTITION_SUMMARY_LIMIT
        collector.set_partition_summary_limit(int(metadata.properties.get(named, _NO_PARTITIONS)))
        for file in self._added_data_files:
            collector.add_file(file, schema, specs[file.spec_id])
        for file in self._deleted_data_files:
            collector.remove_file(file, schema, specs[file.spec_id])
        parent = metadata.snapshot_by_id(self._parent_snapshot_id) if self._parent_snapshot_id is not None else None
        return update_snapshot_summaries(
            summary=Summary(operation=self._operation, **collector.build(), **snapshot_properties),
            previous_summary=parent.summary if parent is not None else None,
        )


class MixedAppend(_Mixed, _MergeAppendFiles):
    """Adds files."""


class MixedOverwrite(_Mixed, _OverwriteFiles):
    """Adds files and removes others."""


class MixedReplace(MixedOverwrite):
    """Replaces files with others that have the same rows: readers that follow the table may ignore it."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        made = super()._summary(snapshot_properties)
        return Summary(operation=Operation.REPLACE, **made.additional_properties)  # pyiceberg makes none of this kind


_LAST_ADDED = -1


class Change(Transaction):
    """Updates to a table that take effect together or not at all.

    pyiceberg would resend a transaction after a conflict, and delete the manifests of one that it believes to have
    failed. `send` does neither: a conflict may be the response to a second delivery of a change that is in the table.
    """

    def __init__(self, table: Table) -> None:
        self._applied: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None
        super().__init__(table)
        snapshot = table.metadata.current_snapshot_id
        metadata = table.metadata
        self._stage(
            (),
            (
                AssertTableUUID(uuid=metadata.table_uuid),
                AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=snapshot),
                AssertCurrentSchemaId(current_schema_id=metadata.current_schema_id),
                AssertDefaultSpecId(default_spec_id=metadata.default_spec_id),
            ),
        )

    @property
    def table_metadata(self) -> TableMetadata:
        """The table with the staged updates; read-only.

        Cached, because pyiceberg applies all updates each time, and asks for it some twenty times per change.
        """
        if not self._updates:
            return self._table.metadata
        if self._applied is None or self._applied[0] is not self._updates:
            self._applied = (self._updates, super().table_metadata)
        return self._applied[1]

    def use_schema(self, schema: Schema) -> None:
        """Give the table these columns, with their ids."""
        same = next((each for each in self._table.metadata.schemas if each == schema), None)
        if same is None:
            self._stage((AddSchemaUpdate(schema_=schema), SetCurrentSchemaUpdate(schema_id=_LAST_ADDED)))
        else:  # catalogs give equal schemas one number, which the snapshot must use
            self._stage((SetCurrentSchemaUpdate(schema_id=same.schema_id),))

    def use_partitions(self, spec: PartitionSpec) -> None:
        """Partition the files in this and later changes in this way."""
        self._stage((AddPartitionSpecUpdate(spec=spec), SetDefaultSpecUpdate(spec_id=_LAST_ADDED)))

    def use_specs(self, added: Sequence[PartitionSpec], default: int) -> bool:
        """Add partition specifications, and set the default one; return whether the default changed."""
        if added:
            last = AssertLastAssignedPartitionId(last_assigned_partition_id=self._table.metadata.last_partition_id)
            self._stage(tuple(AddPartitionSpecUpdate(spec=spec) for spec in added), (last,))
        is_other = default != self._table.metadata.default_spec_id
        if is_other:
            self._stage((SetDefaultSpecUpdate(spec_id=default),))
        return is_other

    def use_files(
        self,
        added: Sequence[DataFile],
        removed: Collection[DataFile],
        notes: dict[str, str],
        *,
        keeps_rows: bool = False,
    ) -> int:
        """Create a snapshot with files added and removed. It may have the same files: the table must move on.

        Args:
            added: The new files.
            removed: Files in the table.
            notes: The snapshot's summary.
            keeps_rows: Whether the added files have the rows of the removed ones.

        Returns:
            Its id.
        """
        with self._producer(added, removed, notes, keeps_rows=keeps_rows) as snapshot:
            for entry in added:
                snapshot.append_data_file(entry)
            for entry in removed:
                snapshot.delete_data_file(entry)
        return int(snapshot.snapshot_id)

    def _producer(
        self, added: Sequence[DataFile], removed: Collection[DataFile], notes: dict[str, str], *, keeps_rows: bool
    ) -> _SnapshotProducer[Any]:
        """The snapshot's producer: pyiceberg's own, unless some files are partitioned differently than the table."""
        metadata = self.table_metadata
        if keeps_rows and added and removed:
            io = self._table.io
            return MixedReplace(operation=Operation.OVERWRITE, transaction=self, io=io, snapshot_properties=notes)
        if all(entry.spec_id == metadata.default_spec_id for entry in added):
            update = self.update_snapshot(snapshot_properties=notes)
            return update.overwrite() if removed else update.merge_append()
        kind: type[MixedAppend | MixedOverwrite] = MixedOverwrite if removed else MixedAppend
        replaces = bool(removed) and metadata.current_snapshot_id is not None
        operation = Operation.OVERWRITE if replaces else Operation.APPEND
        return kind(operation=operation, transaction=self, io=self._table.io, snapshot_properties=notes)

    def merge_manifests(self) -> int:
        """Create a snapshot with the same files in fewer manifests.

        Returns:
            Its id.

        Raises:
            OperatorError: It would not have the same files.
        """
        own = self._table.metadata.properties
        asked = {TableProperties.MANIFEST_MERGE_ENABLED: "true", TableProperties.MANIFEST_MIN_MERGE_COUNT: "2"}
        self.set_properties(asked)
        merging = self.update_snapshot().merge_append()
        merging.commit()
        self.remove_properties(*asked)
        if kept := {key: own[key] for key in asked if key in own}:
            self.set_properties(kept)
        before, after = self._table.metadata.current_snapshot(), self.table_metadata.current_snapshot()
        counts = [self._counts(each) for each in (before, after)]
        if counts[0] != counts[1]:  # guard: merged manifests have the same files
            raise OperatorError(f"merged manifests have (files, rows) {counts[1]} -> expected {counts[0]}, as before")
        return merging.snapshot_id

    def expire(self, snapshot_ids: Collection[int]) -> None:
        """Expire snapshots, provided that no branch or tag has moved."""
        refs = self._table.metadata.refs.items()
        others = ((name, ref.snapshot_id) for name, ref in refs if name != MAIN_BRANCH)
        # `_stage` would omit these: it takes one requirement per kind, and has that of the main branch.
        self._requirements += tuple(AssertRefSnapshotId(ref=name, snapshot_id=each) for name, each in others)
        self._stage((RemoveSnapshotsUpdate(snapshot_ids=sorted(snapshot_ids)),))

    def remove_schemas(self, expired: Collection[int]) -> None:
        """Remove schemas that nothing needs after these snapshots expire. Each new column adds a full schema."""
        if numbers := unneeded_schemas(self._table.metadata, expired):
            self._stage((RemoveSchemasUpdate(schema_ids=numbers),))

    def _counts(self, snapshot: Snapshot | None) -> tuple[int, int]:
        """A snapshot's number of files and rows, from its manifest list."""
        manifests = snapshot.manifests(self._table.io) if snapshot else []
        files = sum((each.added_files_count or 0) + (each.existing_files_count or 0) for each in manifests)
        return files, sum((each.added_rows_count or 0) + (each.existing_rows_count or 0) for each in manifests)

    def send(self, catalog: Catalog) -> CommitTableResponse:
        """Send everything in one request."""
        return catalog.commit_table(self._table, self._requirements, self._updates)
