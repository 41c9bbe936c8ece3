"""A deployment on a stand-in for AWS that runs by itself, and the operator who gets its mails.

The functions are those that are shipped, fed from a queue and called as by the schedule. A run of the job is a process
of `glue_entry.py`. Queues, alarms, logs, schedule and workers come from the template. A minute lasts under a second.

moto lacks three calls: UpdateJob and BatchStopJobRun of Glue, for which `GlueService` stands, and SQS's
StartMessageMoveTask, which the operator makes by hand.
"""

import importlib
import io
import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import botocore.session
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from compactor.adapters.aws.clients import aws_client
from compactor.adapters.aws.local_setup import feed, make_buckets, make_claims_table
from compactor.adapters.local.machine import SystemClock
from compactor.cli.entry import compactor as command
from compactor.ledger import heartbeat
from compactor.settings.control_policy import Policy
from compactor.settings.settings import load_settings
from compactor.settings.toml import toml_of
from compactor.telemetry.logs import LOGGER, JsonLines
from compactor.wiring import control
from compactor.wiring.app import App
from compactor.wiring.functions import forget_clients
from deploy.resolved import Document
from deploy.restart import Restart
from deploy.stack_parameters import settings_parameters
from tests.deployment.resolving import ROOT, parameters_of, resources, template
from tests.support import glue_service
from tests.support.glue_service import Definition, GlueService

REGION = "eu-central-1"
HASTE = 100.0
"""How much faster the control plane's limits pass."""

LIFE_SECONDS = 3.0
PATIENCE_SECONDS = 90.0
SLA_SECONDS = 8.0  # half of it is less than `TELL_SECONDS` of the job
RECEIVED_AT_ONCE = 10
VISIBILITY_SECONDS = "30"
BREACHES: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": float.__gt__,
    "GreaterThanOrEqualToThreshold": float.__ge__,
    "LessThanThreshold": float.__lt__,
}


@dataclass(frozen=True, slots=True)
class JobDefinition(Definition):
    """A definition of the job, with the workers, and whether its package has the compiled engine."""

    workers: int = 1
    is_native: bool = True


