"""Promises of `compactor doctor`: each fault is one line with its next action, and nothing else is reported."""

import json
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result
from moto import settings as moto_settings

from compactor.adapters.aws import aws_client
from compactor.adapters.aws.account import AwsAccount
from compactor.adapters.local import this_machine
from compactor.adapters.memory.store import ManualClock
from compactor.cli.entry import compactor as command
from compactor.core.errors import StoreUnavailable
from compactor.ops.doctor.findings import Finding
from compactor.ops.doctor.machine_checks import Disk
from compactor.ops.doctor.ports import Absent
from compactor.settings.settings import load_settings
from compactor.wiring.doctor import examine
from tests.support.aws_stand_in import REGION

ACCOUNT = "123456789012"
ANSWER = 'openjdk version "{}" 2025-04-15'


@cache
def client_of(service: str, endpoint: str) -> Any:
    """Clients are slow to make, and each test needs many."""
    return aws_client(service, REGION, endpoint)


@dataclass(frozen=True)
class AwsWorkspace:
    """A set-up with all that can be named in settings, at the stand-in, and the environment of an operator."""

    endpoint: str
    folder: Path
    name: str
    env: dict[str, str | None]

    @property
    def config(self) -> Path:
        return self.folder / "settings.toml"

    def client(self, service: str) -> Any:
        return client_of(service, self.endpoint)

    def write(self, **changes: str) -> None:
        """Write the settings, with lines for some of the sections changed."""
        name, queues = self.name, f"{self.endpoint}/{ACCOUNT}/{self.name}"
        sections = {
            "paths": f'manifests = "s3://{name}-own/manifests"\noutput = "s3://{name}-lake/events"\n'
            f'state = "s3://{name}-own/state"',
            "input": f'allowed_prefixes = ["s3://{name}-raw"]',
            "builder": f'claims = "{name}"',
            "control": f'job_name = "{name}"\nqueue_url = "{queues}-events"\n'
            f'dead_letter_queue_url = "{queues}-dead"\ntopic_arn = "arn:aws:sns:{REGION}:{ACCOUNT}:{name}"',
            "aws": f'region = "{REGION}"\nendpoint_url = "{self.endpoint}"',
            "metrics": 'sink = "cloudwatch"',
            **changes,
        }
        self.config.write_text("\n".join(f"[{section}]\n{lines}" for section, lines in sections.items()))

    def call(self, *arguments: str) -> Result:
        return CliRunner().invoke(command, ["--config", str(self.config), "doctor", *arguments], env=self.env)

    def findings(self) -> list[Finding]:
        """What the command finds; its exit code agrees."""
        result = self.call("--json")
        document = json.loads(result.stdout)
        found = [Finding(**each) for each in document["findings"]]
        assert document["faults"] == sum(each.state == "fault" for each in found)
        assert result.exit_code == (2 if document["faults"] else 0)
        return found

    def fault(self) -> Finding:
        """The one thing that is at fault."""
        return only_fault(self.findings())

    def objects(self) -> list[str]:
        s3 = self.client("s3")
        buckets = [f"{self.name}-{each}" for each in ("own", "lake", "raw")]
        return [item["Key"] for each in buckets for item in s3.list_objects_v2(Bucket=each).get("Contents", ())]


def install_java(folder: Path, answer: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "java").write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    (folder / "java").chmod(0o755)


@pytest.fixture
def workspace(aws_endpoint: str, tmp_path: Path) -> AwsWorkspace:
    """A healthy set-up."""
    name = f"workspace-{uuid.uuid4().hex[:12]}"
    install_java(tmp_path / "bin", ANSWER.format("17.0.15"))
    env: dict[str, str | None] = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "JAVA_HOME": None,
        "COMPACTOR_CONFIG": None,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    made = AwsWorkspace(aws_endpoint, tmp_path, name, env)
    buckets = [f"{name}-{each}" for each in ("own", "lake", "raw")]
    for each in buckets:
        made.client("s3").create_bucket(Bucket=each, CreateBucketConfiguration={"LocationConstraint": REGION})
    made.client("s3").put_object(Bucket=f"{name}-raw", Key="a.ndjson", Body=b"{}\n")
    make_table(made, name)
    ttl = {"Enabled": True, "AttributeName": "expires_at"}
    made.client("dynamodb").update_time_to_live(TableName=name, TimeToLiveSpecification=ttl)
    for queue in ("events", "dead"):
        made.client("sqs").create_queue(QueueName=f"{name}-{queue}")
    made.client("sns").create_topic(Name=name)
    make_job(made)
    made.write()
    return made


