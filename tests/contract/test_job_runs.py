"""Promises of a job's runs: history newest first, and never a second run; in memory, and at each service."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.stub import Stubber
from moto.core import DEFAULT_ACCOUNT_ID
from moto.glue import glue_backends
from moto.moto_api import state_manager

from compactor.adapters.aws.clients import aws_client
from compactor.adapters.aws.ecs_job import EcsJob
from compactor.adapters.aws.emr_job import STATES, EmrJob
from compactor.adapters.aws.glue_job import GlueJob
from compactor.control.snapshot import JobRuns, JobState
from compactor.core.errors import AccessError, StoreUnavailable
from compactor.settings.sections import Ecs, Emr
from tests.support.aws_stand_in import REGION
from tests.support.ecs_stand_in import CLUSTER, ENDS, FAMILY, EcsStandIn
from tests.support.emr_stand_in import APPLICATION, ROLE, EmrStandIn
from tests.support.memory_glue import MemoryGlue
from tests.support.memory_store import ManualClock

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@dataclass(frozen=True)
class ScriptedJob:
    """A job, the means to have its runs end and time pass, and how they may end."""

    job: JobRuns
    end: Callable[[str, JobState], None]
    pass_time: Callable[[], None]
    ends: tuple[JobState, ...] = tuple(state for state in JobState if not state.is_living)


@pytest.fixture(scope="module")
def glue(aws_endpoint: str) -> Any:
    return aws_client("glue", REGION, aws_endpoint, attempts=1)


def moto_job(glue: Any, *, page_runs: int = 200) -> ScriptedJob:
    name = f"job-{uuid.uuid4().hex}"
    command = {"Name": "gluestreaming", "ScriptLocation": "s3://bucket/glue_entry.py"}
    glue.create_job(Name=name, Role="role", Command=command, ExecutionProperty={"MaxConcurrentRuns": 1})
    runs = glue_backends[DEFAULT_ACCOUNT_ID][REGION].jobs[name].job_runs

    def end(run_id: str, state: JobState) -> None:
        next(run for run in runs if run.job_run_id == run_id).status = state.value

    def pass_time() -> None:
        for run in runs:
            run.started_on -= timedelta(hours=1)

    return ScriptedJob(GlueJob(client=glue, name=name, page_runs=page_runs), end, pass_time)


def emr_job(*, page_runs: int = 50) -> ScriptedJob:
    clock = ManualClock(NOON)
    emr = EmrStandIn(clock.now)
    wanted = Emr(
        application_id=APPLICATION, role_arn=ROLE, entry_point="s3://bucket/e.py", archive="s3://bucket/a.tar.gz"
    )
    job = EmrJob(
        emr=emr,
        name="compactor-dev",
        wanted=wanted,
        settings_place="s3://bucket/c.toml",
        clock=clock,
        defined_at=lambda: None,
        page_runs=page_runs,
    )
    names = {state: name for name, state in STATES.items()}
    ends = tuple(state for state in names if not state.is_living)
    return ScriptedJob(job, lambda run_id, state: emr.set(run_id, names[state]), lambda: clock.advance(3600), ends)


def ecs_job(*, page_tasks: int = 100) -> ScriptedJob:
    clock = ManualClock(NOON)
    ecs = EcsStandIn(clock.now)
    wanted = Ecs(cluster=CLUSTER, task_definition=FAMILY, subnets=("subnet-1",), security_groups=("sg-1",))
    job = EcsJob(
        ecs=ecs,
        name="compactor-dev",
        wanted=wanted,
        settings_place="s3://bucket/c.toml",
        clock=clock,
        defined_at=lambda: None,
        page_tasks=page_tasks,
    )
    return ScriptedJob(job, ecs.end, lambda: clock.advance(3600), tuple(ENDS))


@pytest.fixture(params=["memory", "moto", "moto, a run a page", "emr", "emr, a run a page", "ecs", "ecs, a run a page"])
def scripted(request: pytest.FixtureRequest) -> Iterator[ScriptedJob]:
    if request.param == "memory":
        clock = ManualClock(NOON)
        memory = MemoryGlue(clock, starting_seconds=7200)
        yield ScriptedJob(memory, memory.end, lambda: clock.advance(3600))
        return
    if request.param.startswith("emr"):
        yield emr_job(page_runs=1 if "page" in request.param else 50)
        return
    if request.param.startswith("ecs"):
        yield ecs_job(page_tasks=1 if "page" in request.param else 100)
        return
    # The stand-in ends every run with success at once, unless it is set to wait for a number of requests.
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 1_000_000})
    yield moto_job(request.getfixturevalue("glue"), page_runs=1 if "page" in request.param else 200)
    state_manager.unset_transition("glue::job_run")


def test_when_the_job_was_defined(glue: Any) -> None:
    """Glue says when the definition changed last; in memory it changes when a test says so."""
    begun = datetime.now(UTC).replace(microsecond=0)
    defined_at = moto_job(glue).job.defined_at()
    assert defined_at is not None
    assert begun <= defined_at <= datetime.now(UTC)
    clock = ManualClock(NOON)
    assert MemoryGlue(clock).defined_at() is None
    assert MemoryGlue(clock, definition_changed_at=NOON).defined_at() == NOON


def test_no_run(scripted: ScriptedJob) -> None:
    """A job that never ran has no runs."""
    assert list(scripted.job.list(LONG_AGO)) == []


def test_a_run_that_lives(scripted: ScriptedJob) -> None:
    """A started run is listed, alive, with the time of its start."""
    run_id = scripted.job.start()
    [run] = scripted.job.list(LONG_AGO)
    assert (run.run_id, run.state, run.ended_at, run.is_living) == (run_id, JobState.STARTING, None, True)
    assert run.started_at.tzinfo is not None
    assert run.changed_at >= run.started_at


def test_never_a_second_run(scripted: ScriptedJob) -> None:
    """While a run lives, another start is an outcome without a run; when it has ended, there is one again."""
    first = scripted.job.start()
    assert first is not None
    assert scripted.job.start() is None
    assert len(scripted.job.list(LONG_AGO)) == 1
    scripted.end(first, JobState.FAILED)
    second = scripted.job.start()
    assert second not in {None, first}


def test_every_end(scripted: ScriptedJob) -> None:
    """However a run ended, it is listed with its state and the time of its end, and the next one can start."""
    for number, state in enumerate(scripted.ends, start=1):
        run_id = scripted.job.start()
        assert run_id is not None
        scripted.end(run_id, state)
        found = {run.run_id: run for run in scripted.job.list(LONG_AGO)}
        assert (len(found), found[run_id].state, found[run_id].is_living) == (number, state, False)
        ended_at = found[run_id].ended_at
        assert ended_at is not None
        assert ended_at.tzinfo is not None


def test_newest_first(scripted: ScriptedJob) -> None:
    """Runs come newest first, whatever order the server has them in, and however many pages they are on."""
    started = []
    for _ in range(4):
        run_id = scripted.job.start()
        assert run_id is not None
        scripted.end(run_id, JobState.FAILED)
        scripted.pass_time()
        started.append(run_id)
    assert [run.run_id for run in scripted.job.list(LONG_AGO)] == started[::-1]


def test_only_the_latest(scripted: ScriptedJob) -> None:
    """Runs that were started too long ago are left out."""
    for _ in range(4):
        run_id = scripted.job.start()
        assert run_id is not None
        scripted.end(run_id, JobState.SUCCEEDED)
        scripted.pass_time()
    [oldest, *_, newest] = sorted(run.started_at for run in scripted.job.list(LONG_AGO))
    assert len(scripted.job.list(oldest + timedelta(seconds=1))) == 3
    assert scripted.job.list(newest + timedelta(seconds=1)) == ()


def test_a_job_that_does_not_exist(glue: Any) -> None:
    """A wrong name is an error that an operator has to fix, with the message of Glue."""
    with pytest.raises(AccessError, match="Glue job nowhere"):
        GlueJob(client=glue, name="nowhere").list(LONG_AGO)


# What the stand-in lacks


@pytest.fixture
def answers(glue: Any) -> Any:
    with Stubber(glue) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def run(run_id: str, age_hours: float, state: str = "FAILED") -> dict[str, Any]:
    at = NOON - timedelta(hours=age_hours)
    return {"Id": run_id, "JobRunState": state, "StartedOn": at, "LastModifiedOn": at, "ErrorMessage": "boom"}


def test_old_pages_are_not_read(glue: Any, answers: Any) -> None:
    """Where the server goes back in time, as Glue does, pages that are too old are not asked for."""
    first = {"JobName": "job", "MaxResults": 200}
    answers.add_response("get_job_runs", {"JobRuns": [run("c", 1), run("b", 2)], "NextToken": "more"}, first)
    second = {"JobRuns": [run("a", 3), run("z", 99)], "NextToken": "more yet"}
    answers.add_response("get_job_runs", second, {**first, "NextToken": "more"})
    found = GlueJob(client=glue, name="job").list(NOON - timedelta(hours=10))
    assert [each.run_id for each in found] == ["c", "b", "a"]
    assert {each.error for each in found} == {"boom"}


def test_a_state_of_a_later_release(glue: Any, answers: Any) -> None:
    """An unknown state counts as alive, so that nothing is started beside it."""
    answers.add_response("get_job_runs", {"JobRuns": [run("a", 1, "PONDERING")]})
    [found] = GlueJob(client=glue, name="job").list(LONG_AGO)
    assert (found.state, found.is_living) == (JobState.UNKNOWN, True)


def test_stopping_at_glue(glue: Any, answers: Any) -> None:
    """A stop names its run; Glue's refusal, which comes with a good answer, is an error."""
    expected = {"JobName": "job", "JobRunIds": ["jr_1"]}
    answers.add_response("batch_stop_job_run", {"SuccessfulSubmissions": [{"JobRunId": "jr_1"}]}, expected)
    GlueJob(client=glue, name="job").stop("jr_1")
    detail = {"ErrorCode": "JobRunNotFoundException", "ErrorMessage": "no such run"}
    answers.add_response("batch_stop_job_run", {"Errors": [{"JobRunId": "jr_1", "ErrorDetail": detail}]}, expected)
    with pytest.raises(AccessError, match="run jr_1 was not stopped, JobRunNotFoundException: no such run"):
        GlueJob(client=glue, name="job").stop("jr_1")


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ThrottlingException", 400, StoreUnavailable),
        ("OperationTimeoutException", 400, StoreUnavailable),
        ("InternalServiceException", 500, StoreUnavailable),
        ("ResourceNumberLimitExceededException", 400, AccessError),
        ("AccessDeniedException", 400, AccessError),
    ],
)
def test_what_errors_of_glue_mean(glue: Any, answers: Any, code: str, status: int, error: type[Exception]) -> None:
    """A transient error is told apart from one that an operator has to fix."""
    for method in ("start_job_run", "get_job_runs", "batch_stop_job_run"):
        answers.add_client_error(method, code, "why", status)
    job = GlueJob(client=glue, name="job")
    for call in (job.start, lambda: job.list(LONG_AGO), lambda: job.stop("jr_1")):
        with pytest.raises(error, match=code):
            call()


# What the one in memory has beyond the stand-in
