"""The whole way on a stand-in for AWS: events on a queue, functions, a job that is kept up, and its measurements."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from compactor.adapters.aws.clients import cloudwatch_client, sqs_client
from compactor.adapters.aws.event_source import feed
from compactor.adapters.aws.metric_totals import Statistic, metric_statistic
from compactor.control.actions import ActionKind
from compactor.core.errors import CompactorError
from compactor.core.formatting import count
from compactor.core.layout import is_delivery
from compactor.core.ports import FLUSH_SECONDS
from compactor.demo.process_job import ProcessJob
from compactor.demo.scene import Scene
from compactor.telemetry.logs import configure_logs
from compactor.telemetry.metrics import CATALOGUE
from compactor.wiring.app import App
from compactor.wiring.control import ControlComponents
from compactor.wiring.functions import function_components
from lambdas import manifest_builder, manifest_sealer

MEASURED: tuple[tuple[str, Statistic], ...] = (
    *((name, "Sum") for name in ("FilesAnnounced", "ManifestsBuilt", "Restarts", "ManifestsCommitted")),
    *((name, "Sum") for name in ("RecordsIn", "RecordsOut", "RecordsRejected", "OutputFiles")),
    ("OutputFileSizeHitRate", "Average"),
    ("ArrivalToVisibleSeconds", "Maximum"),
)
"""What is read back."""

_PATIENCE_SECONDS = 1800.0
_POLL_SECONDS = 0.5
_BATCH = 40  # messages of one call: several calls also in a small demo


@dataclass(frozen=True, slots=True)
class FullWay:
    """One demo of the whole way.

    Args:
        scene: Where it takes place.
        app: The parts, to look at what comes out.
        environment: Of the commands and functions; names the settings.
        log: A file for what the job says.
    """

    scene: Scene
    app: App
    environment: Mapping[str, str]
    log: Path

    def go(self) -> float:
        """Build manifests of what was announced, and keep the job up until all of them are done.

        Returns:
            How long the job took, from its first start, in seconds.
        """
        self._build()
        job = ProcessJob(self.environment, self.log)
        try:
            return self._run(job)
        finally:
            job.end()

    def _build(self) -> None:
        """Call the functions as Lambda would."""
        os.environ.update({name: value for name, value in self.environment.items() if name.startswith("COMPACTOR_")})
        function_components()  # which sets up a log for machines
        configure_logs(as_json=False, level="warning")
        click.echo(
            "\nS3 has announced the objects on a queue. The manifest builder takes the messages in, and the sealer"
        )
        click.echo("ends the waiting of what did not fill a manifest:\n")
        aws = self.app.settings.aws
        fed = feed(
            sqs_client(aws.region, aws.endpoint_url), self.scene.queue_url, manifest_builder.handler, batch_size=_BATCH
        )
        click.echo(
            f"  builder  {count(fed.messages, 'message')} in {count(fed.batches, 'call')}, {fed.failed} given back"
        )
        sealed = manifest_sealer.handler({}, None)
        click.echo(f"  sealer   {count(sealed['sealed_parts'], 'pending part')} sealed, {sealed['waiting_parts']} wait")
        click.echo(f"  to do    {count(self._waiting(), 'manifest')}")

    def _run(self, job: ProcessJob) -> float:
        """Have the control plane start the job, kill it at work, have it started again, and wait until all is done."""
        click.echo("\nThe control plane looks at the job. In the middle of its work the job is killed:\n")
        started = time.monotonic()
        self._look(job, "no job", until=ActionKind.START)
        self._wait_until(lambda: any(self._attempts()), job)
        self._look(job, "job up", until=ActionKind.WAIT)
        job.kill()
        click.echo("  (kill -9)")
        self._look(job, "job killed", until=ActionKind.START)
        self._wait_until(lambda: not self._waiting() and not any(self.app.ledger.open_ids()), job)
        self._look(job, "job back", until=ActionKind.WAIT)
        for beat in self.app.runs.living():
            self.app.runs.ask_to_stop(beat.run_id)
        code = job.wait()
        seconds = time.monotonic() - started
        click.echo(f"  drained     the run was asked to end, and ended with {code}")
        if code != 0:
            raise CompactorError(f"the job ended with {code}, expected 0; its log: {self.log}")
        return seconds

    def _look(self, job: ProcessJob, state: str, *, until: ActionKind) -> None:
        """Call the control plane, as its schedule does, until it decides something."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            step = ControlComponents(
                self.app.settings, job=job, store=self.app.store, metrics=self.app.metrics
            ).plane.check()
            action = step.actions[0]
            if action.kind is until:
                click.echo(f"  {state:10}  {action.kind}: {action.reason}")
                return
            if time.monotonic() > deadline:
                raise CompactorError(f"the control plane goes on to {action.kind} ({action.reason}), expected {until}")
            time.sleep(_POLL_SECONDS)

    def _wait_until(self, is_so: Callable[[], bool], job: ProcessJob) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not is_so():
            if time.monotonic() > deadline or not job.is_running:
                raise CompactorError(f"the job did not come so far; its log: {self.log}")
            time.sleep(_POLL_SECONDS)

    def _attempts(self) -> list[str]:
        folder = self.app.layout.ledger_folder
        return [info.uri for info in self.app.store.list(folder) if "/attempt-" in info.uri]

    def _waiting(self) -> int:
        return sum(is_delivery(info.uri) for info in self.app.store.list(self.app.layout.manifests_folder))

    def show_measurements(self) -> None:
        """Read back from CloudWatch what functions, job and control plane have measured."""
        self.app.metrics.flush(FLUSH_SECONDS)
        settings, now = self.app.settings, self.app.clock.now()
        client = cloudwatch_client(settings.aws.region, settings.aws.endpoint_url)
        dimensions = {"Job": settings.control.job_name, "Environment": settings.metrics.environment}
        click.echo("\nCloudWatch has, of all that was measured on the way:\n")
        for name, statistic in MEASURED:
            value = metric_statistic(client, settings.metrics.namespace, name, dimensions, statistic, now=now)
            shown = "nothing" if value is None else f"{value:,.0f}"
            click.echo(f"  {name:24} {statistic.lower():8} {shown:>12} {CATALOGUE[name].unit}")
