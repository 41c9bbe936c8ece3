"""The function on a stand-in for AWS: settings from S3, Glue's runs, queues, a topic, and both kinds of events."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from moto.moto_api import state_manager

from compactor.adapters.aws.clients import aws_client
from compactor.cli.entry import compactor as command
from lambdas.control_plane import handler
from tests.support.aws_stand_in import REGION

SCHEDULE = {"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "detail": {}}


@dataclass(frozen=True)
class Deployed:
    """What a deployment has made."""

    job_name: str
    bucket: str
    config: Path
    glue: Any
    s3: Any
    sqs: Any
    queue_url: str
    inbox_url: str

    def states(self) -> list[str]:
        return [run["JobRunState"] for run in self.glue.get_job_runs(JobName=self.job_name)["JobRuns"]]

    def told(self) -> list[str]:
        """The messages that people got since the last time."""
        found = self.sqs.receive_message(QueueUrl=self.inbox_url, MaxNumberOfMessages=10).get("Messages", ())
        for message in found:
            self.sqs.delete_message(QueueUrl=self.inbox_url, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"])["Message"] for message in found]

    def event(self, job_name: str) -> dict[str, Any]:
        detail = {"jobName": job_name, "severity": "ERROR", "state": "FAILED", "jobRunId": "jr_1", "message": "boom"}
        return {"version": "0", "detail-type": "Glue Job State Change", "source": "aws.glue", "detail": detail}


@pytest.fixture(scope="module")
def clients(aws_endpoint: str) -> list[Any]:
    return [aws_client(name, REGION, aws_endpoint) for name in ("glue", "sqs", "sns")]


@pytest.fixture
def deployed(
    aws_endpoint: str, clients: list[Any], s3: Any, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deployed]:
    glue, sqs, sns = clients
    name = f"compactor-{uuid.uuid4().hex[:8]}"
    glue.create_job(Name=name, Role="role", Command={"Name": "gluestreaming", "ScriptLocation": "s3://b/glue_entry.py"})
    queues = [sqs.create_queue(QueueName=f"{name}-{kind}")["QueueUrl"] for kind in ("events", "dead", "inbox")]
    topic_arn = sns.create_topic(Name=name)["TopicArn"]
    inbox = sqs.get_queue_attributes(QueueUrl=queues[2], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic_arn, Protocol="sqs", Endpoint=inbox)
    settings = f"""
        [paths]
        manifests = "s3://{bucket}/manifests"
        output = "s3://{bucket}/output"
        state = "s3://{bucket}/state"
        [input]
        allowed_prefixes = ["s3://raw"]
        [control]
        job_name = "{name}"
        queue_url = "{queues[0]}"
        dead_letter_queue_url = "{queues[1]}"
        topic_arn = "{topic_arn}"
        [aws]
        region = "{REGION}"
        endpoint_url = "{aws_endpoint}"
    """
    s3.put_object(Bucket=bucket, Key="settings.toml", Body=settings.encode())
    config = tmp_path / "settings.toml"
    config.write_text(settings + '[metrics]\nsink = "none"\n')
    monkeypatch.setenv("COMPACTOR_CONFIG", f"s3://{bucket}/settings.toml")
    monkeypatch.setenv("COMPACTOR_AWS__ENDPOINT_URL", aws_endpoint)
    monkeypatch.setenv("AWS_REGION", REGION)
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 1_000_000})
    yield Deployed(name, bucket, config, glue, s3, sqs, queues[0], queues[2])
    state_manager.unset_transition("glue::job_run")


def test_the_schedule_keeps_the_job_up(deployed: Deployed) -> None:
    """A job that is down is started, people are notified, and the next call leaves it alone."""
    first = handler(SCHEDULE, None)
    assert first["done"][0].endswith("was started: no run on record")
    assert deployed.states() == ["STARTING"]
    assert len(deployed.told()) == 1
    second = handler(SCHEDULE, None)
    assert (second["done"], second["failed"], len(second["decided"])) == ([], [], 1)
    assert deployed.states() == ["STARTING"]
    assert deployed.told() == []


def test_an_event_of_glue(deployed: Deployed) -> None:
    """An event of the job leads to a check; one of another job does not."""
    assert handler(deployed.event("another-job"), None) == {"ignored": "an event of job another-job"}
    assert deployed.states() == []
    assert handler(deployed.event(deployed.job_name), None)["done"]
    assert deployed.states() == ["STARTING"]


def test_a_job_that_does_not_exist(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Glue does not know the job, everything else is read, and people are notified once."""
    monkeypatch.setenv("COMPACTOR_CONTROL__JOB_NAME", "nowhere")
    for _ in range(2):
        answer = handler(SCHEDULE, None)
        assert answer["done"] == []
        assert "Glue job nowhere" in answer["decided"][0]
    [text] = deployed.told()
    assert "the run history could not be read" in text


