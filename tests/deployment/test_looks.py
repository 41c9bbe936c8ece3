"""Looks at a deployment, what people read of it, and the code around it. Each yields a line for what is wrong."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from compactor.adapters.aws.glue_table import GlueTable
from compactor.control.snapshot import JobState
from compactor.core.errors import CompactorError
from compactor.settings.settings import LEASE_SECONDS
from deploy.resolved import Document
from deploy.stack import DeploymentError
from tests.deployment.deployments import LONGEST_BUCKET_NAME, Deployment
from tests.deployment.drift import metrics_of
from tests.deployment.permissions import allows
from tests.deployment.resolving import ROOT, parameters_of, resources, template
from tests.support.aws_account import glue_rules
from tests.support.aws_account.account import Account
from tests.support.control_scene import Scene
from tests.support.memory_glue import MemoryGlue

GLUES_FILES = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject")
"""What a folder that Glue fills takes, as far as any way of filling it goes."""


@dataclass
class World:
    """What is deployed.

    Attributes:
        parameters: Those that differ from the shipped ones.
    """

    document: Document = field(default_factory=template)
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def found(self) -> dict[str, Document]:
        return resources(self.document, {**parameters_of("dev"), **self.parameters})

    def properties(self, name: str) -> Document:
        properties: Document = self.found[name]["Properties"]
        return properties


def environment(world: World) -> Iterator[str]:
    """What a run could not install."""
    yield from (message for _, message in glue_rules.not_installed(world.properties("Job")))


def second_try(world: World) -> Iterator[str]:
    """A creation fails, its cause is fixed, and it is tried again."""
    deployment = Deployment(Account(glue_versions=("5.0",)))
    try:
        deployment.deploy(world.document, world.parameters)
    except DeploymentError:
        deployment.delete()
    deployment.account.glue_versions = ("6.0",)
    yield from _refused(deployment, world)


def new_account(world: World) -> Iterator[str]:
    """A deployment into an account with the quota of a new one."""
    yield from _refused(Deployment(Account(concurrency=10)), world)


def real_bucket(world: World) -> Iterator[str]:
    """A deployment whose bucket of artefacts has the longest name that S3 takes."""
    bucket = "acme-artefacts-".ljust(LONGEST_BUCKET_NAME, "x")
    given = parameters_of("dev") | {"ArtefactBucketName": bucket} | world.parameters
    text = json.dumps({"parameters": given, "document": world.document})
    renamed = json.loads(text.replace(parameters_of("dev")["ArtefactBucketName"], bucket))
    deployment = Deployment(Account(objects={f"{bucket}/{given['FunctionsKey']}"}))
    yield from _refused(deployment, World(document=renamed["document"], parameters=renamed["parameters"]))


def _refused(deployment: Deployment, world: World) -> Iterator[str]:
    try:
        deployment.deploy(world.document, world.parameters)
    except DeploymentError as exc:
        yield str(exc)


def page(_: World) -> Iterator[str]:
    """Since Glue 5.0 stdout and stderr are in `output`, and Glue's own lines in `error`; settings are files here."""
    text = (ROOT / "docs" / "runbook.md").read_text()
    for group in re.findall(r"/aws-glue/[a-z<>-]+/(\w+)", text):
        if group not in {"output", "error"}:
            yield f"Glue writes nothing to the log group {group}"
    for place in re.findall(r"--config (\S+)", text):
        if not (ROOT / place.strip("`")).is_file():
            yield f"nothing writes {place}"


def restored(world: World) -> Iterator[str]:
    """What was overwritten in the work bucket can be restored."""
    bucket = world.properties("WorkBucket")
    if bucket.get("VersioningConfiguration") != {"Status": "Enabled"}:
        yield "there is no older version"
    days = [each.get("NoncurrentVersionExpiration") for each in bucket["LifecycleConfiguration"]["Rules"]]
    if not any(days):
        yield "older versions stay for ever"


