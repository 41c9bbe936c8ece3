"""What a checkout has to deploy: settings, parameters, template and artefacts of an environment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from compactor import __version__
from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings, load_settings
from deploy.artefacts import Artefact, artefacts, settings_artefact
from deploy.canary import canary_of, release_of
from deploy.dashboard import with_alarms
from deploy.locks import job_modules
from deploy.order import with_calls_last
from deploy.parameters_file import read_parameters
from deploy.shards import with_shards
from deploy.stack import Stack
from deploy.stack_parameters import settings_parameters, stack_parameters, with_names
from deploy.streams import with_streams
from deploy.template_file import load_template, with_modules

_OF_CODE = ("ArtefactBucketName", "Environment", "GlueVersion")  # parameters that decide what the code is and where

NewSession = Callable[..., Any]
"""Creates a boto3 session for a `region_name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """What a checkout has for an environment: config/, deploy/parameters/ and dist/.

    Attributes:
        session: A boto3 session with credentials and a region.
        template: The template for the streams of the settings.
        parameters: All of the template.
        tags: Of the parameters file.
    """

    settings: Settings
    session: Any
    template: dict[str, Any]
    parameters: Mapping[str, str]
    files: Sequence[Artefact]
    tags: Mapping[str, str]

    def missing(self) -> list[Artefact]:
        """The artefacts that are not uploaded yet."""
        s3, bucket = self.session.client("s3"), self.parameters["ArtefactBucketName"]
        return [each for each in self.files if not _is_uploaded(s3, bucket, each.key)]


@dataclass(frozen=True, slots=True)
class _Release:
    """What is deployed as code: what pip installs on Glue, and the files with their keys by parameter."""

    modules: Sequence[str]
    keys: Mapping[str, str]
    files: Sequence[Artefact]


def read_checkout(environment: str, new_session: NewSession, root: Path, *, parameters_only: bool = False) -> Checkout:
    """Read what would be deployed.

    Args:
        environment: The name of the files in config/ and deploy/parameters/.
        new_session: Creates a session.
        root: The folder with config/, deploy/parameters/ and dist/.
        parameters_only: Whether the code stays as it is deployed, so that nothing has to be packaged.

    Raises:
        SettingsError: With what is missing or wrong.
    """
    settings, session = read_settings(environment, new_session, root)
    given, tags = read_parameters(root / "deploy" / "parameters" / f"{environment}.json")
    file = _settings_file(environment, root)
    if parameters_only:
        known = {**given, "Environment": settings.metrics.environment}
        release = _deployed_release(Stack(session.client("cloudformation"), settings.control.job_name), known)
        changed = settings_artefact(settings.metrics.environment, file)
        release = replace(release, keys={**release.keys, changed.parameter: changed.key}, files=[changed])
    else:
        files = artefacts(settings.metrics.environment, file, given.get("GlueVersion", ""), root / "dist")
        keys = {each.parameter: each.key for each in files if each.parameter}
        release = _Release(_modules(files, given), keys, files)
    template = with_modules(load_template(), release.modules)
    template = with_alarms(with_shards(with_streams(template, settings), settings))
    parameters = stack_parameters(template, settings_parameters(settings), release.keys, given, settings=settings)
    return Checkout(
        settings=settings,
        session=session,
        template=with_calls_last(with_names(template, parameters), parameters),
        parameters=parameters,
        files=release.files,
        tags=tags,
    )


def _deployed_release(stack: Stack, given: Mapping[str, str]) -> _Release:
    """The release that a stack has, for a deployment that changes only settings and parameters.

    Raises:
        SettingsError: The stack does not exist, or its code does not fit the template of this checkout.
    """
    if not stack.exists():
        raise SettingsError([f"stack {stack.name}: not deployed -> expected one; run make package, then make deploy"])
    found = stack.deployed()
    canary = canary_of(found.template)
    expected = {"release": (release_of(found.template), __version__)}
    expected |= {name: (found.parameters.get(name, ""), given.get(name, "")) for name in _OF_CODE}
    faults = [
        f"{name}: {wanted} -> expected {there or 'that which is deployed'}, with which the code was packaged; run make "
        "package, then make deploy without PARAMETERS_ONLY"
        for name, (there, wanted) in expected.items()
        if there != wanted
    ]
    if canary:
        faults.append(f"streams.{canary.stream}: it has a release of its own -> expected none; CANARY=back first")
    if faults:
        raise SettingsError(faults)
    arguments = found.template["Resources"]["Job"]["Properties"]["DefaultArguments"]
    return _Release(
        modules=arguments["--additional-python-modules"].split(","),
        keys={name: found.parameters[name] for name in ("FunctionsKey", "JobScriptKey", "JobPackageKey")},
        files=(),
    )


def read_settings(environment: str, new_session: NewSession, root: Path) -> tuple[Settings, Any]:
    """The settings of an environment, and a session for their region."""
    settings = load_settings(_settings_file(environment, root), {})
    return settings, _session(new_session, settings.aws.region)


def _settings_file(environment: str, root: Path) -> Path:
    return root / "config" / f"{environment}.toml"


def _session(new_session: NewSession, region: str) -> Any:
    session = new_session(region_name=region or None)
    if session.get_credentials() is None:
        raise SettingsError(
            ["credentials: none found -> expected AWS credentials from a profile, a role or environment variables"]
        )
    if not session.region_name:
        raise SettingsError(['aws.region: "" -> expected a region, here or in AWS_REGION'])
    return session


def _modules(files: Sequence[Artefact], given: Mapping[str, str]) -> list[str]:
    """What pip installs on Glue, of which 5.1 takes the packages from an index."""
    bucket = given.get("ArtefactBucketName", "")
    wheels = [f"s3://{bucket}/{each.key}" for each in files if each.is_wheel]
    return [*job_modules(), *wheels] if given.get("GlueVersion") == "5.1" else wheels


def _is_uploaded(s3: Any, bucket: str, key: str) -> bool:
    try:
        return bool(s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)["KeyCount"])
    except s3.exceptions.NoSuchBucket as exc:
        make = f"aws s3 mb s3://{bucket} --region {s3.meta.region_name}"
        raise SettingsError([f"ArtefactBucketName: bucket {bucket} does not exist -> create it: {make}"]) from exc
    except ClientError as exc:
        raise SettingsError(
            [f"ArtefactBucketName: bucket {bucket} -> expected a bucket of this account that you may list: {exc}"]
        ) from exc
