"""A deployment to a stand-in for AWS is shown, applied when confirmed, and explains each refusal."""

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from boto3.session import Session
from botocore.exceptions import WaiterError
from click.testing import CliRunner

from compactor import __version__
from compactor.core.errors import SettingsError
from compactor.demo.local_aws import CREDENTIALS
from compactor.schema.schema import Column, SchemaVersion
from compactor.settings.settings import Settings, load_settings, parse_settings
from deploy.__main__ import deploy, main
from deploy.existing_names import NAMES, planned_names
from deploy.locks import job_modules
from deploy.preflight import Preflight
from deploy.stack import DeploymentError, Stack, change_lines
from deploy.stack_parameters import settings_parameters, stack_parameters
from deploy.template_file import with_columns
from tests.deployment.deployments import LONGEST_BUCKET_NAME
from tests.deployment.job_wheels import OWN_WHEEL, wheel_names
from tests.deployment.resolving import PSEUDO, ROOT, parameters_of, resources, template
from tests.support.aws_account.stacks import MAX_PARAMETER_BYTES

REGION = "eu-central-1"
BUCKET = "example-artefacts-dev"
BUCKET_ARN = "arn:aws:s3tables:eu-central-1:123456789012:bucket/orders-tables"
FAST = {"Delay": 0, "MaxAttempts": 10}
EMPTY_ZIP = b"PK\x05\x06" + bytes(18)
POLICY = '{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}}'


