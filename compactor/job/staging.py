"""One attempt at a manifest: lets the engine stage its files, verifies them, and drafts the commit."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Commit, GrokRules, StagedFile
from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import (
    Accepted,
    Attempt,
    FileReport,
    FileStatus,
)
from compactor.core.errors import CompactorError, InputRefused, RecordUnreadable
from compactor.core.layout import MANIFEST_ID, Layout, ManifestKey, number_of_redrive, redriven_id, root_id
from compactor.core.partitions import folders
from compactor.core.rules.attempts import RetryRules
from compactor.engines.engine import Engine, Staged, StagedOutput, StageRequest
from compactor.engines.parquet_files import ParquetFacts
from compactor.engines.staged_files import misfits_by_column, verify_staged
from compactor.ledger.sizing_history import SizingHistory
from compactor.ledger.state import State
from compactor.ndjson.lines import Limits
from compactor.schema.registry import ManifestColumns, SchemaRegistry
from compactor.schema.schema import ColumnsUsed
from compactor.telemetry.logs import log_event

MOST_FOLLOWING = 16
"""How many manifests of deferred files may follow a manifest."""

MOST_FOLLOWING_FILES = 20_000
"""The most files of a manifest times the manifests that followed: readers of a lineage hold all their names."""

_LARGEST_NUMBER = 999_999_999  # of a redrive


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """The settings that affect compaction.

    Attributes:
        retries: When and how often a manifest is retried.
        limits: The inspection limits; every commit records them.
        grok: Reads lines as records; None if they are JSON. Every commit records it.
        in_place: Whether the engine writes row files under their final names, for a table that lists them.
    """

    retries: RetryRules
    metadata_columns: tuple[str, ...]
    manifests_in_flight: int
    limits: Limits
    grok: GrokRules | None = None
    in_place: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stager:
    """Stages the output of manifests. Nothing it writes is visible before the commit is decided.

    In place, the row files are in the output before that, and visible once a table lists them.
    """

    state: State
    engine: Engine
    registry: SchemaRegistry
    history: SizingHistory
    rules: CompactionRules
    on_crash_point: OnCrashPoint = ignore_crash_point

    def stage(self, accepted: Accepted, attempt: Attempt) -> tuple[Commit, int]:
        """Stage and verify.

        Returns:
            The outcome to record, and how many columns the manifest adds to the schema.

        Raises:
            ManifestError: The manifest cannot be compacted.
            InputRefused: The store denied access to all of its files.
            CompactorError: The attempt failed.
        """
        manifest = accepted.manifest
        if manifest is None:
            raise CompactorError(f"manifest {accepted.manifest_id}: its acceptance record has no manifest")
        manifest_id = accepted.manifest_id
        self.registry.check_declared()  # an engine need not request columns if it finds no new keys
        columns = ManifestColumns(self.registry, manifest_id)
        layout = self.state.layout
        place = layout.in_place(accepted.key, attempt.number, attempt.generation) if self.rules.in_place else ""
        staged = self.engine.stage(
            StageRequest(
                manifest=manifest,
                staging=layout.staging_of_attempt(manifest_id, attempt.number, attempt.generation),
                place=place,
                schema=self.registry.latest(),
                declared_keys=self.registry.declared_keys,
                columns_for=columns,
                key_limits=columns.key_limits,
                ratio=self.history.ratio(),
                stored_ratio=self.history.stored_ratio(),
                manifests_in_flight=1 if attempt.alone else self.rules.manifests_in_flight,
                processed_at=attempt.started_at,
                on_inspected=lambda: self.on_crash_point(CrashPoint.INSPECTED, manifest_id),
            )
        )
        self.on_crash_point(CrashPoint.CONVERTED, manifest_id)
        _check_access(staged.reports)
        outputs, rejects = verify_staged(self.state.store, manifest, staged, self.rules.metadata_columns)
        commit = self._commit(accepted, attempt, staged, outputs, rejects)
        self._tell(commit, new_columns=len(columns.added))
        return commit, len(columns.added)

    def keep(self, commit: Commit) -> None:
        """Save a verified commit. From now on any driver may decide it, so its staged files must stay."""
        self.state.ledger.keep_verified(commit)
        self.on_crash_point(CrashPoint.VERIFIED, commit.manifest_id)

    def verified(self, accepted: Accepted, numbers: Iterable[int]) -> Commit | None:
        """Find an earlier attempt that was verified but not decided, so that its work need not be repeated.

        Returns:
            The commit to decide; None if no such attempt has all of its staged files.
        """
        key, layout = accepted.key, self.state.layout
        store = self.state.store
        staged = {info.uri: info.size_bytes for info in store.list(layout.staging_of(key.id))}

        def size_of(file: StagedFile) -> int | None:
            found = store.stat(file.staged) if file.is_in_place else None
            return found.size_bytes if found else staged.get(file.staged)

        for number in numbers:
            commit = None
            if layout.verified_commit(key.id, number) in staged:
                commit = self._read_verified(key, number)
            files = (*commit.outputs, *commit.rejects) if commit else ()
            # guard: a verified commit is only decided with all its staged files
            if commit is not None and all(size_of(file) == file.size_bytes for file in files):
                return commit
        return None

    def _read_verified(self, key: ManifestKey, number: int) -> Commit | None:
        """A verified commit; None if it is damaged, because its work can be repeated."""
        try:
            return self.state.ledger.verified_commit(key, number)
        except RecordUnreadable as exc:  # guard: verified work with a damaged record is repeated
            log_event("attempt.unreadable", manifest_id=key.id, attempt=number, error=exc)
            return None

    def discard(self, accepted: Accepted, attempt: Attempt) -> None:
        """Delete a failed attempt's staged files. Leftovers are deleted with the manifest's staging."""
        discard_staged(self.state, accepted.key, attempt, in_place=self.rules.in_place)

    def _tell(self, commit: Commit, *, new_columns: int) -> None:
        """Log what users may need to know about the columns."""
        used = ColumnsUsed(commit.columns, commit.max_columns)
        if commit.refused_keys:
            log_event(
                "columns.refused", manifest_id=commit.manifest_id, keys=commit.refused_keys, new_columns=new_columns
            )
        if commit.unparsed_times:
            log_event("partitions.unparsed", manifest_id=commit.manifest_id, rows=commit.unparsed_times)
        if others := sum(file.rows for file in commit.outputs if file.holds_others):
            partitions = len({tuple(file.partition) for file in commit.outputs if not file.holds_others})
            log_event("partitions.too_many", manifest_id=commit.manifest_id, rows=others, partitions=partitions)
        if new_columns and used.is_nearly_full:
            log_event("columns.nearly_full", columns=used.columns, max_columns=used.max_columns)

    def _commit(
        self,
        accepted: Accepted,
        attempt: Attempt,
        staged: Staged,
        outputs: list[ParquetFacts],
        rejects: list[ParquetFacts],
    ) -> Commit:
        key, layout = accepted.key, self.state.layout
        used = self.registry.used(staged.schema)
        return Commit(
            manifest_id=key.id,
            date=key.date,
            generation=attempt.generation,
            attempt=attempt.number,
            run_id=self.state.ledger.run_id,
            engine=self.engine.name,
            schema_version=staged.schema.version,
            outputs=[
                _output_file(file, output, staged, partial(_final, layout, key, file.uri, part))
                for part, (file, output) in enumerate(zip(outputs, staged.outputs, strict=True))
            ],
            rejects=[_staged_file(file, layout.rejects_file(key, part)) for part, file in enumerate(rejects)],
            files=_left_to_operator(accepted.manifest, staged.reports),
            rescued_values=staged.rescued_values,
            misfits=misfits_by_column(self.state.store, staged),
            redone_bins=staged.redone_bins,
            refused_keys=staged.refused_keys,
            partition_by=list(map(str, staged.partition_by)),
            unparsed_times=staged.unparsed_times,
            columns=used.columns,
            max_columns=used.max_columns,
            max_line_bytes=self.rules.limits.max_line_bytes,
            max_decompressed_bytes=self.rules.limits.max_decompressed_bytes,
            rejects_of=(accepted.manifest.rejects_of if accepted.manifest else None) or "",
            started_at=attempt.started_at,
            decided_at=self.state.clock.now(),
            grok=self.rules.grok,
        )


def discard_staged(state: State, key: ManifestKey, attempt: Attempt, *, in_place: bool) -> None:
    """Delete an attempt's staged files, and its in-place files if any, as far as the store allows it."""
    folders = [state.layout.staging_of_attempt(key.id, attempt.number, attempt.generation)]
    folders += [state.layout.in_place(key, attempt.number, attempt.generation)] if in_place else []
    for folder in folders:
        with suppress(CompactorError):
            state.store.delete([info.uri for info in state.store.list(folder)])


