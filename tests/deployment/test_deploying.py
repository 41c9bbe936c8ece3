"""A deployment to a stand-in for AWS: shown first, done when wanted, and refused in words."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from boto3.session import Session
from botocore.exceptions import WaiterError

from compactor.core.errors import SettingsError
from compactor.demo.local_aws import CREDENTIALS, local_aws
from compactor.schema.schema import Column, SchemaVersion
from compactor.settings.settings import parse_settings
from deploy.__main__ import deploy
from deploy.change_sets import Change, DeploymentError, Stack
from deploy.pins import job_modules
from deploy.plan import change_lines
from deploy.stack_parameters import settings_parameters, stack_parameters
from deploy.template_file import with_columns
from tests.deployment.resolving import ROOT, parameters_of, template

REGION = "eu-central-1"
BUCKET = "example-artefacts-dev"
FAST = {"Delay": 0, "MaxAttempts": 10}


@pytest.fixture(scope="module")
def stand_in() -> Iterator[str]:
    """A local stand-in for AWS, in a process of its own."""
    with local_aws() as url:
        yield url


@pytest.fixture
def session(stand_in: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session with an account in which there is nothing but a bucket for artefacts."""
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
    """A checkout in which everything was packaged."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    shutil.copytree(ROOT / "deploy" / "parameters", tmp_path / "deploy" / "parameters")
    dist = tmp_path / "dist"
    dist.mkdir()
    with zipfile.ZipFile(dist / "lambda.zip", "w") as archive:
        archive.writestr("lambdas/manifest_builder.py", "")
    for name in ("compactor-0.1.0-py3-none-any.whl", "glue-environment.tar.gz"):
        (dist / name).write_bytes(name.encode())
    return tmp_path


def kinds(session: Any) -> set[str]:
    listed = session.client("s3").list_objects_v2(Bucket=BUCKET)
    return {each["Key"].split("/")[1] for each in listed.get("Contents", ())}


def test_from_plan_to_stack(session: Any, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An operator who says no changes nothing; one who says yes gets a stack; a second yes changes nothing."""
    deploy("dev", Session, is_wanted=lambda: False, root=root)
    told = capsys.readouterr().out
    for words in ("account 123456789012", "WorkBucketName        example-compactor-dev", "lambda.zip -> s3://"):
        assert words in told
    assert "add      EventQueue  (AWS::SQS::Queue)" in told
    assert told.endswith("Nothing was changed.\n")
    assert session.client("sqs").list_queues().get("QueueUrls", []) == []
    assert kinds(session) == {"template"}

    deploy("dev", Session, is_wanted=lambda: True, root=root)
    assert "Deployed." in capsys.readouterr().out
    assert kinds(session) == {"template", "settings", "functions", "job"}
    control = session.client("lambda").get_function(FunctionName="compactor-dev-control-plane")["Configuration"]
    assert control["Handler"] == "lambdas.control_plane.handler"
    assert control["Environment"]["Variables"]["COMPACTOR_CONTROL__QUEUE_URL"].endswith("/compactor-dev-events")
    assert session.client("cloudwatch").get_dashboard(DashboardName="compactor-dev")["DashboardBody"]

    asked: list[bool] = []
    deploy("dev", Session, is_wanted=lambda: asked.append(True) or True, root=root)
    again = capsys.readouterr().out
    assert again.endswith("Nothing to change.\n")
    assert "upload  sha256" not in again
    assert asked == []


