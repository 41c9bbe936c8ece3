"""`compactor doctor` on AWS: endpoint, clock, region, credentials, and every resource that settings name."""

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from moto import settings as moto_settings

from compactor.adapters.aws.account import AwsAccount
from compactor.adapters.stores import StoreSpec
from compactor.core.errors import StoreUnavailable
from compactor.ops.doctor import service_checks
from compactor.ops.doctor.findings import Finding, ok, warning
from tests.contract.doctor.workspace import ACCOUNT, Workspace, examined, make_job, make_table, only_fault
from tests.support.aws_stand_in import REGION
from tests.support.memory_store import ManualClock


def test_looking_may_be_denied(workspace: Workspace, denied: Callable[..., None]) -> None:
    """Credentials that may not describe a table may still use it: a warning."""
    denied(["dynamodb:DescribeTable"], "*")
    [claims] = [each for each in workspace.findings() if each.name == "claims"]
    assert claims.state == "warning"
    assert "allow dynamodb:DescribeTable" in claims.next_move


def test_clock_off_by_an_hour(workspace: Workspace) -> None:
    """For a wrong clock, the fault says by how much and which way; checks that need it are skipped."""
    findings = examined(workspace, clock=ManualClock(datetime.now(UTC) - timedelta(hours=1)))
    found = only_fault(findings)
    assert found.name == "clock"
    assert found.found.startswith("60 min behind")
    assert "timedatectl set-ntp true" in found.next_move
    assert [each for each in findings if each.name == "state"] == [Finding("state", "skipped", "fix clock first")]


def test_missing_table(workspace: Workspace) -> None:
    """For a missing table, the fault names the table and its setting."""
    workspace.write(builder='claims = "no-such-table"')
    found = workspace.fault()
    assert (found.name, found.found) == ("claims", "no-such-table does not exist")
    assert found.next_move == "deploy it as deploy/README.md says, or correct builder.claims"


def test_no_network_endpoint(workspace: Workspace) -> None:
    """An endpoint without a server is one fault; the checks that need it are skipped and say so."""
    with socket.socket() as taken:  # bound, without a listener
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


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"runs": 3}, "MaxConcurrentRuns is 3, expected 1"),
        pytest.param({"retries": 2}, "MaxRetries is 2, expected 0", marks=pytest.mark.full),
        pytest.param({"kind": "glueetl"}, "Command.Name is glueetl, expected gluestreaming", marks=pytest.mark.full),
    ],
    ids=str,
)
def test_wrong_glue_job(workspace: Workspace, job: dict[str, Any], said: str) -> None:
    """A job that breaks what the control plane depends on is a fault."""
    make_job(workspace, f"{workspace.name}-wrong", **job)
    workspace.write(control=f'job_name = "{workspace.name}-wrong"')
    found = workspace.fault()
    assert found.name == "glue job"
    assert said in found.found


def test_missing_services(workspace: Workspace) -> None:
    """A queue, a topic and a job that settings name and that are missing are one fault each."""
    url = f"{workspace.endpoint}/{ACCOUNT}/no-such"
    arn = f"arn:aws:sns:{REGION}:{ACCOUNT}:no-such"
    workspace.write(control=f'job_name = "no-such"\nqueue_url = "{url}"\ntopic_arn = "{arn}"')
    faults = {each.name: each.next_move for each in workspace.findings() if each.state == "fault"}
    assert {name: move.rpartition("correct ")[2] for name, move in faults.items()} == {
        "queue": "control.queue_url",
        "topic": "control.topic_arn",
        "glue job": "control.job_name",
    }


def test_what_settings_do_not_name(workspace: Workspace) -> None:
    """What settings do not name is skipped; missing claims are a warning, and a job may run elsewhere."""
    workspace.write(control="", builder="", metrics='sink = "log"')
    found = {each.name: each.state for each in workspace.findings() if each.state != "ok"}
    assert found == {
        "claims": "warning",
        "queue": "skipped",
        "dead letters": "skipped",
        "topic": "skipped",
        "glue job": "skipped",
    }


def make_catalog_table(workspace: Workspace) -> str:
    """A table with one column, beside that of rescued values; its name."""
    glue, database = workspace.client("glue"), workspace.name.replace("-", "_")
    columns = [{"Name": "_rescued_data", "Type": "map<string,string>"}, {"Name": "id", "Type": "string"}]
    table = {
        "Name": "events",
        "Parameters": {"projection.enabled": "true"},
        "StorageDescriptor": {"Columns": columns},
    }
    glue.create_database(DatabaseInput={"Name": database})
    glue.create_table(DatabaseName=database, TableInput=table)
    return f"{database}.events"


COLUMNS = {"id": "string", "_rescued_data": "map<string,string>"}