@dataclass
class Glue(GlueService):
    """Glue, whose runs are processes.

    Attributes:
        launch: Starts the process of a run.
    """

    launch: Callable[[Any], "subprocess.Popen[bytes]"] = field(kw_only=True)
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def pass_time(self) -> None:
        for run_id, process in self.processes.items():
            if (code := process.poll()) is not None:
                self._set(run_id, "FAILED" if code else "SUCCEEDED", f"the script ended with {code}" if code else "")
        super().pass_time()

    def _run(self, run_id: str) -> None:
        super()._run(run_id)
        self.processes[run_id] = self.launch(self.runs[run_id].definition)

    def _set(self, run_id: str, state: str, words: str = "") -> None:
        super()._set(run_id, state, words)
        if self.runs[run_id].ended_at and run_id in self.processes:
            self.processes[run_id].kill()
            self.processes[run_id].wait()

    def signal(self, sent: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the process of the run that lives; see it end if that kills it."""
        process = next(each for each in self.processes.values() if each.poll() is None)
        process.send_signal(sent)
        if sent is signal.SIGKILL:
            process.wait()


class _Lines(logging.Handler):
    """Keeps what a function logs."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class OnCall:
    """A deployment, by its parameters, and what an operator can do about it."""

    def __init__(self, endpoint: str, name: str, folder: Path) -> None:
        self.endpoint, self.name, self.folder = endpoint, name, folder
        self.work, self.staging, self.lake, self.raw = (f"{name}-{each}" for each in ("work", "staging", "lake", "raw"))
        self.config = folder / "prod.toml"
        self.seconds_a_task, self.is_built_native = 0.0, True
        self.delivered: list[str] = []
        self.asks: Callable[[str, str, dict[str, Any]], None] = lambda *_: None
        self._read: dict[Path, int] = {}
        self._clients: dict[str, Any] = {}
        self.queues: dict[str, str] = {}
        self._make()

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = aws_client(service, REGION, self.endpoint)
        return self._clients[service]

    # ------------------------------------------------------------------------------------------------- the deployment
    def _make(self) -> None:
        self._write_settings()
        self.parameters = parameters_of("prod") | self._from_settings()
        make_buckets([self.work, self.staging, self.lake, self.raw], region=REGION, endpoint_url=self.endpoint)
        self.client("s3").put_bucket_versioning(Bucket=self.work, VersioningConfiguration={"Status": "Enabled"})
        self.make_claims()
        for each in self.of_kind("AWS::SQS::Queue"):
            self.queues[each["QueueName"].removeprefix(f"{self.name}-")] = self.client("sqs").create_queue(
                QueueName=each["QueueName"], Attributes={"VisibilityTimeout": VISIBILITY_SECONDS}
            )["QueueUrl"]
        redrive = {"deadLetterTargetArn": self.arn("dead-letters"), "maxReceiveCount": self.most_receives}
        self.set_events(RedrivePolicy=json.dumps(redrive))
        notified = {"QueueArn": self.arn("events"), "Events": ["s3:ObjectCreated:*"]}
        self.client("s3").put_bucket_notification_configuration(
            Bucket=self.raw, NotificationConfiguration={"QueueConfigurations": [notified]}
        )
        self.client("sns").create_topic(Name=f"{self.name}-alarms")
        for each in self.of_kind("AWS::Logs::LogGroup"):
            self.client("logs").create_log_group(logGroupName=each["LogGroupName"])
            self.client("logs").create_log_stream(logGroupName=each["LogGroupName"], logStreamName="all")
        for each in self.of_kind("AWS::Events::Rule"):
            if "ScheduleExpression" in each:
                self.client("events").put_rule(Name=each["Name"], ScheduleExpression=each["ScheduleExpression"])
        self._write_settings()  # with the places that are known now
        self.glue = Glue(SystemClock(), Random(0), JobDefinition(), launch=self._launch)
        self.deploy()

    def _from_settings(self) -> dict[str, str]:
        # The job writes no table of Glue here, whose name the stack needs.
        return settings_parameters(load_settings(self.config, {"COMPACTOR_SCHEMA__TABLE": "prod.events"}))

    @property
    def claims(self) -> str:
        return f"{self.name}-claims"

    def make_claims(self) -> None:
        make_claims_table(self.claims, region=REGION, endpoint_url=self.endpoint)

    def set_events(self, **attributes: str) -> None:
        self.client("sqs").set_queue_attributes(QueueUrl=self.queues["events"], Attributes=attributes)

    def of_kind(self, kind: str) -> list[Document]:
        """The properties of the template's resources of one type."""
        found = resources(template(), self.parameters).values()
        return [each["Properties"] for each in found if each["Type"] == kind]

    @property
    def most_receives(self) -> int:
        return next(
            int(each["RedrivePolicy"]["maxReceiveCount"])
            for each in self.of_kind("AWS::SQS::Queue")
            if "RedrivePolicy" in each
        )

    def arn(self, queue: str) -> str:
        return f"arn:aws:sqs:{REGION}:123456789012:{self.name}-{queue}"

    def _write_settings(self) -> None:
        places = {"manifests": self.work, "output": self.lake, "state": self.work, "staging": self.staging}
        settings: dict[str, dict[str, Any]] = {
            "paths": {name: f"s3://{bucket}/{name}" for name, bucket in places.items()},
            "input": {"allowed_prefixes": [f"s3://{self.raw}"]},
            "stream": {"source": "listing", "trigger_interval_seconds": 0.1, "manifests_in_flight": 8},
            "convert": {"engine": "native"},
            "builder": {"claims": self.claims, "max_wait_seconds": 0.5, "target_manifest_bytes": 1},
            "control": {
                "job_name": self.name,
                "sla_seconds": SLA_SECONDS,
                "queue_url": self.queues.get("events", ""),
                "dead_letter_queue_url": self.queues.get("dead-letters", ""),
                "topic_arn": f"arn:aws:sns:{REGION}:123456789012:{self.name}-alarms",
            },
            "metrics": {"sink": "cloudwatch", "environment": "prod", "namespace": f"Compactor/{self.name}"},
            "aws": {"region": REGION, "endpoint_url": self.endpoint},
        }
        self.config.write_text(toml_of(settings))

    def deploy(self, *, restart: bool = False) -> None:
        """Deploy the settings and the job, as `make deploy` does; a run that lives keeps its definition."""
        self.client("s3").put_object(Bucket=self.work, Key="settings.toml", Body=self.config.read_bytes())
        [job] = self.of_kind("AWS::Glue::Job")
        self.glue.deploy(JobDefinition(workers=int(job["NumberOfWorkers"]) - 1, is_native=self.is_built_native))
        if restart:
            app = App(load_settings(self.config, {}))
            Restart(
                runs=app.runs,
                policy=control.policy_of(app.settings),
                release="",
                seconds=time.monotonic,
                pause=lambda _: self.step(),
                echo=lambda _: None,
            ).go()

    def _launch(self, definition: JobDefinition) -> "subprocess.Popen[bytes]":
        log = self.folder / f"{len(self._read)}.log"
        self._read[log] = 0
        settings = ["--CONFIG", f"s3://{self.work}/settings.toml"]
        given = [str(definition.workers), str(self.seconds_a_task), "yes" if definition.is_native else "no", *settings]
        with log.open("wb") as written:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.deployment.quick_job", *given],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=written,
                stderr=subprocess.STDOUT,
            )

    # ------------------------------------------------------------------------------------------------- what it does
    def deliver(self, *names: str) -> None:
        for name in names:
            self.client("s3").put_object(
                Bucket=self.raw, Key=f"2026-01-02-{name}.ndjson", Body=json.dumps({"id": name})
            )
            self.delivered.append(name)

    def step(self) -> None:
        """What happens in a minute: Lambda takes the queue's messages, and the schedule calls what it calls."""
        self.glue.pass_time()
        self._ship()
        self.call("manifest-builder", self._feed)
        self.call("manifest-sealer", lambda handler: handler({}, None))
        if self.client("events").describe_rule(Name=f"{self.name}-control")["State"] == "ENABLED":
            self.call("control-plane", lambda handler: handler({}, None))
        time.sleep(0.1)

    def _feed(self, handler: Any) -> None:
        feed(self.client("sqs"), self.queues["events"], handler, batch_size=RECEIVED_AT_ONCE)

    def call(self, name: str, made: Callable[[Any], object]) -> None:
        """Call a function as Lambda does: what it logs, and the error that ends it, are in its log."""
        kept = _Lines()
        LOGGER.addHandler(kept)
        try:
            made(importlib.import_module(f"lambdas.{name.replace('-', '_')}").handler)
        except Exception as exc:  # noqa: BLE001 - Lambda goes on with the next call
            kept.lines.append(f"[ERROR] {type(exc).__name__}: {exc}")
        finally:
            LOGGER.removeHandler(kept)
        self._log(f"/aws/lambda/{self.name}-{name}", kept.lines)

    def _ship(self) -> None:
        for log, position in self._read.items():
            whole, _, _ = log.read_bytes()[position:].rpartition(b"\n")
            self._read[log] += len(whole) + 1 if whole else 0
            self._log(f"/aws-glue/{self.name}/output", whole.decode().splitlines())

    def _log(self, group: str, lines: Sequence[str]) -> None:
        if lines:
            now = int(time.time() * 1000)
            events = [{"timestamp": now, "message": line} for line in lines if line]
            self.client("logs").put_log_events(logGroupName=group, logStreamName="all", logEvents=events)

    def until(self, holds: Callable[[], object]) -> None:
        """Let time pass until something holds."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < end, "\n".join([*self.words("status"), *self.words("job", "check", "--dry-run")])
            self.step()

    # ------------------------------------------------------------------------------------------------- what people see
    def mails(self, since: datetime, *, at_once: bool = False) -> dict[str, str]:
        """The alarms that hold since then, with their text; this time stands for all periods of each.

        Args:
            since: When it began.
            at_once: One measurement is enough, also where an alarm wants all of them.
        """
        return {
            each["AlarmName"].removeprefix(f"{self.name}-"): each["AlarmDescription"]
            for each in self.of_kind("AWS::CloudWatch::Alarm")
            if "MetricName" in each and self._rings(each, since, at_once=at_once)
        }

    def _rings(self, alarm: Document, since: datetime, *, at_once: bool) -> bool:
        statistic = "Maximum" if at_once and alarm["Statistic"] == "Minimum" else alarm["Statistic"]
        found = self.client("cloudwatch").get_metric_statistics(
            Namespace=alarm["Namespace"],
            MetricName=alarm["MetricName"],
            Dimensions=alarm["Dimensions"],
            StartTime=since,
            EndTime=datetime.now(UTC) + timedelta(seconds=1),
            Period=86_400,
            Statistics=[statistic],
        )["Datapoints"]
        if not found:
            lasts = timedelta(seconds=alarm["Period"] * alarm["EvaluationPeriods"] / HASTE)
            is_over = datetime.now(UTC) >= since + lasts
            return is_over and alarm["TreatMissingData"] == "missing" and bool(alarm["InsufficientDataActions"])
        return any(
            BREACHES[alarm["ComparisonOperator"]](float(each[statistic]), float(alarm["Threshold"])) for each in found
        )

    def compactor(self, *words: str) -> tuple[int, str]:
        """The exit code and the output of a command."""
        result = CliRunner().invoke(command, ["--config", str(self.config), *words])
        assert not result.exception or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.output

    def words(self, *words: str) -> list[str]:
        return self.compactor(*words)[1].splitlines()

    def is_healthy(self) -> bool:
        """Whether all that was delivered is a row once, and `status` and `verify` have nothing to say."""
        if sorted(self.rows()) != sorted(self.delivered):
            return False
        code, status = self.compactor("status", "--json")
        word = json.loads(status)["state"]["word"]
        return code == 0 and word in {"running", "idle"} and self.compactor("verify", "--deep")[0] == 0

    def waiting(self, queue: str) -> int:
        """The messages of a queue."""
        asked = self.client("sqs").get_queue_attributes(
            QueueUrl=self.queues[queue], AttributeNames=["ApproximateNumberOfMessages"]
        )
        return int(asked["Attributes"]["ApproximateNumberOfMessages"])

    def records(self) -> set[str]:
        """The keys of the records."""
        listed = self.client("s3").list_objects_v2(Bucket=self.work, Prefix="state/").get("Contents", ())
        return {each["Key"] for each in listed}

    def rows(self) -> list[str]:
        s3 = self.client("s3")
        listed = s3.list_objects_v2(Bucket=self.lake).get("Contents", ())
        bodies = [s3.get_object(Bucket=self.lake, Key=each["Key"])["Body"].read() for each in listed]
        return [row["id"] for each in bodies for row in pq.read_table(io.BytesIO(each)).to_pylist()]

    # ------------------------------------------------------------------------------------------------- what they do
    def operate(self, line: str) -> str:
        """Run a command of the runbook; what it prints."""
        program, *words = shlex.split(line)
        if program == "compactor":
            # A prompt wants a terminal.
            return self.compactor(*words, *(["--yes"] if words[0] == "restore" else []))[1]
        if program == "make":
            assert words[0] == "deploy", line
            assert "ENV=prod" in words, line
            self.parameters |= self._from_settings()
            self.deploy(restart="RESTART=1" in words)
            return ""
        assert program == "aws", line
        if words[:2] == ["logs", "tail"]:
            return self._tail(words[2], _options(words[3:]))
        return self._call_aws(words[0], words[1], _options(words[2:]))

    def _tail(self, group: str, options: Mapping[str, str]) -> str:
        minutes = {"m": 1, "h": 60}[options["since"][-1]] * int(options["since"][:-1])
        start = datetime.now(UTC) - timedelta(minutes=minutes)
        pattern = options.get("filter-pattern", "")
        # "Terms that include other than alphanumeric or underscore characters must be placed inside double quotes"
        # [CloudWatch Logs user guide, filter and pattern syntax].
        assert re.fullmatch(r'\w*|"[^"]+"', pattern), f"invalid filter pattern {pattern}"
        found = self.client("logs").filter_log_events(
            logGroupName=group, startTime=int(start.timestamp() * 1000), filterPattern=pattern
        )
        return "\n".join(each["message"] for each in found["events"])

    def _call_aws(self, service: str, operation: str, options: Mapping[str, str]) -> str:
        method = operation.replace("-", "_")
        name = {botocore.xform_name(each): each for each in _model(service).operation_names}[method]
        members = _model(service).operation_model(name).input_shape.members
        spelt = {botocore.xform_name(each, "-"): each for each in members}
        given: dict[str, Any] = {
            spelt[option]: [value] if members[spelt[option]].type_name == "list" else value
            for option, value in options.items()
        }
        if method == "start_message_move_task":
            return self._move(given["SourceArn"])
        if service == "glue":
            self.asks(service, method, given)
            return str(getattr(self.glue, method)(**given))
        return str(getattr(self.client(service), method)(**given))

    def _move(self, arn: str) -> str:
        sqs, source = self.client("sqs"), self.queues[arn.rpartition(":")[2].removeprefix(f"{self.name}-")]
        while found := sqs.receive_message(QueueUrl=source, MaxNumberOfMessages=10).get("Messages", ()):
            for each in found:
                sqs.send_message(QueueUrl=self.queues["events"], MessageBody=each["Body"])
                sqs.delete_message(QueueUrl=source, ReceiptHandle=each["ReceiptHandle"])
        return ""


def _options(words: Sequence[str]) -> dict[str, str]:
    return {word.removeprefix("--"): value for word, value in zip(words[::2], words[1::2], strict=True)}


def _model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


def hastened(policy: Policy) -> Policy:
    """A policy whose own limits pass sooner; those of the settings stay."""
    own = Policy.model_fields.keys() - Policy.__base__.model_fields.keys()  # type: ignore[union-attr]
    limits = {name: getattr(policy, name) / HASTE for name in own if name.endswith("_seconds")}
    return policy.model_copy(update=limits)


@contextmanager
def on_call(endpoint: str, name: str, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[OnCall]:
    """A deployment at work, with processes of its own that end with it."""
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(variable, "x")
    patch.setenv("COMPACTOR_CONFIG", f"s3://{name}-work/settings.toml")
    patch.setenv("COMPACTOR_AWS__ENDPOINT_URL", endpoint)
    patch.setenv("AWS_REGION", REGION)
    patch.setattr(heartbeat, "LIFE_SECONDS", LIFE_SECONDS)
    patch.setattr(glue_service, "STARTING_SECONDS", 0.1)
    patch.setattr(glue_service, "STOPPING_SECONDS", 0.1)
    policy_of, aws = control.policy_of, control._aws
    patch.setattr(control, "policy_of", lambda settings: hastened(policy_of(settings)))
    forget_clients()
    made = OnCall(endpoint, name, folder)
    patch.setattr(control, "_aws", lambda app, service: made.glue if service == "glue" else aws(app, service))
    try:
        yield made
    finally:
        for process in made.glue.processes.values():
            process.kill()
            process.wait()
        forget_clients()
