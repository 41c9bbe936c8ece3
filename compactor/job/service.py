"""The job: takes in the stream's manifests and those left open, and retries failed ones, until stopped."""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event
from typing import Protocol

from compactor.core.documents.changes import Commit
from compactor.core.errors import CompactorError, EngineLost, OperatorError
from compactor.core.layout import is_delivery, is_seen_by_stream
from compactor.core.ports import FLUSH_SECONDS, MetricsSink, ObjectInfo
from compactor.core.rules.shares import in_turns, name_kind
from compactor.job.recovery import Recovery
from compactor.job.report import ManifestsUnfinished, RunReport, batch_metrics
from compactor.job.results import FINISHED, Ending, Result, Results
from compactor.job.retries import random_pause_seconds
from compactor.job.scheduler import Scheduler
from compactor.job.shards import Share
from compactor.ledger.heartbeat import Heartbeat, Runs
from compactor.ledger.state import State
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event, run_in_log
from compactor.upkeep.tasks import Tasks

MAX_CONSECUTIVE_FAILURES = 6
"""Consecutive stream restarts without a commit."""

ONCE_TRIES = 7
ONCE_SECONDS = 60.0
"""A run with `once` gives up on a manifest that failed this often in it, or whose next attempt is due later than this.
"""

FIRST_AFTER_DEATH = 64
"""How many manifests to list, newest first, before a run starts those in flight when an earlier one died."""

FINISH_CHECK_SECONDS = 0.02

LISTED_AT_ONCE = 32
"""How many listed objects to take in before the job handles everything else again."""

TELL_SECONDS = 5.0
"""How often a busy run reports results to the log and the metrics."""

RECORD_TRIES = 5
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
HEARTBEAT_SECONDS = 60.0
SWEEP_SECONDS = 300.0
"""How often a run lists the watched prefix for manifests that the stream cannot see."""

LATE_SECONDS = 3600.0
"""Objects older than this in the watched prefix are taken in even while the stream is busy.

The stream delivers a name once. An object put there again under a delivered name would wait until the job is idle,
which a busy one never is.
"""


class ManifestSource(Protocol):
    """A stream of the URIs of new objects in the watched prefix."""

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        """Start calling `on_batch`, from another thread; an exception in it ends the stream.

        Args:
            on_batch: Receives the URIs of a micro-batch. A URI may come again.
            once: End when everything in the prefix was delivered.
        """

    def wait(self, timeout_seconds: float) -> bool:
        """Wait until the stream ends or the timeout passes; return whether it has ended.

        Raises:
            Exception: The error that ended the stream. An error in `on_batch` is raised unchanged.
        """

    def is_idle(self) -> bool:
        """Whether the stream has delivered everything it can see."""

    def stop(self) -> None:
        """End the stream."""


