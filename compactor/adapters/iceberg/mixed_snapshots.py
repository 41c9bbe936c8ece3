"""Snapshots whose new files have several specifications of partitions. pyiceberg writes the default one only."""

from collections import defaultdict
from typing import Any

from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import TableProperties
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update.snapshot import _MergeAppendFiles, _OverwriteFiles, _SnapshotProducer
from pyiceberg.typedef import EMPTY_DICT

_NO_PARTITIONS = TableProperties.WRITE_PARTITION_SUMMARY_LIMIT_DEFAULT


class _Mixed(_SnapshotProducer[Any]):
    """Writes a manifest for each specification."""

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
    """Replaces files by others with the same rows: readers that follow the table may pass over it."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        made = super()._summary(snapshot_properties)
        return Summary(operation=Operation.REPLACE, **made.additional_properties)  # pyiceberg makes none of this kind