def test_table_of_the_catalog(workspace: Workspace) -> None:
    """The table has to exist, with the columns of the latest schema version and its own dates."""
    account = AwsAccount(REGION, StoreSpec(REGION, workspace.endpoint, timeout_seconds=3, attempts=1).client)
    table = make_catalog_table(workspace)
    assert service_checks.table(account, table, lambda: COLUMNS) == ok(f"{table} has the columns of the output")
    lacking = service_checks.table(account, table, lambda: {**COLUMNS, "late": "bigint"})
    assert lacking == warning(f"{table} lacks 1 column, such as late", "compactor schema publish")
    wrong = service_checks.table(account, table, lambda: {**COLUMNS, "id": "bigint"})
    assert (wrong.state, wrong.next_move) == ("fault", "correct the types in the catalog")
    assert "1 column of a different type, such as id: string, expected bigint" in wrong.found
    found = workspace.client("glue").get_table(DatabaseName=table.partition(".")[0], Name="events")["Table"]
    changed = {"Name": "events", "StorageDescriptor": found["StorageDescriptor"]}
    workspace.client("glue").update_table(DatabaseName=table.partition(".")[0], TableInput=changed)
    assert "partition projection is off" in service_checks.table(account, table, lambda: COLUMNS).found


def test_unreadable_events(workspace: Workspace) -> None:
    """A dead-letter queue with something in it is a warning."""
    workspace.client("sqs").send_message(
        QueueUrl=f"{workspace.endpoint}/{ACCOUNT}/{workspace.name}-dead", MessageBody="?"
    )
    [found] = [each for each in workspace.findings() if each.state != "ok"]
    assert (found.name, found.state) == ("dead letters", "warning")
    assert "1 unreadable event" in found.found


def test_table_of_another_shape(workspace: Workspace) -> None:
    """A table with another key is a fault; one whose items never expire is a warning."""
    make_table(workspace, f"{workspace.name}-key", "id")
    make_table(workspace, f"{workspace.name}-ttl")
    workspace.write(builder=f'claims = "{workspace.name}-key"')
    assert "its key is id HASH S, expected pk HASH S" in workspace.fault().found
    workspace.write(builder=f'claims = "{workspace.name}-ttl"')
    [found] = [each for each in workspace.findings() if each.state != "ok"]
    assert found.state == "warning"
    assert "items never expire, expected by expires_at" in found.found


def test_no_credentials(workspace: Workspace) -> None:
    """Missing credentials are one fault; the checks that need them are skipped."""
    nowhere = str(workspace.folder / "nowhere")
    workspace.env.update(AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, AWS_CONFIG_FILE=nowhere)
    workspace.env.update(AWS_SHARED_CREDENTIALS_FILE=nowhere)
    found = workspace.fault()
    assert (found.name, found.found) == ("credentials", "no AWS credentials")
    assert found.next_move == "set AWS_PROFILE or run aws sso login"


def test_no_region(workspace: Workspace) -> None:
    """Without a region, places are still tried; the other checks are skipped and name the cause."""
    nowhere = str(workspace.folder / "nowhere")
    workspace.env.update(AWS_REGION=None, AWS_DEFAULT_REGION=None, AWS_CONFIG_FILE=nowhere)
    workspace.write(aws=f'endpoint_url = "{workspace.endpoint}"')
    findings = workspace.findings()
    assert only_fault(findings).name == "region"
    assert {each.name for each in findings if each.found == "fix region first"} >= {"claims", "queue", "glue job"}
    assert next(each for each in findings if each.name == "state").state == "ok"


def test_credentials_that_are_refused(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that S3 refuses are one fault, not one for each place."""
    monkeypatch.setattr(moto_settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)
    found = workspace.fault()
    assert found.name == "credentials"
    assert found.found.startswith("S3 refuses those from ")
    assert found.found.endswith(": InvalidAccessKeyId")


def test_an_endpoint_that_never_answers() -> None:
    """A server that accepts the connection and never answers runs into the timeout."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        account = AwsAccount(REGION, StoreSpec(REGION, url, timeout_seconds=1, attempts=1).client)
        with pytest.raises(StoreUnavailable, match="Read timeout"):
            account.server_time("bucket")


class Stranger(BaseHTTPRequestHandler):
    """A proxy that does not speak S3."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: Any) -> None:
        pass


def test_something_else_that_answers(workspace: Workspace) -> None:
    """A server other than S3 is recognized, and not taken for an S3 where everything is missing."""
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        workspace.write(aws=f'region = "{REGION}"\nendpoint_url = "http://127.0.0.1:{server.server_port}"')
        found = workspace.fault()
        server.shutdown()
    assert found.name == "endpoint"
    assert "a different server responds there, perhaps a proxy (HTTP 404" in found.found
    assert "NO_PROXY" in found.next_move