def _check_access(reports: Sequence[FileReport]) -> None:
    """Raise if access to all input is denied; single denied files are quarantined instead.

    Raises:
        InputRefused: Access was denied, and no file of the manifest could be read.
    """
    denied = [report for report in reports if report.status is FileStatus.FORBIDDEN]
    # Without permission to list, S3 denies access to objects that do not exist: a missing file does not prove access.
    silent = {FileStatus.FORBIDDEN, FileStatus.MISSING}
    if denied and all(report.status in silent for report in reports):
        raise InputRefused(f"{denied[0].uri}: {denied[0].detail}; expected permission to read the input")


def _left_to_operator(manifest: Manifest | None, reports: Sequence[FileReport]) -> list[FileReport]:
    """The reports, with deferred files quarantined if no further manifest may follow."""
    if manifest is None or may_be_followed(manifest):
        return list(reports)
    over_budget = {"status": FileStatus.OVER_BUDGET}
    return [each.model_copy(update=over_budget) if each.status is FileStatus.DEFERRED else each for each in reports]


def may_be_followed(manifest: Manifest) -> bool:
    """Whether a manifest of its deferred files may follow: few have, and its id leaves room."""
    manifest_id = manifest.manifest_id
    number = number_of_redrive(manifest_id, root_id(manifest_id)) + 1
    is_id = MANIFEST_ID.fullmatch(redriven_id(manifest_id, _LARGEST_NUMBER))
    return number <= MOST_FOLLOWING and number * len(manifest.files) <= MOST_FOLLOWING_FILES and bool(is_id)


def _staged_file(file: ParquetFacts, final: str) -> StagedFile:
    return StagedFile(staged=file.uri, final=final, rows=file.rows, size_bytes=file.size_bytes)


def _final(layout: Layout, key: ManifestKey, uri: str, part: int, partition: str) -> str:
    """The final name of a row file: its own if it was written in place."""
    return uri if layout.in_place_attempt(uri) else layout.output_file(key, part, partition)


def _output_file(file: ParquetFacts, output: StagedOutput, staged: Staged, place: Callable[[str], str]) -> StagedFile:
    version = output.schema.version
    return _staged_file(file, place(folders(staged.partition_by, output.partition))).model_copy(
        update={
            "schema_version": None if version == staged.schema.version else version,
            "partition": list(output.partition),
            "holds_others": output.holds_others,
        }
    )
