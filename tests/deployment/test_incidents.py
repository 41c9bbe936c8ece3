"""Six incidents on a stand-in for AWS, from the mail of the alarm to the fix, by the commands of the runbook's row."""

import math
import re
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compactor.core.rules.backoff import pause_seconds
from compactor.demo.local_aws import local_aws
from compactor.job.retries import STUCK_PAUSE_SECONDS
from compactor.settings.control_policy import Policy
from compactor.settings.settings import load_settings
from tests.deployment.on_call import VISIBILITY_SECONDS, OnCall, on_call
from tests.deployment.resolving import ROOT, Document, parameters_of, resources, template
from tests.deployment.test_people import Iam, iam, policy
from tests.deployment.test_runbook import table
from tests.support.extras import NATIVE
from tests.support.glue_service import STARTING_SECONDS, STOPPING_SECONDS

__all__ = ["iam"]  # a fixture

FILES = tuple("abcdefgh")
FOUND = {"<run>": r"^runs +(\S+) RUNNING", "<object>": r"(s3://\S+?)[:\s\"]"}
"""What a command of the runbook leaves open, as the output of the commands before shows it."""

CHECK_SECONDS = 60.0  # the schedule of the control plane and the sealer
COMMAND_SECONDS = 60.0  # all commands of a row together, without what they wait for
LIMITS = Policy()
PROD = parameters_of("prod")


@dataclass(frozen=True, kw_only=True)
class Incident:
    """One incident.

    Attributes:
        breaks: Brings it about.
        shows: The output of the commands that names the cause.
        changes: What the operator then changes beside.
        until_mail: Seconds from the fault to the mail; those of the alarm by default.
        until_fix: Seconds that settings and services make an operator wait, once the commands have run.
    """

    breaks: Callable[[OnCall], None]
    shows: str
    changes: Callable[[OnCall], None] = lambda _: None
    until_mail: float = 0.0
    until_fix: float


def hang(scene: OnCall) -> None:
    """The process of the job stops, while no work waits that would have the control plane end it."""
    scene.glue.signal(signal.SIGSTOP)


def lose_the_engine(scene: OnCall) -> None:
    """A package without the compiled engine, which the settings require, is deployed."""
    scene.is_built_native = False
    scene.deploy()
    scene.glue.signal()
    scene.deliver("amid")


def build_the_engine(scene: OnCall) -> None:
    scene.is_built_native = True


def lose_the_claims(scene: OnCall) -> None:
    """The claims table is gone, until each message was received as often as the queue allows."""
    scene.client("dynamodb").delete_table(TableName=scene.claims)
    scene.set_events(VisibilityTimeout="0")
    scene.deliver(*(f"amid-{each}" for each in FILES))
    scene.until(lambda: scene.waiting("dead-letters") == len(FILES))
    scene.set_events(VisibilityTimeout=VISIBILITY_SECONDS)


def slow_down(scene: OnCall) -> None:
    """Files take the workers longer than they have."""
    scene.seconds_a_task = 1.6
    scene.glue.signal()
    scene.deliver(*(f"amid-{each}" for each in FILES))


def add_workers(scene: OnCall) -> None:
    scene.parameters["MaxWorkers"] = "9"


def damage(scene: OnCall) -> None:
    """A run dies amid a manifest, and what was recorded about the manifest is overwritten."""
    scene.seconds_a_task = 2.0
    scene.glue.signal()
    before = scene.records()
    scene.deliver("amid")
    scene.until(lambda: any("attempt" in key for key in scene.records() - before))
    scene.glue.signal()
    [key] = [key for key in scene.records() - before if "/accepted/" in key]
    scene.client("s3").put_object(Bucket=scene.work, Key=key, Body=b"damaged")


def silence(scene: OnCall) -> None:
    """The schedule is disabled, and the run dies."""
    scene.client("events").disable_rule(Name=f"{scene.name}-control")
    scene.glue.signal()
    scene.deliver("amid")


def pause(failures: int) -> float:
    """How long the control plane waits after some failed runs."""
    first, longest = LIMITS.backoff_first_seconds, LIMITS.backoff_longest_seconds
    return pause_seconds(failures, first_seconds=first, longest_seconds=longest, chance=1.0)


def alarm_of(name: str) -> Document:
    found = [each["Properties"] for each in resources(template(), PROD).values() if "Alarm" in each["Type"]]
    return next(each for each in found if each["AlarmName"].endswith(f"-{name}"))


def failing_for() -> float:
    """How long the builder fails before a message is a dead letter."""
    found = [each["Properties"] for each in resources(template(), PROD).values() if each["Type"] == "AWS::SQS::Queue"]
    queue = next(each for each in found if "RedrivePolicy" in each)
    return float(queue["VisibilityTimeout"] * queue["RedrivePolicy"]["maxReceiveCount"])


STARTS_BEFORE_MAIL = int(alarm_of("crash-loop")["Threshold"])

