"""The job: recovers open manifests, then works through the stream until stopped; restarts the stream after failures."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Protocol

from compactor.core.backoff import pause_seconds
from compactor.core.errors import CompactorError, EngineLost, OperatorError
from compactor.core.layout import is_delivery, is_seen_by_stream
from compactor.core.ports import FLUSH_SECONDS, MetricsSink
from compactor.job.batch_metrics import batch_metrics
from compactor.job.batches import BatchResult, BatchRunner
from compactor.job.compaction import Ending
from compactor.job.recovery import Recovery
from compactor.job.retention.daily import DailyRetention
from compactor.job.run_report import BatchVerdict, RunReport
from compactor.ledger.heartbeat import Heartbeat, Runs
from compactor.ledger.state import State
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event, run_in_log

MAX_CONSECUTIVE_FAILURES = 6
"""Restarts of the stream in a row without a commit: more than `max_attempts` needs by default."""

RECORD_TRIES = 5
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
HEARTBEAT_SECONDS = 60.0
SWEEP_SECONDS = 300.0
"""How often a run lists the watched prefix for manifests that the stream cannot see."""


class ManifestSource(Protocol):
    """A stream of the URIs of new objects in the watched prefix."""

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        """Begin calling `on_batch`, from another thread; an exception in it ends the stream.

        Args:
            on_batch: Gets the URIs of a micro-batch. The same URI may come again.
            once: End when everything in the prefix was delivered.
        """

    def wait(self, timeout_seconds: float) -> bool:
        """Wait until the stream ends or the timeout passes; return whether it has ended.

        Raises:
            Exception: What ended the stream. An error of `on_batch` is raised as it is, not wrapped.
        """

    def is_idle(self) -> bool:
        """Return whether the stream has delivered everything that it can see."""

    def stop(self) -> None:
        """End the stream."""


@dataclass(slots=True, kw_only=True)
class Service:
    """Runs the job.

    Attributes:
        runner: Works through batches.
        recovery: Finishes what earlier runs left open.
        retention: Deletes expired objects beside the batches.
        source: The stream of manifests.
        runs: The heartbeats of all runs.
        heartbeat: The heartbeat of this run.
        target_file_bytes: For the hit rate of file sizes.
        poll_seconds: How long to wait for the stream between two checks.
    """

    state: State
    runner: BatchRunner
    recovery: Recovery
    retention: DailyRetention
    source: ManifestSource
    runs: Runs
    heartbeat: Heartbeat
    metrics: MetricsSink
    target_file_bytes: int
    poll_seconds: float = 0.5
    _stopping: Event = field(default_factory=Event, init=False)
    _stream_ended: Event = field(default_factory=Event, init=False)
    _batch_lock: Lock = field(default_factory=Lock, init=False)
    _consecutive_failures: int = field(default=0, init=False)
    _final_error: OperatorError | EngineLost | None = field(default=None, init=False)
    _recovered: BatchVerdict = field(default_factory=BatchVerdict, init=False)
    _report: RunReport = field(default_factory=RunReport, init=False)

    def __post_init__(self) -> None:
        self.heartbeat.on_stop_request(self.stop)

    def stop(self) -> None:
        """Ask the run to end after the batch in flight. Safe to call from a signal handler."""
        self._stopping.set()

    def run(self, *, once: bool) -> RunReport:
        """Work until stopped; with `once`, until everything that was in the prefix is done.

        Raises:
            OperatorError: A person must act.
            EngineLost: The engine is gone.
            CompactorError: The stream failed too many times in a row.
        """
        with run_in_log(self.heartbeat.run_id), self.heartbeat:
            try:
                self._run(once=once)
            finally:
                self._record_failures()
                self.recovery.drop_checkpoints()
                self.metrics.flush(FLUSH_SECONDS)
        return self._report

    def _run(self, *, once: bool) -> None:
        while not self._stopping.is_set():
            try:
                self._report.failures.clear()
                self.state.store.create(self.state.layout.keep_marker, b"")
                self.runs.forget_dead()
                self.recovery.sweep()
                self._recover()
                self._stream(once=once)
                if once and self._report.failures:
                    self._recovered.check()
            except (OperatorError, EngineLost):
                raise
            except Exception as exc:  # noqa: BLE001 - a stream may end with any error, and a restart may help
                self._back_off(exc)
                continue
            if once:
                break

    def _recover(self) -> None:
        verdict = self._work(lambda: self.recovery.recover(is_stopping=self._stopping.is_set))
        # Attempts never run out on passing trouble, so waiting for it to pass would stop all other manifests.
        if not verdict.is_passing:
            verdict.check()
        self._recovered = verdict

    def _stream(self, *, once: bool) -> None:
        self._stream_ended.clear()
        self.source.start(self._on_batch, once=once)
        last_heartbeat = last_sweep = self.state.clock.now()
        try:
            while not self.source.wait(self.poll_seconds):
                now = self.state.clock.now()
                if self._stopping.is_set():
                    break
                # Only while idle: this thread would report a heartbeat even if a batch hangs.
                if (now - last_heartbeat).total_seconds() >= HEARTBEAT_SECONDS and self.source.is_idle():
                    last_heartbeat = now
                    self.metrics.emit({"Heartbeat": 1})
                if (now - last_sweep).total_seconds() >= SWEEP_SECONDS:
                    last_sweep = now
                    self._sweep_prefix()
                if not once:  # beside the batches, which run in other threads: a busy stream may never be idle
                    self.retention.step()
        finally:
            with self._batch_lock:  # let the batch in flight finish before the stream is stopped
                self._stream_ended.set()
            self.source.stop()  # without the lock: it may wait for a batch that was delivered meanwhile
        if once and not self._stopping.is_set():
            self._deliver_unseen(everything=True)

    def _on_batch(self, uris: Sequence[str]) -> None:
        self._work(lambda: BatchResult() if self._stream_ended.is_set() else self.runner.run(uris)).check()

    def _sweep_prefix(self) -> None:
        """Process manifests that the stream does not deliver."""
        idle = self.source.is_idle()
        if idle and self._recovered.failures:
            self._recover()
        self._deliver_unseen(everything=idle)

    def _deliver_unseen(self, *, everything: bool) -> None:
        """Process hidden, nested and empty objects; with `everything`, all objects left in the prefix."""
        folder = self.state.layout.manifests_folder
        unseen = [
            info.uri
            for info in self.state.store.list(folder)
            if is_delivery(info.uri)
            and (everything or not is_seen_by_stream(info.uri.removeprefix(folder), info.size_bytes))
        ]
        if unseen:
            log_event("manifests.unseen_by_stream", manifests=len(unseen))
            self._work(lambda: self.runner.run(unseen)).check()

    def _work(self, batch_of_work: Callable[[], BatchResult]) -> BatchVerdict:
        """Process one batch, and report it."""
        with self._batch_lock:
            if self._stopping.is_set():
                return BatchVerdict()  # what is not worked on stays in the prefix, where the next run finds it
            started = self.state.clock.now()
            try:
                batch = batch_of_work()
            except (OperatorError, EngineLost) as exc:
                self._final_error = exc  # this thread may have met another error already, which hides it
                raise
            seconds = (self.state.clock.now() - started).total_seconds()
            self._report.add(batch)
            if any(result.ending is Ending.COMMITTED for result in batch.results):
                self._consecutive_failures = 0  # only progress shows that repeating helps
            if batch.results or batch.failures or batch.stuck:
                self._tell(batch, seconds)
        return BatchVerdict(batch.failures)

    def _tell(self, batch: BatchResult, seconds: float) -> None:
        failed, stuck = len(batch.failures), len(batch.stuck)
        values = batch_metrics(
            batch.results, failed=failed, stuck=stuck, seconds=seconds, target_file_bytes=self.target_file_bytes
        )
        self.metrics.emit(values)
        log_event("batch.finished", manifests=len(batch.results), failed=failed, stuck=stuck, seconds=round(seconds, 3))

    def _record_failures(self) -> None:
        """Record passing failures before the process ends, or they look like crashes. Give up after a few tries."""
        for tried in range(1, RECORD_TRIES + 1):
            if not self.runner.record_failures():
                return
            Event().wait(_pause_seconds(tried))

    def _back_off(self, error: Exception) -> None:
        if self._final_error is not None:
            raise self._final_error
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
    chance = random.random()  # noqa: S311 - it spreads pauses, nothing else
    return pause_seconds(
        failures, first_seconds=FIRST_PAUSE_SECONDS, longest_seconds=LONGEST_PAUSE_SECONDS, chance=chance
    )
