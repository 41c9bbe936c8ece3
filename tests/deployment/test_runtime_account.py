"""What runs the job on ECS or EMR Serverless, deployed and used in the account that refuses what AWS refuses."""

import json
import re
import shutil
import tomllib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from compactor.adapters.aws.ecs_job import EcsJob
from compactor.adapters.aws.emr_job import EmrJob
from compactor.control.snapshot import JobState
from compactor.core.errors import AccessError, SettingsError
from compactor.settings.sections import Ecs, Emr
from compactor.settings.settings import parse_settings
from deploy.resolved import Document
from deploy.runtime import TEMPLATE
from deploy.runtime_checks import FARGATE_MEMORY
from deploy.stack import DeploymentError, Stack
from deploy.stack_parameters import with_names
from deploy.template_file import load_template
from tests.deployment.deployments import FAST, NAME
from tests.deployment.granted import Granted, calls_of_ecs, calls_of_emr, rights_of_role
from tests.deployment.resolving import ROOT
from tests.deployment.runtimes import DIGEST, SIZES, Place
from tests.support.aws_account.arns import NUMBER, REGION
from tests.support.aws_account.fargate import fargate_sizes
from tests.support.aws_account.rights import Rights
from tests.support.ecs_stand_in import EcsStandIn
from tests.support.emr_stand_in import EmrStandIn
from tests.support.memory_store import ManualClock

RUNTIMES = ("ecs", "emr")
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
BOUNDARY = f"arn:aws:iam::{NUMBER}:policy/boundary"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout after `make emr-archive`."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    shutil.copytree(ROOT / "deploy" / "parameters", tmp_path / "deploy" / "parameters")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "emr-archive.tar.gz").write_bytes(b"packed")
    return tmp_path


@pytest.fixture(params=RUNTIMES)
def place(request: pytest.FixtureRequest, root: Path) -> Place:
    """An account in which the environment is deployed, and the runtime is not."""
    made = Place(request.param, root)
    made.deploy_environment()
    return made


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("parameters", [{}, {"KmsKey": "new", "PermissionsBoundary": BOUNDARY}], ids=["plain", "key"])
def test_the_policies_are_enough_and_none_is_unused(runtime: str, parameters: dict[str, str], root: Path) -> None:
    """From the environment to the deletion of the runtime, and each action of its policy is needed on the way."""
    place = Place(runtime, root, parameters)
    place.deploy_environment()
    rights = place.rights(place.policy())
    place.deploy_runtime(rights=rights, agreed=False)
    assert place.status == "none"
    place.deploy_runtime(rights=rights)
    assert place.status == "CREATE_COMPLETE"
    place.deploy_runtime(SIZES[runtime], rights=rights)
    assert place.status == "UPDATE_COMPLETE"
    place.deploy_runtime({**SIZES[runtime], "LogDays": "14"}, rights=rights, agreed=False)
    for each in place.account.resources:
        if each.stack == place.stack:  # what a later release may change of it
            place.account.authorize("update", each)
    place.delete_runtime()
    assert place.status == "none"
    events = "cloudformation:DescribeStackEvents"  # of a deployment that fails
    assert rights.allows(events, f"arn:aws:cloudformation:{REGION}:{NUMBER}:stack/{place.stack}/id", {})
    for each in place.policy()["Statement"]:
        for action in each["Action"]:
            fewer = Rights(without(rights.statements, each["Sid"], action))
            needed = [call for call in rights.asked if call[0] == action and not fewer.allows(*call)]
            assert needed, f"{each['Sid']}: {action} is not needed"


def without(statements: Iterable[Mapping[str, Any]], sid: str, action: str = "") -> list[Mapping[str, Any]]:
    """Statements without one of them, or without one of its actions."""
    kept = [each for each in statements if each["Sid"] != sid or action]
    return [
        {**each, "Action": [other for other in each["Action"] if other != action]} if each["Sid"] == sid else each
        for each in kept
    ]


