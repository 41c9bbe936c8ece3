"""The job on ECS: what a start asks for, one task at a time, and how a task ended."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from compactor.adapters.aws.ecs_job import EcsJob
from compactor.cli.entry import compactor as command
from compactor.control.plane import running_cost
from compactor.control.snapshot import JobState, Snapshot
from compactor.core.errors import AccessError, SettingsError, StoreUnavailable
from compactor.ops.doctor import account_checks
from compactor.settings.sections import Ecs
from compactor.settings.settings import parse_settings
from compactor.wiring.app import App
from compactor.wiring.control import job_runs, policy_of, started_job
from tests.support.ecs_stand_in import CLUSTER, FAMILY, EcsStandIn
from tests.support.memory_store import ManualClock, MemoryStore

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
GIVEN = {
    "cluster": CLUSTER,
    "task_definition": FAMILY,
    "subnets": ["subnet-1", "subnet-2"],
    "security_groups": ["sg-1"],
}
DOCUMENT = {
    "paths": {name: f"s3://bucket/{name}" for name in ("manifests", "output", "state")},
    "input": {"allowed_prefixes": ["s3://raw-bucket/"]},
    "convert": {"engine": "native"},
    "aws": {"region": "eu-central-1"},
    "ecs": GIVEN,
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def ecs(clock: ManualClock) -> EcsStandIn:
    return EcsStandIn(clock.now)


@pytest.fixture
def job(clock: ManualClock, ecs: EcsStandIn) -> EcsJob:
    place = "s3://bucket/dev/settings/1.toml"
    wanted = Ecs.model_validate(GIVEN)
    return EcsJob(ecs=ecs, name="dev", wanted=wanted, settings_place=place, clock=clock, defined_at=lambda: None)


def started(job: EcsJob) -> str:
    """Start a task; returns its id."""
    run_id = job.start()
    assert run_id is not None
    return run_id


def test_what_a_task_is_started_with(job: EcsJob, ecs: EcsStandIn) -> None:
    """The program's own words with the settings and the shard, in the given network, on the given capacity."""
    started(replace(job, shard="2/4"))
    [request] = ecs.requests
    assert (request["startedBy"], request["taskDefinition"]) == ("dev", FAMILY)
    assert request["capacityProviderStrategy"] == [{"capacityProvider": "FARGATE"}]
    network = request["networkConfiguration"]["awsvpcConfiguration"]
    assert network == {"subnets": GIVEN["subnets"], "securityGroups": ["sg-1"], "assignPublicIp": "DISABLED"}
    [container] = request["overrides"]["containerOverrides"]
    words = container["command"]
    assert (words[:2], words[-2:]) == (["--config", "s3://bucket/dev/settings/1.toml"], ["--shard", "2/4"])
    assert CliRunner().invoke(command, [*words, "--help"]).exit_code == 0


def test_two_starts_at_once_are_one(job: EcsJob, ecs: EcsStandIn) -> None:
    """Two control planes that both see no task send one token, and get one task."""
    blind = replace(job, ecs=SimpleNamespace(run_task=ecs.run_task, get_paginator=lambda _: _Nothing()))
    assert blind.start() == blind.start()
    assert len(ecs.tasks) == 1
    assert replace(blind, name="dev-shard-2").start() not in {None, blind.start()}, "another job has its own tokens"


class _Nothing:
    def paginate(self, **_request: Any) -> list[dict[str, Any]]:
        return [{"taskArns": []}]


def test_no_room(job: EcsJob, ecs: EcsStandIn) -> None:
    """A start without room comes with a good answer; the next check tries again."""
    ecs.failures.append({"reason": "RESOURCE:ENI", "detail": "none is left"})
    with pytest.raises(StoreUnavailable, match="no task was started: RESOURCE:ENI none is left"):
        job.start()
    assert started(job)


@pytest.mark.parametrize(
    ("change", "state", "error"),
    [
        ({"last_status": "PENDING"}, JobState.STARTING, ""),
        ({"last_status": "RUNNING"}, JobState.RUNNING, ""),
        ({"last_status": "RUNNING", "desired_status": "STOPPED"}, JobState.STOPPING, ""),
        ({"last_status": "DEPROVISIONING", "desired_status": "STOPPED"}, JobState.STOPPING, ""),
        ({"last_status": "PONDERING"}, JobState.UNKNOWN, ""),
        ({"last_status": "STOPPED", "exitCode": 0}, JobState.SUCCEEDED, ""),
        ({"last_status": "STOPPED", "exitCode": 3}, JobState.SUCCEEDED, ""),
        ({"last_status": "STOPPED", "exitCode": 2, "stoppedReason": "it exited"}, JobState.FAILED, "it exited"),
        ({"last_status": "STOPPED", "stopCode": "TaskFailedToStart"}, JobState.FAILED, ""),
        ({"last_status": "STOPPED", "exitCode": 137, "stopCode": "SpotInterruption"}, JobState.STOPPED, ""),
        ({"last_status": "STOPPED", "exitCode": 1, "stopCode": "UserInitiated"}, JobState.STOPPED, ""),
    ],
)
def test_the_state_of_a_task(job: EcsJob, ecs: EcsStandIn, change: dict[str, Any], state: JobState, error: str) -> None:
    """By its status, what is wanted of it, why it stopped, and the exit code of the job: 3 is no failure."""
    ecs.set(started(job), **change)
    [run] = job.list(LONG_AGO)
    assert (run.state, run.error, run.ended_at is None) == (state, error, state.is_living)