@dataclass(slots=True, kw_only=True)
class Service:
    """Runs the job.

    Attributes:
        tasks: What it repeats in addition to the batches.
        target_file_bytes: For the hit rate of file sizes.
        poll_seconds: How long to wait for the stream between checks.
        finish_check_seconds: How long a run with `once` waits before checking again whether it may end.
        on_turn: Called while the run takes its turns, so that a supervisor sees one that hangs.
    """

    state: State
    runner: Scheduler
    recovery: Recovery
    tasks: Tasks
    source: ManifestSource
    runs: Runs
    heartbeat: Heartbeat
    metrics: MetricsSink
    target_file_bytes: int
    poll_seconds: float = 0.5
    finish_check_seconds: float = FINISH_CHECK_SECONDS
    share: Share
    on_turn: Callable[[], None] = lambda: None
    _stopping: Event = field(default_factory=Event, init=False)
    _stream_ended: Event = field(default_factory=Event, init=False)
    _has_resumed: bool = field(default=False, init=False)
    _consecutive_failures: int = field(default=0, init=False)
    _report: RunReport = field(default_factory=RunReport, init=False)
    _untold: list[Result] = field(default_factory=list, init=False)
    _reported_at: datetime | None = field(default=None, init=False)
    _listed: deque[str] = field(default_factory=deque, init=False)
    _has_following: bool = field(default=False, init=False)  # whether manifests of deferred files were written

    def __post_init__(self) -> None:
        self.heartbeat.on_stop_request(self.stop)

    @property
    def was_stopped(self) -> bool:
        """Whether it was asked to stop, by its caller or by a request in the state."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Ask the run to end after the manifests in flight. Safe to call from a signal handler."""
        self._stopping.set()
        self.runner.halt()
        self.tasks.halt()
        self.heartbeat.note_stopping()

    def run(self, *, once: bool) -> RunReport:
        """Work until stopped; with `once`, until everything that was in the prefix is done.

        Raises:
            OperatorError: An operator must act.
            EngineLost: The engine died.
            ManifestsUnfinished: With `once`: some manifests failed each time they were tried.
            CompactorError: The stream failed too many times in a row. With `once`: a topic could not be planned; all
                else was done.
        """
        unplanned: list[Exception] = []
        with run_in_log(self.heartbeat.run_id), self.heartbeat:
            try:
                if once:
                    unplanned = self.tasks.start_once(self._stopping.is_set)
                self._run(once=once)
            except KeyboardInterrupt:  # in a program without its own handler
                self.stop()
                raise
            finally:
                self.tasks.stop()
                self.runner.close()
                self._record_failures()
                if self.runner.table is not None:
                    self.runner.table.close()
                self.metrics.flush(FLUSH_SECONDS)
            self._collect()  # results of what was in flight
            if self.runner.table is not None:
                self._report.failures.update(self.runner.table.unfinished())
            if once and self._report.failures and not self._stopping.is_set():
                raise ManifestsUnfinished(self._report.failures)
            for error in sorted(unplanned, key=lambda each: not isinstance(each, OperatorError)):
                raise error
        return self._report

    def _run(self, *, once: bool) -> None:
        while not self._stopping.is_set():
            try:
                self.state.store.create(self.state.layout.keep_marker, b"")
                self._join()
                self.recovery.sweep()
                self._resume()
                self.runs.forget_dead()  # after recovery, which has to know how they ended
                self._stream(once=once)
                if once:
                    self._finish()
            except (OperatorError, EngineLost):
                raise
            except Exception as exc:  # noqa: BLE001 - a stream may end with any error, and a restart may help
                self._collect()  # an error that ends the run may have caused this one
                self._back_off(exc)
                continue
            if once:
                self.tasks.end_once(self._stopping.is_set)  # a later run repeats what fails here
                break

    def _stream(self, *, once: bool) -> None:
        self._stream_ended.clear()
        last_heartbeat = last_sweep = self.state.clock.now()
        try:
            self.source.start(self._on_batch, once=once)
            while not self.source.wait(self.poll_seconds):
                now = self.state.clock.now()
                if self._stopping.is_set():
                    break
                self.on_turn()
                self._collect()
                self.heartbeat.note_work(is_idle=self._is_idle())
                if not once:
                    self.tasks.step()
                if once and self._is_blocked():  # the stream waits for room, and no commit will make any
                    break
                self._commit_published()
                self.runner.retry()
                # Only while idle: this thread would report a heartbeat even if all work hangs.
                if _has_passed(HEARTBEAT_SECONDS, last_heartbeat, now) and self._is_idle():
                    last_heartbeat = now
                    self.metrics.emit({"Heartbeat": 1, "ManifestsRetrying": len(self.runner.postponed)})
                if _has_passed(SWEEP_SECONDS, last_sweep, now):
                    last_sweep = now
                    self._resume()
                    if self.share.is_whole:
                        self._list_unseen(everything=self._is_idle())
                    else:  # includes manifests left to another run that did not take them
                        self._list_own()
                self._follow_shards()
                self._take_listed()
        finally:
            self._stream_ended.set()
            self.source.stop()

    def _commit_published(self, *, at_once: bool = False) -> None:
        if self.runner.table is not None:
            self.runner.table.step(at_once=at_once)
            self.runner.release()

    def _is_idle(self) -> bool:
        return self.source.is_idle() and self.runner.is_idle()

    def _on_batch(self, uris: Sequence[str]) -> None:
        if not self._is_ending():
            self.runner.take_in(filter(self.share.is_mine, uris))
            self.runner.wait_for_room(self._is_ending)

    def _is_ending(self) -> bool:
        return self._stopping.is_set() or self._stream_ended.is_set()

    def _resume(self) -> None:
        """Start what earlier runs left open, alongside new work."""
        opened = [each for each in self.recovery.find() if self.share.is_mine(each.source_uri)]
        if not self._has_resumed and any(each.has_deaths for each in opened):
            self._begin_cautiously(Counter(name_kind(each.manifest_id + ".json") for each in opened if each.has_deaths))
        self._has_resumed = True
        published = self.runner.table or frozenset[str]()
        due = [each for each in opened if each.manifest_id not in published]
        due = [each for each in due if each.manifest_id not in self.runner.postponed]
        if due:
            log_event("recovery.started", open_manifests=len(due))
            self.runner.begin_resuming(due)

    def _begin_cautiously(self, lost: Counter[str]) -> None:
        """After a death, first take manifests that never started: those in flight may kill this process, too."""
        self.runner.be_cautious()
        first = heapq.nlargest(
            FIRST_AFTER_DEATH, self._waiting(), key=lambda info: (-lost[name_kind(info.uri)], info.modified_at)
        )
        self.runner.take_in(each.uri for each in first)

    def _join(self) -> None:
        """Wait until the runs of other shards know this one."""
        while not self._stopping.is_set() and not self.share.has_joined():
            self._stopping.wait(self.poll_seconds)
        self.share.has_changed()

    def _follow_shards(self) -> None:
        if self.share.has_changed():
            self._resume()
            self._list_own()

    def _take_listed(self) -> None:
        """Take in some of the listed objects. Never waits for room, which only this thread may make."""
        if self._listed and self.runner.has_room():
            known = self.runner.known_uris()
            taken = [self._listed.popleft() for _ in range(min(LISTED_AT_ONCE, len(self._listed)))]
            self.runner.take_in(uri for uri in taken if uri not in known)

    def _waiting(self) -> Iterator[ObjectInfo]:
        """The objects in the watched prefix that this run takes."""
        listed = self.state.store.list(self.state.layout.manifests_folder)
        return (info for info in listed if is_delivery(info.uri) and self.share.is_mine(info.uri))

    def _list_own(self) -> None:
        self._listed = deque(in_turns(info.uri for info in self._waiting()))

    def _finish(self) -> None:
        """Work until every manifest in the prefix is done, or failed too many times or for too long."""
        self._drain()
        self._has_following = True
        while self._has_following and not self._is_blocked():
            self._has_following = False
            self._list_unseen(everything=True)
            self._drain()

    def _is_blocked(self) -> bool:
        """Whether the table is full, and commits have failed too often for a run with `once`."""
        return self.runner.table is not None and self.runner.table.has_given_up() and self.runner.table.is_full()

    def _drain(self) -> None:
        while not self._stopping.is_set():
            self._collect()
            self.runner.retry()
            self._take_listed()
            is_idle = self.runner.is_idle() and not self._listed
            # Check before the next commit starts: during one, the table has not given up.
            if self._is_blocked() or (is_idle and self.runner.table is not None and self.runner.table.has_given_up()):
                break
            self._commit_published(at_once=is_idle)
            is_settled = is_idle and (self.runner.table is None or self.runner.table.is_idle())
            if is_settled and not self.runner.postponed.has_due_within(ONCE_SECONDS, tries=ONCE_TRIES):
                break
            self._stopping.wait(self.finish_check_seconds)

    def _list_unseen(self, *, everything: bool) -> None:
        """List hidden, nested, empty and late objects to take in; with `everything`, all in the prefix."""
        folder = self.state.layout.manifests_folder
        late = self.state.clock.now() - timedelta(seconds=LATE_SECONDS)
        published = self.runner.table.uris() if self.runner.table is not None else frozenset[str]()
        unseen = [
            info.uri
            for info in self._waiting()
            if info.uri not in published
            and (
                everything
                or info.modified_at <= late
                or not is_seen_by_stream(info.uri.removeprefix(folder), info.size_bytes)
            )
        ]
        if unseen:
            log_event("manifests.unseen_by_stream", manifests=len(unseen))
        self._listed = deque(unseen)

    def _collect(self) -> None:
        """Report the results, and note what to retry."""
        now, found = self.state.clock.now(), self.runner.take_ended()
        self._report.add(found)
        self._has_following |= any(isinstance(each.outcome, Commit) and each.outcome.deferred for each in found.all)
        if any(each.ending is Ending.COMMITTED for each in found.all):
            self._consecutive_failures = 0  # only progress shows that repeating helps
        self._untold += [each for each in found.all if each.ending in FINISHED or each.error is not None]
        self._reported_at = self._reported_at or now
        if self._untold and (self.runner.is_idle() or _has_passed(TELL_SECONDS, self._reported_at, now)):
            self._tell(Results(tuple(self._untold)), now)
            self._untold, self._reported_at = [], now

    def _tell(self, found: Results, now: datetime) -> None:
        seconds, retrying, target = found.seconds(now), len(self.runner.postponed), self.target_file_bytes
        self.metrics.emit(batch_metrics(found, retrying=retrying, seconds=seconds, target_file_bytes=target))
        log_event(
            "batch.finished",
            manifests=len(found.finished),
            failed=len(found.failures),
            stuck=len(found.stuck),
            seconds=round(seconds, 3),
        )

    def _record_failures(self) -> None:
        """Record failures before the process ends, or they look like crashes. Gives up after some tries."""
        for tried in range(1, RECORD_TRIES + 1):
            if not self.runner.record_failures():
                return
            Event().wait(_pause_seconds(tried))

    def _back_off(self, error: Exception) -> None:
        self._consecutive_failures += 1
        if self._consecutive_failures > MAX_CONSECUTIVE_FAILURES:
            times = f"the stream failed {self._consecutive_failures} times in a row"
            raise CompactorError(f"{times}: {described(error)}") from error
        seconds = _pause_seconds(self._consecutive_failures)
        log_event(
            "stream.restarting", failures=self._consecutive_failures, pause_seconds=round(seconds, 3), error=error
        )
        self._stopping.wait(seconds)


def _pause_seconds(failures: int) -> float:
    return random_pause_seconds(failures, first_seconds=FIRST_PAUSE_SECONDS, longest_seconds=LONGEST_PAUSE_SECONDS)


def _has_passed(seconds: float, since: datetime, now: datetime) -> bool:
    """Whether an interval has passed. A future start, from a wrong clock, counts as passed."""
    return abs((now - since).total_seconds()) >= seconds
