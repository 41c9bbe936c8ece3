"""Ends the runs of jobs that a deployment or a removal deletes.

"Deletes a specified job definition" [Glue API, DeleteJob]: the page names no error for a job with a living run, nor
does it say that the run ends. No call could list or stop such a run, which would cost money and fail without its role.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from compactor.adapters.aws.glue_job import GlueJob
from compactor.control.snapshot import JobRuns
from compactor.core.ports import Clock
from compactor.core.text.formatting import count, shown_seconds
from compactor.ledger.heartbeat import Runs
from compactor.settings.settings import Settings
from compactor.wiring.app import App
from compactor.wiring.control import policy_of
from compactor.wiring.settings_files import job_arguments, overriding, settings_at
from deploy.checkout import Checkout
from deploy.resolved import Resolver
from deploy.restart import FORCED_SECONDS, POLL_SECONDS
from deploy.stack import Deployed, DeploymentError

_LONGEST_RUN = timedelta(days=30)  # a run that Glue restarts in a maintenance window keeps its start for a week


@contextmanager
def jobs_ended(session: Any, rules: Sequence[str], names: Sequence[str]) -> Iterator[None]:
    """End the runs of jobs, each with the settings that it was deployed with, and keep them ended meanwhile.

    Args:
        session: A boto3 session.
        rules: The rules by which AWS calls the control plane, which would start further runs.
        names: The jobs on Glue.

    Raises:
        DeploymentError: A run does not end.
    """
    if not names:
        yield
        return
    glue = session.client("glue")
    with without_calls(session.client("events"), rules, is_for_good=False):
        for name in names:
            job = GlueJob(client=glue, name=name)
            if _living_runs(job, datetime.now(UTC)):
                settings = settings_of_job(glue.get_job(JobName=name)["Job"], session.region_name)
                end_runs(App(settings), job)
        yield


def settings_of_job(job: Mapping[str, Any], region: str) -> Settings:
    """The settings of a job as it is deployed, which those of the checkout do not have any more."""
    arguments = job_arguments(["", *(text for pair in job["DefaultArguments"].items() for text in pair)])
    settings = settings_at(arguments["CONFIG"], {"AWS_REGION": region, **overriding(arguments)})
    if stream := arguments.get("STREAM"):
        settings = settings.of_stream(stream)
    return settings.of_shard(arguments["SHARD"]) if "SHARD" in arguments else settings


def end_runs(app: App, job: JobRuns) -> None:
    """Ask the runs of a job to stop, and wait until they have ended."""
    Ending(
        job=job,
        runs=app.runs_of_shard,
        drain_seconds=policy_of(app.settings).drain_seconds,
        clock=app.clock,
        seconds=time.monotonic,
        pause=time.sleep,
        echo=click.echo,
    ).go()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Ends the runs of a job that is not started any more.

    Attributes:
        job: The runs as Glue knows them.
        runs: The runs that work on the state of the deployment, also elsewhere.
        drain_seconds: How long they may finish what is in flight.
        clock: The time of day.
        seconds: A clock that only goes forward.
        pause: Sleeps for some seconds.
        echo: Prints a line.
    """

    job: JobRuns
    runs: Runs
    drain_seconds: float
    clock: Clock
    seconds: Callable[[], float]
    pause: Callable[[float], None]
    echo: Callable[[str], None]

    def go(self) -> None:
        """Ask every run to stop, have Glue stop those that are late, and wait until all have ended.

        Raises:
            DeploymentError: A run still lives long after it was to be stopped.
        """
        began, asked, stopped = self.seconds(), set[str](), set[str]()
        while living := self._living():
            waited = self.seconds() - began
            for run_id in sorted(living.keys() - asked):
                self.runs.ask_to_stop(run_id)
                self.echo(f"run {run_id}: asked to stop; it finishes the manifests in flight")
            asked |= living.keys()
            if waited >= self.drain_seconds + FORCED_SECONDS:
                late = (
                    f"run {', '.join(sorted(living))}: still alive {shown_seconds(waited)} after it was asked to stop"
                )
                raise DeploymentError(f"{late}; end it, then repeat the command")
            if waited >= self.drain_seconds:
                for run_id in (each for each, is_of_glue in living.items() if is_of_glue and each not in stopped):
                    self.job.stop(run_id)
                    stopped.add(run_id)
                    self.echo(f"run {run_id}: Glue stops it; no line is lost, as its manifests stay where they are")
            self.pause(POLL_SECONDS)
        self.echo(f"No run is alive; {count(len(asked), 'run')} ended.")

    def _living(self) -> dict[str, bool]:
        """The living runs by id, and whether Glue runs them."""
        elsewhere = {beat.run_id: False for beat in self.runs.living()}
        return elsewhere | dict.fromkeys(_living_runs(self.job, self.clock.now()), True)


def _living_runs(job: JobRuns, now: datetime) -> list[str]:
    return [run.run_id for run in job.list(now - _LONGEST_RUN) if run.is_living]


def glue_jobs(found: Deployed | Checkout) -> set[str]:
    """The names of the jobs of a stack, or of one that would be deployed."""
    resolver = Resolver(found.template, found.parameters)
    jobs = (each for each in found.template["Resources"].values() if each["Type"] == "AWS::Glue::Job")
    return {str(resolver.value(each["Properties"]["Name"])) for each in jobs}


def jobs_gone(found: Deployed, checkout: Checkout) -> list[str]:
    """The names of the jobs of a stack that a deployment of a checkout deletes."""
    return sorted(glue_jobs(found) - glue_jobs(checkout))


def control_rules(template: Mapping[str, Any], resources: Mapping[str, str]) -> list[str]:
    """The names of the rules of a stack by which AWS calls the control plane."""
    return [
        resources[logical]
        for logical, each in template["Resources"].items()
        if each["Type"] == "AWS::Events::Rule" and "ControlFunction" in str(each) and logical in resources
    ]


@contextmanager
def without_calls(events: Any, rules: Sequence[str], *, is_for_good: bool) -> Iterator[None]:
    """Disable rules by which AWS calls the control plane, which would start further runs.

    Afterwards they are enabled again, unless that is for good; and if something fails, so that no job is left alone.
    """
    try:
        for name in rules:
            events.disable_rule(Name=name)
        click.echo("The control plane is not called any more, so no run is started.")
        yield
    except BaseException:
        _call_again(events, rules)
        raise
    if not is_for_good:
        _call_again(events, rules)


def _call_again(events: Any, rules: Sequence[str]) -> None:
    """Enable rules, each even if another one fails."""
    with ExitStack() as enabling:
        for name in rules:
            enabling.callback(events.enable_rule, Name=name)
    click.echo("The control plane is called again.", err=True)
