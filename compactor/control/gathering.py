"""Reads a snapshot from its sources. Each may fail separately: an unreadable value is unknown, never zero."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from pydantic import AwareDatetime

from compactor.control.diagnosis.symptoms import Case
from compactor.control.snapshot import (
    Heartbeats,
    JobRuns,
    JobSeen,
    LivingRun,
    Queue,
    QueueDepth,
    Snapshot,
    Source,
    newest_first,
)
from compactor.core.documents.document import Document
from compactor.core.documents.records import RecentCommit
from compactor.core.errors import CompactorError, CredentialsMissing, ObjectNotFound
from compactor.core.layout import id_from_name, is_delivery
from compactor.core.rules.sharding import Shard
from compactor.ledger.backlog import WaitingManifests, read_started, waiting_manifests
from compactor.ledger.heartbeat import Runs
from compactor.ledger.landing.progress import LogWatch
from compactor.ledger.state import State
from compactor.settings.control_policy import Policy
from compactor.telemetry.logs import log_event

HISTORY_DAYS = 15
"""How far back runs are listed. Glue limits streaming runs to 14 days."""

_SHOWN_ERROR_CHARACTERS = 500

Waiting = Mapping[str, Sequence[tuple[str, datetime]]]
"""Each stream's waiting manifests, by object name, and when they were written."""

T = TypeVar("T")


class BreakerClosed(Document):
    """The record of an operator closing the breaker.

    Attributes:
        closed_at: Failures before this time no longer count.
    """

    closed_at: AwareDatetime


