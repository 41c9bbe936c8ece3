"""Brings published manifests to done once the table has their files. Commits in its own thread.

No manifest waits here for another one that is stuck. All wait for the catalog: while it does not respond, the job
continues to publish manifests up to a limit, and then starts no more in this stream. Waiting manifests are recorded as
decided and open, so that the next run takes them over if this one dies.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import Lock

from compactor.core.documents.table_records import BatchedManifest
from compactor.core.errors import StuckError, TryAgainError
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Clock, MetricsSink
from compactor.job.publication import Publisher
from compactor.job.results import FINISHED, Ending, Result
from compactor.job.retries import random_pause_seconds
from compactor.ledger.state import State
from compactor.ledger.table.progress import ProgressNotes, noted_published
from compactor.table.committer import Committer, Progress
from compactor.table.named import Published
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
"""The pauses after failed commits."""

WAITING_FILES = 50_000
"""No more manifests start while the waiting ones have this many input files, to limit memory."""

GIVES_UP_AFTER = 6
"""Failed commits in a row after which a run with `once` leaves published manifests to the next one."""

PATIENCE_INTERVALS = 3
"""Intervals between commits after which a run no longer leaves its published manifests to another one."""

LOOKS_PER_INTERVAL = 4
"""How often a run that leaves its manifests to another one checks whether the table has them."""


@dataclass(slots=True)
class CommitTurns:
    """Which run of several shards commits to the table, so that together they make about as many snapshots as one job.

    Each run notes its published manifests. The run of the first shard present, by the heartbeats, commits those of all
    runs; the others check whether the table has theirs. A run whose manifests have waited for too long also commits
    everything noted. So no run depends on another one. Concurrent commits are safe: turns only save commits.

    Attributes:
        shard: This run's shard number, from 1.
        leads: Returns whether this run commits for all.
    """

    state: State
    shard: int
    leads: Callable[[], bool]
    _ended: set[Published] = field(default_factory=set, init=False)

    def noted(self) -> list[Published]:
        """The published manifests of other shards' runs, without those found in the table."""
        found = [Published(each.key, each.generation) for each in noted_published(self.state, but_shard=self.shard)]
        self._ended &= set(found)  # what is no longer noted can be dropped
        return [each for each in dict.fromkeys(found) if each not in self._ended]

    def note_ended(self, published: Collection[Published]) -> None:
        """Note what the next commits may skip: what the table has or will not get."""
        self._ended.update(published)


