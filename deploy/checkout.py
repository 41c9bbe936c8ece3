"""What a checkout has to deploy: settings, parameters, template and artefacts of an environment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings, load_settings
from deploy.artefacts import Artefact, artefacts
from deploy.dashboard import with_alarms
from deploy.locks import job_modules
from deploy.order import with_calls_last
from deploy.parameters_file import read_parameters
from deploy.shards import with_shards
from deploy.stack_parameters import settings_parameters, stack_parameters, with_names
from deploy.streams import with_streams
from deploy.template_file import load_template, with_modules

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


def read_checkout(environment: str, new_session: NewSession, root: Path) -> Checkout:
    """Read what would be deployed.

    Raises:
        SettingsError: With what is missing or wrong.
    """
    settings, session = read_settings(environment, new_session, root)
    given, tags = read_parameters(root / "deploy" / "parameters" / f"{environment}.json")
    file = _settings_file(environment, root)
    files = artefacts(settings.metrics.environment, file, given.get("GlueVersion", ""), root / "dist")
    template = with_modules(load_template(), _modules(files, given))
    template = with_alarms(with_shards(with_streams(template, settings), settings))
    keys = {each.parameter: each.key for each in files if each.parameter}
    parameters = stack_parameters(template, settings_parameters(settings), keys, given, settings=settings)
    return Checkout(
        settings=settings,
        session=session,
        template=with_calls_last(with_names(template, parameters), parameters),
        parameters=parameters,
        files=files,
        tags=tags,
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
