"""Deploys what runs the job on EMR Serverless or ECS, beside an environment: `python -m deploy.runtime ecs dev`."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from boto3.session import Session

from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings, load_settings
from compactor.settings.toml import toml_of
from deploy import ROOT
from deploy.artefacts import artefact_key
from deploy.emr_archive import ARCHIVE
from deploy.exits import told_errors
from deploy.parameters_file import read_parameters
from deploy.policy_size import policy_faults
from deploy.resolved import pseudo_parameters
from deploy.runtime_checks import NEEDED, account_findings, form_faults, size_faults
from deploy.stack import DeploymentError, Stack, change_lines
from deploy.stack_parameters import settings_parameters, stack_parameters, with_names
from deploy.template_file import load_template

TEMPLATE = ROOT / "deploy" / "runtime.yaml"
_GIVEN = ("ArtefactBucketName", "PermissionsBoundary", "LogDays", "InputKeyArn")
"""Parameters of the environment that this stack has, too."""


@click.command()
@click.argument("runtime", type=click.Choice(tuple(NEEDED)))
@click.argument("environment")
@click.option("--parameter", "more", multiple=True, metavar="NAME=VALUE", help="Set a parameter of the template.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def main(runtime: str, environment: str, *, more: tuple[str, ...], yes: bool) -> None:
    """Deploy the RUNTIME that runs the job of ENVIRONMENT, and print the settings that name it."""
    agreed = yes or os.environ.get("YES") == "1"
    with told_errors():
        given = _pairs(more)
        deploy_runtime(runtime, environment, Session, more=given, confirm=lambda: agreed or click.confirm("Deploy?"))


def deploy_runtime(
    runtime: str,
    environment: str,
    new_session: Callable[..., Any],
    *,
    more: Mapping[str, str],
    confirm: Callable[[], bool],
    root: Path = ROOT,
) -> None:
    """Show what deploying changes, apply it if that is confirmed, and print the settings that name it.

    `new_session` creates a boto3 session for a `region_name`. The root has config/, deploy/parameters/ and dist/.

    Raises:
        SettingsError: The archive for EMR Serverless is missing, or parameters are or cannot be deployed.
        DeploymentError: The environment is not deployed, or CloudFormation refused something.
    """
    settings = load_settings(root / "config" / f"{environment}.toml", {})
    given, tags = read_parameters(root / "deploy" / "parameters" / f"{environment}.json")
    session = new_session(region_name=settings.aws.region or None)
    client, name = session.client("cloudformation"), settings.control.job_name
    own = Stack(client, name)
    if not own.exists():
        raise DeploymentError(f"stack {name}: not deployed; run make deploy ENV={environment} first")
    parameters = _parameters(settings, given, {**more, "Runtime": runtime}, own.outputs().get("KmsKeyArn", ""))
    template = with_names(load_template(TEMPLATE), parameters)
    _check(template, parameters, session)
    stack = Stack(client, f"{name}-{runtime}", tags=tags)
    s3, bucket = session.client("s3"), parameters["ArtefactBucketName"]
    body = json.dumps(template, indent=1).encode()
    key = artefact_key(parameters["Environment"], "Template", hashlib.sha256(body).hexdigest(), "json")
    s3.put_object(Bucket=bucket, Key=key, Body=body)
    uploads = _uploads(parameters, root) if runtime == "emr" else {}
    places = {setting: f"s3://{bucket}/{each}" for setting, (_, each) in uploads.items()}
    change_set = f"{name}-{runtime}-{time.time_ns()}"
    changes = stack.propose(change_set, f"https://{bucket}.s3.{session.region_name}.amazonaws.com/{key}", parameters)
    click.echo("\n".join([f"Stack {stack.name}", *change_lines(changes)] if changes else ["Nothing to change."]))
    if changes and not confirm():
        stack.discard(change_set)
        click.echo("Nothing was changed.")
        return
    for path, each in uploads.values():
        s3.upload_file(str(path), bucket, each)
    if changes:
        stack.execute(change_set)
    outputs = stack.outputs()
    keys = {"emr": _on_emr(outputs, places)} if runtime == "emr" else _on_ecs(outputs)
    what = f"Set these keys in config/{environment}.toml, then run make deploy ENV={environment} RESTART=1:"
    click.echo(f"Deployed. {what}\n\n{toml_of({'convert': {'engine': 'native'}, **keys})}")


def _check(template: Mapping[str, Any], parameters: Mapping[str, str], session: Any) -> None:
    """Stop at what CloudFormation, or later the first task, would fail by."""
    account = session.client("sts").get_caller_identity()["Account"]
    known = {**pseudo_parameters(session.region_name, account), **parameters}
    faults = list(policy_faults(template, known))
    if parameters["Runtime"] == "ecs":
        for state, found in account_findings(session.client, parameters):
            click.echo(f"{state}: {found}", err=True) if state == "warning" else faults.append(found)
    if faults:
        raise SettingsError(faults)


def _parameters(settings: Settings, given: Mapping[str, str], more: Mapping[str, str], key_arn: str) -> dict[str, str]:
    if faults := [*form_faults(more["Runtime"], more)]:
        raise SettingsError(faults)
    template = load_template(TEMPLATE)
    known = template["Parameters"]
    of_settings = {name: value for name, value in settings_parameters(settings).items() if name in known}
    of_environment = {name: given[name] for name in _GIVEN if name in given and name not in more}
    parameters = stack_parameters(template, of_settings, of_environment, {"KmsKeyArn": key_arn}, more)
    if faults := [*size_faults(parameters)]:
        raise SettingsError(faults)
    return parameters


def _uploads(parameters: Mapping[str, str], root: Path) -> dict[str, tuple[Path, str]]:
    """The files to upload, each with its key, by the setting that names it."""
    wanted = {"entry_point": (ROOT / "glue_entry.py", "py"), "archive": (root / "dist" / ARCHIVE.name, "tar.gz")}
    if missing := [path for path, _ in wanted.values() if not path.is_file()]:
        raise SettingsError([f"{path}: no such file -> expected the archive: make emr-archive" for path in missing])
    found = {}
    for setting, (path, suffix) in wanted.items():
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        found[setting] = (path, artefact_key(parameters["Environment"], "JobArchive", sha256, suffix))
    return found


def _on_emr(outputs: Mapping[str, str], places: Mapping[str, str]) -> dict[str, object]:
    own = {"application_id": "ApplicationId", "role_arn": "RoleArn", "log_group": "LogGroup"}
    return {**{key: outputs[name] for key, name in own.items()}, **places}


def _on_ecs(outputs: Mapping[str, str]) -> dict[str, dict[str, object]]:
    section: dict[str, object] = {
        "cluster": outputs["ClusterName"],
        "task_definition": outputs["ClusterName"],  # the template gives both the name of the job
        "subnets": outputs["Subnets"].split(","),
        "security_groups": [outputs["SecurityGroup"]],
        "public_ip": outputs["PublicIp"] == "yes",
    }
    return {"stream": {"source": "listing"}, "ecs": section}


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    wrong = [word for word in words if "=" not in word]
    if wrong:
        raise SettingsError([f"--parameter {json.dumps(word)} -> expected NAME=VALUE" for word in wrong])
    return dict(word.split("=", 1) for word in words)


if __name__ == "__main__":
    main()
