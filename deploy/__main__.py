"""Deploys an environment: `python -m deploy dev` shows what will change, asks, and applies it."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import click
from boto3.session import Session
from botocore.exceptions import ClientError

from compactor import __version__
from compactor.core.errors import CompactorError
from compactor.settings.settings import load_settings
from compactor.wiring import operating
from compactor.wiring.app import App
from compactor.wiring.control import policy_of
from deploy import ROOT
from deploy.canary_deployment import about_canary, deploy_canary, withdraw_canary
from deploy.checkout import NewSession, read_checkout
from deploy.ending import jobs_gone
from deploy.exits import told_errors
from deploy.restart import Restart
from deploy.stack import Deployed, DeploymentError, Stack
from deploy.steps import apply_template, document_of, plan_lines, run_checks

CanaryStep = Literal["1", "back"]


@click.command()
@click.argument("environment")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--restart", is_flag=True, help="Then drain the running job, and wait until the deployed release runs.")
@click.option(
    "--canary",
    type=click.Choice(("1", "back")),
    help='1: deploy only to the job of the stream with "canary = true". back: return that job to the common release.',
)
@click.option(
    "--parameters-only", is_flag=True, help="Change only settings and parameters; the code stays as deployed."
)
@click.option("--without-native", is_flag=True, help="Let a job that has the native engine lose it.")
def main(
    environment: str,
    *,
    yes: bool,
    restart: bool,
    canary: CanaryStep | None,
    parameters_only: bool,
    without_native: bool,
) -> None:
    """Deploy ENVIRONMENT with config/ENVIRONMENT.toml and deploy/parameters/ENVIRONMENT.json."""
    agreed = yes or os.environ.get("YES") == "1"

    def confirm() -> bool:
        return agreed or click.confirm("Deploy?")

    with told_errors():
        if canary is None:
            release = __version__
            jobs = deploy(
                environment, Session, confirm=confirm, parameters_only=parameters_only, may_lose_native=without_native
            )
        elif canary == "1":
            stream, release = deploy_canary(environment, Session, confirm=confirm), __version__
            jobs = (App(stream),) if stream else ()
        else:
            jobs, release = _withdraw(environment, confirm)
        for job in jobs if restart else ():
            _restart(job, release)


def deploy(
    environment: str,
    new_session: NewSession,
    *,
    confirm: Callable[[], bool],
    root: Path = ROOT,
    parameters_only: bool = False,
    may_lose_native: bool = False,
) -> tuple[App, ...]:
    """Show what deploying an environment changes, and apply it if that is confirmed.

    Args:
        environment: The name of the files in config/ and deploy/parameters/.
        new_session: Creates a boto3 session for a `region_name`.
        confirm: Asks whether to go on.
        root: The folder with config/, deploy/parameters/ and dist/.
        parameters_only: Whether only settings and parameters change, so that nothing has to be packaged.
        may_lose_native: Whether a job that has the native engine may be deployed without it.

    Returns:
        The components of each job as it is deployed; none if the change was not confirmed.
    """
    checkout = read_checkout(environment, new_session, root, parameters_only=parameters_only)
    settings, session = checkout.settings, checkout.session
    missing = checkout.missing()
    click.echo("\n".join(plan_lines(checkout, missing)))
    stack = Stack(session.client("cloudformation"), checkout.parameters["JobName"], tags=checkout.tags)
    is_new = not stack.exists()
    found = None if is_new else _as_deployed(stack)
    run_checks(checkout, is_new=is_new, keeps_engine_of=None if may_lose_native else found)
    for line in about_canary(checkout, found.template) if found else ():
        click.echo(line)
    for name in jobs_gone(found, checkout) if found and settings.service != "Glue" else ():
        click.echo(f"Job {name} will be deleted, and its runs on {settings.service} go on: stop them first")
    document = document_of(checkout, is_new=is_new)
    outcome = apply_template(stack, session, document, checkout.parameters, confirm=confirm, missing=missing)
    if outcome == "declined":
        return ()
    for stream in (settings.streams or (settings,)) if outcome == "done" else ():
        _publish_columns(App(stream))
    return tuple(App(each) for job in settings.jobs for each in job.by_shard)


def _as_deployed(stack: Stack) -> Deployed | None:
    """What is deployed; None if that cannot be read, which is said."""
    try:
        return stack.deployed()
    except (ClientError, DeploymentError) as exc:  # such as a policy from before there were canaries
        click.echo(f"Cannot tell whether a stream has its own release: {exc}\n", err=True)
        return None


def _withdraw(environment: str, confirm: Callable[[], bool]) -> tuple[tuple[App, ...], str]:
    """Put the canary back; returns its job, which has to restart, and the release of all others."""
    found = withdraw_canary(environment, Session, confirm=confirm)
    if found is None:
        return (), ""
    canary, release = found
    settings = load_settings(ROOT / "config" / f"{environment}.toml", {})
    jobs = tuple(App(each) for each in settings.streams if each.name == canary.stream)
    if not jobs:
        click.echo(f"The settings no longer have stream {canary.stream}; its job changes when the current run ends.")
    return jobs, release


def _restart(app: App, release: str) -> None:
    Restart(
        runs=app.runs_of_shard,
        policy=policy_of(app.settings),
        release=release,
        seconds=time.monotonic,
        pause=time.sleep,
        echo=click.echo,
    ).go()


def _publish_columns(app: App) -> None:
    """Add the columns that the job has made since the template was: CloudFormation may have taken them away."""
    try:
        operating.publish_columns(app)
    except CompactorError as exc:
        click.echo(f"The table may lack columns until the job adds them, within the hour: {exc}", err=True)


if __name__ == "__main__":
    main()