INCIDENTS = {
    "no-heartbeat": Incident(
        breaks=hang,
        shows="is RUNNING and sends no heartbeat",
        until_fix=STOPPING_SECONDS + CHECK_SECONDS + pause(1) + STARTING_SECONDS,
    ),
    "crash-loop": Incident(
        breaks=lose_the_engine,
        shows="native",
        changes=build_the_engine,
        until_mail=sum(map(pause, range(1, STARTS_BEFORE_MAIL + 1))) + (STARTS_BEFORE_MAIL - 1) * STARTING_SECONDS,
        until_fix=CHECK_SECONDS + STARTING_SECONDS,
    ),
    "events-dead-lettered": Incident(
        breaks=lose_the_claims,
        shows="ResourceNotFound",
        changes=OnCall.make_claims,
        until_mail=failing_for() + CHECK_SECONDS,
        until_fix=int(PROD["BuilderWindowSeconds"])
        + load_settings(ROOT / "config" / "prod.toml", {}).builder.max_wait_seconds
        + CHECK_SECONDS,
    ),
    "long-batches": Incident(
        breaks=slow_down,
        shows="",
        changes=add_workers,
        until_fix=LIMITS.drain_seconds + CHECK_SECONDS + STARTING_SECONDS,
    ),
    "manifests-stuck": Incident(breaks=damage, shows="expected a record of kind", until_fix=STUCK_PAUSE_SECONDS),
    "control-plane-silent": Incident(breaks=silence, shows="was started", until_fix=STARTING_SECONDS),
}
"""By the name of the alarm that sends the mail."""

SMALLEST = "control-plane-silent"


def commands(row: str) -> list[str]:
    """The commands of a row of the runbook."""
    return [each for each in re.findall(r"`([^`]+)`", row) if each.split()[0] in {"compactor", "aws", "make"}]


def filled(line: str, shown: str) -> str:
    """A command with what the output of others names."""
    for what, pattern in FOUND.items():
        if what in line:
            line = line.replace(what, re.findall(pattern, shown, re.MULTILINE)[-1])
    return line


def next_second() -> datetime:
    """The begin of the next second, once it is there: measurements have whole seconds."""
    time.sleep(1 - time.time() % 1)
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A stand-in in a process of its own, so that the job does not wait for this one."""
    with local_aws() as url:
        yield url


@pytest.fixture
def scene(endpoint: str, iam: Iam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnCall]:
    NATIVE.need()
    with on_call(endpoint, f"job-{uuid.uuid4().hex[:8]}", tmp_path, monkeypatch) as made:
        made.asks = iam.check
        yield made


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "alarm", [pytest.param(each, marks=() if each == SMALLEST else pytest.mark.full) for each in INCIDENTS]
)
def test_from_the_mail_to_the_fix(alarm: str, scene: OnCall, iam: Iam) -> None:
    """The mail is the row of the runbook, its commands show the cause and heal, and each file is a row once.

    What is no deployment is done with the rights of an operator.
    """
    incident = INCIDENTS[alarm]
    scene.deliver("before")
    scene.until(scene.is_healthy)
    incident.breaks(scene)
    began = next_second()
    scene.until(lambda: alarm in scene.mails(began))
    mail = scene.mails(began)[alarm]
    scene.step()  # logs arrive
    means, _, row = (
        each.replace("<job>", scene.name).replace("<environment>", "prod") for each in table("## Alarms")[alarm]
    )
    assert mail == f"{means} {row}"
    rights = [*policy("ReadOnlyPolicy", scene.parameters), *policy("OperatorPolicy", scene.parameters)]
    shown, seconds, has_changed = "", 0.0, False
    for command in commands(row):
        iam.statements = None if command.startswith("make") else rights
        started = time.monotonic()
        shown += scene.operate(filled(command, shown)) + "\n"
        seconds += 0.0 if iam.statements is None else time.monotonic() - started
        iam.statements = None
        if not has_changed and re.search(incident.shows, shown):
            incident.changes(scene)
            has_changed = True
        scene.step()
    assert has_changed, shown
    assert iam.refused == []
    assert seconds < COMMAND_SECONDS
    scene.until(scene.is_healthy)
    fixed = next_second()
    scene.deliver(*FILES)
    scene.until(scene.is_healthy)
    assert alarm not in scene.mails(fixed, at_once=True)
    sys.stdout.write(f"{alarm}: {seconds:.1f} s of commands\n")


def test_the_table_of_incidents() -> None:
    """The runbook has the number of commands of each incident, and the minutes that its settings impose."""
    found = {
        name: [int(each.replace(",", "")) for each in numbers] for name, (_, *numbers) in table("## Walked").items()
    }
    expected: dict[str, list[int]] = {}
    for name, incident in INCIDENTS.items():
        alarm = alarm_of(name)
        until_mail = incident.until_mail or alarm["Period"] * alarm["DatapointsToAlarm"]
        steps = len(commands(table("## Alarms")[name][-1]))
        expected[name] = [steps, *(math.ceil(each / 60) for each in (until_mail, incident.until_fix))]
    assert found == expected
