"""Snapshots whose new files may have several specifications of partitions. pyiceberg writes the default one only.

It also reads the entries of manifests without ids of rows, so those that stay and those that go are found here.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import TableProperties
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update.snapshot import _MergeAppendFiles, _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT, KeyDefaultDict

from compactor.adapters.iceberg.version_3.row_ids import WithRowIds
from compactor.core.map_ordered import map_ordered

_MANIFESTS_AT_ONCE = 8
_NO_PARTITIONS = TableProperties.WRITE_PARTITION_SUMMARY_LIMIT_DEFAULT


class _Mixed(WithRowIds):
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
        return update_snapshot_summaries(
            summary=Summary(operation=self._operation, **collector.build(), **snapshot_properties),
            previous_summary=self.parent.summary if self.parent is not None else None,
        )


class MixedAppend(_Mixed, _MergeAppendFiles):
    """Adds files."""


class MixedOverwrite(_Mixed, _OverwriteFiles):
    """Adds files and removes others."""

    def _existing_manifests(self) -> list[ManifestFile]:
        kept: list[ManifestFile] = []
        for manifest, entries, going in self._touched:
            if not going:
                kept.append(manifest)
            elif len(going) < len(entries):
                staying = (each for each in entries if each.data_file not in self._deleted_data_files)
                kept.append(self._rewritten(manifest, staying))
        return kept

    def _deleted_entries(self) -> list[ManifestEntry]:
        deleted = [self._entry(ManifestEntryStatus.DELETED, each) for _, _, going in self._touched for each in going]
        self._validate_required_deletes(deleted)
        return deleted

    @cached_property
    def _touched(self) -> list[tuple[ManifestFile, list[ManifestEntry], list[ManifestEntry]]]:
        """Each manifest, its entries, and those that go. pyiceberg would read entries without ids of rows."""
        may_have = KeyDefaultDict(self._build_manifest_evaluator)

        def read(manifest: ManifestFile) -> tuple[ManifestFile, list[ManifestEntry], list[ManifestEntry]]:
            entries = self.fetch_manifest_entry(manifest) if may_have[manifest.partition_spec_id](manifest) else []
            return manifest, entries, [each for each in entries if each.data_file in self._deleted_data_files]

        manifests = self.parent.manifests(self._io) if self.parent is not None else []
        return list(map_ordered(read, manifests, threads=_MANIFESTS_AT_ONCE))

    def _rewritten(self, manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> ManifestFile:
        with self.new_manifest_writer(self.spec(manifest.partition_spec_id)) as writer:
            for entry in entries:
                writer.add_entry(self._entry(ManifestEntryStatus.EXISTING, entry))
        return writer.to_manifest_file()

    def _entry(self, status: ManifestEntryStatus, entry: ManifestEntry) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=self._snapshot_id if status == ManifestEntryStatus.DELETED else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )


class MixedReplace(MixedOverwrite):
    """Replaces files by others with the same rows, so that readers that follow the table may pass over it.

    Those that follow ids of rows may not: rows of the new files get new ones.
    """

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        made = super()._summary(snapshot_properties)
        return Summary(operation=Operation.REPLACE, **made.additional_properties)  # pyiceberg makes none of this kind