@pytest.mark.parametrize(
    ("provider", "hour"), [("FARGATE", 2 * 0.04048 + 4 * 0.004445), ("FARGATE_SPOT", None), ("ours", None)]
)
def test_what_a_task_costs(job: EcsJob, ecs: EcsStandIn, provider: str, hour: float | None) -> None:
    """The control plane knows the price of a task on Fargate, and says none of what costs otherwise."""
    ecs.set(started(job), "RUNNING", capacityProviderName=provider, cpu="2048", memory="4096")
    [run] = job.list(LONG_AGO)
    found = running_cost(Snapshot(runs=(run,)), NOON)
    assert found == ({} if hour is None else {"EstimatedDollarsPerHour": pytest.approx(hour)})


def test_a_task_that_has_lived_for_weeks_is_listed(job: EcsJob, clock: ManualClock) -> None:
    """However old it is, no second one is started beside it."""
    run_id = started(job)
    clock.advance(40 * 86_400)
    assert [run.run_id for run in job.list(NOON + timedelta(days=30))] == [run_id]
    assert job.start() is None


def test_a_start_after_the_history_was_forgotten(job: EcsJob, ecs: EcsStandIn, clock: ManualClock) -> None:
    """Its token is not that of an earlier start, which would stand for a task that has ended."""
    ecs.forgets = True
    for _ in range(3):
        ecs.end(started(job), JobState.SUCCEEDED)
        clock.advance(2 * 3600)
        assert list(job.list(LONG_AGO)) == []
    assert len(ecs.tasks) == 3


def test_tasks_of_others_are_left_alone(job: EcsJob, ecs: EcsStandIn) -> None:
    """Such as those of another shard."""
    ecs.add("dev-shard-2")
    assert list(job.list(LONG_AGO)) == []
    assert job.start() is not None


def test_stopping(job: EcsJob) -> None:
    """A stop is a signal and then a kill; of a task that is unknown, the refusal is an error."""
    job.stop(started(job))
    assert job.list(LONG_AGO)[0].state is JobState.STOPPING
    assert job.start() is None
    with pytest.raises(AccessError, match="ECS cluster compactor-dev: StopTask failed with InvalidParameterException"):
        job.stop("0")


def test_the_settings_of_a_task(clock: ManualClock, ecs: EcsStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task reads the settings of the control plane; when these were written is when the job was defined."""
    settings, store = parse_settings(DOCUMENT), MemoryStore(clock)
    store.put("s3://bucket/c.toml", b"")
    monkeypatch.setenv("COMPACTOR_CONFIG", "s3://bucket/c.toml")
    app = App(settings, store=store, clock=clock)
    job = started_job(app, ecs)
    assert job.defined_at() == NOON
    job.start()
    assert "s3://bucket/c.toml" in ecs.requests[0]["overrides"]["containerOverrides"][0]["command"]
    assert isinstance(job_runs(app), EcsJob)
    assert policy_of(settings).service == "ECS"
    monkeypatch.setenv("COMPACTOR_CONFIG", "here.toml")
    with pytest.raises(SettingsError, match="the runs on ECS also read"):
        started_job(app, ecs)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"ecs": {**GIVEN, "subnets": []}}, "ecs.subnets"),
        ({"ecs": {**GIVEN, "task_definition": ""}}, "ecs.task_definition"),
        ({"convert": {}}, "convert.engine"),
        ({"stream": {"source": "spark"}}, "stream.source"),
        ({"emr": {"application_id": "00f"}}, "either"),
    ],
)
def test_settings_that_lack_something(change: dict[str, Any], fault: str) -> None:
    """What the job needs on ECS is required at once, and one service alone runs it."""
    with pytest.raises(SettingsError, match=fault):
        parse_settings({**DOCUMENT, **change})


@pytest.mark.parametrize(
    ("clusters", "state"),
    [([{"status": "ACTIVE"}], "ok"), ([{"status": "INACTIVE"}], "fault"), ([], "fault")],
)
def test_the_doctor_knows_the_cluster(clusters: list[dict[str, Any]], state: str) -> None:
    """It is there, and active."""
    account: Any = SimpleNamespace(describe=lambda *_, **__: {"clusters": clusters})
    assert account_checks.cluster(account, CLUSTER).state == state
