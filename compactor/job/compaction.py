"""One manifest's life, from delivered to done: attempt, stage, verify, decide, publish."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from compactor.core.attempts import AttemptState, held_against, last_error
from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.errors import (
    AccessError,
    CompactorError,
    EngineFailed,
    EngineLost,
    ManifestError,
    OperatorError,
    StagingError,
    StuckError,
    TryAgainError,
)
from compactor.core.layout import Layout
from compactor.core.manifest_key import ManifestKey
from compactor.core.ports import Clock, ObjectStore
from compactor.core.records import Accepted, Attempt, Commit, DeadLetter, FileReport, FileStatus, StagedFile
from compactor.engines.engine import Engine, Staged, StagedOutput, StageRequest
from compactor.engines.staged_files import VerifiedFile, verify_staged
from compactor.job.intake import Delivery
from compactor.job.publication import Publisher
from compactor.ledger.ledger import Ledger, LedgerState
from compactor.ledger.sizing_history import SizingHistory
from compactor.ledger.work_time import arrival_seconds
from compactor.ndjson.lines import Limits
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import SchemaVersion
from compactor.telemetry.error_text import described

COMMON_FAILURES = 3
"""Where so many different manifests fail for reasons that nobody foresaw and none is committed, none of them is to
blame: the surroundings are, or the code."""

_ERROR_MAX_CHARACTERS = 2_000  # of a text on record; the head says what happened


class Ending(StrEnum):
    """What a call did for a manifest."""

    COMMITTED = "committed"
    DEAD_LETTERED = "dead_lettered"
    ALREADY_DONE = "already_done"


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """How a manifest stands after a call.

    Attributes:
        ending: What this call did.
        outcome: What is on record; None if it was done before and nobody needed to look.
        attempts: How many attempts there were, this one included.
        new_columns: Columns that this manifest brought.
        arrival_seconds: For each file whose rows this call made visible, the time from its arrival to then.
    """

    manifest_id: str
    ending: Ending
    outcome: Commit | DeadLetter | None = None
    attempts: int = 0
    new_columns: int = 0
    arrival_seconds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """The settings that a manifest's life depends on.

    Attributes:
        max_attempts: Attempts that may be held against a manifest before it is a dead letter.
        metadata_columns: Metadata columns of the output.
        manifests_in_flight: How many manifests are worked on at once.
        limits: What inspection was told; on record with every commit.
    """

    max_attempts: int
    metadata_columns: tuple[str, ...]
    manifests_in_flight: int
    limits: Limits


@dataclass(frozen=True, slots=True)
class _Failure:
    """How an attempt ended."""

    key: ManifestKey
    attempt: Attempt
    error: str
    passing: bool

    def put_on(self, ledger: Ledger) -> None:
        ledger.fail(self.key, self.attempt, error=self.error, passing=self.passing)


class ManifestCompactor:
    """Takes one manifest as far as it goes. Safe to call again for any manifest at any time, from any driver."""

    def __init__(
        self,
        *,
        store: ObjectStore,
        layout: Layout,
        ledger: Ledger,
        registry: SchemaRegistry,
        engine: Engine,
        publisher: Publisher,
        history: SizingHistory,
        clock: Clock,
        rules: CompactionRules,
        living_runs: Callable[[Iterable[str]], Collection[str]],
        on_crash_point: OnCrashPoint = ignore_crash_point,
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._registry = registry
        self._engine = engine
        self._publisher = publisher
        self._history = history
        self._clock = clock
        self._rules = rules
        self._living_runs = living_runs
        self._unrecorded: dict[tuple[str, int], _Failure] = {}
        self._failed_unforeseen: set[str] = set()
        self._has_committed = False
        self._on_crash_point = on_crash_point

    def compact(self, delivery: Delivery, *, alone: bool) -> CompactionResult:
        """Bring a delivered manifest to done.

        Args:
            delivery: The manifest as it was taken in.
            alone: Whether no other manifest is in flight meanwhile.

        Raises:
            TryAgainError: Passing trouble, or a staged result that did not add up; the attempt is on record.
            OperatorError: A person must act.
        """
        accepted = delivery.accepted
        self.record_failures()
        state = self._ledger.state(accepted.key)
        if delivery.refusal is not None and state.outcome is None:
            refusal = self._dead_letter(accepted, delivery.refusal.reason, delivery.refusal.message)
            result = self._decide(accepted, refusal, attempts=0)
        else:
            result = self.resume(accepted, state, alone=alone)
        if delivery.uri != accepted.source_uri:
            self._publisher.remove_delivery(delivery.uri, delivery.digest)
        return result

    def resume(self, accepted: Accepted, state: LedgerState, *, alone: bool) -> CompactionResult:
        """Go on with an accepted manifest from where the ledger says it is.

        Args:
            accepted: The manifest.
            state: What is on record about it.
            alone: Whether no other manifest is in flight meanwhile.
        """
        manifest_id = accepted.manifest_id
        if state.outcome is not None and state.is_done:
            self._publisher.clean_up(accepted, state.outcome)
            return CompactionResult(manifest_id, Ending.ALREADY_DONE, state.outcome)
        if state.outcome is not None:
            return self._finished(accepted, state.outcome, attempts=0)
        self._ledger.open(accepted.key)
        self._on_crash_point(CrashPoint.OPENED, manifest_id)
        held = self._held(state.attempts)
        if held >= self._rules.max_attempts:
            message = f"manifest {manifest_id}: {held} attempts failed; the last: {last_error(state.attempts)}"
            return self._decide(
                accepted, self._dead_letter(accepted, "retries_exhausted", message), attempts=len(state.attempts)
            )
        after = max((each.attempt.number for each in state.attempts), default=0)
        attempt = self._ledger.begin(accepted.key, after=after, alone=alone)
        self._on_crash_point(CrashPoint.ATTEMPTED, manifest_id)
        return self._attempt(accepted, attempt)

    def _held(self, attempts: Sequence[AttemptState]) -> int:
        """How many attempts count; other runs are only asked for signs of life where it makes a difference."""
        held = held_against(attempts, {self._ledger.run_id})
        if held < self._rules.max_attempts:
            return held
        return held_against(attempts, self._living_runs({each.attempt.run_id for each in attempts}))

    def _attempt(self, accepted: Accepted, attempt: Attempt) -> CompactionResult:
        try:
            commit, new_columns = self._staged_commit(accepted, attempt)
        except ManifestError as exc:
            return self._decide(accepted, self._dead_letter(accepted, exc.reason, exc.message), attempts=attempt.number)
        except EngineLost:
            raise  # the attempt stays without an end: if it was alone, the manifest may be what killed the engine
        except Exception as exc:
            # Known before the store is asked for anything, which may fail as well.
            failed = accepted.manifest_id, attempt.number
            passing = self._is_passing(accepted.manifest_id, exc)
            self._unrecorded[failed] = _Failure(accepted.key, attempt, _described(exc), passing)
            # Another driver may have decided meanwhile, and cleaned this attempt's staging up under it.
            decided = self._ledger.state(accepted.key).outcome
            if decided is not None:
                self._unrecorded.pop(failed, None)
                return self._finished(accepted, decided, attempts=attempt.number)
            self.record_failures()
            raise
        return self._decide(accepted, commit, attempts=attempt.number, new_columns=new_columns)

    def record_failures(self) -> int:
        """Put on record how attempts of this run failed, as far as the store did not keep it yet.

        Without it, later runs would take such an attempt for a death.

        Returns:
            How many are still not on record.
        """
        for failed, failure in list(self._unrecorded.items()):  # which other threads add to meanwhile
            with suppress(CompactorError):
                failure.put_on(self._ledger)
                self._unrecorded.pop(failed, None)
        return len(self._unrecorded)

    def _is_passing(self, manifest_id: str, error: Exception) -> bool:
        """Whether a failed attempt is not the manifest's fault: what fails one after the other has another cause."""
        if isinstance(error, CompactorError):
            return is_passing(error)
        self._failed_unforeseen.add(manifest_id)
        is_common = len(self._failed_unforeseen) >= COMMON_FAILURES and not self._has_committed
        return is_common or not self._engine.is_healthy()

    def _staged_commit(self, accepted: Accepted, attempt: Attempt) -> tuple[Commit, int]:
        """Stage and verify. Returns what is to be decided, and how many columns the manifest brought."""
        manifest = accepted.manifest
        if manifest is None:
            raise CompactorError(f"manifest {accepted.manifest_id}: the record of its acceptance holds no manifest")
        manifest_id = accepted.manifest_id
        brought: set[str] = set()

        def columns_for(keys: Mapping[str, str]) -> SchemaVersion:
            schema = self._registry.covering(keys, manifest_id)
            if schema.manifest_id == manifest_id:
                brought.update(column.name for column in schema.columns if column.added_in == schema.version)
            return schema

        self._registry.check_declared()  # an engine need not ask for columns if it finds no new keys
        staged = self._engine.stage(
            StageRequest(
                manifest=manifest,
                staging=self._layout.staging(manifest_id, attempt.number),
                schema=self._registry.latest(),
                declared_keys=self._registry.declared_keys,
                columns_for=columns_for,
                max_columns=self._registry.max_columns,
                ratio=self._history.ratio(),
                stored_ratio=self._history.stored_ratio(),
                manifests_in_flight=1 if attempt.alone else self._rules.manifests_in_flight,
                processed_at=attempt.started_at,
                on_inspected=lambda: self._on_crash_point(CrashPoint.INSPECTED, manifest_id),
            )
        )
        self._on_crash_point(CrashPoint.CONVERTED, manifest_id)
        _check_access(staged.reports)
        outputs, rejects = verify_staged(self._store, manifest, staged, self._rules.metadata_columns)
        self._on_crash_point(CrashPoint.VERIFIED, manifest_id)
        return self._commit(accepted, attempt, staged, outputs, rejects), len(brought)

    def _commit(
        self,
        accepted: Accepted,
        attempt: Attempt,
        staged: Staged,
        outputs: list[VerifiedFile],
        rejects: list[VerifiedFile],
    ) -> Commit:
        key = accepted.key
        return Commit(
            manifest_id=key.id,
            date=key.date,
            attempt=attempt.number,
            run_id=self._ledger.run_id,
            engine=self._engine.name,
            schema_version=staged.schema.version,
            outputs=[
                _staged_file(file, self._layout.output_file(key, part), _own_version(output, staged))
                for part, (file, output) in enumerate(zip(outputs, staged.outputs, strict=True))
            ],
            rejects=[_staged_file(file, self._layout.rejects_file(key, part)) for part, file in enumerate(rejects)],
            files=list(staged.reports),
            rescued_values=staged.rescued_values,
            redone_bins=staged.redone_bins,
            max_line_bytes=self._rules.limits.max_line_bytes,
            max_decompressed_bytes=self._rules.limits.max_decompressed_bytes,
            started_at=attempt.started_at,
            decided_at=self._clock.now(),
        )

    def _dead_letter(self, accepted: Accepted, reason: str, message: str) -> DeadLetter:
        return DeadLetter(
            manifest_id=accepted.manifest_id,
            date=accepted.date,
            reason=reason,
            message=message,
            source_uri=accepted.source_uri,
            run_id=self._ledger.run_id,
            decided_at=self._clock.now(),
        )

    def _decide(
        self, accepted: Accepted, outcome: Commit | DeadLetter, *, attempts: int, new_columns: int = 0
    ) -> CompactionResult:
        winner = self._ledger.decide(outcome)
        self._on_crash_point(CrashPoint.DECIDED, accepted.manifest_id)
        if winner == outcome and isinstance(outcome, Commit):
            self._has_committed = True
            self._history.add(outcome, arrived_at=accepted.manifest.created_at if accepted.manifest else None)
        return self._finished(accepted, winner, attempts=attempts, new_columns=new_columns)

    def _finished(
        self, accepted: Accepted, outcome: Commit | DeadLetter, *, attempts: int, new_columns: int = 0
    ) -> CompactionResult:
        done_at = self._publisher.roll_forward(accepted, outcome)
        if not isinstance(outcome, Commit):
            return CompactionResult(accepted.manifest_id, Ending.DEAD_LETTERED, outcome, attempts, new_columns)
        arrivals = arrival_seconds(accepted, outcome, done_at)
        return CompactionResult(accepted.manifest_id, Ending.COMMITTED, outcome, attempts, new_columns, arrivals)