def make_table(workspace: AwsWorkspace, name: str, key: str = "pk") -> None:
    workspace.client("dynamodb").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def make_job(
    workspace: AwsWorkspace, name: str = "", *, runs: int = 1, retries: int = 0, kind: str = "gluestreaming"
) -> None:
    workspace.client("glue").create_job(
        Name=name or workspace.name,
        Role="role",
        Command={"Name": kind},
        ExecutionProperty={"MaxConcurrentRuns": runs},
        MaxRetries=retries,
        DefaultArguments={"--CONFIG": "s3://settings/prod.toml"},
    )


def examined(workspace: AwsWorkspace, clock: Any = None) -> list[Finding]:
    """What the doctor finds in this process, and by this clock."""
    return list(examine(load_settings(workspace.config, {}), str(workspace.config), clock=clock))


def only_fault(findings: list[Finding]) -> Finding:
    faults = [each for each in findings if each.state == "fault"]
    assert len(faults) == 1, faults
    assert faults[0].next_move
    return faults[0]


def test_all_is_healthy(workspace: AwsWorkspace) -> None:
    """Where nothing is wrong, nothing is said to be, all of it was looked at, and nothing is left behind."""
    before = workspace.objects()
    found = workspace.findings()
    assert {each.state for each in found} == {"ok"}, found
    assert [each.name for each in found] == [
        *("settings", "python", "java", "spark", "s3a", "native", "disk", "region", "endpoint", "clock", "credentials"),
        *(f"bucket {workspace.name}-{each}" for each in ("own", "lake", "raw")),
        *("input", "manifests", "output", "state"),
        *("claims", "queue", "dead letters", "topic", "glue job", "metrics"),
    ]
    assert workspace.objects() == before


def test_no_java(workspace: AwsWorkspace) -> None:
    """No Java: where it was looked for, and what to install."""
    (workspace.folder / "empty").mkdir()
    workspace.env["PATH"] = str(workspace.folder / "empty")
    found = workspace.fault()
    assert (found.name, found.found) == ("java", "Java 17 or 21 is needed: no `java` on the PATH and no JAVA_HOME")
    assert found.next_move.startswith("install Java 17")


def test_wrong_java(workspace: AwsWorkspace) -> None:
    """A Java that Spark does not run on: which, and where."""
    install_java(workspace.folder / "bin", ANSWER.format("11.0.2"))
    found = workspace.fault()
    assert found.name == "java"
    assert f"found Java 11, expected 17 or 21 ({workspace.folder}/bin/java)" in found.found
    assert "JAVA_HOME" in found.next_move


def test_missing_bucket(workspace: AwsWorkspace) -> None:
    """A bucket that is not there: its name, the key that names it, and the place in it is not tried."""
    places = f'manifests = "s3://{workspace.name}-own/manifests"\nstate = "s3://{workspace.name}-own/state"'
    workspace.write(paths=f'{places}\noutput = "s3://{workspace.name}-no/events"')
    findings = workspace.findings()
    found = only_fault(findings)
    assert (found.name, found.found) == (f"bucket {workspace.name}-no", "does not exist")
    assert found.next_move == f"create it (aws s3 mb s3://{workspace.name}-no), or correct paths.output"
    skipped = [each for each in findings if each.state == "skipped"]
    assert [(each.name, each.found) for each in skipped] == [("output", f"fix bucket {workspace.name}-no first")]