@pytest.fixture
def session(stand_in: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session with an account that contains only a bucket for artefacts."""
    with urlopen(Request(f"{stand_in}/moto-api/reset", method="POST")):  # noqa: S310 - on this machine
        pass
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", stand_in)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    made = Session(region_name=REGION)
    made.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout after `make package` and `make glue-environment`."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    shutil.copytree(ROOT / "deploy" / "parameters", tmp_path / "deploy" / "parameters")
    dist = tmp_path / "dist"
    dist.mkdir()
    with zipfile.ZipFile(dist / "lambda.zip", "w") as archive:
        archive.writestr("lambdas/manifest_builder.py", "")
    (dist / "job-package.zip").write_bytes(b"zip")
    (dist / OWN_WHEEL).write_bytes(b"compiled")
    make_job_wheels(dist / "job-wheels")
    return tmp_path


def make_job_wheels(folder: Path) -> None:
    """Empty wheels of the job's packages."""
    folder.mkdir()
    for name in wheel_names()[1:]:
        (folder / name).write_bytes(EMPTY_ZIP)


def kinds(session: Any) -> set[str]:
    listed = session.client("s3").list_objects_v2(Bucket=BUCKET)
    return {each["Key"].split("/")[1] for each in listed.get("Contents", ())}


def test_from_plan_to_stack(session: Any, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A refused deployment changes nothing, a confirmed one creates the stack, and a repeated one changes nothing."""
    deploy("dev", Session, confirm=lambda: False, root=root)
    shown = capsys.readouterr().out
    for words in ("account 123456789012", "WorkBucketName        example-compactor-dev", "lambda.zip -> s3://"):
        assert words in shown
    assert "add      EventQueue  (AWS::SQS::Queue)" in shown
    assert shown.endswith("Nothing was changed.\n")
    assert session.client("sqs").list_queues().get("QueueUrls", []) == []
    assert kinds(session) == {"template"}

    deploy("dev", Session, confirm=lambda: True, root=root)
    assert "Deployed." in capsys.readouterr().out
    assert kinds(session) == {"template", "settings", "functions", "job"}
    control = session.client("lambda").get_function(FunctionName="compactor-dev-control-plane")["Configuration"]
    assert control["Handler"] == "lambdas.control_plane.handler"
    assert control["Environment"]["Variables"]["COMPACTOR_CONTROL__QUEUE_URL"].endswith("/compactor-dev-events")
    assert session.client("cloudwatch").get_dashboard(DashboardName="compactor-dev")["DashboardBody"]

    asked: list[bool] = []
    deploy("dev", Session, confirm=lambda: asked.append(True) or True, root=root)
    again, errors = capsys.readouterr()
    assert errors == ""  # the template of the stack was read, which has no canary
    assert "exists outside this stack" not in again
    assert again.endswith("Nothing to change.\n")
    assert "upload  sha256" not in again
    assert asked == []


def change(root: Path, **parameters: str) -> None:
    """Change the parameters file."""
    file = root / "deploy" / "parameters" / "dev.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **parameters}))


def test_a_number_is_changed_without_a_build(
    session: Any, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only parameters and settings are deployed; the code stays, though dist/ has none."""
    with pytest.raises(SettingsError, match="stack compactor-dev: not deployed"):
        deploy("dev", Session, confirm=lambda: True, root=root, parameters_only=True)
    deploy("dev", Session, confirm=lambda: True, root=root)
    before, modules = deployed_parameters(session), installed(session)
    shutil.rmtree(root / "dist")
    change(root, BuilderConcurrency="7")
    settings = root / "config" / "dev.toml"
    settings.write_text(settings.read_text().replace("[control]", "[control]\nsla_seconds = 1200", 1))
    capsys.readouterr()
    deploy("dev", Session, confirm=lambda: True, root=root, parameters_only=True)
    assert "Deployed." in capsys.readouterr().out
    after = deployed_parameters(session)
    assert {name for name, value in after.items() if before[name] != value} == {
        "BuilderConcurrency",
        "SlaSeconds",
        "HalfSlaSeconds",
        "LogLateSeconds",
        "SettingsKey",
    }
    assert installed(session) == modules
    assert session.client("s3").head_object(Bucket=BUCKET, Key=after["SettingsKey"])["ContentLength"]

    # What decides about the code changes only with the code.
    change(root, GlueVersion="5.1", ArtefactBucketName="example-other")
    monkeypatch.setattr("deploy.checkout.__version__", "99.0")
    with pytest.raises(SettingsError) as caught:
        deploy("dev", Session, confirm=lambda: True, root=root, parameters_only=True)
    assert [fault.partition(", with which")[0] for fault in caught.value.faults] == [
        f"release: 99.0 -> expected {__version__}",
        "ArtefactBucketName: example-other -> expected example-artefacts-dev",
        "GlueVersion: 5.1 -> expected 6.0",
    ]


@pytest.mark.usefixtures("session")
def test_the_native_engine_is_not_lost_by_oversight(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A machine without cargo packages a wheel without it, with which the job would use the Spark engine."""
    pure = root / "dist" / "ndjson_compactor-1.0-py3-none-any.whl"
    (root / "dist" / OWN_WHEEL).rename(pure)
    deploy("dev", Session, confirm=lambda: True, root=root)
    assert "warning  artefacts" in capsys.readouterr().out
    pure.rename(root / "dist" / OWN_WHEEL)
    deploy("dev", Session, confirm=lambda: True, root=root)
    (root / "dist" / OWN_WHEEL).rename(pure)
    with pytest.raises(SettingsError, match=r"no native engine.*WITHOUT_NATIVE=1"):
        deploy("dev", Session, confirm=lambda: True, root=root)
    assert deploy("dev", Session, confirm=lambda: True, root=root, may_lose_native=True)


def deployed_parameters(session: Any) -> dict[str, str]:
    """The parameters of the stack."""
    return dict(Stack(session.client("cloudformation"), "compactor-dev").deployed().parameters)


@pytest.mark.full
def test_the_native_engine_on_glue_5(session: Any, root: Path) -> None:
    """On Glue 5.1 pip installs the wheel from the artefact bucket, where it keeps its name."""
    file = root / "deploy" / "parameters" / "dev.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "GlueVersion": "5.1"}))
    name = OWN_WHEEL
    deploy("dev", Session, confirm=lambda: True, root=root)
    listed = session.client("s3").list_objects_v2(Bucket=BUCKET)["Contents"]
    [key] = [each["Key"] for each in listed if each["Key"].endswith(f"/{name}")]
    assert key.startswith("dev/job/")
    assert installed(session) == [*job_modules(), f"s3://{BUCKET}/{key}"]


def installed(session: Any) -> list[str]:
    """What pip installs for the deployed job."""
    job = Stack(session.client("cloudformation"), "compactor-dev").deployed().template["Resources"]["Job"]
    modules: str = job["Properties"]["DefaultArguments"]["--additional-python-modules"]
    return modules.split(",")


def test_glue_6_gets_wheels_alone(session: Any, root: Path) -> None:
    """Glue 6.0 installs wheels of the artefact bucket, each by its hash, and asks no package index.

    With the real names, in a bucket with the longest name that S3 takes, their places are longer than a parameter.
    """
    bucket = "acme-artefacts-".ljust(LONGEST_BUCKET_NAME, "x")
    session.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    file = root / "deploy" / "parameters" / "dev.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "ArtefactBucketName": bucket}))
    deploy("dev", Session, confirm=lambda: True, root=root)
    modules = installed(session)
    assert [module.rpartition("/")[2] for module in modules] == [OWN_WHEEL, *sorted(wheel_names()[1:])]
    assert len(",".join(modules)) > MAX_PARAMETER_BYTES
    listed = {each["Key"] for each in session.client("s3").list_objects_v2(Bucket=bucket)["Contents"]}
    assert {module.removeprefix(f"s3://{bucket}/") for module in modules} <= listed


def test_without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without credentials the command prints one line and exits with 2."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    done = CliRunner().invoke(main, ["dev"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "credentials: none found -> expected AWS credentials from a profile, a role or environment variables\n"
    )


def test_what_is_missing_is_named_at_once(session: Any, root: Path) -> None:
    """One error names every file that was not packaged, before any request to AWS."""
    shutil.rmtree(root / "dist")
    with pytest.raises(SettingsError) as caught:
        deploy("dev", Session, confirm=lambda: True, root=root)
    assert [fault.rpartition("-> ")[2] for fault in caught.value.faults] == [
        "expected the functions: make package",
        "expected the package: make package",
        "expected the package: make package",
        "expected the packages of the job: make glue-environment",
    ]
    assert kinds(session) == set()


def checked(root: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the checks before a deployment show."""
    with suppress(SettingsError):
        deploy("dev", Session, confirm=lambda: False, root=root)
    return capsys.readouterr().out.partition("Checks\n")[2].partition("\n\n")[0]


@pytest.mark.usefixtures("session")
def test_checks_before_a_new_stack(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All that is planned is checked, and what could not be asked is a warning, never a reason to stop."""
    shown = checked(root, capsys)
    for words in (
        "names            46 of 46 new names are free",
        "38 wheels for the Python and the glibc of Glue",
        f"{BUCKET} is in this account and region",
        "3 x G.1X, Glue 6.0: up to $0.92 an hour",
        "at the prices of eu-central-1 of",
        "AWS offers no way to check that eu-central-1 has it",
    ):
        assert words in shown, shown
    assert "fault" not in shown


def test_names_that_are_taken(session: Any, root: Path) -> None:
    """Each name that the stack could not create is named before anything is uploaded."""
    where = {"LocationConstraint": REGION}
    session.client("s3").create_bucket(Bucket="example-lake-dev", CreateBucketConfiguration=where)
    session.client("sqs").create_queue(QueueName="compactor-dev-events")
    session.client("iam").create_role(RoleName="compactor-dev-job", AssumeRolePolicyDocument="{}")
    session.client("glue").create_database(DatabaseInput={"Name": "compactor_dev"})
    session.client("logs").create_log_group(logGroupName="/aws-glue/compactor-dev/output")
    session.client("events").put_rule(Name="compactor-dev-sealer", ScheduleExpression="rate(1 minute)")
    session.client("iam").create_policy(PolicyName="compactor-dev-operator", PolicyDocument=POLICY)
    session.client("sns").create_topic(Name="compactor-dev-alarms")
    session.client("cloudwatch").put_dashboard(DashboardName="compactor-dev", DashboardBody="{}")
    with pytest.raises(SettingsError) as caught:
        deploy("dev", Session, confirm=lambda: True, root=root)
    assert [fault.split()[2] for fault in caught.value.faults] == [
        "example-lake-dev",
        "compactor-dev-events",
        "compactor-dev-sealer",
        "/aws-glue/compactor-dev/output",
        "compactor_dev",
        "compactor-dev-job",
        "compactor-dev-operator",
        "compactor-dev-alarms",
        "compactor-dev",
    ]
    assert kinds(session) == set()


@pytest.mark.usefixtures("session")
def test_wheels_that_glue_could_not_load(root: Path) -> None:
    """A wheel for a newer glibc than Glue's, and a package that is missing, stop the deployment."""
    wheels = root / "dist" / "job-wheels"
    (root / "dist" / OWN_WHEEL).rename(root / "dist" / OWN_WHEEL.replace("2_28", "2_35"))
    next(wheels.glob("orjson-*")).unlink()
    with pytest.raises(SettingsError) as caught:
        deploy("dev", Session, confirm=lambda: True, root=root)
    missing, glibc = caught.value.faults
    assert "orjson: missing, expected" in missing
    assert "needs glibc 2.35, expected at most 2.34" in glibc


def test_an_input_bucket_that_exists(session: Any) -> None:
    """It has to be there, and should send its events to EventBridge."""
    checks = Preflight(
        session=session,
        client=session.client,
        account="123456789012",
        template=template(),
        parameters={**parameters_of("dev"), "InputBucketIsNew": "no"},
        files=(),
        is_new=True,
    )
    [found] = checks.results(only=["input bucket"])
    assert (found.name, found.state) == ("input bucket", "fault")
    assert found.found.startswith("input.allowed_prefixes: bucket example-raw-dev does not exist")
    s3 = session.client("s3")
    s3.create_bucket(Bucket="example-raw-dev", CreateBucketConfiguration={"LocationConstraint": REGION})
    _, found = checks.results(only=["input bucket"])
    assert (found.state, "example-raw-dev sends no events to EventBridge yet" in found.found) == ("warning", True)


class Quotas:
    """Lambda and Service Quotas of an account."""

    def __init__(self, unreserved: int, dpu: float) -> None:
        self.unreserved, self.dpu = unreserved, dpu

    def get_account_settings(self) -> dict[str, Any]:
        return {"AccountLimit": {"UnreservedConcurrentExecutions": self.unreserved}}

    def get_paginator(self, _: str) -> "Quotas":
        return self

    def paginate(self, **arguments: str) -> list[dict[str, Any]]:
        assert arguments == {"ServiceCode": "glue"}
        return [{"Quotas": [{"QuotaName": "Max task DPUs per account", "Value": self.dpu}]}]


@pytest.mark.parametrize(
    ("unreserved", "reserve", "dpu", "states"),
    [
        (1000, "no", 300, ["ok", "ok"]),
        (10, "no", 300, ["ok", "ok"]),
        (10, "yes", 300, ["fault", "ok", "ok"]),
        (101, "yes", 300, ["fault", "ok", "ok"]),
        (102, "yes", 300, ["ok", "ok"]),
        (3, "no", 2, ["warning", "fault"]),
    ],
)
def test_quotas(unreserved: int, reserve: str, dpu: float, states: list[str]) -> None:
    """What Lambda or Glue would refuse is a fault; what only slows the builder down is a warning."""
    found = Preflight(
        session=None,
        client=lambda _: Quotas(unreserved, dpu),
        account="123456789012",
        template=template(),
        parameters={**parameters_of("dev"), "ReserveConcurrency": reserve},
        files=(),
        is_new=True,
    )
    assert [state for state, _ in (*found._lambda_quota(), *found._glue_quota())] == states


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("ROLLBACK_COMPLETE", "aws cloudformation delete-stack --stack-name compactor-dev --region"),
        ("UPDATE_IN_PROGRESS", "wait until that ends"),
        ("UPDATE_ROLLBACK_COMPLETE", ""),
    ],
)
def test_a_stack_that_cannot_be_updated(status: str, words: str) -> None:
    """After a creation that failed, or during a change, the check says what comes first."""

    class Stacks:
        def describe_stacks(self, **_: str) -> dict[str, Any]:
            return {"Stacks": [{"StackStatus": status}]}

    found = Preflight(
        session=Session(region_name=REGION),
        client=lambda _: Stacks(),
        account="123456789012",
        template=template(),
        parameters=parameters_of("dev"),
        files=(),
        is_new=False,
    )
    [(state, shown)] = found._stack()
    assert (state, words in shown) == ("fault" if words else "ok", True)


def test_every_name_of_the_template_is_checked() -> None:
    """All named resources are asked for, on every condition, except those within another resource of the stack."""
    known = {
        **PSEUDO,
        **parameters_of("dev"),
        "KmsKey": "new",
        "InputBucketIsNew": "no",
        "InputAccount": "210987654321",
        "JobSubnet": "subnet-0a1b2c3d",
        "JobSubnetZone": "eu-central-1a",
        "JobSecurityGroup": "sg-0a1b2c3d",
    }
    planned = list(planned_names(template(), known))
    assert len(set(planned)) == len(planned)
    found = resources(template(), known)
    named = {each["Type"] for each in found.values() if any("Name" in key for key in each["Properties"])}
    assert named - NAMES.keys() == {
        "AWS::Events::EventBusPolicy",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Lambda::EventSourceMapping",
        "AWS::Lambda::Permission",
    }, "these name what they belong to"
    assert {kind for kind, _ in planned} == NAMES.keys() - {"AWS::Glue::Table"}
    assert ("AWS::Events::Rule", "compactor-dev-input") not in planned
    assert {"compactor-dev-read-only", "compactor-dev-input", "alias/compactor-dev", "compactor-dev-alarms"} <= {
        name for _, name in planned
    }
    for kind, path in NAMES.items():
        unchangeable = created_once(kind)
        assert "/properties/" + path in unchangeable or "/properties/DatabaseName" in unchangeable, kind


def created_once(kind: str) -> list[str]:
    """The properties that AWS's schema of a type does not let change."""
    folder = files("cfnlint.data.schemas")
    name = json.loads(folder.joinpath("providers", "us-east-1.json").read_text())[kind]
    listed: list[str] = json.loads(folder.joinpath("resources", f"{name}.json").read_text())["createOnlyProperties"]
    return listed


def test_without_a_bucket_for_artefacts(session: Any, root: Path) -> None:
    """The error names the missing bucket for artefacts and the command that creates it."""
    session.client("s3").delete_bucket(Bucket=BUCKET)
    with pytest.raises(SettingsError, match=f"aws s3 mb s3://{BUCKET}"):
        deploy("dev", Session, confirm=lambda: True, root=root)


class RefusingClient:
    """A CloudFormation client whose waiters always fail, which the stand-in never does."""

    def __init__(self, reason: str = "", status: str = "UPDATE_COMPLETE") -> None:
        self.reason = reason
        self.status = status
        self.done: list[str] = []

    def describe_stacks(self, **_: str) -> dict[str, Any]:
        return {"Stacks": [{"StackStatus": self.status}]}

    def create_change_set(self, **more: Any) -> None:
        self.done.append(more["ChangeSetType"])

    def execute_change_set(self, **_: str) -> None:
        self.done.append("execute")

    def delete_change_set(self, **_: str) -> None:
        self.done.append("delete change set")

    def delete_stack(self, **_: str) -> None:
        self.done.append("delete stack")

    def get_paginator(self, operation: str) -> Any:
        assert operation == "describe_stack_events"
        return self

    def paginate(self, **_: str) -> Iterator[dict[str, Any]]:
        """Events from the latest to the first, on two pages; the last one belongs to another deployment."""
        taken = "its name is taken"
        yield {"StackEvents": [self.failure(name, "cancelled") for name in ("Database", "Job", "JobRole")]}
        yield {"StackEvents": [self.failure("WorkBucket", taken), self.failure("LakeBucket", taken, "another")]}

    @staticmethod
    def failure(name: str, reason: str, change_set: str = "c") -> dict[str, str]:
        return {
            "LogicalResourceId": name,
            "ResourceStatus": "CREATE_FAILED",
            "ResourceStatusReason": reason,
            "ClientRequestToken": change_set,
        }

    def get_waiter(self, _: str) -> Any:
        return self

    def wait(self, **_: Any) -> None:
        raise WaiterError("waiter", "failed", {"StatusReason": self.reason})


def test_a_failed_deployment_says_why() -> None:
    """The error names the first resources of this deployment that failed, the cause first."""
    client = RefusingClient()
    with pytest.raises(DeploymentError, match=r": WorkBucket: its name is taken; JobRole: cancelled; Job: cancelled$"):
        Stack(client, "s", FAST).execute("c")
    assert client.done == ["execute"]


@pytest.mark.parametrize(
    ("status", "done"),
    [
        ("UPDATE_COMPLETE", ["UPDATE", "delete change set"]),
        ("REVIEW_IN_PROGRESS", ["CREATE", "delete stack"]),  # an empty stack, created with the change set
    ],
)
def test_a_refused_change_set_is_deleted(status: str, done: list[str]) -> None:
    """The error has CloudFormation's reason, and nothing is left in the account."""
    client = RefusingClient("Template error: no such resource", status)
    with pytest.raises(DeploymentError, match="the change set was refused: Template error: no such resource"):
        Stack(client, "s", FAST).propose("c", "url", {})
    assert client.done == done


def test_nothing_to_change() -> None:
    """A change set without changes is deleted and is not an error."""
    client = RefusingClient("The submitted information didn't contain changes. Submit different information.")
    assert Stack(client, "s", FAST).propose("c", "url", {}) is None
    assert client.done == ["UPDATE", "delete change set"]


def test_replacements_and_removals_come_first() -> None:
    """Changes that remove or replace a resource are at the top of the list."""
    changes: list[dict[str, str]] = [
        {"Action": "Add", "LogicalResourceId": "A"},
        {"Action": "Modify", "LogicalResourceId": "B", "Replacement": "False"},
        {"Action": "Modify", "LogicalResourceId": "C", "Replacement": "True"},
        {"Action": "Modify", "LogicalResourceId": "D", "Replacement": "Conditional"},
        {"Action": "Remove", "LogicalResourceId": "E"},
    ]
    lines = change_lines([{**change, "ResourceType": "AWS::SQS::Queue"} for change in changes])
    assert [line.split()[:2] for line in lines[1:-1]] == [
        ["REPLACE", "C"],
        ["REPLACE?", "D"],
        ["REMOVE", "E"],
        ["add", "A"],
        ["modify", "B"],
    ]


def test_settings_that_the_stack_does_not_support() -> None:
    """One error lists all settings that the stack does not support."""
    wrong = {
        "paths": {"manifests": "s3://aaa/m", "output": "s3://aaa/o", "state": "s3://bbb/s"},
        "input": {"allowed_prefixes": ["s3://rr1", "s3://rr2"]},
        "control": {"job_name": "Job_1"},
    }
    with pytest.raises(SettingsError) as caught:
        settings_parameters(parse_settings(wrong))
    assert [fault.partition(" -> ")[0] for fault in caught.value.faults] == [
        "paths.manifests, paths.state",
        "paths.output",
        "paths.staging",
        "input.allowed_prefixes",
        "schema.table",
        "builder.claims",
        "control.job_name",
        "metrics.sink",
    ]
    local = {"paths": {"manifests": "/m", "output": "/o", "state": "/s"}, "input": {"allowed_prefixes": ["/raw"]}}
    with pytest.raises(SettingsError, match=r'paths\.output: "/o" -> expected a place on S3'):
        settings_parameters(parse_settings(local))


@pytest.mark.parametrize(
    ("streams", "expected"),
    [
        ([], ""),
        (["kinesis://main/orders"], "orders"),
        (["kinesis://main"], "*"),
        (["kinesis://main/orders", "kinesis://other/orders"], "orders"),
        (["kinesis://main/orders-a", "kinesis://main/orders-b"], "orders-a,orders-b"),
        (["kinesis://main/orders", "kinesis://main/clicks"], "clicks,orders"),
        (["kinesis://main/orders", "kinesis://other"], "*"),
    ],
)
def test_the_streams_of_kinesis(streams: list[str], expected: str) -> None:
    """Beside the place on S3, whichever comes first: its policies let people read it."""
    settings = load_settings(ROOT / "config" / "prod.toml", {})
    places = (*streams, *settings.input.allowed_prefixes)
    found = settings_parameters(replace(settings, input=settings.input.model_copy(update={"allowed_prefixes": places})))
    assert found["KinesisStreams"] == expected
    assert found["InputBucketName"] == parameters_of("prod")["InputBucketName"]


def test_parameters_are_given_once_and_known() -> None:
    """One error lists every parameter that is missing, unknown or given twice."""
    given = parameters_of("dev")
    del given["LogDays"]
    with pytest.raises(SettingsError) as caught:
        stack_parameters(template(), given, {"JobName": "again", "Colour": "red"})
    assert [fault.partition(" ->")[0] for fault in caught.value.faults] == [
        "parameter LogDays: not given",
        "parameter Colour: unknown",
        "parameter JobName: given twice",
    ]


def test_columns_of_the_table() -> None:
    """The table has the columns of the schema in Athena's types, and the columns of a row's origin."""
    columns = (
        Column(key="id", name="id", added_in=1),
        Column(key="n", name="n", added_in=1, type="long"),
        Column(key="amount", name="amount", added_in=2, type="decimal(18,2)"),
        Column(key="file_date", name="file_date", added_in=2),  # the table's partition is called so
    )
    schema = SchemaVersion(version=2, created_at=datetime(2026, 1, 1, tzinfo=UTC), manifest_id="m", columns=columns)
    changed = with_columns(template(), schema, ("_source_file", "_processed_at"))
    table = changed["Resources"]["EventsTable"]["Properties"]["TableInput"]
    assert [(each["Name"], each["Type"]) for each in table["StorageDescriptor"]["Columns"]] == [
        ("_source_file", "string"),
        ("_processed_at", "timestamp"),
        ("id", "string"),
        ("n", "bigint"),
        ("amount", "decimal(18,2)"),
        ("_rescued_data", "map<string,string>"),
    ]
    assert json.dumps(template()) != json.dumps(changed)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"catalog": "glue", "name": "lake.orders"}, ("lake", "lake/orders", "")),
        ({"catalog": "s3tables", "name": "lake.orders", "warehouse": BUCKET_ARN}, ("", "", "orders-tables")),
        ({"catalog": "rest", "name": "lake.orders", "uri": "https://catalog.example"}, ("", "", "")),
    ],
    ids=["glue", "s3tables", "rest"],
)
def test_the_table_of_iceberg(table: dict[str, str], expected: tuple[str, str, str]) -> None:
    """The job may commit to it where AWS has the catalog; without one, its rights are on nothing."""
    settings = load_settings(ROOT / "config" / "prod.toml", {})
    assert iceberg_parameters(settings) == ("", "", "")
    changed = replace(
        settings,
        table=settings.table.model_copy(update=table),
    )
    assert iceberg_parameters(changed) == expected


@pytest.mark.parametrize(
    "table",
    [
        {"catalog": "glue", "name": "compactor_prod.events"},
        {"catalog": "s3tables", "name": "lake.orders", "warehouse": "orders"},
    ],
    ids=["name of another table", "no ARN"],
)
def test_tables_of_iceberg_that_cannot_be(table: dict[str, str]) -> None:
    """The table of Parquet files has its name already; the name of a bucket alone does not open the catalog."""
    settings = load_settings(ROOT / "config" / "prod.toml", {})
    changed = replace(
        settings,
        table=settings.table.model_copy(update=table),
        schema=settings.schema.model_copy(update={"table": "compactor_prod.events"}),
    )
    with pytest.raises(SettingsError, match=r"table\.(name|warehouse) -> expected"):
        settings_parameters(changed)


def iceberg_parameters(settings: Settings) -> tuple[str, ...]:
    found = settings_parameters(settings)
    return tuple(found[name] for name in ("IcebergDatabase", "IcebergTable", "TableBucketName"))