class Catalog:
    """Glue's Data Catalog with the table of a template, as the job's role may use it."""

    def __init__(self, world: World) -> None:
        self.role = world.found["JobRole"]
        self.table = world.properties("EventsTable")["TableInput"]
        given = {**parameters_of("dev"), **world.parameters}
        self.arn = f"arn:aws:glue:eu-central-1:123456789012:table/{given['DatabaseName']}/{given['EventsTableName']}"

    def _check(self, action: str) -> None:
        if not allows(self.role, action, self.arn):
            raise ClientError(
                {"Error": {"Code": "AccessDeniedException", "Message": f"not authorized: {action}"}}, action
            )

    def get_table(self, **_: str) -> dict[str, Any]:
        self._check("glue:GetTable")
        return {"Table": self.table}

    def update_table(self, TableInput: dict[str, Any], **_: Any) -> None:  # noqa: N803 - boto3's name
        self._check("glue:UpdateTable")
        self.table = TableInput


def new_key(world: World) -> Iterator[str]:
    """A new key comes, and Athena has to show its column without another deployment."""
    catalog = Catalog(world)
    try:
        GlueTable(client=catalog, database="d", table="t").add({"new_key": "string"})
    except CompactorError as exc:
        yield str(exc)
    if "new_key" not in json.dumps(catalog.table):
        yield "no column new_key"


def window(world: World) -> Iterator[str]:
    """What the definition of the job says and Glue does not do."""
    script = (ROOT / "glue_entry.py").read_text()
    yield from (message for _, message in glue_rules.ignored(world.properties("Job"), script))


def lost_builder(world: World) -> Iterator[str]:
    """A builder dies right after its claim; its message comes back when it is visible again."""
    builder, queue, source = (
        world.properties(name) for name in ("BuilderFunction", "EventQueue", "BuilderEventSource")
    )
    visible = int(queue["VisibilityTimeout"])
    claimed_latest = int(builder["Timeout"]) + int(source["MaximumBatchingWindowInSeconds"])
    waited = visible
    lease_seconds = LEASE_SECONDS
    while claimed_latest + lease_seconds > waited:
        waited += visible
    if waited > visible:
        yield f"the file waits for {waited} s"


def refused_starts(_: World) -> Iterator[str]:
    """Glue counts a run that it does not list, and refuses each start."""

    class Held(MemoryGlue):
        def start(self) -> str | None:
            return None

    scene = Scene()
    scene.glue = Held(scene.clock)
    checks = scene.minutes(10, alive=False)
    if not any(each.alarms for each in checks):
        yield "ten refused starts, and no alarm"


def metrics(world: World) -> Iterator[str]:
    """Metrics that Glue sends and CloudWatch bills have to be read by an alarm or a widget."""
    asked = {"--enable-metrics", "--enable-observability-metrics"} & world.properties("Job")["DefaultArguments"].keys()
    namespaces = {namespace for _, namespace, _, _ in metrics_of(world.found)}
    if asked and "Glue" not in namespaces:
        yield f"nothing reads the metrics of {', '.join(sorted(asked))}"


def repaired(_: World) -> Iterator[str]:
    """A crash loop opens the breaker; the repair is deployed."""
    scene = Scene(breaker_failures=2, backoff_first_seconds=1.0)
    for _ in range(2):
        scene.check()
        scene.glue.end(scene.glue.started[-1], JobState.FAILED, "boom")
        scene.clock.advance(120)
    scene.check()
    scene.glue.definition_changed_at = scene.clock.now()
    scene.check()
    if not scene.glue.living():
        yield "the breaker stays open after its repair"


def spark_ui(world: World) -> Iterator[str]:
    """Glue writes, renames and removes the logs of the Spark UI by the role of the job."""
    place = world.properties("Job")["DefaultArguments"]["--spark-event-logs-path"].removeprefix("s3://")
    for action in GLUES_FILES:
        if not allows(world.found["JobRole"], action, f"arn:aws:s3:::{place}x"):
            yield f"the role may not {action} in {place}"


LOOKS = (environment, second_try, new_account, real_bucket, page, restored, new_key, window, lost_builder)
LOOKS += (refused_starts, metrics, repaired, spark_ui)


@pytest.mark.parametrize("given", [{}, {"MaintenanceWindow": "Sun:10"}], ids=["shipped", "window"])
@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_wrong(look: Callable[[World], Iterator[str]], given: dict[str, str]) -> None:
    assert list(look(World(parameters=given))) == []