@pytest.fixture
def denied(workspace: AwsWorkspace, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Denies the operator some actions on some resources, by a policy that the stand-in enforces."""

    def deny(actions: list[str], resource: str) -> None:
        iam = workspace.client("iam")
        iam.create_user(UserName=workspace.name)
        policy = [
            {"Effect": "Allow", "Action": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": actions, "Resource": resource},
        ]
        document = json.dumps({"Version": "2012-10-17", "Statement": policy})
        iam.put_user_policy(UserName=workspace.name, PolicyName="operator", PolicyDocument=document)
        key = iam.create_access_key(UserName=workspace.name)["AccessKey"]
        workspace.env.update(AWS_ACCESS_KEY_ID=key["AccessKeyId"], AWS_SECRET_ACCESS_KEY=key["SecretAccessKey"])
        monkeypatch.setattr(moto_settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)

    return deny


def test_denied_prefix(workspace: AwsWorkspace, denied: Callable[..., None]) -> None:
    """A prefix that may not be written to: what is refused, and the permission that is missing."""
    denied(["s3:PutObject"], f"arn:aws:s3:::{workspace.name}-own/state/*")
    found = workspace.fault()
    assert found.name == "state"
    assert found.found == (
        f"s3://{workspace.name}-own/state: cannot write: PutObject was answered with AccessDenied: Access Denied "
        "(not tried: read, create-only write, delete)"
    )
    assert f"allow s3:PutObject on arn:aws:s3:::{workspace.name}-own/state/*" in found.next_move


def test_input_that_may_not_be_read(workspace: AwsWorkspace, denied: Callable[..., None]) -> None:
    """Input that may be listed but not read is a fault of its own."""
    denied(["s3:GetObject"], f"arn:aws:s3:::{workspace.name}-raw/*")
    found = workspace.fault()
    assert found.name == "input"
    assert "cannot read: GetObject was answered with AccessDenied" in found.found
    assert f"allow s3:GetObject on arn:aws:s3:::{workspace.name}-raw/*" in found.next_move


def test_looking_may_be_denied(workspace: AwsWorkspace, denied: Callable[..., None]) -> None:
    """Who may not describe a table may still use it: a warning."""
    denied(["dynamodb:DescribeTable"], "*")
    [claims] = [each for each in workspace.findings() if each.name == "claims"]
    assert claims.state == "warning"
    assert "allow dynamodb:DescribeTable" in claims.next_move


def test_clock_off_by_an_hour(workspace: AwsWorkspace) -> None:
    """A clock that is wrong: by how much, which way; what needs it is not tried."""
    findings = examined(workspace, clock=ManualClock(datetime.now(UTC) - timedelta(hours=1)))
    found = only_fault(findings)
    assert found.name == "clock"
    assert found.found.startswith("60 min behind")
    assert "timedatectl set-ntp true" in found.next_move
    assert [each for each in findings if each.name == "state"] == [Finding("state", "skipped", "fix clock first")]


def test_unknown_setting_and_wrong_type(workspace: AwsWorkspace) -> None:
    """Faults of the settings: all at once, each with what was expected, and what was meant."""
    workspace.write(stream='max_atempts = 3\nmanifests_in_flight = "two"', outptu="")
    place = f"{workspace.config}: "
    faults = [
        (each.found.removeprefix(place), each.next_move) for each in workspace.findings() if each.state == "fault"
    ]
    moves = dict(faults)
    assert moves["stream.max_atempts: unknown key"].startswith("did you mean max_attempts? It is one of manifests_in")
    assert moves["outptu: unknown section"].startswith("did you mean output? It is one of aws, builder")
    assert moves['stream.manifests_in_flight: "two"'] == "expected a whole number"
    assert len(faults) == 3


def test_missing_table(workspace: AwsWorkspace) -> None:
    """A table that is not there: its name and key."""
    workspace.write(builder='claims = "no-such-table"')
    found = workspace.fault()
    assert (found.name, found.found) == ("claims", "no-such-table does not exist")
    assert found.next_move == "deploy it as deploy/README.md says, or correct builder.claims"


def test_no_network_endpoint(workspace: AwsWorkspace) -> None:
    """An endpoint where no server answers is one fault; all that needs it is left out and says so."""
    with socket.socket() as taken:  # bound, and no server listens
        taken.bind(("127.0.0.1", 0))
        workspace.write(aws=f'region = "{REGION}"\nendpoint_url = "http://127.0.0.1:{taken.getsockname()[1]}"')
        findings = workspace.findings()
    found = only_fault(findings)
    assert found.name == "endpoint"
    assert "Could not connect" in found.found
    assert "aws.endpoint_url" in found.next_move
    rest = findings[findings.index(found) + 1 :]
    assert {(each.state, each.found) for each in rest} == {("skipped", "fix endpoint first")}
    *_, last, _ = workspace.call().stdout.splitlines()
    assert last.startswith("skipped  15 checks     fix endpoint first: clock, credentials, bucket ")


def test_full_disk(workspace: AwsWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is too full: how much is free and needed, why, and what to do."""
    monkeypatch.setattr(this_machine, "disk_of", lambda _: Disk("1", 400 * 1024**2))
    found = workspace.fault()
    assert found.name == "disk"
    assert found.found.startswith("0.4 GiB free, 2.0 GiB needed: ")
    assert "stream.manifests_in_flight x builder.target_manifest_bytes" in found.next_move


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"runs": 3}, "MaxConcurrentRuns is 3, expected 1"),
        ({"retries": 2}, "MaxRetries is 2, expected 0"),
        ({"kind": "glueetl"}, "Command.Name is glueetl, expected gluestreaming"),
    ],
    ids=str,
)
def test_wrong_glue_job(workspace: AwsWorkspace, job: dict[str, Any], said: str) -> None:
    """A job that breaks what the control plane rests on is at fault."""
    make_job(workspace, f"{workspace.name}-wrong", **job)
    workspace.write(control=f'job_name = "{workspace.name}-wrong"')
    found = workspace.fault()
    assert found.name == "glue job"
    assert said in found.found