def is_passing(error: Exception) -> bool:
    """Whether trouble is not the manifest's, so that it is not held against it."""
    return isinstance(error, TryAgainError | OperatorError | StuckError) and not isinstance(error, StagingError)


def _check_access(reports: Sequence[FileReport]) -> None:
    """Tell a few files that nobody may read, which are set aside, from input that is closed altogether.

    Raises:
        AccessError: Access was denied, and not one file of the manifest could be read.
    """
    denied = [report for report in reports if report.status is FileStatus.FORBIDDEN]
    # Without the right to list, S3 denies objects that do not exist: a missing file is no sign of access.
    silent = {FileStatus.FORBIDDEN, FileStatus.MISSING}
    if denied and all(report.status in silent for report in reports):
        raise AccessError(f"{denied[0].uri}: {denied[0].detail}; expected to be allowed to read the input")


def _staged_file(file: VerifiedFile, final: str, schema_version: int | None = None) -> StagedFile:
    return StagedFile(
        staged=file.uri,
        final=final,
        rows=file.facts.rows,
        size_bytes=file.facts.size_bytes,
        schema_version=schema_version,
    )


def _own_version(output: StagedOutput, staged: Staged) -> int | None:
    return None if output.schema.version == staged.schema.version else output.schema.version


def _described(error: Exception) -> str:
    text = described(error, max_characters=_ERROR_MAX_CHARACTERS)
    return f"{type(error).__name__}: {text}" if isinstance(error, CompactorError | EngineFailed) else text
