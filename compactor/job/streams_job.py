"""The job of several streams: each has its own service in a thread, and a failure of one does not end the others."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from compactor.core.errors import CompactorError, EngineLost, OperatorError
from compactor.core.ports import FLUSH_SECONDS, MetricsSink
from compactor.core.rules.backoff import pause_seconds
from compactor.job.report import ManifestsUnfinished, RunReport
from compactor.ledger.heartbeat import Heartbeat
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event, run_in_log

FIRST_PAUSE_SECONDS = 30.0
LONGEST_PAUSE_SECONDS = 900.0
"""Pauses before a failed stream is retried; they double. An operator may have acted meanwhile."""


class Job(Protocol):
    """The job of one stream, `compactor.job.service.Service`, or of several, `StreamsJob`."""

    def run(self, *, once: bool) -> RunReport:
        """Work until stopped; with `once`, until everything present at the start is done."""

    def stop(self) -> None:
        """Ask it to end after the manifests in flight."""


@dataclass(slots=True, kw_only=True)
class StreamsJob:
    """Runs the services of all streams in a job, until it is stopped.

    Attributes:
        new_services: Creates each stream's service, by name; called again after the service failed.
        heartbeat: The job's heartbeat. Each service has its own, in its stream's state.
        first_pause_seconds: The pause after the first failure of a stream.
    """

    new_services: Mapping[str, Callable[[], Job]]
    heartbeat: Heartbeat
    metrics: MetricsSink
    first_pause_seconds: float = FIRST_PAUSE_SECONDS
    _stopping: threading.Event = field(default_factory=threading.Event, init=False)
    _running: dict[str, Job] = field(default_factory=dict, init=False)
    _errors: dict[str, Exception] = field(default_factory=dict, init=False)
    _reports: dict[str, RunReport] = field(default_factory=dict, init=False)
    _lost: EngineLost | None = field(default=None, init=False)
    _gave_up: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.heartbeat.on_stop_request(self.stop)

    @property
    def was_stopped(self) -> bool:
        """Whether it was asked to stop, by its caller or by a request in the state."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Ask all streams to end after the manifests in flight. Safe to call from a signal handler."""
        self._stopping.set()
        for service in tuple(self._running.values()):
            service.stop()
        self.heartbeat.note_stopping()

    def run(self, *, once: bool) -> RunReport:
        """Work until stopped; with `once`, until everything in the prefixes of all streams is done.

        Raises:
            EngineLost: The engine died.
            OperatorError: A stream needs an operator. With `once` the others were finished; else all of them failed.
            ManifestsUnfinished: With `once`: some manifests failed each time they were tried.
            CompactorError: A stream failed otherwise; without `once`, all of them failed.
        """
        threads = [
            threading.Thread(target=self._work, args=(name,), kwargs={"once": once}, name=f"stream {name}")
            for name in self.new_services
        ]
        with run_in_log(self.heartbeat.run_id), self.heartbeat:
            for thread in threads:
                thread.start()
            try:
                for thread in threads:
                    thread.join()
            except KeyboardInterrupt:  # in a program without its own handler
                self.stop()
                raise
            finally:
                self.metrics.flush(FLUSH_SECONDS)
        self._raise(once=once)
        return self._total()

    def _work(self, name: str, *, once: bool) -> None:
        """Run one stream, restarting after a pause if it fails. If all of them fail, the job ends."""
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            error = self._tried(name, once=once)
            failures = 1 if time.monotonic() - began >= LONGEST_PAUSE_SECONDS else failures + 1
            pause = pause_seconds(
                failures, first_seconds=self.first_pause_seconds, longest_seconds=LONGEST_PAUSE_SECONDS, chance=1.0
            )
            if error is not None:
                log_event("stream.failed", stream=name, pause_seconds=0 if once else pause, error=error)
            if once:
                return
            if len(self._errors) == len(self.new_services):
                self._gave_up = True
                self.stop()
            elif error is not None:
                self._stopping.wait(pause)
                if not self._stopping.is_set():
                    del self._errors[name]

    def _tried(self, name: str, *, once: bool) -> Exception | None:
        """Run one stream until it ends; return the error that ended it."""
        try:
            self._run(name, once=once)
        except EngineLost as exc:
            self._lost = exc
            self.stop()
        except Exception as exc:  # noqa: BLE001 - no error of one stream may stop the others
            self._errors[name] = exc
            return exc
        return None

    def _run(self, name: str, *, once: bool) -> None:
        service = self.new_services[name]()
        self._running[name] = service
        if self._stopping.is_set():  # `stop` may have been called before the service existed
            service.stop()
        report = service.run(once=once)
        self._reports.setdefault(name, RunReport()).merge(report)

    def _raise(self, *, once: bool) -> None:
        """Raise the error that must end the process, the most urgent first."""
        if self._lost is not None:
            raise self._lost
        if not (once or self._gave_up):
            return  # the log has the failed streams
        for name, error in self._errors.items():
            if isinstance(error, OperatorError):
                raise error
            if not isinstance(error, ManifestsUnfinished):
                raise CompactorError(f"stream {name}: {described(error)}") from error
        failures = {
            manifest_id: text
            for error in self._errors.values()
            if isinstance(error, ManifestsUnfinished)
            for manifest_id, text in error.failures.items()
        }
        if failures:
            raise ManifestsUnfinished(failures)

    def _total(self) -> RunReport:
        total = RunReport()
        for report in self._reports.values():
            total.add_stream(report)
        return total