def test_missing_services(workspace: AwsWorkspace) -> None:
    """Queue, topic and job that are named and not there are each at fault, one line each."""
    url = f"{workspace.endpoint}/{ACCOUNT}/no-such"
    arn = f"arn:aws:sns:{REGION}:{ACCOUNT}:no-such"
    workspace.write(control=f'job_name = "no-such"\nqueue_url = "{url}"\ntopic_arn = "{arn}"')
    faults = {each.name: each.next_move for each in workspace.findings() if each.state == "fault"}
    assert {name: move.rpartition("correct ")[2] for name, move in faults.items()} == {
        "queue": "control.queue_url",
        "topic": "control.topic_arn",
        "glue job": "control.job_name",
    }


def test_settings_in_s3(workspace: AwsWorkspace) -> None:
    """Settings may be in S3; a job that reads others is a warning."""
    s3 = workspace.client("s3")
    s3.put_object(Bucket=f"{workspace.name}-own", Key="settings.toml", Body=workspace.config.read_bytes())
    place = f"s3://{workspace.name}-own/settings.toml"
    env = {**workspace.env, "COMPACTOR_AWS__ENDPOINT_URL": workspace.endpoint, "COMPACTOR_AWS__REGION": REGION}
    result = CliRunner().invoke(command, ["--config", place, "doctor", "--elsewhere"], env=env)
    assert result.exit_code == 0, result.stdout
    assert "-> check those: --config s3://settings/prod.toml" in result.stdout
    missing = CliRunner().invoke(command, ["--config", f"{place}.no", "doctor", "--elsewhere"], env=env)
    assert missing.exit_code == 2
    assert "there is no such object" in missing.stdout


def test_what_settings_do_not_name(workspace: AwsWorkspace) -> None:
    """What is not named is skipped; claims that plan will miss are a warning, and a job may run elsewhere."""
    workspace.write(control="", builder="", metrics='sink = "log"')
    found = {each.name: each.state for each in workspace.findings() if each.state != "ok"}
    assert found == {
        "claims": "warning",
        "queue": "skipped",
        "dead letters": "skipped",
        "topic": "skipped",
        "glue job": "skipped",
    }


def test_claims_in_a_journal(workspace: AwsWorkspace) -> None:
    """Claims that are kept in a journal need no table."""
    workspace.write(builder='claims = "@journal"')
    [claims] = [each for each in workspace.findings() if each.name == "claims"]
    assert claims.state == "ok"
    assert "for back-fills only" in claims.found


def test_unreadable_events(workspace: AwsWorkspace) -> None:
    """A dead-letter queue with something in it is a warning."""
    workspace.client("sqs").send_message(
        QueueUrl=f"{workspace.endpoint}/{ACCOUNT}/{workspace.name}-dead", MessageBody="?"
    )
    [found] = [each for each in workspace.findings() if each.state != "ok"]
    assert (found.name, found.state) == ("dead letters", "warning")
    assert "1 unreadable event" in found.found