@pytest.mark.parametrize(
    ("runtime", "sid", "words"),
    [
        ("ecs", "RuntimeStack", "cloudformation:DescribeStacks on resource: .*:stack/compactor-dev-ecs/"),
        (
            "ecs",
            "RuntimeECSCluster",
            "Cluster: not authorized to perform: ecs:CreateCluster on resource: .*compactor-dev",
        ),
        (
            "ecs",
            "RuntimeECSTaskDefinition",
            "TaskDefinition: .*ecs:RegisterTaskDefinition on resource: .*/compactor-dev:1",
        ),
        ("ecs", "EC2SecurityGroupCreateSecurityGroup", "TaskGroup: .*ec2:CreateSecurityGroup"),
        ("ecs", "EC2SecurityGroupOfTheStack", "TaskGroup: .*ec2:RevokeSecurityGroupEgress"),
        ("ecs", "RuntimeLogsLogGroup", "JobLogs: .*logs:CreateLogGroup on resource: .*:/compactor/ecs/compactor-dev"),
        ("ecs", "RuntimeAnywhere", "TaskDefinition: .*ecs:DescribeTaskDefinition"),
        ("ecs", "FirstOfTheAccount", "Cluster: .*iam:CreateServiceLinkedRole"),
        ("ecs", "PassRolesToTasks", "TaskDefinition: .*iam:PassRole on resource: .*role/compactor-dev-ecs-job"),
        ("emr", "RuntimeStack", "cloudformation:DescribeStacks on resource: .*:stack/compactor-dev-emr/"),
        ("emr", "RuntimeAnywhere", "Application: .*emr-serverless:CreateApplication"),
        ("emr", "EMRServerlessApplicationTagResource", "Application: .*emr-serverless:TagResource"),
        ("emr", "EMRServerlessApplicationOfTheStack", "Application: .*emr-serverless:GetApplication"),
        ("emr", "FirstOfTheAccount", "Application: .*iam:CreateServiceLinkedRole"),
    ],
)
def test_a_right_that_is_missing(runtime: str, sid: str, words: str, root: Path) -> None:
    """The deployment fails, says which resource lacks which action, and leaves nothing of its own."""
    place = Place(runtime, root)
    place.deploy_environment()
    before = list(place.account.resources)
    rights = place.rights(place.policy())
    fewer = Rights(without(rights.statements, sid))
    with pytest.raises(Exception, match=words) as caught:
        place.deploy_runtime(rights=fewer)
    assert "[access]" in str(caught.value)
    if isinstance(caught.value, DeploymentError):
        place.account.deployer = rights
        place.delete_runtime()
    assert [each for each in place.account.resources if each not in before] == []


