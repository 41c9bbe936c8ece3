"""The job on EMR Serverless: what a start asks for, one run at a time, and what the service refuses."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from compactor.adapters.aws.emr_job import EmrJob
from compactor.control.snapshot import JobState
from compactor.core.errors import AccessError, SettingsError
from compactor.ops.doctor import account_checks
from compactor.settings.sections import Emr
from compactor.settings.settings import parse_settings
from compactor.wiring.app import App
from compactor.wiring.control import started_job
from compactor.wiring.settings_files import job_arguments
from tests.support.emr_stand_in import APPLICATION, ROLE, EmrStandIn
from tests.support.memory_store import ManualClock, MemoryStore

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
GIVEN = {
    "application_id": APPLICATION,
    "role_arn": ROLE,
    "entry_point": "s3://bucket/e.py",
    "archive": "s3://bucket/a.tgz",
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def emr(clock: ManualClock) -> EmrStandIn:
    return EmrStandIn(clock.now)


@pytest.fixture
def job(clock: ManualClock, emr: EmrStandIn) -> EmrJob:
    wanted = Emr.model_validate({**GIVEN, "log_group": "/compactor/dev", "spark_conf": {"spark.executor.cores": 4}})
    place = "s3://bucket/dev/settings/1.toml"
    return EmrJob(emr=emr, name="dev", wanted=wanted, settings_place=place, clock=clock, defined_at=lambda: None)


def test_the_run_of_a_shard_is_told_so(job: EmrJob, emr: EmrStandIn) -> None:
    """As an argument that the script reads."""
    replace(job, shard="2/4").start()
    arguments = emr.requests[0]["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    assert job_arguments(["glue_entry.py", *arguments])["SHARD"] == "2/4"


def test_what_a_run_is_started_with(job: EmrJob, emr: EmrStandIn) -> None:
    """The entry with the settings, the archive's Python on driver and executors, no time-out and no retries."""
    job.start()
    [request] = emr.requests
    assert (request["name"], request["mode"], request["executionTimeoutMinutes"]) == ("dev", "BATCH", 0)
    assert "retryPolicy" not in request
    submitted = request["jobDriver"]["sparkSubmit"]
    assert submitted["entryPointArguments"] == ["--CONFIG", "s3://bucket/dev/settings/1.toml"]
    assert submitted["sparkSubmitParameters"] == (
        "--conf spark.archives=s3://bucket/a.tgz#environment "
        "--conf spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON=./environment/bin/python "
        "--conf spark.emr-serverless.driverEnv.PYSPARK_PYTHON=./environment/bin/python "
        "--conf spark.executorEnv.PYSPARK_PYTHON=./environment/bin/python "
        "--conf spark.executor.cores=4"
    )
    logged = request["configurationOverrides"]["monitoringConfiguration"]["cloudWatchLoggingConfiguration"]
    assert logged == {"enabled": True, "logGroupName": "/compactor/dev"}


def test_two_starts_at_once_are_one(job: EmrJob, emr: EmrStandIn) -> None:
    """Two control planes that both see no run send one token, and get one run."""
    blind = replace(job, emr=_Blind(emr))
    assert blind.start() == blind.start()
    assert len(emr.runs) == 1
    emr.set(emr.runs[0]["id"], "FAILED", "the driver ended with 1")
    assert job.start() == emr.runs[1]["id"]
    assert [run.error for run in job.list(LONG_AGO) if run.state is JobState.FAILED] == ["the driver ended with 1"]


class _Blind:
    """A client that lists no run yet."""

    def __init__(self, emr: EmrStandIn) -> None:
        self._emr = emr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._emr, name)

    def get_paginator(self, _operation: str) -> "_Blind":
        return self

    def paginate(self, **_request: Any) -> list[dict[str, Any]]:
        return [{"jobRuns": []}]


def test_a_start_long_after_the_last_run(job: EmrJob, emr: EmrStandIn, clock: ManualClock) -> None:
    """The token of a start is not that of one weeks ago, which would stand for a run that has ended."""
    for _ in range(3):
        run_id = job.start()
        assert run_id is not None
        emr.set(run_id, "SUCCESS")
        clock.advance(30 * 86_400)
    assert len(emr.runs) == 3


def test_a_run_that_has_lived_for_weeks_is_listed(job: EmrJob, clock: ManualClock) -> None:
    """However old it is, no second one is started beside it."""
    run_id = job.start()
    clock.advance(40 * 86_400)
    assert [run.run_id for run in job.list(NOON + timedelta(days=30))] == [run_id]
    assert job.start() is None


def test_runs_of_others_are_left_alone(job: EmrJob, emr: EmrStandIn) -> None:
    """An application may run other jobs, with another name or none."""
    emr.add("00fother", "other")
    emr.add("00fnameless", None)
    assert list(job.list(LONG_AGO)) == []
    assert job.start() is not None


def test_stopping(job: EmrJob, emr: EmrStandIn) -> None:
    """A stop cancels the run; of one that has ended, the refusal is an error."""
    run_id = job.start()
    assert run_id is not None
    job.stop(run_id)
    assert job.list(LONG_AGO)[0].state is JobState.STOPPING
    assert job.start() is None
    emr.set(run_id, "CANCELLED")
    with pytest.raises(AccessError, match="CancelJobRun failed with ValidationException: job run is in CANCELLED"):
        job.stop(run_id)
    with pytest.raises(AccessError, match="does not exist"):
        job.stop("00f9")


def test_a_state_of_a_later_release(job: EmrJob, emr: EmrStandIn) -> None:
    """It counts as alive."""
    run_id = job.start()
    assert run_id is not None
    emr.set(run_id, "PONDERING")
    assert job.list(LONG_AGO)[0].state is JobState.UNKNOWN
    assert job.start() is None


def test_the_settings_of_a_run(clock: ManualClock, emr: EmrStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run reads the settings of the control plane; when these were written is when the job was defined."""
    document = {
        "paths": {name: f"s3://bucket/{name}" for name in ("manifests", "output", "state")},
        "input": {"allowed_prefixes": ["s3://raw-bucket/"]},
        "convert": {"engine": "native"},
        "emr": GIVEN,
    }
    settings, store = parse_settings(document), MemoryStore(clock)
    store.put("s3://bucket/c.toml", b"")
    monkeypatch.setenv("COMPACTOR_CONFIG", "s3://bucket/c.toml")
    job = started_job(App(settings, store=store, clock=clock), emr)
    assert job.defined_at() == NOON
    job.start()
    assert emr.requests[0]["jobDriver"]["sparkSubmit"]["entryPointArguments"] == ["--CONFIG", "s3://bucket/c.toml"]
    monkeypatch.setenv("COMPACTOR_CONFIG", "here.toml")
    with pytest.raises(SettingsError, match="expected settings on S3"):
        started_job(App(settings, store=store, clock=clock), emr)


@pytest.mark.parametrize(
    ("application", "state"),
    [
        ({"type": "Spark", "state": "STOPPED", "releaseLabel": "emr-spark-8.0.0"}, "ok"),
        ({"type": "Hive", "state": "STARTED"}, "fault"),
        ({"type": "Spark", "state": "TERMINATED"}, "fault"),
    ],
)
def test_the_doctor_knows_the_application(application: dict[str, Any], state: str) -> None:
    """It is a Spark application that is still there."""
    account: Any = SimpleNamespace(describe=lambda *_, **__: {"application": application})
    assert account_checks.application(account, APPLICATION).state == state
