"""Streams planned by a job: again and again, whatever fails, and so that people see it."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from compactor.control.diagnosis.findings import kinesis_behind
from compactor.core.errors import StoreUnavailable
from compactor.core.layout import Layout
from compactor.ledger.kinesis.stream_notes import StreamNotes, read_stream_progress
from compactor.manifests.kinesis.planner import KinesisPlanner
from compactor.manifests.kinesis.stream_loop import TICK_SECONDS, StreamLoop
from compactor.manifests.kinesis.streams_seen import StreamSeen, StreamWatch
from tests.support.logged import events_logged
from tests.support.memory_kinesis import STREAM
from tests.unit.manifests.test_kinesis_planning import Scene, Silent, scene

LATE = 600.0


@dataclass
class Planned:
    """A stream that a job plans every two minutes."""

    made: Scene
    shards: list[str]
    error: Exception | None = None
    silent: str = ""
    leads: bool = True
    loop: StreamLoop = field(init=False)

    def __post_init__(self) -> None:
        state = self.made.planner().state
        self.loop = StreamLoop(
            stream=STREAM,
            plan_seconds=120.0,
            max_manifests=1000,
            new_planner=self.planner,
            notes=StreamNotes(state, "run"),
            metrics=self.made.metrics,
            clock=self.made.clock,
            leads=lambda: self.leads,
        )

    def planner(self) -> KinesisPlanner:
        planner, planned = self.made.planner(), self

        class Log:
            def __getattr__(self, name: str) -> Any:
                if planned.error is not None:
                    raise planned.error
                log = Silent(planned.made, planned.silent) if planned.silent else planner.log
                return getattr(log, name)

        return KinesisPlanner(
            state=planner.state,
            log=Log(),
            allowed_prefixes=planner.allowed_prefixes,
            target_bytes=planner.target_bytes,
            metrics=planner.metrics,
            object_bytes=planner.object_bytes,
        )

    def pass_by(self, seconds: float) -> None:
        """Let time pass, with all steps of the loop in it."""
        end = self.made.clock.now().timestamp() + seconds
        while (pause := self.loop.step()) <= end - self.made.clock.now().timestamp():
            self.made.clock.advance(pause)
        self.made.clock.advance(end - self.made.clock.now().timestamp())

    @property
    def seen(self) -> StreamSeen:
        watch = StreamWatch(state=self.made.planner().state, streams=[STREAM], late_seconds=LATE)
        [found] = watch.seen(self.made.clock.now())
        return found

    @property
    def age(self) -> float:
        """The latest metric."""
        ages = [each["IteratorAgeSeconds"] for each in self.made.metrics.emitted if "IteratorAgeSeconds" in each]
        assert isinstance(ages[-1], float)
        return ages[-1]


def planned(shards: int = 1) -> Planned:
    made, ids = scene(shards)
    return Planned(made, ids)


def test_records_are_landed_every_two_minutes() -> None:
    """Those that came meanwhile, in one plan; people see that all is well."""
    case = planned()
    assert case.seen.words == "not planned yet"
    for _ in range(3):
        case.made.put(2)
        case.pass_by(120)
    assert case.made.is_exact()
    assert 3 <= len(list(case.made.manifests())) <= 4
    assert (case.age, case.seen.is_behind) == (0.0, False)
    assert case.seen.words == "all was landed, as of 0 s ago"


def test_what_one_plan_leaves_is_planned_at_once() -> None:
    """A plan writes only so many manifests; `run --once` waits for all of them."""
    case = planned()
    case.loop.max_manifests = 1
    case.made.put(60)
    assert case.loop.step() == 0.0
    assert case.loop.plan_all() == {}
    assert case.made.is_exact()


def test_a_stream_that_is_down() -> None:
    """It is tried again after pauses that grow; each minute tells how long records may wait; status agrees."""
    case = planned()
    case.made.put(2)
    case.pass_by(60)
    case.error = StoreUnavailable("no way to Kinesis")
    with events_logged("kinesis.not_planned") as told:
        case.pass_by(3600)
    assert [each["pause_seconds"] for each in told] == [120.0, 240.0, 480.0, *[600.0] * (len(told) - 3)]
    assert 3480 <= case.age <= 3660
    assert (case.seen.is_behind, case.seen.error, case.seen.failures) == (True, "no way to Kinesis", len(told))
    [found] = kinesis_behind([case.seen])
    assert (found.condition.word, found.subject) == ("behind", "main/events")
    assert sum("KinesisPlansFailed" in each for each in case.made.metrics.emitted) == len(told)
    assert case.loop.plan_all() == {STREAM: case.error}
    case.__post_init__()  # a job that starts anew goes by what the last one noted
    case.loop.step()
    assert case.age > 3480
    case.error = None
    case.pass_by(601)
    assert (case.seen.is_behind, case.seen.error, case.age) == (False, "", 0.0)
    assert case.made.is_exact()


def test_a_shard_that_fails_holds_up_no_other() -> None:
    """Nor does the pause grow; the age is that of the shard."""
    case = planned(2)
    case.pass_by(120)
    case.silent = case.shards[1]
    case.made.put(3, case.shards[1])
    for _ in range(10):
        case.made.put(1, case.shards[0])
        case.pass_by(120)
    case.pass_by(1)
    assert len(case.made.lines()) == 10
    assert 1000 < case.age < 1400
    assert (case.seen.is_behind, case.seen.error) == (True, "no answer")
    case.silent = ""
    case.pass_by(121)
    assert case.made.is_exact()
    assert not case.seen.is_behind


def test_a_stream_that_no_job_plans() -> None:
    """What comes meanwhile is not known, so that it may wait."""
    case = planned()
    case.pass_by(1)
    case.made.clock.advance(LATE + 1)
    assert case.seen.is_behind
    case.leads = False
    assert case.loop.step() == TICK_SECONDS
    assert case.seen.is_behind
    case.leads = True
    case.loop.step()
    assert not case.seen.is_behind
    assert case.loop.step(is_stopping=lambda: True) == TICK_SECONDS


def test_gaps_and_former_streams_are_told() -> None:
    """Former streams once, gaps with their number."""
    case = planned()
    case.made.put(1)
    case.pass_by(1)
    case.made.put(1)
    case.made.clock.advance(2 * 86_400)
    case.made.put(1)
    case.pass_by(1)
    assert case.seen.gaps == 1
    assert "1 gap found by this run: `compactor verify` lists what is lost" in case.seen.words
    case.made.kinesis.create()
    with events_logged("kinesis.made_again") as told:
        case.pass_by(600)
    assert len(told) == 1


def test_notes_that_cannot_be_read_or_written() -> None:
    """They hold up nothing."""
    case = planned()
    state = case.made.planner().state
    case.pass_by(1)
    uri = Layout("s3://lake/m", "s3://lake/o", "s3://lake/s").stream_progress("main", "events")
    case.made.store.put(uri, b"no record")
    assert read_stream_progress(state, STREAM) is None
    assert case.seen.words == "not planned yet"
    case.made.put(1)
    case.pass_by(300)
    assert case.made.is_exact()
    assert case.seen.seen_at is not None


@pytest.mark.parametrize("error", [None, StoreUnavailable("away")])
def test_a_planner_that_cannot_be_made(error: Exception | None) -> None:
    """That is trouble of its stream."""
    case = planned()

    def make() -> KinesisPlanner:
        raise error or ValueError("data")

    case.loop.new_planner = make
    [found] = case.loop.plan_all().values()
    assert found is error or isinstance(found, ValueError)