def test_the_settings_that_are_printed(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """A refused deployment uploads the template alone; after a confirmed one, the settings are valid in the file."""
    before = set(place.account.objects)
    place.deploy_runtime(agreed=False)
    assert capsys.readouterr().out.endswith("Nothing was changed.\n")
    assert place.account.objects == before
    place.deploy_runtime(SIZES[place.runtime])
    printed = settings_printed(capsys.readouterr().out)
    file = tomllib.loads((place.root / "config" / "dev.toml").read_text())
    settings = parse_settings({name: {**file.get(name, {}), **printed.get(name, {})} for name in file | printed})
    assert settings.service == {"ecs": "ECS", "emr": "EMR Serverless"}[place.runtime]
    given = place.deployment.cloudformation.executed[place.stack][-1]["Parameters"]
    values = {each["ParameterKey"]: each["ParameterValue"] for each in given}
    assert values.items() >= {**SIZES[place.runtime], "Runtime": place.runtime, "LogDays": "7"}.items()
    uploaded = {f"s3://{each}" for each in place.account.objects - before}
    assert uploaded == {place for key, place in printed.get("emr", {}).items() if key in {"entry_point", "archive"}}
    keys = [*uploaded, *(name for name in place.deployment.cloudformation.templates if name != "url")]
    assert all(re.search(r"/dev/(job|template)/[0-9a-f]{32}\.[a-z.]+$", key) for key in keys), "roles may read them"


def test_what_deploying_needs(root: Path) -> None:
    """The environment itself, parameters of the template, and on EMR Serverless the archive."""
    place = Place("emr", root)
    with pytest.raises(DeploymentError, match="run make deploy ENV=dev first"):
        place.deploy_runtime()
    place.deploy_environment()
    with pytest.raises(SettingsError, match="parameter Nothing: unknown"):
        place.deploy_runtime({"Nothing": "1"})
    (root / "dist" / "emr-archive.tar.gz").unlink()
    with pytest.raises(SettingsError, match="make emr-archive"):
        place.deploy_runtime()


MISTAKES = [
    ({"ImageDigest": ""}, "ImageDigest: not given -> expected sha256: and 64 hexadecimal digits"),
    ({"ImageDigest": "latest"}, "ImageDigest: 'latest' -> expected sha256: and 64 hexadecimal digits"),
    ({"ImageDigest": DIGEST[:-1]}, "-> expected sha256: and 64 hexadecimal digits, as docker push prints them"),
    ({"ImageDigest": DIGEST[:-1] + "1"}, "expected an image in the repository ndjson-compactor of ECR; push it first"),
    ({"ImageRepository": "other"}, f"ImageDigest: {DIGEST} -> expected an image in the repository other"),
    ({"SubnetIds": ""}, "SubnetIds: not given -> expected each subnet- and 8 or 17 hexadecimal digits"),
    ({"SubnetIds": "subnet-0123456"}, "SubnetIds: 'subnet-0123456' -> expected each subnet- and 8 or 17"),
    ({"SubnetIds": "subnet-01234567;subnet-89abcdef"}, "hexadecimal digits, comma-separated"),
    ({"SubnetIds": "subnet-01234567,subnet-99999999"}, "SubnetIds: subnet-99999999 -> expected a subnet that exists"),
    ({"SubnetIds": "subnet-00000000"}, "subnet-00000000 is in vpc-89abcdef -> expected one in VpcId, vpc-01234567"),
    ({"VpcId": "arn:aws:ec2:eu-central-1:123456789012:vpc/vpc-01234567"}, "-> expected vpc- and 8 or 17 hexadecimal"),
    ({"VpcId": "vpc-0123456789abcdef"}, "VpcId: 'vpc-0123456789abcdef' -> expected vpc- and 8 or 17 hexadecimal"),
    ({"TaskCpu": "256"}, "TaskMemory: 4096 -> expected 512 to 2048 (MiB, twice as much each time) with TaskCpu 256"),
    ({"TaskMemory": "5000"}, "TaskMemory: 5000 -> expected 4096 to 16384 (MiB, in steps of 1024) with TaskCpu 2048"),
    ({"TaskCpu": "3000"}, "TaskCpu: '3000' -> expected 256|512|1024"),
]


@pytest.mark.parametrize(("given", "words"), MISTAKES)
def test_a_mistake_is_told_before_anything_is_asked_of_cloudformation(
    given: dict[str, str], words: str, root: Path
) -> None:
    """What, where, and what was expected."""
    place = Place("ecs", root)
    place.deploy_environment()
    with pytest.raises(SettingsError, match=re.escape(words)):
        place.deploy_runtime(given)
    assert place.status == "none"
    assert [name for name in place.deployment.cloudformation.templates if name != "url"] == []


def test_what_cannot_be_asked_is_a_warning(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who may not look at images deploys all the same."""
    place = Place("ecs", root)
    place.deploy_environment()
    place.deploy_runtime(rights=Rights(without(place.rights(place.policy()).statements, "Image")))
    assert place.status == "CREATE_COMPLETE"
    assert "warning: not checked: " in (told := capsys.readouterr().err)
    assert "ecr:DescribeImages on resource: " in told


def test_the_table_of_sizes_is_that_of_fargate() -> None:
    """As AWS's own description of the API has it."""
    assert {units: frozenset(memory) for units, memory in FARGATE_MEMORY.items()} == fargate_sizes()


STREAMS = ",".join(f"{number:x<128}" for number in range(20))


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("size of a task", {"TaskCpu": "256"}),
        ("network", {"VpcId": "vpc-00000000"}),
        ("role of a policy", {"JobName": "compactor-two", "KmsKeyArn": ""}),
        ("length of inline policies", {"KinesisStreams": STREAMS}),
        (
            "key of a log group",
            {"KmsKeyArn": f"arn:aws:kms:{REGION}:{NUMBER}:key/compactor-dev-DataKey", "JobName": "x"},
        ),
    ],
)
def test_what_cloudformation_refuses(rule: str, change: dict[str, str], root: Path) -> None:
    """What goes past the checks is refused by the rule, and leaves nothing of its own."""
    place = Place("ecs", root, {"KmsKey": "new"})
    place.deploy_environment()
    before = list(place.account.resources)
    place.deploy_runtime()
    client = place.deployment.cloudformation
    given = {each["ParameterKey"]: each["ParameterValue"] for each in client.executed[place.stack][-1]["Parameters"]}
    place.delete_runtime()
    place.account.deployer = None
    client.templates["runtime"] = with_names(load_template(TEMPLATE), given := {**given, **change})
    stack = Stack(client, place.stack, FAST)
    stack.propose("by hand", "runtime", given)
    with pytest.raises(DeploymentError, match=re.escape(f"[{rule}]")):
        stack.execute("by hand")
    assert place.account.resources == before