def test_table_of_another_shape(workspace: AwsWorkspace) -> None:
    """A table with another key is at fault; one whose items are never removed is a warning."""
    make_table(workspace, f"{workspace.name}-key", "id")
    make_table(workspace, f"{workspace.name}-ttl")
    workspace.write(builder=f'claims = "{workspace.name}-key"')
    assert "its key is id HASH S, expected pk HASH S" in workspace.fault().found
    workspace.write(builder=f'claims = "{workspace.name}-ttl"')
    [found] = [each for each in workspace.findings() if each.state != "ok"]
    assert found.state == "warning"
    assert "items never expire, expected by expires_at" in found.found


def test_no_credentials(workspace: AwsWorkspace) -> None:
    """Without credentials that is the one fault, and what needs them is not tried."""
    nowhere = str(workspace.folder / "nowhere")
    workspace.env.update(AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, AWS_CONFIG_FILE=nowhere)
    workspace.env.update(AWS_SHARED_CREDENTIALS_FILE=nowhere)
    found = workspace.fault()
    assert (found.name, found.found) == ("credentials", "no AWS credentials")
    assert found.next_move == "set AWS_PROFILE or run aws sso login"


def test_no_region(workspace: AwsWorkspace) -> None:
    """Without a region places are tried all the same, and the rest says what it waits for."""
    nowhere = str(workspace.folder / "nowhere")
    workspace.env.update(AWS_REGION=None, AWS_DEFAULT_REGION=None, AWS_CONFIG_FILE=nowhere)
    workspace.write(aws=f'endpoint_url = "{workspace.endpoint}"')
    findings = workspace.findings()
    assert only_fault(findings).name == "region"
    assert {each.name for each in findings if each.found == "fix region first"} >= {"claims", "queue", "glue job"}
    assert next(each for each in findings if each.name == "state").state == "ok"


def test_credentials_that_are_refused(workspace: AwsWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that S3 does not know are one fault, not one for each place."""
    monkeypatch.setattr(moto_settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)
    found = workspace.fault()
    assert found.name == "credentials"
    assert found.found.startswith("S3 refuses those from ")
    assert found.found.endswith(": InvalidAccessKeyId")


def test_leaving_this_machine_out(workspace: AwsWorkspace) -> None:
    """Where the job runs elsewhere, this machine's Java and disks are not checked."""
    workspace.env["PATH"] = str(workspace.folder)
    result = workspace.call("--elsewhere")
    assert result.exit_code == 0, result.stdout
    assert "java" not in result.stdout
    assert result.stdout.endswith("No faults.\n")


def test_an_endpoint_that_never_answers() -> None:
    """A server that takes the connection and says nothing is given up on."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        account = AwsAccount(REGION, url, timeout_seconds=2, attempts=1)
        with pytest.raises(StoreUnavailable, match="Read timeout"):
            account.server_time("bucket")


class Stranger(BaseHTTPRequestHandler):
    """A proxy that knows nothing of S3."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: Any) -> None:
        pass


def test_something_else_that_answers(workspace: AwsWorkspace) -> None:
    """A server that is none of S3 is said to be so, and not taken for one where everything is missing."""
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        workspace.write(aws=f'region = "{REGION}"\nendpoint_url = "http://127.0.0.1:{server.server_port}"')
        found = workspace.fault()
        server.shutdown()
    assert found.name == "endpoint"
    assert "something else answers there, a proxy perhaps (HTTP 404" in found.found
    assert "NO_PROXY" in found.next_move


def test_the_time_is_told_for_any_bucket(workspace: AwsWorkspace) -> None:
    """The server tells its time also where there is no such bucket."""
    account = AwsAccount(REGION, workspace.endpoint, timeout_seconds=3, attempts=1)
    assert abs((account.server_time("no-such-bucket") - datetime.now(UTC)).total_seconds()) < 60
    assert account.describe("s3", "head_bucket", Bucket="no-such-bucket") is Absent.MISSING


def test_finding_is_what_json_says(workspace: AwsWorkspace) -> None:
    """The shape of --json."""
    document = json.loads(workspace.call("--json").stdout)
    assert sorted(document) == ["faults", "findings", "warnings"]
    assert {tuple(sorted(each)) for each in document["findings"]} == {("found", "name", "next_move", "state")}
    assert replace(Finding(**document["findings"][0]), found="") == Finding("settings", "ok", "")
