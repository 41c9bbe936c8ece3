"""Removes an environment: `python -m deploy.remove dev` drains its jobs, deletes the stack, and shows what stays."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from boto3.session import Session

from compactor.control.snapshot import JobRuns
from compactor.core.errors import SettingsError
from compactor.core.ports import Clock
from compactor.core.text.formatting import count, shown_seconds
from compactor.ledger.heartbeat import Runs
from compactor.wiring.app import App
from compactor.wiring.control import job_runs, policy_of
from deploy import ROOT
from deploy.checkout import NewSession, read_settings
from deploy.exits import told_errors
from deploy.resolved import Document, Resolver
from deploy.restart import FORCED_SECONDS, POLL_SECONDS
from deploy.stack import Deployed, DeploymentError, Stack

KEEPS = {"Retain", "RetainExceptOnCreate"}
"""Deletion policies by which a resource outlives its stack."""

_LONGEST_RUN = timedelta(days=30)  # a run that Glue restarts in a maintenance window keeps its start for a week

DELETING = {
    "AWS::S3::Bucket": "aws s3 rm s3://{name} --recursive && aws s3 rb s3://{name}",
    "AWS::SQS::Queue": "aws sqs delete-queue --queue-url {name}",
    "AWS::DynamoDB::Table": "aws dynamodb delete-table --table-name {name}",
    "AWS::KMS::Key": "aws kms schedule-key-deletion --key-id {name}",
}
"""How to delete what stays, by type; the work bucket has to be emptied of its versions, too."""


@click.command()
@click.argument("environment")
@click.option("--yes", is_flag=True, help="Do not ask.")
def main(environment: str, *, yes: bool) -> None:
    """Drain the jobs of ENVIRONMENT, delete its stack, and show what stays and how to delete that."""
    agreed = yes or os.environ.get("YES") == "1"
    with told_errors():
        remove(environment, Session, confirm=lambda: agreed or click.confirm("Remove?"))


def remove(
    environment: str,
    new_session: NewSession,
    *,
    confirm: Callable[[], bool],
    root: Path = ROOT,
    runs_of: Callable[[App], JobRuns] = job_runs,
) -> bool:
    """Show what removing an environment deletes and what stays, and do so if that is confirmed.

    Args:
        environment: The name of the file in config/.
        new_session: Creates a boto3 session for a `region_name`.
        confirm: Asks whether to go on.
        root: The folder with config/.
        runs_of: Gives the runs of a job.

    Returns:
        Whether the stack was deleted.

    Raises:
        SettingsError: The job runs on EMR Serverless, or the stack has jobs that the settings lack.
        DeploymentError: There is no stack, a run does not end, or CloudFormation did not delete everything.
    """
    settings, session = read_settings(environment, new_session, root)
    stack = Stack(session.client("cloudformation"), settings.control.job_name)
    if settings.is_on_emr:
        back = f"remove it, run make deploy, and delete the stack {stack.name}-emr first"
        raise SettingsError([f"[emr] is set -> expected no such section: {back}"])
    if not stack.exists():
        raise DeploymentError(f"stack {stack.name}: not deployed, so there is nothing to remove")
    found = stack.deployed()
    template = found.template
    jobs = {each.run_name: each for job in settings.jobs for each in job.by_shard}
    resources = {name: each for name, each in stack.resources().items() if name in template["Resources"]}
    if unknown := sorted(_glue_jobs(found) - jobs.keys()):
        expected = "the settings do not have it -> expected them as they are deployed"
        raise SettingsError([f"job {name}: {expected}" for name in unknown])
    staying = {
        name: each for name, each in resources.items() if template["Resources"][name].get("DeletionPolicy") in KEEPS
    }
    deleted = len(resources) - len(staying)
    click.echo(
        f"Stack {stack.name}: {count(deleted, 'resource')} will be deleted, and these stay, with what they hold:"
    )
    click.echo("\n".join([*_lines(staying, template), ""]))
    if not confirm():
        click.echo("Nothing was changed.")
        return False
    with _without_calls(session.client("events"), resources, template):
        for app in map(App, jobs.values()):
            _end_runs(app, runs_of(app))
        stack.delete()
    click.echo(
        "Deleted. What stays costs its storage, old versions of objects included, and a key of its own $1 a month."
    )
    click.echo("To delete it, too (first empty the work bucket of its versions, by Empty in the console of S3):")
    click.echo("\n".join(f"  {DELETING[_kind(template, name)].format(name=each)}" for name, each in staying.items()))
    return True


def _end_runs(app: App, job: JobRuns) -> None:
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
        since = self.clock.now() - _LONGEST_RUN
        return elsewhere | {run.run_id: True for run in self.job.list(since) if run.is_living}


def _kind(template: Document, logical: str) -> str:
    return str(template["Resources"][logical]["Type"])


def _glue_jobs(found: Deployed) -> set[str]:
    """The names of the jobs of a stack."""
    resolver = Resolver(found.template, found.parameters)
    jobs = (each for each in found.template["Resources"].values() if each["Type"] == "AWS::Glue::Job")
    return {str(resolver.value(each["Properties"]["Name"])) for each in jobs}


def _lines(staying: Mapping[str, str], template: Document) -> Iterator[str]:
    for logical, name in staying.items():
        yield f"  {_kind(template, logical).rpartition('::')[2]:8}{name.rpartition('/')[2]}"


@contextmanager
def _without_calls(events: Any, resources: Mapping[str, str], template: Document) -> Iterator[None]:
    """Disable the rules by which AWS calls the control plane, which would start further runs.

    If the removal fails, they are enabled again, so that the job that is left is not left alone.
    """
    rules = [
        name
        for logical, name in resources.items()
        if _kind(template, logical) == "AWS::Events::Rule" and "ControlFunction" in str(template["Resources"][logical])
    ]
    for name in rules:
        events.disable_rule(Name=name)
    click.echo("The control plane is not called any more, so no run is started.")
    try:
        yield
    except BaseException:
        for name in rules:
            events.enable_rule(Name=name)
        click.echo("Not removed. The control plane is called again.", err=True)
        raise


if __name__ == "__main__":
    main()
