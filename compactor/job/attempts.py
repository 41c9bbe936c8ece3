"""Attempts at a manifest: whether and when it is retried, what may run at the same time, and how attempts failed."""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from threading import Lock

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import (
    Accepted,
    Attempt,
    AttemptFailure,
    FileStatus,
)
from compactor.core.errors import (
    CompactorError,
    EngineFailed,
    EngineLost,
    InputRefused,
    ManifestError,
    OperatorError,
    ScratchFull,
    StagingError,
    StuckError,
    TryAgainError,
)
from compactor.core.layout import ManifestKey
from compactor.core.rules.attempts import (
    Attempts,
    AttemptState,
    Lane,
    RetryRules,
    due_at,
    held_against,
    lane,
    telling_error,
)
from compactor.core.rules.backoff import is_over
from compactor.engines.engine import Engine, StageRequest
from compactor.engines.staged_files import verify_staged
from compactor.ledger.heartbeat import Runs
from compactor.ledger.ledger import LedgerState
from compactor.ledger.sizing_history import SizingHistory
from compactor.ledger.state import State
from compactor.schema.schema import Column, KeyLimits, SchemaVersion
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event

COMMON_FAILURES = 3
"""If this many manifests failed in a row and none was committed since, the environment may be the cause."""

_ERROR_MAX_CHARACTERS = 2_000  # an error is truncated in its record; its beginning is the most informative part

SELF_TEST_PAUSE_SECONDS = 10.0
"""The pause after a self-test that failed."""

_SELF_TEST_ID = "self-test"  # id of its manifest
_SELF_TEST_LINES = b'{"sample": "1"}\n{"sample": "2"}\n'


@dataclass(slots=True, kw_only=True)
class AttemptFailures:
    """Records how attempts failed. Later runs count an attempt without such a record as a death.

    Attributes:
        engine: The job's engine. If it no longer works, no manifest is to blame.
        in_flight: The ids of the manifests in flight.
    """

    state: State
    engine: Engine
    in_flight: Collection[str] = ()
    is_stopping: bool = False
    _unrecorded: dict[tuple[str, int], tuple[ManifestKey, AttemptFailure]] = field(default_factory=dict)
    _failed_since_commit: set[str] = field(default_factory=set)

    def note_commit(self) -> None:
        """Note a commit, which shows that the environment works."""
        self._failed_since_commit = set()

    def note_failing(self, manifest_id: str) -> None:
        """Note a manifest that failed in an earlier run, with no commit since."""
        self._failed_since_commit.add(manifest_id)

    def add(self, key: ManifestKey, attempt: Attempt, error: Exception, *, passing: bool = False) -> None:
        """Keep a failure until it is recorded. A passing one does not count against the manifest.

        Makes no store call, because the store may be the cause.
        """
        scratch = isinstance(error, ScratchFull)
        # The request to end may have interrupted any call, and the last attempt to fail ran alone.
        passing = passing or (self.is_stopping and not isinstance(error, StagingError))
        passing = passing or (is_passing(error) and not (scratch and attempt.alone)) or self._is_engine_broken(error)
        undecided = not passing and not isinstance(error, StagingError) and self._may_be_common(key.id)
        failure = AttemptFailure(
            manifest_id=key.id,
            number=attempt.number,
            passing=passing or undecided,
            undecided=undecided,
            refused=isinstance(error, InputRefused),
            needs_isolation=scratch,
            error=_described(error),
            failed_at=self.state.clock.now(),
        )
        self._unrecorded[key.id, attempt.number] = key, failure

    def drop(self, key: ManifestKey, attempt: Attempt) -> None:
        """Drop the failure of an attempt at a manifest that another driver decided."""
        self._unrecorded.pop((key.id, attempt.number), None)

    def record(self) -> int:
        """Write the missing records; return how many the store still rejects."""
        for place, (key, failure) in list(self._unrecorded.items()):  # other threads may add to it meanwhile
            with suppress(CompactorError):
                self.state.ledger.fail(key, failure)
                self._unrecorded.pop(place, None)
        return len(self._unrecorded)

    def _is_engine_broken(self, error: Exception) -> bool:
        return not isinstance(error, CompactorError) and not self.engine.is_healthy()

    def _may_be_common(self, manifest_id: str) -> bool:
        """Whether this failure cannot show if the manifest or its environment is the cause."""
        self._failed_since_commit.add(manifest_id)
        has_others = any(each != manifest_id for each in tuple(self.in_flight))
        return has_others or len(self._failed_since_commit) >= COMMON_FAILURES


def is_passing(error: Exception) -> bool:
    """Whether an error is never the manifest's fault, so that the attempt does not count against it."""
    if isinstance(error, StagingError | InputRefused):
        return False
    return isinstance(error, TryAgainError | OperatorError | StuckError)


def _described(error: Exception) -> str:
    text = described(error, max_characters=_ERROR_MAX_CHARACTERS)
    return f"{type(error).__name__}: {text}" if isinstance(error, CompactorError | EngineFailed) else text


