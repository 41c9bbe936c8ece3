"""Removes an environment: `python -m deploy.remove dev` drains its jobs, deletes the stack, and shows what stays."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click
from boto3.session import Session

from compactor.control.snapshot import JobRuns
from compactor.core.errors import SettingsError
from compactor.core.text.formatting import count
from compactor.wiring.app import App
from compactor.wiring.control import job_runs
from deploy import ROOT
from deploy.checkout import NewSession, read_settings
from deploy.ending import control_rules, end_runs, glue_jobs, without_calls
from deploy.exits import told_errors
from deploy.resolved import Document
from deploy.stack import DeploymentError, Stack

KEEPS = {"Retain", "RetainExceptOnCreate"}
"""Deletion policies by which a resource outlives its stack."""

DELETING = {
    "AWS::S3::Bucket": "aws s3 rm s3://{name} --recursive --region {region} && aws s3 rb s3://{name} --region {region}",
    "AWS::SQS::Queue": "aws sqs delete-queue --queue-url {name} --region {region}",
    "AWS::DynamoDB::Table": "aws dynamodb delete-table --table-name {name} --region {region}",
    "AWS::KMS::Key": "aws kms schedule-key-deletion --key-id {name} --region {region}",
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
        SettingsError: The job does not run on Glue, or the stack has jobs that the settings lack.
        DeploymentError: There is no stack, a run does not end, or CloudFormation did not delete everything.
    """
    settings, session = read_settings(environment, new_session, root)
    stack = Stack(session.client("cloudformation"), settings.control.job_name)
    if settings.service != "Glue":
        section = "ecs" if settings.service == "ECS" else "emr"
        back = f"remove it, run make deploy, and delete the stack {stack.name}-{section} first"
        raise SettingsError([f"[{section}] is set -> expected no such section: {back}"])
    if not stack.exists():
        raise DeploymentError(f"stack {stack.name}: not deployed, so there is nothing to remove")
    found = stack.deployed()
    template = found.template
    jobs = {each.run_name: each for job in settings.jobs for each in job.by_shard}
    resources = {name: each for name, each in stack.resources().items() if name in template["Resources"]}
    if unknown := sorted(glue_jobs(found) - jobs.keys()):
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
    with without_calls(session.client("events"), control_rules(template, resources), is_for_good=True):
        for app in map(App, jobs.values()):
            end_runs(app, runs_of(app))
        stack.delete()
    click.echo(
        "Deleted. What stays costs its storage, old versions of objects included, and a key of its own $1 a month."
    )
    click.echo("To delete it, too (first empty the work bucket of its versions, by Empty in the console of S3):")
    commands = (
        DELETING[_kind(template, name)].format(name=each, region=session.region_name) for name, each in staying.items()
    )
    click.echo("\n".join(f"  {each}" for each in commands))
    return True


def _kind(template: Document, logical: str) -> str:
    return str(template["Resources"][logical]["Type"])


def _lines(staying: Mapping[str, str], template: Document) -> Iterator[str]:
    for logical, name in staying.items():
        yield f"  {_kind(template, logical).rpartition('::')[2]:8}{name.rpartition('/')[2]}"


if __name__ == "__main__":
    main()
