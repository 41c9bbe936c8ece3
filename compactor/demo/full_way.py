"""The demo on AWS: S3 events on a queue, the functions, a job kept running by the control plane, and the metrics."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from compactor.adapters.aws.clients import cloudwatch_client, sqs_client
from compactor.adapters.aws.cloudwatch import Statistic, metric_statistic
from compactor.adapters.aws.local_setup import feed
from compactor.control.decisions import Action, ActionKind
from compactor.control.snapshot import JobRun, JobState, newest_first
from compactor.core.errors import CompactorError
from compactor.core.layout import is_delivery
from compactor.core.ports import FLUSH_SECONDS
from compactor.core.text.formatting import count
from compactor.demo.scene import Scene
from compactor.telemetry.logs import configure_logs
from compactor.telemetry.metrics import CATALOGUE
from compactor.wiring.app import App
from compactor.wiring.control import control_plane
from compactor.wiring.functions import build_messages, lasting, seal_parts

END_SECONDS = 60.0  # a run that is asked to end finishes its batch first


@dataclass(frozen=True, slots=True)
class ProcessJob:
    """`compactor.control.snapshot.JobRuns` for one job with one run at a time; all runs write to one log."""

    environment: Mapping[str, str]
    log: Path
    _runs: dict[str, tuple[datetime, "subprocess.Popen[bytes]"]] = field(default_factory=dict)
    _ended: dict[str, datetime] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        return any(process.poll() is None for _, process in self._runs.values())

    def list(self, since: datetime) -> Sequence[JobRun]:
        runs = [self._run(run_id) for run_id, (started_at, _) in self._runs.items() if started_at >= since]
        return newest_first(runs)

    def defined_at(self) -> datetime | None:
        return None

    def start(self) -> str | None:
        if self.is_running:
            return None
        run_id = f"jr_{len(self._runs) + 1}"
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "compactor", "--log-format", "json", "run"],
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that its JVM is killed with it
            )
        self._runs[run_id] = (datetime.now(UTC), process)
        return run_id

    def stop(self, run_id: str) -> None:
        self._runs[run_id][1].terminate()

    def kill(self) -> None:
        """Kill the latest run with all of its processes, as the loss of a machine would."""
        process = [*self._runs.values()][-1][1]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def wait(self) -> int:
        """Wait for the end of the latest run; returns its exit code.

        Raises:
            CompactorError: It does not end.
        """
        run_id, (_, process) = [*self._runs.items()][-1]
        try:
            return process.wait(END_SECONDS)
        except subprocess.TimeoutExpired as exc:
            raise CompactorError(
                f"run {run_id} was asked to end {END_SECONDS:.0f} s ago and is still running; its log: {self.log}"
            ) from exc

    def end(self) -> None:
        """End all runs, by force if they do not end in time."""
        for _, process in self._runs.values():
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(END_SECONDS)
                except (subprocess.TimeoutExpired, KeyboardInterrupt):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def _run(self, run_id: str) -> JobRun:
        started_at, process = self._runs[run_id]
        code = process.poll()
        if code is None:
            return JobRun(run_id, JobState.RUNNING, started_at, started_at)
        ended_at = self._ended.setdefault(run_id, datetime.now(UTC))
        state, why = (JobState.FAILED, f"the process ended with {code}") if code else (JobState.SUCCEEDED, "")
        return JobRun(run_id, state, started_at, ended_at, ended_at, why)


_SHOWN_METRICS: tuple[tuple[str, Statistic], ...] = (
    *((name, "Sum") for name in ("FilesAnnounced", "ManifestsBuilt", "Restarts", "ManifestsCommitted")),
    *((name, "Sum") for name in ("RecordsIn", "RecordsOut", "RecordsRejected", "OutputFiles")),
    ("OutputFileSizeHitRate", "Average"),
    ("ArrivalToVisibleSeconds", "Maximum"),
)
_TIMEOUT_SECONDS = 1800.0
_POLL_SECONDS = 0.5
_BATCH = 40  # messages of one call, so few that a small demo makes several calls


@dataclass(frozen=True, slots=True)
class FullWay:
    """The complete path from S3 events to metrics.

    Attributes:
        environment: The variables of the job.
        log: The log file of the job.
        echo: Prints lines.
    """

    scene: Scene
    app: App
    environment: Mapping[str, str]
    log: Path
    echo: Callable[..., None]

    def go(self) -> float:
        """Build manifests from the events, and keep the job running until all are done; returns the seconds taken."""
        self._build()
        job = ProcessJob(self.environment, self.log)
        try:
            return self._run(job)
        finally:
            job.end()

    def _build(self) -> None:
        """Call the functions as Lambda would."""
        os.environ.update({name: value for name, value in self.environment.items() if name.startswith("COMPACTOR_")})
        lasting()  # sets up a JSON log, which the demo replaces
        configure_logs(as_json=False, level="warning")
        self.echo(
            "",
            "S3 has announced the objects on a queue. The manifest builder takes the messages, and the sealer seals",
            "the files that did not fill a manifest:",
            "",
        )
        aws = self.app.settings.aws
        client = sqs_client(aws.region, aws.endpoint_url)
        fed = feed(client, self.scene.queue_url, lambda event, _context: build_messages(event), batch_size=_BATCH)
        calls = f"{count(fed.messages, 'message')} in {count(fed.batches, 'call')}"
        self.echo(f"  builder  {calls}, {fed.failed} given back")
        sealed = seal_parts()
        self.echo(f"  sealer   {count(sealed['sealed_parts'], 'pending part')} sealed, {sealed['waiting_parts']} wait")
        self.echo(f"  backlog  {count(self._waiting(), 'manifest')}")

    def _run(self, job: ProcessJob) -> float:
        """Let the control plane start the job, kill it at work, and wait until the restarted job has finished all."""
        self.echo("", "The control plane checks the job. The job is killed in the middle of its work:", "")
        started = time.monotonic()
        self._check(job, "no job", until=ActionKind.START)
        self._wait(self._has_attempts, job)
        self._check(job, "job up", until=ActionKind.WAIT)
        job.kill()
        self.echo("  (kill -9)")
        self._check(job, "job killed", until=ActionKind.START)
        self._wait(lambda: not self._waiting() and not any(self.app.ledger.open_ids()), job)
        self._check(job, "job back", until=ActionKind.WAIT)
        code = self._drained(job)
        seconds = time.monotonic() - started
        self.echo(f"  drained     the run was asked to end, and ended with {code}")
        if code != 0:
            raise CompactorError(f"the job ended with {code}, expected 0; its log: {self.log}")
        return seconds

    def _drained(self, job: ProcessJob) -> int:
        """Ask the run to end until it does: a new one has no heartbeat yet. Returns its exit code."""
        deadline = time.monotonic() + END_SECONDS
        while job.is_running and time.monotonic() < deadline:
            for heartbeat in self.app.runs.living():
                self.app.runs.ask_to_stop(heartbeat.run_id)
            time.sleep(_POLL_SECONDS)
        return job.wait()

    def _check(self, job: ProcessJob, state: str, *, until: ActionKind) -> None:
        """Call the control plane, as its schedule does, until it chooses the action."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while (action := self._decided(job)).kind is not until:
            if time.monotonic() > deadline:
                raise CompactorError(f"the control plane decided to {action.kind} ({action.reason}), expected {until}")
            time.sleep(_POLL_SECONDS)
        self.echo(f"  {state:10}  {action.kind}: {action.reason}")

    def _decided(self, job: ProcessJob) -> Action:
        app = self.app
        plane = control_plane(app.settings, job=job, store=app.store, metrics=app.metrics)
        quick = plane.policy.model_copy(update={"backoff_first_seconds": 2.0})
        return replace(plane, policy=quick).check().actions[0]

    def _wait(self, is_done: Callable[[], bool], job: ProcessJob) -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not is_done():
            if time.monotonic() > deadline or not job.is_running:
                raise CompactorError(f"the job made no progress; its log: {self.log}")
            time.sleep(_POLL_SECONDS)

    def _has_attempts(self) -> bool:
        return any("/attempt-" in info.uri for info in self.app.store.list(self.app.layout.ledger_folder))

    def _waiting(self) -> int:
        return sum(is_delivery(info.uri) for info in self.app.store.list(self.app.layout.manifests_folder))

    def show_metrics(self) -> None:
        """Read the metrics of functions, job and control plane back from CloudWatch."""
        self.app.metrics.flush(FLUSH_SECONDS)
        settings, now = self.app.settings, self.app.clock.now()
        client = cloudwatch_client(settings.aws.region, settings.aws.endpoint_url)
        dimensions = {"Job": settings.control.job_name, "Environment": settings.metrics.environment}
        self.echo("", "CloudWatch has these metrics:", "")
        for name, statistic in _SHOWN_METRICS:
            value = metric_statistic(client, settings.metrics.namespace, name, dimensions, statistic, now=now)
            shown = "nothing" if value is None else f"{value:,.0f}"
            self.echo(f"  {name:24} {statistic.lower():8} {shown:>12} {CATALOGUE[name].unit}")
