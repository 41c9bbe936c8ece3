"""Deploys what runs the job on EMR Serverless, beside a deployed environment: `python -m deploy.emr_serverless dev`."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
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
from deploy.stack import DeploymentError, Stack, change_lines
from deploy.stack_parameters import settings_parameters, stack_parameters, with_names
from deploy.template_file import load_template

TEMPLATE = ROOT / "deploy" / "emr_serverless.yaml"
_GIVEN = ("ArtefactBucketName", "PermissionsBoundary", "LogDays", "InputKeyArn")
"""Parameters of the environment that this stack has, too."""


@click.command()
@click.argument("environment")
@click.option("--parameter", "more", multiple=True, metavar="NAME=VALUE", help="Set a parameter of the template.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def main(environment: str, *, more: tuple[str, ...], yes: bool) -> None:
    """Deploy the application that runs the job of ENVIRONMENT, and print the settings that name it."""
    agreed = yes or os.environ.get("YES") == "1"
    with told_errors():
        deploy_emr(environment, Session, more=_pairs(more), confirm=lambda: agreed or click.confirm("Deploy?"))


def deploy_emr(
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
        SettingsError: The archive is missing, or parameters are.
        DeploymentError: The environment is not deployed, or CloudFormation refused something.
    """
    settings = load_settings(root / "config" / f"{environment}.toml", {})
    given, tags = read_parameters(root / "deploy" / "parameters" / f"{environment}.json")
    session = new_session(region_name=settings.aws.region or None)
    client, name = session.client("cloudformation"), settings.control.job_name
    own = Stack(client, name)
    if not own.exists():
        raise DeploymentError(f"stack {name}: not deployed; run make deploy ENV={environment} first")
    parameters = _parameters(settings, given, more, own.outputs().get("KmsKeyArn", ""))
    stack = Stack(client, f"{name}-emr", tags=tags)
    s3, bucket = session.client("s3"), parameters["ArtefactBucketName"]
    body = json.dumps(with_names(load_template(TEMPLATE), parameters), indent=1).encode()
    key = artefact_key(parameters["Environment"], "Template", hashlib.sha256(body).hexdigest(), "json")
    s3.put_object(Bucket=bucket, Key=key, Body=body)
    uploads = _uploads(parameters, root)
    places = {setting: f"s3://{bucket}/{each}" for setting, (_, each) in uploads.items()}
    change_set = f"{name}-emr-{time.time_ns()}"
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
    click.echo("\n".join(_settings_lines(environment, stack.outputs(), places)))


def _parameters(settings: Settings, given: Mapping[str, str], more: Mapping[str, str], key_arn: str) -> dict[str, str]:
    template = load_template(TEMPLATE)
    known = template["Parameters"]
    of_settings = {name: value for name, value in settings_parameters(settings).items() if name in known}
    of_environment = {name: given[name] for name in _GIVEN if name in given and name not in more}
    return stack_parameters(template, of_settings, of_environment, {"KmsKeyArn": key_arn}, more)


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


def _settings_lines(environment: str, outputs: Mapping[str, str], places: Mapping[str, str]) -> Iterator[str]:
    values = {
        "application_id": outputs["ApplicationId"],
        "role_arn": outputs["RoleArn"],
        "log_group": outputs["LogGroup"],
        **places,
    }
    yield f"Deployed. Set these keys in config/{environment}.toml, then run make deploy ENV={environment} RESTART=1:"
    yield ""
    yield toml_of({"convert": {"engine": "native"}, "emr": values})


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    wrong = [word for word in words if "=" not in word]
    if wrong:
        raise SettingsError([f"--parameter {json.dumps(word)} -> expected NAME=VALUE" for word in wrong])
    return dict(word.split("=", 1) for word in words)


if __name__ == "__main__":
    main()