@dataclass(slots=True, kw_only=True)
class TableCommits:
    """One run's published manifests.

    Attributes:
        publisher: Brings a visible manifest to done.
        notes: Shows the progress to users.
        commit_seconds: How long the first of them waits at most, while the catalog responds.
        max_waiting: While this many wait, no more manifests start.
        turns: Decide which run of several shards commits; None for a single run.
    """

    committer: Committer
    publisher: Publisher
    notes: ProgressNotes
    clock: Clock
    metrics: MetricsSink
    commit_seconds: float
    max_waiting: int
    turns: CommitTurns | None = None
    monotonic: Callable[[], float] = time.monotonic
    _waiting: dict[str, Result] = field(default_factory=dict, init=False)
    _files: int = field(default=0, init=False)
    _due: float = field(default=0.0, init=False)
    _failures: int = field(default=0, init=False)
    _error: Exception | None = field(default=None, init=False)
    _ended: list[Result] = field(default_factory=list, init=False)
    _under_way: "Future[None] | None" = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="table"), init=False
    )

    def take(self, published: Result) -> None:
        """Hold a published manifest. Called from several threads."""
        with self._lock:
            if not self._waiting and not self._failures and self.turns is None:
                self._due = self.monotonic() + self.commit_seconds
            self._waiting[published.manifest_id] = published
            self._files += len(published.commit.files)

    def __contains__(self, manifest_id: str) -> bool:
        return manifest_id in self._waiting

    def uris(self) -> frozenset[str]:
        """The objects of the waiting manifests."""
        with self._lock:
            return frozenset(each.uri for each in self._waiting.values())

    def is_full(self) -> bool:
        """Whether no more manifests should start."""
        return len(self._waiting) >= self.max_waiting or self._files >= WAITING_FILES

    def is_idle(self) -> bool:
        """Whether nothing waits, and all results were taken."""
        return not self._waiting and not self._ended and self._is_at_rest()

    def has_given_up(self) -> bool:
        """Whether a run with `once` should stop waiting."""
        return self._failures >= GIVES_UP_AFTER and self._is_at_rest()

    def step(self, *, at_once: bool = False) -> None:
        """Start a commit if due; with `at_once`, or if others wait for room, of all published ones; never waits."""
        if not self._is_at_rest():
            return
        if self._under_way is not None:
            self._under_way.result()  # raises the error that ends this process
            self._under_way = None
        is_due = self.monotonic() >= self._due
        is_wanted = at_once or len(self._waiting) >= self.committer.max_manifests or self.is_full()
        may_be_noted = self.turns is not None
        if (is_due and (self._waiting or may_be_noted)) or (is_wanted and self._waiting and not self._failures):
            self._under_way = self._pool.submit(self._commit, is_wanted)

    def take_ended(self) -> list[Result]:
        """The results since the last call."""
        with self._lock:
            ended, self._ended = self._ended, []
        return ended

    def unfinished(self) -> Mapping[str, str]:
        """Why each waiting manifest is not done, by its id."""
        why = f": {described(self._error)}" if self._error else ""
        return dict.fromkeys(self._waiting, f"its files wait until the table takes them{why}")

    def close(self) -> None:
        """Commit the waiting manifests, unless the last commit failed, and end."""
        if self._under_way is not None:
            self._under_way.result()
        if self._waiting and not self._failures:
            self._commit(is_wanted=True)
        self._pool.shutdown(wait=True)

    def _is_at_rest(self) -> bool:
        return self._under_way is None or self._under_way.done()

    def _commit(self, is_wanted: bool) -> None:
        """Commit the published manifests, or check whether another run did; never raises.

        Manifests published meanwhile wait for the next time: otherwise commits would follow each other without a pause.

        Args:
            is_wanted: Do not leave it to another run, because this one waits for it.
        """
        try:
            is_mine = self.turns is None or is_wanted or self._has_waited() or self.turns.leads()
            noted = dict.fromkeys(self.turns.noted() if self.turns is not None and is_mine else ())
            with self._lock:
                begun = frozenset(each.published for each in self._waiting.values())
            while self._take_turn(begun, noted, is_mine=is_mine):
                pass
            pause = self.commit_seconds if is_mine else self.commit_seconds / LOOKS_PER_INTERVAL
            self._due = self.monotonic() + pause
        except Exception as exc:  # noqa: BLE001 - whatever it is, published manifests wait for the next try
            self._fail(exc)

    def _take_turn(self, begun: Collection[Published], noted: dict[Published, None], *, is_mine: bool) -> bool:
        """Commit one batch, or check; return whether there may be another one to commit now.

        Args:
            begun: This run's waiting manifests at the start.
            noted: Those noted by others at the start; finished ones are removed.
            is_mine: Whether to commit.
        """
        with self._lock:
            waiting = {each.published: each for each in self._waiting.values() if each.published in begun}
        if not waiting and not noted:
            if self._failures and not self._waiting:  # another run has committed what this one failed to
                self._failures, self._error = 0, None
                self.notes.committed(0, *self._left())
            return False
        if is_mine:
            progress = self._commit_one(dict.fromkeys([*waiting, *noted]))
        else:
            # Before the check, which may take long: another run may commit meanwhile.
            self.notes.published(*self._left())
            progress = self.committer.look(waiting)
        if waiting:
            self._settle(waiting, progress)
        ended = [*progress.visible, *progress.superseded, *progress.stuck]
        if self.turns is not None:
            self.turns.note_ended(ended)
        for each in ended:
            noted.pop(each, None)
        self._failures, self._error = 0, None
        applied = progress.applied
        self.metrics.emit({"TableCommits": int(applied is not None), "ManifestsPlaced": len(self._waiting)})
        self.notes.committed(applied.number if applied else 0, *self._left())
        return bool(applied or progress.refused or progress.visible or progress.stuck)

    def _has_waited(self) -> bool:
        """Whether another healthy run would have committed the waiting manifests by now."""
        _, since = self._left()
        patience = timedelta(seconds=PATIENCE_INTERVALS * self.commit_seconds)
        return since is not None and self.clock.now() - since > patience

    def _commit_one(self, published: Iterable[Published]) -> Progress:
        began = self.monotonic()
        progress = self.committer.commit(published)
        if (applied := progress.applied) is not None:
            log_event(
                "table.committed",
                batch=applied.number,
                manifests=applied.manifests,
                files=applied.files,
                snapshot=applied.snapshot_id or 0,
                seconds=round(self.monotonic() - began, 3),
            )
        if (refused := progress.refused) is not None:
            log_event("table.refused", batch=refused.number, manifests=refused.manifests, error=refused.error)
        return progress

    def _settle(self, waiting: Mapping[Published, Result], progress: Progress) -> None:
        """Bring visible manifests to done, and drop those that will not be committed."""
        visible = [waiting[published] for published in progress.visible if published in waiting]
        found = list(map_ordered(self._finished, visible))
        stuck = [
            replace(waiting[published], ending=Ending.STUCK, error=error)
            for published, error in progress.stuck.items()
            if published in waiting
        ]
        done = [each for each in found if each.ending in FINISHED]
        stuck += [each for each in found if each.ending is Ending.STUCK]
        for each in stuck:
            log_event("manifest.stuck", manifest_id=each.manifest_id, error=each.error)
        with self._lock:
            for published in (*(each.published for each in (*done, *stuck)), *progress.superseded):
                if published in waiting and waiting[published] is self._waiting.get(published.key.id):
                    self._files -= len(self._waiting.pop(published.key.id).commit.files)
            self._ended += [*done, *stuck]
        self.committer.named.finish({each.published for each in done})
        if any(each.ending is Ending.FAILED for each in found):
            raise TryAgainError("some manifests in the table could not be finished")

    def _finished(self, published: Result) -> Result:
        try:
            return published.done(self.publisher.finish(published.accepted, published.commit))
        except Exception as exc:  # noqa: BLE001 - no error of one manifest may stop the others
            log_event("manifest.failed", manifest_id=published.manifest_id, error=exc)
            return replace(published, ending=Ending.STUCK if isinstance(exc, StuckError) else Ending.FAILED, error=exc)

    def _fail(self, error: Exception) -> None:
        self._failures += 1
        self._error = error
        pause = random_pause_seconds(
            self._failures, first_seconds=FIRST_PAUSE_SECONDS, longest_seconds=LONGEST_PAUSE_SECONDS
        )
        self._due = self.monotonic() + pause
        log_event("table.not_committed", waiting=len(self._waiting), pause_seconds=round(pause, 3), error=error)
        self.metrics.emit({"TableCommitsFailed": 1, "ManifestsPlaced": len(self._waiting), "Heartbeat": 1})
        self.notes.failed(described(error), *self._left())

    def _left(self) -> tuple[list[BatchedManifest], datetime | None]:
        """The waiting manifests, in order, and since when the first one has waited."""
        with self._lock:
            waiting = sorted(self._waiting.values(), key=_since)
        return [each.published.batched for each in waiting], _since(waiting[0]) if waiting else None


def _since(published: Result) -> datetime:
    return published.delivery.since if published.delivery and published.delivery.since else published.commit.decided_at
