"""An account in memory with a deployment of several streams, as `python -m deploy` sees it."""

import json
import shutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from compactor.settings.settings import Settings, load_settings
from compactor.settings.toml import toml_of
from deploy.package import FUNCTIONS_ZIP, JOB_ZIP
from tests.deployment.deployments import NAME, Deployment
from tests.deployment.resolving import ROOT, Document
from tests.deployment.test_deploying import make_job_wheels
from tests.support.aws_account.clients import Services, error

OTHERS = """
[[streams]]
name = "orders"
[streams.input]
allowed_prefixes = ["s3://example-raw-dev/orders"]
[streams.schema]
table = "compactor_dev.orders"

[[streams]]
name = "clicks"
job = "own"
canary = true
[streams.input]
allowed_prefixes = ["s3://example-raw-dev/clicks"]
[streams.schema]
table = "compactor_dev.clicks"

[[streams]]
name = "views"
job = "own"
[streams.input]
allowed_prefixes = ["s3://example-raw-dev/views"]
[streams.schema]
table = "compactor_dev.views"
"""

CHANGED = "JobOfclicks"
ROLE = "JobRoleOfclicks"


@dataclass
class Environment:
    """A checkout, and an account that it is deployed to. The account is a boto3 session's."""

    root: Path
    deployment: Deployment = field(default_factory=Deployment)
    region_name: str = "eu-central-1"
    on_propose: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        shutil.copytree(ROOT / "deploy" / "parameters", self.root / "deploy" / "parameters")
        self.deployment.cloudformation.refuses_same = True
        self.give(Tags={"team": "data"})
        self.write(OTHERS)
        self.package("0.1.0")

    def write(self, streams: str, **changes: Mapping[str, object]) -> None:
        """Write settings with some streams; `changes` are of keys, by section."""
        document = tomllib.loads((ROOT / "config" / "dev.toml").read_text())
        for section, keys in changes.items():
            document[section] = document.get(section, {}) | dict(keys)
        (self.root / "config").mkdir(exist_ok=True)
        (self.root / "config" / "dev.toml").write_text(toml_of(document) + streams)

    def package(self, release: str) -> None:
        """Write artefacts of a release in place of earlier ones."""
        dist = self.root / "dist"
        dist.mkdir(exist_ok=True)
        for old in dist.glob("*.whl"):
            old.unlink()
        for name in (FUNCTIONS_ZIP, JOB_ZIP, f"ndjson_compactor-{release}-py3-none-any.whl"):
            (dist / name).write_text(f"{name} {release}")
        if not (dist / "job-wheels").exists():
            make_job_wheels(dist / "job-wheels")

    def settings(self) -> Settings:
        return load_settings(self.root / "config" / "dev.toml", {})

    def give(self, **parameters: str | dict[str, str]) -> None:
        """Change the parameters file."""
        file = self.root / "deploy" / "parameters" / "dev.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **parameters}))

    @property
    def stack_template(self) -> Document:
        return self.deployment.cloudformation.stacks.stacks[NAME].template

    def resources(self) -> dict[str, Any]:
        """The properties of all resources of the stack, by name."""
        there = self.deployment.cloudformation.stacks.stacks[NAME].resources
        return {name: each.properties for name, each in there.items()}

    def differing(self, before: Mapping[str, Any]) -> set[str]:
        """What of the stack is not as it was."""
        now = self.resources()
        return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}

    # What boto3's session has.

    def __call__(self, **_: str | None) -> "Environment":
        return self

    def get_credentials(self) -> object:
        return self

    def get_available_regions(self, _: str) -> list[str]:
        return [self.region_name]

    def client(self, service: str, **_: object) -> Any:
        if service == "sts":
            return SimpleNamespace(get_caller_identity=lambda: {"Account": "123456789012"})
        if service == "s3":
            return Buckets(self)
        if service == "cloudformation":
            return self.deployment.cloudformation
        return Services(self.deployment.cloudformation).client(service)


@dataclass
class Buckets:
    """S3, with the bucket of the artefacts and those of the stack."""

    environment: Environment
    exceptions: Any = field(default_factory=lambda: SimpleNamespace(NoSuchBucket=KeyError))

    @property
    def objects(self) -> set[str]:
        return self.environment.deployment.account.objects

    def put_object(self, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803 - boto3's names
        url = f"https://{Bucket}.s3.{self.environment.region_name}.amazonaws.com/{Key}"
        self.environment.deployment.cloudformation.templates[url] = json.loads(Body)
        self.environment.on_propose()

    def upload_file(self, _: str, bucket: str, key: str) -> None:
        self.objects.add(f"{bucket}/{key}")

    def list_objects_v2(self, Bucket: str, Prefix: str, MaxKeys: int) -> dict[str, int]:  # noqa: N803
        return {"KeyCount": int(f"{Bucket}/{Prefix}" in self.objects) * MaxKeys}

    def head_bucket(self, Bucket: str, **_: str) -> None:  # noqa: N803
        if not Bucket.startswith("example-artefacts"):
            raise error("404", f"there is no {Bucket}")

    def get_bucket_location(self, Bucket: str) -> dict[str, str]:  # noqa: N803, ARG002
        return {"LocationConstraint": self.environment.region_name}
