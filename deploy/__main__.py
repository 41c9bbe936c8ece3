"""Deploys an environment: `python -m deploy dev`. Shows what it is going to do, and asks before it does it."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
from boto3.session import Session
from botocore.exceptions import BotoCoreError, ClientError

from compactor.core.errors import CompactorError, SettingsError
from compactor.schema.registry import EMPTY_SCHEMA
from compactor.settings.settings import load_settings
from compactor.wiring.app import App
from deploy.artefacts import MODULES, Artefact, artefact_key, artefacts
from deploy.change_sets import DeploymentError, Stack
from deploy.imported_modules import ROOT
from deploy.pins import job_modules
from deploy.plan import Plan, change_lines
from deploy.stack_parameters import settings_parameters, stack_parameters
from deploy.template_file import load_template, with_columns

NO_ARCHIVE = "none"


@click.command()
@click.argument("environment")
@click.option("--yes", is_flag=True, help="Do not ask.")
def main(environment: str, *, yes: bool) -> None:
    """Deploy ENVIRONMENT: its settings are config/ENVIRONMENT.toml, the rest deploy/parameters/ENVIRONMENT.json."""
    try:
        deploy(environment, Session, is_wanted=lambda: yes or os.environ.get("YES") == "1" or click.confirm("Deploy?"))
    except SettingsError as exc:
        _end(2, *exc.faults)
    except (CompactorError, DeploymentError) as exc:
        _end(1, str(exc))
    except (ClientError, BotoCoreError) as exc:
        _end(1, f"AWS refused: {exc}")


def deploy(
    environment: str, new_session: Callable[..., Any], *, is_wanted: Callable[[], bool], root: Path = ROOT
) -> None:
    """Deploy an environment.

    Args:
        environment: Its name.
        new_session: Makes a session of AWS for a region.
        is_wanted: Asked once everything was shown.
        root: The folder of config/, deploy/parameters/ and dist/.
    """
    settings_file = root / "config" / f"{environment}.toml"
    settings = load_settings(settings_file, {})
    session = _session(new_session, settings.aws.region)
    given = _given(root / "deploy" / "parameters" / f"{environment}.json")
    files = artefacts(settings.metrics.environment, settings_file, given.get("GlueVersion", ""), root / "dist")
    template = load_template()
    keys = {"JobEnvironmentKey": NO_ARCHIVE} | {each.parameter: each.key for each in files}
    keys[MODULES] = ",".join([job_modules(), *_module_places(files, given)])
    parameters = stack_parameters(template, settings_parameters(settings), keys, given, settings=settings)
    plan = _plan(session, parameters, files)
    click.echo("\n".join(plan.lines()))
    stack = Stack(session.client("cloudformation"), plan.stack)
    schema = App(settings).registry.latest() if stack.exists() else EMPTY_SCHEMA
    _carry_out(session, stack, plan, with_columns(template, schema, settings.schema.metadata_columns), is_wanted)


def _module_places(files: list[Artefact], given: Mapping[str, str]) -> list[str]:
    """Where pip finds what is in no index."""
    bucket = given.get("ArtefactBucketName", "")
    return [f"s3://{bucket}/{each.key}" for each in files if each.parameter == MODULES]


def _session(new_session: Callable[..., Any], region: str) -> Any:
    session = new_session(region_name=region or None)
    if session.get_credentials() is None:
        raise SettingsError(["credentials: none found -> expected those of AWS, from a profile, a role or variables"])
    if not session.region_name:
        raise SettingsError(['aws.region: "" -> expected a region, here or in AWS_REGION'])
    return session


def _given(path: Path) -> dict[str, str]:
    try:
        given = json.loads(path.read_text())
    except (OSError, ValueError) as exc:
        raise SettingsError([f"{path}: {exc} -> expected the parameters as an object of strings"]) from exc
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise SettingsError([f"{path}: expected an object of strings"])
    return given


def _plan(session: Any, parameters: Mapping[str, str], files: list[Artefact]) -> Plan:
    account = session.client("sts").get_caller_identity()["Account"]
    bucket = parameters["ArtefactBucketName"]
    s3 = session.client("s3")
    missing = frozenset(each.key for each in files if not _is_there(s3, bucket, each.key))
    return Plan(account, session.region_name, parameters["JobName"], bucket, parameters, files, missing)


def _is_there(s3: Any, bucket: str, key: str) -> bool:
    try:
        found = s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
    except ClientError as exc:
        if exc.response["Error"]["Code"] == "NoSuchBucket":
            raise SettingsError(
                [f"ArtefactBucketName: there is no bucket {bucket} -> expected one: aws s3 mb s3://{bucket}"]
            ) from exc
        raise
    return bool(found["KeyCount"])


def _carry_out(
    session: Any, stack: Stack, plan: Plan, document: Mapping[str, Any], is_wanted: Callable[[], bool]
) -> None:
    s3 = session.client("s3")
    body = json.dumps(document, separators=(",", ":")).encode()
    key = artefact_key(plan.parameters["Environment"], "Template", sha256(body).hexdigest(), "json")
    s3.put_object(Bucket=plan.bucket, Key=key, Body=body)  # too large to be sent with the request
    change_set = f"{plan.stack}-{time.time_ns()}"
    url = f"https://{plan.bucket}.s3.{plan.region}.amazonaws.com/{key}"
    changes = stack.propose(change_set, url, plan.parameters)
    if changes is None:
        click.echo("Nothing to change.")
        return
    click.echo("\n".join(change_lines(changes)))
    if not is_wanted():
        stack.discard(change_set)
        click.echo("Nothing was changed.")
        return
    for each in plan.artefacts:
        if each.key in plan.missing:
            s3.upload_file(str(each.path), plan.bucket, each.key)
    stack.carry_out(change_set)
    click.echo("Deployed.")
    for name, value in stack.outputs().items():
        click.echo(f"  {name}  {value}")


def _end(code: int, *lines: str) -> None:
    for line in lines:
        click.echo(line, err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
