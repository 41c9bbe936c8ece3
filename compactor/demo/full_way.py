"""The demo on AWS: S3 events on a queue, the functions, a job that the control plane keeps up, and the metrics."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from compactor.adapters.aws.clients import cloudwatch_client, sqs_client
from compactor.adapters.aws.cloudwatch import Statistic, metric_statistic
from compactor.adapters.aws.local_setup import feed
from compactor.control.actions import Action, ActionKind
from compactor.core.errors import CompactorError
from compactor.core.layout import is_delivery
from compactor.core.ports import FLUSH_SECONDS
from compactor.core.text.formatting import count
from compactor.demo.process_job import END_SECONDS, ProcessJob
from compactor.demo.scene import Scene
from compactor.telemetry.logs import configure_logs
from compactor.telemetry.metrics import CATALOGUE
from compactor.wiring.control import ControlComponents
from compactor.wiring.functions import build_messages, function_components, seal_parts
from compactor.wiring.job.app import App

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
    """The whole way from S3 events to metrics.

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
        """Build manifests from the events, and keep the job up until all are done; returns how many seconds it took."""
        self._build()
        job = ProcessJob(self.environment, self.log)
        try:
            return self._run(job)
        finally:
            job.end()

    def _build(self) -> None:
        """Call the functions as Lambda would."""
        os.environ.update({name: value for name, value in self.environment.items() if name.startswith("COMPACTOR_")})
        function_components()  # sets up a JSON log, which the demo replaces
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
        """Have the control plane start the job, kill it at work, and wait until the restarted job has done it all."""
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
        """Ask the run to end until it does: one that has just begun has no heartbeat yet. Returns its exit code."""
        deadline = time.monotonic() + END_SECONDS
        while job.is_running and time.monotonic() < deadline:
            for heartbeat in self.app.runs.living():
                self.app.runs.ask_to_stop(heartbeat.run_id)
            time.sleep(_POLL_SECONDS)
        return job.wait()

    def _check(self, job: ProcessJob, state: str, *, until: ActionKind) -> None:
        """Call the control plane, as its schedule does, until it decides on the action."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while (action := self._decided(job)).kind is not until:
            if time.monotonic() > deadline:
                raise CompactorError(f"the control plane decided to {action.kind} ({action.reason}), expected {until}")
            time.sleep(_POLL_SECONDS)
        self.echo(f"  {state:10}  {action.kind}: {action.reason}")

    def _decided(self, job: ProcessJob) -> Action:
        app = self.app
        control = ControlComponents(app.settings, job=job, store=app.store, metrics=app.metrics)
        return control.plane.check().actions[0]

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
