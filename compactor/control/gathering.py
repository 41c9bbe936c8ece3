"""Reads a snapshot from its sources. Each of them may fail alone: what could not be read is unknown, never zero."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from pydantic import AwareDatetime, PositiveInt

from compactor.control.history import RunHistory
from compactor.control.ports import JobRuns, Queue
from compactor.control.runs import newest_first
from compactor.control.snapshot import Heartbeats, LivingRun, QueueDepth, Refusals, Snapshot, Source
from compactor.core.errors import CompactorError, ObjectNotFound
from compactor.core.layout import is_delivery
from compactor.core.records import Document, RecentCommit
from compactor.ledger.backlog import Backlog, backlog_of
from compactor.ledger.heartbeat import Runs
from compactor.ledger.state import State
from compactor.settings.control_policy import Policy
from compactor.telemetry.logs import log_event

HISTORY_DAYS = 15
"""How far back runs are listed. Glue lets no streaming run live longer than 14 days."""

_SHOWN_ERROR_CHARACTERS = 500

T = TypeVar("T")


class BreakerClosed(Document):
    """The record of an operator closing the breaker."""

    closed_at: AwareDatetime


class StartsRefused(Document):
    """The record of starts that Glue refused in a row."""

    count: PositiveInt
    since: AwareDatetime
    over_at: AwareDatetime | None = None  # when a start was accepted again; None while none was


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that a snapshot is read from. A job of several streams has the state of each in `streams`."""

    job: JobRuns
    runs: Runs
    queue: Queue | None  # the queue of S3 events; None if there is none
    dead_letter_queue: Queue | None  # the queue of S3 events that could not be read; None if there is none
    state: State
    streams: Mapping[str, State] = field(default_factory=dict)

    def close_breaker(self, now: datetime) -> None:
        """Close the breaker: failures up to now no longer count."""
        self.state.store.put(self.state.layout.breaker_closed, BreakerClosed(closed_at=now).model_dump_json().encode())

    def keep_refusals(self, refusals: Refusals) -> None:
        """Put on record how many starts were refused in a row. A run that lives later ends them."""
        self._record_refusals(StartsRefused(count=refusals.count, since=refusals.since))

    def end_refusals(self, refusals: Refusals, now: datetime) -> None:
        """Put on record that a start was accepted, for Glue forgets the runs of a job that is deleted."""
        self._record_refusals(StartsRefused(count=refusals.count, since=refusals.since, over_at=now))

    def _record_refusals(self, record: StartsRefused) -> None:
        self.state.store.put(self.state.layout.starts_refused, record.model_dump_json().encode())

    def snapshot(self, now: datetime, policy: Policy) -> Snapshot:
        """Read all sources; the definition of the job only if a run failed, for it decides which failures count."""
        unknown: dict[Source, str] = {}

        def known(source: Source, read: Callable[[], T]) -> T | None:
            try:
                return read()
            except CompactorError as exc:
                unknown[source] = " ".join(str(exc).split())[:_SHOWN_ERROR_CHARACTERS]
                log_event("control.source_unknown", source=source, error=exc)
                return None

        depth = known(Source.QUEUE, lambda: self.queue.depth() if self.queue else None)
        letters = known(Source.DEAD_LETTERS, lambda: self.dead_letter_queue.depth() if self.dead_letter_queue else None)
        runs = known(Source.RUNS, lambda: newest_first(self.job.list(now - timedelta(days=HISTORY_DAYS))))
        closed_at = known(Source.BREAKER, self._breaker_closed_at)
        backlogs = known(Source.MANIFESTS, lambda: self._backlogs(now))
        has_failures = RunHistory(Snapshot(runs=runs, breaker_closed_at=closed_at), policy, now).has_failures
        return Snapshot(
            runs=runs,
            heartbeats=known(Source.HEARTBEATS, lambda: Heartbeats(living_runs(self.runs), self.runs.last_sign_at())),
            queue=depth,
            queue_oldest_seconds=known(Source.QUEUE_AGE, lambda: self._oldest_seconds(depth, now)),
            dead_letters=letters.messages if letters else None,
            backlog=None if backlogs is None else _total(backlogs.values()),
            backlogs=backlogs if backlogs and self.streams else {},
            recent=known(Source.LEDGER, self._recent),
            breaker_closed_at=closed_at,
            job_defined_at=known(Source.DEFINITION, self.job.defined_at) if has_failures else None,
            refusals=known(Source.REFUSALS, self._refusals),
            unknown=unknown,
        )

    def _oldest_seconds(self, depth: QueueDepth | None, now: datetime) -> float | None:
        if self.queue is None:
            return None
        measured = self.queue.oldest_seconds(now)
        is_empty = depth is not None and not depth.messages
        return 0.0 if is_empty else measured  # the measurement is minutes late

    def _backlogs(self, now: datetime) -> Mapping[str, Backlog]:
        """The manifests that wait in each stream; without streams, in the only prefix."""
        return {name: _backlog(state, now) for name, state in (self.streams or {"": self.state}).items()}

    def _recent(self) -> tuple[RecentCommit, ...]:
        """The latest commits of all streams, the oldest first."""
        found = [each for state in self.streams.values() or (self.state,) for each in state.ledger.recent()]
        return tuple(sorted(found, key=lambda each: each.decided_at)) if self.streams else tuple(found)

    def _refusals(self) -> Refusals | None:
        try:
            found = self.state.ledger.record(self.state.layout.starts_refused, StartsRefused)
        except ObjectNotFound:
            return None
        return None if found.over_at else Refusals(found.count, found.since)

    def _breaker_closed_at(self) -> datetime | None:
        try:
            return self.state.ledger.record(self.state.layout.breaker_closed, BreakerClosed).closed_at
        except ObjectNotFound:
            return None


def _total(backlogs: Collection[Backlog]) -> Backlog:
    return Backlog(sum(each.manifests for each in backlogs), max(each.oldest_seconds for each in backlogs))


def _backlog(state: State, now: datetime) -> Backlog:
    listed = state.store.list(state.layout.manifests_folder)
    return backlog_of([info.modified_at for info in listed if is_delivery(info.uri)], now)


def living_runs(runs: Runs) -> tuple[LivingRun, ...]:
    """The runs of the compactor with a recent heartbeat."""
    return tuple(
        LivingRun(
            beat.run_id,
            beat.host,
            beat.started_at,
            beat.heartbeat_at,
            runs.asked_to_stop_at(beat.run_id),
            beat.release,
        )
        for beat in runs.living()
    )