@dataclass(frozen=True, slots=True)
class Sources:
    """All sources of a snapshot. A job of several streams has each one's state in `streams`.

    A `shard` counts only its own manifests among waiting work and latest commits.
    """

    job: JobRuns
    runs: Runs
    queue: Queue | None  # the queue for S3 events; None if there is none
    dead_letter_queue: Queue | None  # the queue for unreadable S3 events; None if there is none
    state: State
    streams: Mapping[str, State] = field(default_factory=dict)
    shard: Shard | None = None
    logs: Sequence[LogWatch] = ()  # the topics and streams of each stream that lands any

    def close_breaker(self, now: datetime) -> None:
        """Close the breaker: failures up to now no longer count."""
        self.state.store.put(self._own(self.state.layout.breaker_closed), BreakerClosed(closed_at=now).to_json())

    def keep_seen(self, seen: JobSeen) -> None:
        """Record which starts were refused in a row, and since when the latest run has been in its states."""
        self.state.store.put(self._own(self.state.layout.job_seen), seen.to_json())

    def _own(self, uri: str) -> str:
        return of_shard(uri, self.shard)

    def _is_own(self, name: str) -> bool:
        return self.shard is None or self.shard.is_home_of(name)

    def snapshot(self, now: datetime, policy: Policy) -> Snapshot:
        """Read all sources; the job's definition only if a run failed, because it decides which failures count."""
        unknown: dict[Source, str] = {}

        def known(source: Source, read: Callable[[], T]) -> T | None:
            try:
                return read()
            except CredentialsMissing:
                raise  # nothing can be known or done
            except CompactorError as exc:
                unknown[source] = " ".join(str(exc).split())[:_SHOWN_ERROR_CHARACTERS]
                log_event("control.source_unknown", source=source, error=exc)
                return None

        depth = known(Source.QUEUE, lambda: self.queue.depth() if self.queue else None)
        letters = known(Source.DEAD_LETTERS, lambda: self.dead_letter_queue.depth() if self.dead_letter_queue else None)
        runs = known(Source.RUNS, lambda: newest_first(self.job.list(now - timedelta(days=HISTORY_DAYS))))
        closed_at = known(Source.BREAKER, self._breaker_closed_at)
        waiting = known(Source.MANIFESTS, self._waiting)
        begun_before = now - timedelta(seconds=policy.hang_seconds)
        begun = None if waiting is None else known(Source.BEGUN, lambda: self._begun(waiting, begun_before))
        backlogs = None if waiting is None else _backlogs(waiting, now, self._is_own)
        seen = known(Source.SEEN, self._job_seen) or JobSeen()
        history = Snapshot(runs=runs, breaker_closed_at=closed_at, seen=seen, unknown=unknown)
        has_failures = Case(history, policy, now).has_failures
        return Snapshot(
            runs=runs,
            heartbeats=known(Source.HEARTBEATS, lambda: Heartbeats(living_runs(self.runs), self.runs.last_sign_at())),
            queue=depth,
            queue_oldest_seconds=known(Source.QUEUE_AGE, lambda: self._oldest_seconds(depth, now)),
            dead_letters=letters.messages if letters else None,
            backlog=None if backlogs is None else _total(backlogs.values()),
            whole_backlog=_total(_backlogs(waiting, now).values()) if waiting and self.shard else None,
            backlogs=_backlogs(waiting, now) if waiting and self.streams else {},
            begun=begun,
            logs=known(Source.LOGS, lambda: tuple(each for watch in self.logs for each in watch.seen(now))),
            recent=known(Source.LEDGER, self._recent),
            breaker_closed_at=closed_at,
            job_defined_at=known(Source.DEFINITION, self.job.defined_at) if has_failures else None,
            seen=seen,
            unknown=unknown,
        )

    def _oldest_seconds(self, depth: QueueDepth | None, now: datetime) -> float | None:
        if self.queue is None:
            return None
        measured = self.queue.oldest_seconds(now)
        is_empty = depth is not None and not depth.messages
        return 0.0 if is_empty else measured  # the measurement is minutes late

    def _waiting(self) -> Waiting:
        """Each stream's waiting manifests; without streams, those in the only prefix."""
        return {
            name: [
                (id_from_name(info.uri), info.modified_at)
                for info in state.store.list(state.layout.manifests_folder)
                if is_delivery(info.uri)
            ]
            for name, state in self._states().items()
        }

    def _begun(self, waiting: Waiting, until: datetime) -> Mapping[str, datetime]:
        """The manifests outside the watched prefix that a job has to finish, and when they were started.

        One started after `until` may be a rebuild in progress.
        """
        found: dict[str, datetime] = {}
        for name, state in self._states().items():
            delivered = {manifest_id for manifest_id, _ in waiting[name]}
            found |= read_started(state, but=delivered, until=until).left_to_jobs
        return {manifest_id: at for manifest_id, at in found.items() if self._is_own(manifest_id)}

    def _states(self) -> Mapping[str, State]:
        return self.streams or {"": self.state}

    def _recent(self) -> tuple[RecentCommit, ...]:
        """The latest commits of all streams, oldest first."""
        found = [each for state in self._states().values() for each in state.ledger.recent()]
        found = [each for each in found if self._is_own(each.manifest_id)]
        return tuple(sorted(found, key=lambda each: each.decided_at)) if self.streams else tuple(found)

    def _job_seen(self) -> JobSeen | None:
        try:
            return self.state.ledger.record(self._own(self.state.layout.job_seen), JobSeen)
        except ObjectNotFound:
            return None

    def _breaker_closed_at(self) -> datetime | None:
        try:
            return self.state.ledger.record(self._own(self.state.layout.breaker_closed), BreakerClosed).closed_at
        except ObjectNotFound:
            return None


def _total(backlogs: Collection[WaitingManifests]) -> WaitingManifests:
    return WaitingManifests(sum(each.manifests for each in backlogs), max(each.oldest_seconds for each in backlogs))


def _backlogs(
    waiting: Waiting, now: datetime, is_own: Callable[[str], bool] = lambda _: True
) -> dict[str, WaitingManifests]:
    """The backlog of each stream, for the selected manifests."""
    return {
        stream: waiting_manifests([written_at for name, written_at in found if is_own(name)], now)
        for stream, found in waiting.items()
    }


def of_shard(uri: str, shard: Shard | None) -> str:
    """The place of a control plane record about a shard's job. The first shard uses those of a single job."""
    return uri if shard is None or shard.number == 1 else f"{uri.removesuffix('.json')}-shard-{shard.number}.json"


def living_runs(runs: Runs) -> tuple[LivingRun, ...]:
    """The compactor's runs with a recent heartbeat."""
    return tuple(
        LivingRun(
            beat.run_id,
            beat.host,
            beat.started_at,
            beat.heartbeat_at,
            runs.asked_to_stop_at(beat.run_id),
            beat.release,
            beat.shard,
        )
        for beat in runs.living()
    )