@dataclass(slots=True, kw_only=True)
class SelfTest:
    """Runs a sample through reading, conversion and verification. Publishes and leaves nothing."""

    state: State
    engine: Engine
    metadata_columns: tuple[str, ...]
    _passed_at: datetime | None = None
    _failed_at: datetime | None = None
    _lock: Lock = field(default_factory=Lock)

    def has_passed_since(self, moment: datetime) -> bool:
        """Whether the sample was converted after a moment. Converts it now if not, unless that has just failed.

        Raises:
            OperatorError: An operator must act.
            EngineLost: The engine died.
        """
        with self._lock:
            if not self._passed_since(moment) and not self._has_just_failed():
                self._run()
            return self._passed_since(moment)

    def _passed_since(self, moment: datetime) -> bool:
        # A future time comes from a fast clock, and proves nothing.
        return self._passed_at is not None and moment <= self._passed_at <= self.state.clock.now()

    def _has_just_failed(self) -> bool:
        if self._failed_at is None:
            return False
        until = self._failed_at + timedelta(seconds=SELF_TEST_PAUSE_SECONDS)
        return not is_over(until, self.state.clock.now(), longest_seconds=SELF_TEST_PAUSE_SECONDS)

    def _run(self) -> None:
        begun_at = self.state.clock.now()
        folder = self.state.layout.self_test(self.state.ledger.run_id)
        try:
            self._convert(folder, begun_at)
        except (OperatorError, EngineLost):
            raise
        except Exception as exc:  # noqa: BLE001 - whatever it is, manifests fail of it as well
            self._failed_at = self.state.clock.now()
            log_event("self_test.failed", error=exc)
        else:
            self._passed_at = begun_at
        finally:
            with suppress(CompactorError):
                self.state.store.delete([info.uri for info in self.state.store.list(folder)])

    def _convert(self, folder: str, begun_at: datetime) -> None:
        store, uri = self.state.store, f"{folder}sample.ndjson"
        store.put(uri, _SELF_TEST_LINES)
        date = f"{begun_at:%Y-%m-%d}"
        file = ManifestFile(uri=uri, size_bytes=len(_SELF_TEST_LINES))
        manifest = Manifest(manifest_id=_SELF_TEST_ID, date=date, created_at=begun_at, files=(file,))
        column = Column(key="sample", name="sample", added_in=1)
        schema = SchemaVersion(version=1, created_at=begun_at, manifest_id=_SELF_TEST_ID, columns=(column,))
        staged = self.engine.stage(
            StageRequest(
                manifest=manifest,
                staging=f"{folder}staging/",
                schema=schema,
                declared_keys=frozenset(),
                columns_for=lambda _, *, rescued_from="": schema,  # noqa: ARG005 - of the port
                key_limits=KeyLimits(),
                ratio=1.0,
                stored_ratio=1.0,
                manifests_in_flight=1,
                processed_at=begun_at,
                on_inspected=lambda: None,
            )
        )
        verify_staged(store, manifest, staged, self.metadata_columns)
        if [report.status for report in staged.reports] != [FileStatus.COMPACTED]:
            raise CompactorError(f"{uri}: {staged.reports[0].detail}; expected to be able to read the sample")


@dataclass(frozen=True, slots=True)
class Review:
    """The conclusions from a manifest's attempts.

    Attributes:
        verdict: Why it is not retried; None if it is.
        lane: What may run at the same time as the next attempt.
        due_at: The earliest time of the next attempt; None for at once.
        after_progress: Whether another manifest was committed since the last attempt failed.
        after_self_test: Whether the job converted its sample since the last attempt failed; False if not tried.
        undecided_since: When the last attempt failed, if a self-test may explain this or the next failure; else None.
        is_failing: Whether the last attempt failed for a permanent reason, with no commit since.
    """

    verdict: ManifestError | None = None
    lane: Lane = Lane.FRESH
    due_at: datetime | None = None
    after_progress: bool = False
    after_self_test: bool = False
    undecided_since: datetime | None = None
    is_failing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReviewer:
    """Reviews attempts from their records.

    Attributes:
        run_began_at: Returns when this run started; called only after its first heartbeat, which may correct the clock.
    """

    state: State
    history: SizingHistory
    rules: RetryRules
    runs: Runs
    run_began_at: Callable[[], datetime]

    def review(self, manifest_id: str, attempts: Attempts, *, self_test_passed: bool = False) -> Review:
        """Review the attempts at a manifest without an outcome; see `Review.after_self_test`."""
        last = attempts.unfolded[-1] if attempts.unfolded else None
        failure = last.failure if last else None
        progress = last is not None and self.history.has_commit_since(last.ended_at, other_than=manifest_id)
        held = self._held(attempts, progress, self_test_passed)
        if held >= self.rules.max_attempts:  # guard: a manifest that kills its driver each time runs out of attempts
            error, refused = telling_error(attempts)
            reason = "forbidden" if refused else "retries_exhausted"
            message = f"manifest {manifest_id}: {held} attempts failed; the last: {error}"
            return Review(ManifestError(reason, message))
        began_at, now = self.run_began_at(), self.state.clock.now()
        return Review(
            lane=lane(attempts, held, self.rules, others_got_through=progress),
            due_at=due_at(manifest_id, attempts, self.rules, now=now, run_began_at=began_at),
            after_progress=progress,
            after_self_test=self_test_passed,
            undecided_since=_undecided_since(last),
            is_failing=not progress and failure is not None and (not failure.passing or failure.undecided),
        )

    def review_of(self, accepted: Accepted, found: LedgerState | None = None) -> Review:
        """Review a manifest; `found` is its state, if already read.

        One with an outcome needs no attempt, and may continue at once alongside anything.
        """
        found = found or self.state.ledger.state(accepted.key)
        return Review() if found.outcome is not None else self.review(accepted.manifest_id, found.attempts)

    def _held(self, attempts: Attempts, progress: bool, self_test_passed: bool) -> int:
        """Count the attempts against the manifest; read heartbeats only if they can change the count."""
        count = partial(held_against, attempts, others_got_through=progress, self_test_passed=self_test_passed)
        own = self.state.ledger.run_id
        held = count({own})
        if held < self.rules.max_attempts:
            return held
        return count({own, *self.runs.living_among({each.attempt.run_id for each in attempts.unfolded})})


def _undecided_since(last: AttemptState | None) -> datetime | None:
    if last is None or (
        last.failure is not None and (last.failure.refused or not (last.failure.undecided or last.failure.died))
    ):
        return None
    return last.ended_at