def settings_printed(text: str) -> dict[str, Any]:
    """What the last deployment prints to set."""
    return tomllib.loads(text.rpartition("RESTART=1:\n")[2])


def control_rights(place: Place, sid: str = "") -> Rights:
    """The rights of the control plane's role, without one statement."""
    return Rights(without(rights_of_role(place.account, f"{NAME}-control-plane").statements, sid))


def job_of(place: Place, printed: Mapping[str, Any], rights: Rights) -> tuple[Any, Any]:
    """The control plane's job, and the stand-in for the service in which its runs are."""
    clock = ManualClock(NOON)
    about: dict[str, Any] = {"name": NAME, "settings_place": "s3://b/c.toml", "clock": clock}
    if place.runtime == "ecs":
        ecs = EcsStandIn(clock.now)
        client = Granted(ecs, rights, calls_of_ecs(place.account))
        return EcsJob(ecs=client, wanted=Ecs.model_validate(printed["ecs"]), defined_at=lambda: None, **about), ecs
    emr = EmrStandIn(clock.now)
    client = Granted(emr, rights, calls_of_emr)
    return EmrJob(emr=client, wanted=Emr.model_validate(printed["emr"]), defined_at=lambda: None, **about), emr


def test_the_control_plane_runs_the_job(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """With the settings that the deployment prints, and the rights that its role then has, it starts and stops runs."""
    place.deploy_runtime()
    job, service = job_of(place, settings_printed(capsys.readouterr().out), control_rights(place))
    run_id = job.start()
    assert job.start() is None
    assert [run.run_id for run in job.list(LONG_AGO)] == [run_id]
    job.stop(run_id)
    [stopping] = job.list(LONG_AGO)
    assert stopping.state is JobState.STOPPING
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("runtime", "sid", "words"),
    [
        ("ecs", "RunTheJob", "ecs:RunTask on resource: .*:task-definition/compactor-dev:1"),
        ("ecs", "TagTasks", "ecs:TagResource on resource: .*:task/compactor-dev/"),
        ("ecs", "FindTasks", "ecs:ListTasks"),
        ("ecs", "StopTheJob", "ecs:DescribeTasks|ecs:StopTask"),
        ("ecs", "PassTheRoles", "iam:PassRole on resource: .*role/compactor-dev-ecs-job"),
        ("emr", "RunTheJob", "emr-serverless:ListJobRuns on resource: .*/applications/00f1abcd2efg3h09"),
        ("emr", "StopTheJob", "emr-serverless:CancelJobRun on resource: .*/jobruns/"),
        ("emr", "PassTheRole", "iam:PassRole on resource: .*role/compactor-dev-emr-job"),
    ],
)
def test_a_right_that_the_control_plane_lacks(
    runtime: str, sid: str, words: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The service refuses a call, and the error names the action."""
    place = Place(runtime, root)
    place.deploy_environment()
    place.deploy_runtime()
    job, _ = job_of(place, settings_printed(capsys.readouterr().out), control_rights(place, sid))

    def use() -> None:
        job.stop(job.start())
        job.list(LONG_AGO)

    with pytest.raises(AccessError, match=words):
        use()


def test_the_rights_of_the_job_are_those_on_glue(place: Place) -> None:
    """Resource by resource, but for the log of each service, and what Glue keeps in buckets."""
    place.deploy_runtime()
    on_glue, here = (
        {
            (action, resource, json.dumps(each.get("Condition")))
            for each in rights_of_role(place.account, role).statements
            for action in listed(each["Action"])
            for resource in listed(each["Resource"])
        }
        for role in (f"{NAME}-job", f"{NAME}-{place.runtime}-job")
    )
    spark_ui = "arn:aws:s3:::example-compactor-dev/spark-ui/*"
    less = {action for action, resource, _ in on_glue - here if resource != spark_ui}
    assert {action for action in less if not action.startswith("logs:")} == {METRICS}, "those of Glue itself"
    log = {f"logs:{each}" for each in LOG_OF_EMR} if place.runtime == "emr" else set()
    assert {action for action, _, _ in here - on_glue} == {METRICS, *log}
    [condition] = {condition for action, _, condition in here if action == METRICS}
    assert json.loads(condition) == {"StringEquals": {"cloudwatch:namespace": "Compactor/dev"}}


METRICS = "cloudwatch:PutMetricData"
LOG_OF_EMR = ("CreateLogStream", "PutLogEvents", "DescribeLogStreams", "DescribeLogGroups")


def listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def test_each_action_is_on_resources_of_its_kind(place: Place) -> None:
    """By AWS's table of actions, as cfn-lint has it: an action without a kind of resource has to be on all."""
    known = json.loads(files("cfnlint.data.AdditionalSpecs").joinpath("Policies.json").read_text())
    place.deploy_runtime()
    services = ("ecs:", "ecr:", "emr-serverless:", "iam:")
    roles = (rights_of_role(place.account, f"{NAME}-{each}") for each in ("control-plane", "ecs-agent"))
    granted = (each for role in roles for each in role.statements if listed(each["Action"])[0].startswith(services))
    every = [*place.policy()["Statement"], *granted]
    wrong = [
        f"{each['Sid']}: {action} on {resource}"
        for each in every
        for action in listed(each["Action"])
        for resource in listed(each["Resource"])
        if not fits(known, action, resource)
    ]
    assert wrong == []


def fits(known: Document, action: str, resource: str) -> bool:
    """Whether a resource is of a kind that an action is about."""
    service, _, name = action.partition(":")
    about = known[service]["Actions"][name.lower()]
    if resource == "*" or not about.get("Resources"):
        return resource == "*"
    formats = [each for kind in about["Resources"] for each in known[service]["Resources"][kind.lower()]["ARNFormats"]]
    kinds = {re.sub(r"\$\{\w+\}", "[^:]*", each) for each in formats}
    return any(re.fullmatch(each, resource) for each in kinds)
