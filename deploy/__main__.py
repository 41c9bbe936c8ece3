"""Deploys an environment: `python -m deploy dev` shows what will change, asks, and applies it."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
from boto3.session import Session
from botocore.config import Config

from compactor import __version__
from compactor.core.errors import CompactorError, SettingsError
from compactor.schema.registry import EMPTY_SCHEMA
from compactor.settings.control_policy import Policy
from compactor.settings.settings import Settings, load_settings
from compactor.wiring.app import App
from deploy import ROOT
from deploy.artefacts import MODULES, Artefact, artefact_key, artefacts
from deploy.exits import told_errors
from deploy.locks import job_modules
from deploy.parameters_file import read_parameters
from deploy.preflight import Preflight, faults_of, result_lines
from deploy.restart import Restart
from deploy.shards import with_shards
from deploy.stack import Stack, change_lines
from deploy.stack_parameters import settings_parameters, stack_parameters
from deploy.streams import logical_id, with_streams
from deploy.template_file import load_template, with_columns

HURRIED = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2})
"""For checks, of which none is worth a long wait."""

MAX_PARAMETER_CHARACTERS = 4096
"""The longest value of a parameter [CloudFormation quotas]."""


@click.command()
@click.argument("environment")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--restart", is_flag=True, help="Then drain the running job, and wait for one of the deployed release.")
def main(environment: str, *, yes: bool, restart: bool) -> None:
    """Deploy ENVIRONMENT with config/ENVIRONMENT.toml and deploy/parameters/ENVIRONMENT.json."""
    agreed = yes or os.environ.get("YES") == "1"
    with told_errors():
        for job in deploy(environment, Session, confirm=lambda: agreed or click.confirm("Deploy?")):
            if restart:
                _restart(job)


def deploy(
    environment: str, new_session: Callable[..., Any], *, confirm: Callable[[], bool], root: Path = ROOT
) -> tuple[App, ...]:
    """Show what deploying an environment changes, and apply it if that is confirmed.

    `new_session` creates a boto3 session for a `region_name`. The root has config/, deploy/parameters/ and dist/.

    Returns:
        The components of each job as it is deployed; none if the change was not confirmed.
    """
    settings_file = root / "config" / f"{environment}.toml"
    settings = load_settings(settings_file, {})
    session = _session(new_session, settings.aws.region)
    given, tags = read_parameters(root / "deploy" / "parameters" / f"{environment}.json")
    files = artefacts(settings.metrics.environment, settings_file, given.get("GlueVersion", ""), root / "dist")
    template = with_shards(with_streams(load_template(), settings), settings)
    parameters = stack_parameters(
        template, settings_parameters(settings), _artefact_parameters(files, given), given, settings=settings
    )
    s3 = session.client("s3")
    bucket = parameters["ArtefactBucketName"]
    missing = [each for each in files if not _is_uploaded(s3, bucket, each.key)]
    click.echo("\n".join(_plan_lines(session, parameters, files, missing)))
    stack = Stack(session.client("cloudformation"), parameters["JobName"], tags=tags)
    _check(session, template, parameters, files, is_new=not stack.exists())
    document = _with_columns(template, settings, is_new=not stack.exists())
    key = _upload_template(s3, parameters, document)
    change_set = f"{parameters['JobName']}-{time.time_ns()}"
    changes = stack.propose(change_set, f"https://{bucket}.s3.{session.region_name}.amazonaws.com/{key}", parameters)
    if changes is None:
        click.echo("Nothing to change.")
        return tuple(App(each) for job in settings.jobs for each in job.by_shard)
    click.echo("\n".join(change_lines(changes)))
    if not confirm():
        stack.discard(change_set)
        click.echo("Nothing was changed.")
        return ()
    for each in missing:
        s3.upload_file(str(each.path), bucket, each.key)
    stack.execute(change_set)
    click.echo("\n".join(["Deployed.", *(f"  {name}  {value}" for name, value in stack.outputs().items())]))
    for stream in settings.streams or (settings,):
        _publish_columns(App(stream))
    return tuple(App(each) for job in settings.jobs for each in job.by_shard)


def _with_columns(template: dict[str, Any], settings: Settings, *, is_new: bool) -> dict[str, Any]:
    """The template whose tables have the columns that are known now."""
    for each in settings.streams or (settings,):
        schema = EMPTY_SCHEMA if is_new else App(each).registry.latest()
        table_id = logical_id("EventsTable", each) if settings.streams else "EventsTable"
        template = with_columns(template, schema, each.schema.metadata_columns, table_id)
    return template


def _restart(app: App) -> None:
    Restart(
        runs=app.runs_of_shard,
        policy=Policy(**app.settings.control.model_dump()),
        release=__version__,
        seconds=time.monotonic,
        pause=time.sleep,
        echo=click.echo,
    ).go()


def _check(
    session: Any,
    template: Mapping[str, Any],
    parameters: Mapping[str, str],
    files: Sequence[Artefact],
    *,
    is_new: bool,
) -> None:
    """Show what the checks find; a `SettingsError` has what would make the deployment fail."""
    checks = Preflight(
        session=session,
        client=partial(session.client, config=HURRIED),
        account=session.client("sts").get_caller_identity()["Account"],
        template=template,
        parameters=parameters,
        files=files,
        is_new=is_new,
    )
    results = list(checks.results())
    click.echo("\n".join(result_lines(results)))
    if faults := faults_of(results):
        raise SettingsError(faults)


def _publish_columns(app: App) -> None:
    """Add the columns that the job has made since the template was: CloudFormation may have taken them away."""
    try:
        app.publish_columns()
    except CompactorError as exc:
        click.echo(f"The table may lack columns until the job adds them, within the hour: {exc}", err=True)


def _session(new_session: Callable[..., Any], region: str) -> Any:
    session = new_session(region_name=region or None)
    if session.get_credentials() is None:
        raise SettingsError(
            ["credentials: none found -> expected AWS credentials from a profile, a role or environment variables"]
        )
    if not session.region_name:
        raise SettingsError(['aws.region: "" -> expected a region, here or in AWS_REGION'])
    return session


def _artefact_parameters(files: Sequence[Artefact], given: Mapping[str, str]) -> dict[str, str]:
    keys = {each.parameter: each.key for each in files}
    bucket = given.get("ArtefactBucketName", "")
    wheels = [f"s3://{bucket}/{each.key}" for each in files if each.parameter == MODULES]
    modules = ",".join([job_modules(), *wheels] if given.get("GlueVersion") == "5.1" else wheels)
    if len(modules) > MAX_PARAMETER_CHARACTERS:
        expected = f"{MAX_PARAMETER_CHARACTERS:,} at most, by a shorter ArtefactBucketName"
        raise SettingsError([f"JobModules: {len(modules):,} characters -> expected {expected}"])
    return {**keys, MODULES: modules}


def _is_uploaded(s3: Any, bucket: str, key: str) -> bool:
    try:
        return bool(s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)["KeyCount"])
    except s3.exceptions.NoSuchBucket as exc:
        raise SettingsError(
            [f"ArtefactBucketName: bucket {bucket} does not exist -> create it: aws s3 mb s3://{bucket}"]
        ) from exc


def _plan_lines(
    session: Any, parameters: Mapping[str, str], files: Sequence[Artefact], missing: Sequence[Artefact]
) -> Iterator[str]:
    account = session.client("sts").get_caller_identity()["Account"]
    width = max(map(len, parameters))
    yield from (f"Stack {parameters['JobName']}, account {account}, {session.region_name}", "", "Parameters")
    yield from (f"  {name:{width}}  {value or '(empty)'}" for name, value in parameters.items())
    yield from ("", "Artefacts")
    for each in files:
        action = "upload" if each in missing else "exists"
        place = f"s3://{parameters['ArtefactBucketName']}/{each.key}"
        yield f"  {action}  sha256 {each.sha256[:16]}  {each.size_bytes:>12,} bytes  {each.path.name} -> {place}"
    yield ""


def _upload_template(s3: Any, parameters: Mapping[str, str], document: Mapping[str, Any]) -> str:
    """Upload the template, which is too large to send with a request, and return its key."""
    body = json.dumps(document, separators=(",", ":")).encode()
    key = artefact_key(parameters["Environment"], "Template", sha256(body).hexdigest(), "json")
    s3.put_object(Bucket=parameters["ArtefactBucketName"], Key=key, Body=body)
    return key


if __name__ == "__main__":
    main()