def test_the_native_engine_on_glue_5(session: Any, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On Glue 5.1 pip installs the native engine from the bucket of artefacts, where its wheel keeps its name."""
    file = root / "deploy" / "parameters" / "dev.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "GlueVersion": "5.1"}))
    name = "compactor_native-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl"
    (root / "dist" / name).write_bytes(b"compiled")
    deploy("dev", Session, is_wanted=lambda: True, root=root)
    listed = session.client("s3").list_objects_v2(Bucket=BUCKET)["Contents"]
    [key] = [each["Key"] for each in listed if each["Key"].endswith(f"/{name}")]
    assert key.startswith("dev/job/")
    [modules] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  JobModules ")]
    assert modules.split()[-1] == f"{job_modules()},s3://{BUCKET}/{key}"


def test_without_credentials(tmp_path: Path) -> None:
    """Without credentials there is one line and no deployment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-m", "deploy", "dev"],
        cwd=ROOT,
        env={**environment, "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "credentials: none found -> expected those of AWS, from a profile, a role or variables\n"


def test_what_is_missing_is_named_at_once(session: Any, root: Path) -> None:
    """Files that were not packaged are named together, before anything is asked of AWS."""
    shutil.rmtree(root / "dist")
    with pytest.raises(SettingsError) as caught:
        deploy("dev", Session, is_wanted=lambda: True, root=root)
    assert [fault.rpartition("-> ")[2] for fault in caught.value.faults] == [
        "expected the functions: make package",
        "expected the package: make package",
        "expected the job's environment: make glue-environment",
    ]
    assert kinds(session) == set()


def test_without_a_bucket_for_artefacts(session: Any, root: Path) -> None:
    """A bucket of artefacts that does not exist is named, with the command that makes one."""
    session.client("s3").delete_bucket(Bucket=BUCKET)
    with pytest.raises(SettingsError, match=f"aws s3 mb s3://{BUCKET}"):
        deploy("dev", Session, is_wanted=lambda: True, root=root)


class RefusingClient:
    """A client of CloudFormation for what the stand-in never does: everything that is waited for fails."""

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

    def describe_stack_events(self, **_: str) -> dict[str, Any]:
        causes = {"WorkBucket": "its name is taken", "JobRole": "cancelled"}
        events = [
            {"LogicalResourceId": name, "ResourceStatus": "CREATE_FAILED", "ResourceStatusReason": why}
            for name, why in causes.items()
        ]
        return {"StackEvents": events[::-1]}

    def get_waiter(self, _: str) -> Any:
        return self

    def wait(self, **_: Any) -> None:
        raise WaiterError("waiter", "failed", {"StatusReason": self.reason})


def test_a_failed_deployment_says_why() -> None:
    """What could not be made is named, the cause first."""
    client = RefusingClient()
    with pytest.raises(DeploymentError, match="not deployed: WorkBucket: its name is taken; JobRole: cancelled"):
        Stack(client, "s", FAST).carry_out("c")
    assert client.done == ["execute"]


@pytest.mark.parametrize(
    ("status", "done"),
    [
        ("UPDATE_COMPLETE", ["UPDATE", "delete change set"]),
        ("REVIEW_IN_PROGRESS", ["CREATE", "delete stack"]),  # an empty stack, which came with the change set
    ],
)
def test_a_refused_change_set_is_thrown_away(status: str, done: list[str]) -> None:
    """What CloudFormation refuses is told in its words, and nothing is left behind."""
    client = RefusingClient("Template error: no such resource", status)
    with pytest.raises(DeploymentError, match="the change set was refused: Template error: no such resource"):
        Stack(client, "s", FAST).propose("c", "url", {})
    assert client.done == done


def test_nothing_to_change() -> None:
    """A change set without changes is no failure."""
    client = RefusingClient("The submitted information didn't contain changes. Submit different information.")
    assert Stack(client, "s", FAST).propose("c", "url", {}) is None
    assert client.done == ["UPDATE", "delete change set"]


def test_what_is_dangerous_comes_first() -> None:
    """Changes that take something away, or make it anew, are at the top of the list."""
    lines = change_lines(
        [
            Change("Add", "A", "AWS::SQS::Queue", ""),
            Change("Modify", "B", "AWS::SQS::Queue", "False"),
            Change("Modify", "C", "AWS::SQS::Queue", "True"),
            Change("Modify", "D", "AWS::SQS::Queue", "Conditional"),
            Change("Remove", "E", "AWS::SQS::Queue", ""),
        ]
    )
    assert [line.split()[:2] for line in lines[1:-1]] == [
        ["REPLACE", "C"],
        ["REPLACE?", "D"],
        ["REMOVE", "E"],
        ["add", "A"],
        ["modify", "B"],
    ]


def test_all_that_settings_cannot_have() -> None:
    """Settings that this deployment cannot carry out are told all at once."""
    wrong = {
        "paths": {"manifests": "s3://aaa/m", "output": "s3://aaa/o", "state": "s3://bbb/s"},
        "input": {"allowed_prefixes": ["s3://rr1", "s3://rr2"]},
        "control": {"job_name": "Job_1"},
    }
    with pytest.raises(SettingsError) as caught:
        settings_parameters(parse_settings(wrong))
    assert [fault.partition(" -> ")[0] for fault in caught.value.faults] == [
        "paths.manifests, paths.state, builder.pending",
        "paths.output",
        "input.allowed_prefixes",
        "builder.claims",
        "control.job_name",
        "metrics.sink",
    ]
    local = {"paths": {"manifests": "/m", "output": "/o", "state": "/s"}, "input": {"allowed_prefixes": ["/raw"]}}
    with pytest.raises(SettingsError, match=r'paths\.output: "/o" -> expected a place on S3'):
        settings_parameters(parse_settings(local))


def test_parameters_are_given_once_and_known() -> None:
    """A parameter that is missing, unknown or given twice is a fault."""
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
    """The table gets the columns of the schema, in the types of Athena, beside those of a row's origin."""
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
