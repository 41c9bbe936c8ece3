"""What the control plane says the job costs: the workers of the runs that are up, as Glue tells of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.stub import Stubber

from compactor.adapters.aws.clients import aws_client
from compactor.adapters.aws.glue_job import GlueJob
from compactor.control.plane import running_cost
from compactor.control.snapshot import JobRun, JobState, Snapshot
from compactor.cost.prices import JobSize
from tests.support.aws_stand_in import REGION
from tests.support.recent_commits import recent_commit

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
SIZE = JobSize("G.2X", 10, "6.0")
UP = JobRun("jr_1", JobState.RUNNING, NOON, NOON, size=SIZE)
DOWN = replace(UP, run_id="jr_0", state=JobState.STOPPED, ended_at=NOON)
COMMIT = recent_commit(NOON - timedelta(minutes=20), input_bytes=10**11, seconds=600)

SEEN: list[tuple[str, Snapshot, dict[str, float]]] = [
    ("one is up", Snapshot(runs=(UP, DOWN)), {"EstimatedDollarsPerHour": 6.16}),
    ("none is up", Snapshot(runs=(DOWN,)), {"EstimatedDollarsPerHour": 0}),
    ("one is on its way", Snapshot(runs=(replace(UP, state=JobState.STARTING),)), {"EstimatedDollarsPerHour": 0}),
    ("one is ending", Snapshot(runs=(replace(UP, state=JobState.STOPPING),)), {"EstimatedDollarsPerHour": 6.16}),
    ("Glue is silent", Snapshot(runs=None), {}),
    ("Glue does not say how large it is", Snapshot(runs=(replace(UP, size=None),)), {}),
    (
        "half an hour of work",
        Snapshot(runs=(UP,), recent=(COMMIT,)),
        {"EstimatedDollarsPerHour": 6.16, "EstimatedDollarsPerTerabyte": 6.16 / 2 / 0.1},
    ),
    ("the ledger is silent", Snapshot(runs=(UP,), recent=None), {"EstimatedDollarsPerHour": 6.16}),
]


@pytest.mark.parametrize(("snapshot", "expected"), [case[1:] for case in SEEN], ids=[case[0] for case in SEEN])
def test_running_cost(snapshot: Snapshot, expected: dict[str, float]) -> None:
    """Runs that are up cost their workers; what is not known is left out, and is not zero."""
    assert running_cost(snapshot, NOON) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("more", "size"),
    [
        ({"WorkerType": "G.2X", "NumberOfWorkers": 10, "GlueVersion": "6.0"}, SIZE),
        ({"WorkerType": "G.2X", "GlueVersion": "6.0"}, None),
        ({}, None),
    ],
)
def test_workers_of_a_run(more: dict[str, Any], size: JobSize | None, aws_endpoint: str) -> None:
    """The workers of a run are as Glue's history has them."""
    client = aws_client("glue", REGION, aws_endpoint)
    run = {"Id": "jr_1", "JobRunState": "RUNNING", "StartedOn": NOON, "LastModifiedOn": NOON, **more}
    with Stubber(client) as answers:
        answers.add_response("get_job_runs", {"JobRuns": [run]})
        [found] = GlueJob(client=client, name="job").list(NOON - timedelta(days=1))
    assert found.size == size
