"""The job: recovery, then the stream of manifests, restarted with back-off when a batch fails, until told to stop."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Protocol

from compactor.core.backoff import pause_seconds
from compactor.core.errors import CompactorError, EngineLost, OperatorError, TryAgainError
from compactor.core.layout import Layout, is_delivery, is_seen_by_stream
from compactor.core.ports import FLUSH_SECONDS, Clock, MetricsSink, ObjectStore
from compactor.core.records import NEEDS_OPERATOR, Commit
from compactor.job.batch_metrics import batch_metrics
from compactor.job.batches import BatchResult, BatchRunner
from compactor.job.compaction import CompactionResult, Ending, is_passing
from compactor.job.recovery import Recovery
from compactor.job.retention.daily import DailyRetention
from compactor.ledger.heartbeat import Heartbeat, Runs
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event, run_in_log

MAX_CONSECUTIVE_FAILURES = 6
"""Restarts of the stream in a row without one batch that went through: more than `max_attempts` needs by default."""

RECORD_TRIES = 5
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
HEARTBEAT_SECONDS = 60.0
SWEEP_SECONDS = 300.0
"""How often a run lists the watched prefix for manifests that the stream cannot see."""


class BatchFailed(TryAgainError):
    """Some manifests of a batch did not come to an end; the batch has to be repeated.

    Args:
        failures: The error of each of them.
    """

    def __init__(self, failures: Mapping[str, Exception]) -> None:
        manifest_id, error = next(iter(failures.items()))
        super().__init__(f"{len(failures)} manifests failed; manifest {manifest_id}: {described(error)}")
        self.is_passing = all(is_passing(each) for each in failures.values())


class ManifestSource(Protocol):
    """A stream of the URIs of new objects in the watched prefix."""

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        """Begin calling `on_batch`, from another thread; an exception in it ends the stream.

        Args:
            on_batch: Gets the URIs of a micro-batch. The same URI may come again.
            once: End when everything that is there was delivered.
        """

    def wait(self, timeout_seconds: float) -> bool:
        """Whether the stream has ended, after at most so long.

        Raises:
            Exception: The stream ended with an error, such as that of `on_batch`.
        """

    def is_idle(self) -> bool:
        """Whether everything that the stream could see was delivered."""

    def stop(self) -> None:
        """End the stream."""


@dataclass(slots=True)
class RunReport:
    """What a run did.

    Attributes:
        committed: Manifests that this run committed or carried to done.
        dead_lettered: Manifests that it set aside.
        quarantined_files: Input files that need an operator.
        records: Rows that became visible.
        rejected_lines: Lines that were set aside.
        input_bytes: Stored bytes of compacted files.
        output_bytes: Parquet bytes.
        output_files: Parquet files of rows.
        failures: Manifests that came to no end, with the last error of each.
        stuck: Manifests that only a person can put right, with what is wrong.
    """

    committed: int = 0
    dead_lettered: int = 0
    quarantined_files: int = 0
    records: int = 0
    rejected_lines: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    output_files: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    stuck: dict[str, str] = field(default_factory=dict)

    def add(self, batch: BatchResult) -> None:
        """Count one batch."""
        for result in batch.results:
            if result.ending is not Ending.ALREADY_DONE:
                self._add_result(result)
            self.failures.pop(result.manifest_id, None)
            self.stuck.pop(result.manifest_id, None)
        self.failures.update({manifest_id: described(error) for manifest_id, error in batch.failures.items()})
        self.stuck.update({manifest_id: described(error) for manifest_id, error in batch.stuck.items()})

    def _add_result(self, result: CompactionResult) -> None:
        if not isinstance(result.outcome, Commit):
            self.dead_lettered += 1
            return
        self.committed += 1
        for report in result.outcome.files:
            self.quarantined_files += report.status in NEEDS_OPERATOR
            self.records += report.records
            self.rejected_lines += report.rejected_lines
            self.input_bytes += report.size_bytes if report.lines else 0
        self.output_bytes += sum(file.size_bytes for file in result.outcome.outputs)
        self.output_files += len(result.outcome.outputs)


class Service:
    """Runs the job.

    Args:
        store: Where the watched prefix is.
        layout: The places.
        runner: Works through batches.
        recovery: Puts right what earlier runs left.
        cleaning: Cleans up once a day.
        source: The stream of manifests.
        runs: Knows of other runs.
        heartbeat: Gives this run's signs of life.
        metrics: Where measurements go.
        clock: Time.
        target_file_bytes: For the hit rate of file sizes.
        poll_seconds: How often a running stream is looked at.
    """

    def __init__(
        self,
        *,
        store: ObjectStore,
        layout: Layout,
        runner: BatchRunner,
        recovery: Recovery,
        cleaning: DailyRetention,
        source: ManifestSource,
        runs: Runs,
        heartbeat: Heartbeat,
        metrics: MetricsSink,
        clock: Clock,
        target_file_bytes: int,
        poll_seconds: float = 0.5,
    ) -> None:
        self._store = store
        self._layout = layout
        self._runner = runner
        self._recovery = recovery
        self._cleaning = cleaning
        self._source = source
        self._runs = runs
        self._heartbeat = heartbeat
        heartbeat.on_stop_request(self.stop)
        self._metrics = metrics
        self._clock = clock
        self._target_file_bytes = target_file_bytes
        self._poll_seconds = poll_seconds
        self._stopping = Event()
        self._stream_ended = Event()
        self._batch_lock = Lock()
        self._consecutive_failures = 0
        self._unrecovered: BatchFailed | None = None
        self._batch_failed: BatchFailed | None = None
        self._final_error: OperatorError | EngineLost | None = None
        self._report = RunReport()

    def stop(self) -> None:
        """Ask the run to end after the batch in flight. Safe to call from a signal handler."""
        self._stopping.set()

    def run(self, *, once: bool) -> RunReport:
        """Work until stopped, or with `once` until everything that was there is done.

        Raises:
            OperatorError: A person must act.
            EngineLost: The engine is gone.
            CompactorError: The stream failed too many times in a row.
        """
        with run_in_log(self._heartbeat.run_id), self._heartbeat:
            try:
                self._run(once=once)
            finally:
                self._record_failures()
                self._recovery.drop_checkpoints()
                self._metrics.flush(FLUSH_SECONDS)
        return self._report

    def _run(self, *, once: bool) -> None:
        while not self._stopping.is_set():
            try:
                self._report.failures.clear()
                self._store.create(self._layout.keep_marker, b"")
                self._runs.forget_dead()
                self._recovery.sweep()
                self._recover()
                self._stream(once=once)
                if once:
                    self._check_recovered()
            except (OperatorError, EngineLost):
                raise
            except Exception as exc:  # noqa: BLE001 - Spark wraps whatever ended a batch in errors of its own
                self._back_off(exc)
                continue
            if once:
                break

    def _recover(self) -> None:
        self._unrecovered = None
        try:
            self._work(lambda: self._recovery.recover(is_stopping=self._stopping.is_set))
        except BatchFailed as exc:
            # Attempts never run out on passing trouble, so waiting for it to pass would stop all other manifests.
            if not exc.is_passing:
                raise
            self._unrecovered = exc

    def _check_recovered(self) -> None:
        """Fail if what recovery could not carry on did not come to its end with the stream either."""
        if self._unrecovered is not None and self._report.failures:
            raise self._unrecovered

    def _stream(self, *, once: bool) -> None:
        self._stream_ended.clear()
        self._source.start(self._on_batch, once=once)
        last_heartbeat = last_sweep = self._clock.now()
        try:
            while not self._source.wait(self._poll_seconds):
                now = self._clock.now()
                if self._stopping.is_set():
                    break
                # Not while a batch is in work: this thread would go on beating beside one that hangs.
                if (now - last_heartbeat).total_seconds() >= HEARTBEAT_SECONDS and self._source.is_idle():
                    last_heartbeat = now
                    self._metrics.emit({"Heartbeat": 1})
                if (now - last_sweep).total_seconds() >= SWEEP_SECONDS:
                    last_sweep = now
                    self._sweep_prefix()
                if not once:  # beside the batches, which have threads of their own: a stream may never be idle
                    self._cleaning.step()
        finally:
            with self._batch_lock:  # a batch in flight comes to its end before the stream is torn down
                self._stream_ended.set()
            self._source.stop()  # which may wait for a batch that came meanwhile, so not with the lock
        if once and not self._stopping.is_set():
            self._deliver_unseen(all_of_them=True)

    def _on_batch(self, uris: Sequence[str]) -> None:
        self._work(lambda: BatchResult() if self._stream_ended.is_set() else self._runner.run(uris))

    def _sweep_prefix(self) -> None:
        """Look after what the stream alone would leave lying."""
        idle = self._source.is_idle()
        if idle and self._unrecovered is not None:
            self._recover()
        self._deliver_unseen(all_of_them=idle)

    def _deliver_unseen(self, *, all_of_them: bool) -> None:
        """Work on what the stream does not deliver: hidden, nested, empty; and all that is left once it is idle."""
        folder = self._layout.manifests_folder
        unseen = [
            info.uri
            for info in self._store.list(folder)
            if is_delivery(info.uri)
            and (all_of_them or not is_seen_by_stream(info.uri.removeprefix(folder), info.size_bytes))
        ]
        if unseen:
            log_event("manifests.unseen_by_stream", manifests=len(unseen))
            self._work(lambda: self._runner.run(unseen))

    def _work(self, batch_of_work: Callable[[], BatchResult]) -> None:
        with self._batch_lock:
            if self._stopping.is_set():
                return  # what passes by unworked stays in the prefix, where the next run finds it
            started = self._clock.now()
            self._batch_failed = None
            try:
                batch = batch_of_work()
            except (OperatorError, EngineLost) as exc:
                self._final_error = exc
                raise
            seconds = (self._clock.now() - started).total_seconds()
            self._report.add(batch)
            if any(result.ending is Ending.COMMITTED for result in batch.results):
                self._consecutive_failures = 0  # only progress shows that repeating helps
            if batch.results or batch.failures or batch.stuck:
                values = batch_metrics(
                    batch.results,
                    failed=len(batch.failures),
                    stuck=len(batch.stuck),
                    seconds=seconds,
                    target_file_bytes=self._target_file_bytes,
                )
                self._metrics.emit(values)
                log_event(
                    "batch.finished",
                    manifests=len(batch.results),
                    failed=len(batch.failures),
                    stuck=len(batch.stuck),
                    seconds=round(seconds, 3),
                )
        if batch.failures:
            self._batch_failed = BatchFailed(batch.failures)
            raise self._batch_failed from next(iter(batch.failures.values()))

    def _record_failures(self) -> None:
        """Do not leave before attempts that failed in passing are told from deaths; but do not wait for ever."""
        for tried in range(1, RECORD_TRIES + 1):
            if not self._runner.record_failures():
                return
            Event().wait(_pause_seconds(tried))

    def _back_off(self, error: Exception) -> None:
        if self._final_error is not None:
            raise self._final_error
        # Spark wraps what ended a batch in words that hold a stack trace.
        why = self._batch_failed or error
        self._consecutive_failures += 1
        if self._consecutive_failures > MAX_CONSECUTIVE_FAILURES:
            times = f"the stream failed {self._consecutive_failures} times in a row"
            raise CompactorError(f"{times}: {described(why)}") from error
        seconds = _pause_seconds(self._consecutive_failures)
        log_event(
            "stream.restarting",
            failures=self._consecutive_failures,
            pause_seconds=round(seconds, 3),
            error=why,
        )
        self._stopping.wait(seconds)


def _pause_seconds(failures: int) -> float:
    chance = random.random()  # noqa: S311 - it spreads pauses, nothing else
    return pause_seconds(
        failures, first_seconds=FIRST_PAUSE_SECONDS, longest_seconds=LONGEST_PAUSE_SECONDS, chance=chance
    )