def test_what_the_function_measures(deployed: Deployed, aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the function has returned, its measurements are in CloudWatch, under the job and its environment."""
    monkeypatch.setenv("COMPACTOR_METRICS__SINK", "cloudwatch")
    handler(SCHEDULE, None)
    found = aws_client("cloudwatch", REGION, aws_endpoint).list_metrics(
        Namespace="Compactor", Dimensions=[{"Name": "Job", "Value": deployed.job_name}]
    )["Metrics"]
    assert {metric["MetricName"] for metric in found} >= {"JobState", "QueueDepth", "DeadLetterDepth", "Restarts"}
    assert {tuple(each["Name"] for each in metric["Dimensions"]) for metric in found} == {("Job", "Environment")}


def test_a_changed_policy_takes_effect_at_once(deployed: Deployed) -> None:
    """The settings are read in each call: what they say now is what is done."""
    settings = deployed.config.read_text().replace("[control]", '[control]\nmode = "never"')
    deployed.s3.put_object(Bucket=deployed.bucket, Key="settings.toml", Body=settings.encode())
    assert handler(SCHEDULE, None)["decided"] == ['wait: no run, and control.mode is "never"']
    deployed.s3.put_object(Bucket=deployed.bucket, Key="settings.toml", Body=deployed.config.read_bytes())
    assert handler(SCHEDULE, None)["done"]


def control(deployed: Deployed, *options: str) -> Result:
    return CliRunner().invoke(command, ["--config", str(deployed.config), "job", "check", *options])


def test_a_dry_run(deployed: Deployed) -> None:
    """A dry run shows what is seen and what would be done, and does nothing."""
    deployed.sqs.send_message(QueueUrl=deployed.queue_url, MessageBody="x")
    result = control(deployed, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "would start: no run on record" in result.stdout
    assert shows(result.stdout, "queue 1 message, 0 in flight")
    assert deployed.states() == []


def test_something_wrong_needs_an_operator(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alarm ends the command with 3, and names what is wrong."""
    monkeypatch.setenv("COMPACTOR_CONTROL__JOB_NAME", "nowhere")
    result = control(deployed, "--dry-run")
    assert result.exit_code == 3
    assert "alarm: the run history could not be read" in result.stdout
    assert shows(result.stdout, "runs unknown")


def test_closing_the_breaker(deployed: Deployed) -> None:
    """The order is an object below the state, and nothing else is done."""
    result = control(deployed, "--close-breaker")
    assert (result.exit_code, result.stdout) == (0, "The breaker is closed: past failures no longer count.\n")
    found = deployed.s3.get_object(Bucket=deployed.bucket, Key="state/control/breaker-closed.json")["Body"].read()
    assert set(json.loads(found)) == {"closed_at", "checksum"}
    assert set(json.loads(control(deployed, "--close-breaker", "--json").stdout)) == {"closed_at"}
    assert deployed.states() == []
    assert control(deployed, "--close-breaker", "--dry-run").exit_code == 2


def shows(text: str, wanted: str) -> bool:
    """Whether a text holds some words, however they are spaced."""
    return wanted in " ".join(text.split())
