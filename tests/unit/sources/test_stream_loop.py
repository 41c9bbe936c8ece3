"""Streams planned by a job: again and again, whatever fails, and so that people see it."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from compactor.control.diagnosis.alarms import logs_behind
from compactor.core.errors import StoreUnavailable
from compactor.core.layout import Layout
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch
from compactor.ledger.landing.chains import LogChains
from compactor.ledger.landing.notes import LandingNotes
from compactor.sources.landing.lander import Lander
from compactor.sources.landing.landing import Landing
from compactor.sources.landing.loop import LOOK_SECONDS, TICK_SECONDS, LandingLoop
from compactor.sources.landing.seen import LogSeen, LogWatch
from tests.support.interleaving import Meddling
from tests.support.logged import events_logged
from tests.support.memory_kinesis import STREAM
from tests.unit.sources.test_kinesis_planning import Scene, Silent, scene

LATE = 600.0


@dataclass
class Planned:
    """A stream that a job plans every two minutes."""

    made: Scene
    shards: list[str]
    error: Exception | None = None
    silent: str = ""
    leads: bool = True
    loop: LandingLoop = field(init=False)

    def __post_init__(self) -> None:
        state = self.made.planner().state
        self.loop = LandingLoop(
            log=STREAM,
            every_seconds=120.0,
            max_manifests=1000,
            new_lander=self.planner,
            notes=LandingNotes(state, "run"),
            metrics=self.made.metrics,
            clock=self.made.clock,
            leads=lambda: self.leads,
        )

    def planner(self) -> Lander:
        planner, planned = self.made.planner(), self

        class Log:
            def __getattr__(self, name: str) -> Any:
                if planned.error is not None:
                    raise planned.error
                log = Silent(planned.made, planned.silent) if planned.silent else planner.log
                return getattr(log, name)

        return Lander(
            state=planner.state,
            log=Log(),
            allowed_prefixes=planner.allowed_prefixes,
            target_bytes=planner.target_bytes,
            new_lines=planner.new_lines,
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
    def seen(self) -> LogSeen:
        watch = LogWatch(state=self.made.planner().state, logs=[STREAM], late_seconds=LATE)
        [found] = watch.seen(self.made.clock.now())
        return found

    @property
    def age(self) -> float:
        """The latest metric."""
        ages = [each["LandingAgeSeconds"] for each in self.made.metrics.emitted if "LandingAgeSeconds" in each]
        assert isinstance(ages[-1], float)
        return ages[-1]


def planned(shards: int = 1) -> Planned:
    made, ids = scene(shards)
    return Planned(made, ids)


def test_records_are_landed_every_two_minutes() -> None:
    """Those that came meanwhile, in one plan; people see that all is well."""
    case = planned()
    assert case.seen.words == "not landed yet"
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


class Growing:
    """A log of a stream that grows as fast as it is read, by as many records as each answer has."""

    def __init__(self, made: Scene) -> None:
        self.made, self.log = made, made.kinesis.log()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    def read(self, stream: LogName, partition_id: str, at: int, limit_bytes: int) -> Iterator[Batch]:
        for batch in self.log.read(stream, partition_id, at, limit_bytes):
            self.made.clock.advance(1)
            self.made.put(len(batch.records), partition_id)
            yield batch


@pytest.mark.parametrize("shards", [1, 20])
def test_run_once_ends_on_a_stream_that_grows_as_fast_as_it_is_landed(shards: int) -> None:
    """It lands what the stream had when it began, and leaves what came later to the next run."""
    case = planned(shards)
    case.loop.max_manifests = 1
    case.made.put(60)
    log: Any = Growing(case.made)
    planner = replace(case.made.planner(), log=log)
    case.loop.new_lander = lambda: planner
    had, looks = set(case.made.written), itertools.count()
    assert case.loop.plan_all(is_stopping=lambda: next(looks) > 60) == {}
    assert had <= set(case.made.lines())
    assert next(looks) < 40
    plan = case.made.plan()
    assert (plan.gaps, case.made.is_exact()) == ([], True)


def test_run_once_lands_what_another_planner_left_amid_a_shard() -> None:
    """One that landed some of it meanwhile, and died."""
    case, is_met = planned(), list[int]()
    case.made.put(60)

    def meet() -> None:
        if not is_met and "/landed/" in "".join(case.made.left()):
            is_met.append(1)
            case.made.plan(max_manifests=1)

    case.loop.new_lander = lambda: case.made.planner(Meddling(case.made.store, meet))
    assert case.loop.plan_all() == {}
    assert is_met
    assert case.made.is_exact()


@dataclass
class Following:
    """A shard of a job that runs once, while another one leads."""

    leader: Planned
    case: Planned = field(init=False)
    waited: float = 0.0
    meanwhile: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.case = Planned(self.leader.made, self.leader.shards, leads=False)
        self.case.loop.sleep = self.sleep

    def sleep(self, seconds: float) -> None:
        self.leader.made.clock.advance(seconds)
        self.waited += seconds
        self.meanwhile()


def test_a_shard_of_a_job_that_runs_once_lets_the_first_one_land() -> None:
    """It reads nothing twice. What came between their beginnings, it lands itself."""
    both = Following(planned())
    made = both.leader.made
    made.put(30)
    asked = list[int]()

    def lead() -> None:
        both.leader.loop.plan_all()
        made.put(2)
        asked.append(len(made.kinesis.called))

    both.meanwhile = lead
    assert both.case.loop.plan_all() == {}
    assert len(asked) == 1
    assert len(made.kinesis.called) - asked[0] < 5 < asked[0]
    assert made.is_exact()


def test_a_shard_of_a_job_that_runs_once_lands_all_if_none_leads() -> None:
    """The first one ends, fails, or tells nothing for long, or its heartbeat cannot be read."""
    for way in ("ends", "fails", "tells nothing", "is not known"):
        both = Following(planned())
        both.leader.made.put(30)

        def lead(both: Following = both, way: str = way) -> None:
            if way == "ends":
                both.case.leads = True
            if way == "fails":
                both.leader.error = StoreUnavailable("no way to Kinesis")
                both.leader.loop.plan_all()

        def unknown() -> bool:
            raise StoreUnavailable("no way to the heartbeats")

        both.meanwhile = lead
        if way == "is not known":
            both.case.loop.leads = unknown
        assert both.case.loop.plan_all() == {}
        assert both.leader.made.is_exact()
        assert both.waited == {"tells nothing": 600.0, "is not known": 0.0}.get(way, LOOK_SECONDS)


def test_a_shard_of_a_job_that_runs_once_waits_as_long_as_the_first_one_advances() -> None:
    """However long one plan takes: it marks what it lands. A stop ends the waiting."""
    both = Following(planned())
    both.leader.made.put(60)
    steps = itertools.count(1)
    landing = Landing(LogChains(both.leader.made.planner().state), STREAM, "id")

    def lead() -> None:
        step = next(steps)
        if step % 100 == 0:
            landing.begin(f"manifest-{step}")
        if step == 1000:
            both.leader.loop.plan_all()

    both.meanwhile = lead
    assert both.case.loop.plan_all() == {}
    assert both.waited == 1000 * LOOK_SECONDS
    assert both.leader.made.is_exact()
    both = Following(planned())
    assert both.case.loop.plan_all(is_stopping=lambda: both.waited > 9) == {}
    assert both.waited == 2 * LOOK_SECONDS


def test_a_shard_of_a_job_that_runs_once_and_comes_late_waits_for_no_one() -> None:
    """The first one has landed all: only what came since is left."""
    both = Following(planned())
    both.leader.made.put(30)
    both.leader.loop.plan_all()
    both.leader.made.clock.advance(300)
    both.leader.made.put(3)
    assert both.case.loop.plan_all() == {}
    assert (both.waited, both.leader.made.is_exact()) == (0.0, True)


def test_a_stream_that_is_down() -> None:
    """It is tried again after pauses that grow; each minute tells how long records may wait; status agrees."""
    case = planned()
    case.made.put(2)
    case.pass_by(60)
    case.error = StoreUnavailable("no way to Kinesis")
    with events_logged("landing.failed") as told:
        case.pass_by(3600)
    assert [each["pause_seconds"] for each in told] == [120.0, 240.0, 480.0, *[600.0] * (len(told) - 3)]
    assert 3480 <= case.age <= 3660
    assert (case.seen.is_behind, case.seen.error, case.seen.failures) == (True, "no way to Kinesis", len(told))
    [found] = logs_behind([case.seen])
    assert (found.condition.word, found.subject) == ("behind", "kinesis/main/events")
    assert sum("LandingsFailed" in each for each in case.made.metrics.emitted) == len(told)
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


def test_the_pause_of_a_quiet_stream_does_not_grow_for_one_shard() -> None:
    """The others were read, although there was nothing to land: what comes into them is landed as soon as ever."""
    case = planned(2)
    case.silent = case.shards[1]
    with events_logged("landing.failed") as told:
        case.pass_by(1300)
    assert {each["pause_seconds"] for each in told} == {120.0}


def test_a_shard_that_fails_keeps_no_plan_from_going_on_at_once() -> None:
    """What one plan leaves of the other shards is landed by the next ones, as if none had failed."""
    case = planned(2)
    case.loop.max_manifests, case.silent = 1, case.shards[1]
    case.made.put(60, case.shards[0])
    assert case.loop.step() == 0.0
    assert list(map(str, case.loop.plan_all().values())) == ["no answer"]
    assert case.made.is_exact()
    assert case.loop.step() > 0.0


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


def test_a_stream_that_no_job_ever_planned() -> None:
    """A watcher notes when it first looked. A stream that is planned meanwhile is as ever."""
    case = planned()
    watch = LogWatch(state=case.made.planner().state, logs=[STREAM], late_seconds=LATE, may_note=True)
    assert [each.is_behind for each in watch.seen(case.made.clock.now())] == [False]
    case.made.clock.advance(LATE + 1)
    [found] = watch.seen(case.made.clock.now())
    assert (found.is_behind, found.words) == (True, "not landed yet, and to be for 10 min 1 s")
    assert case.seen.is_behind
    case.pass_by(1)
    [found] = watch.seen(case.made.clock.now())
    assert (found.is_behind, found.words) == (False, "all was landed, as of 1 s ago")


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
    with events_logged("landing.made_again") as told:
        case.pass_by(600)
    assert len(told) == 1


def test_notes_that_cannot_be_read_or_written() -> None:
    """They hold up nothing."""
    case = planned()
    state = case.made.planner().state
    case.pass_by(1)
    uri = Layout("s3://lake/m", "s3://lake/o", "s3://lake/s").landing_progress("kinesis", "main/events")
    case.made.store.put(uri, b"no record")
    assert LandingNotes(state).read(STREAM) is None
    assert case.seen.words == "not landed yet"
    case.made.put(1)
    case.pass_by(300)
    assert case.made.is_exact()
    assert case.seen.seen_at is not None


@pytest.mark.parametrize("error", [None, StoreUnavailable("away")])
def test_a_planner_that_cannot_be_made(error: Exception | None) -> None:
    """That is trouble of its stream."""
    case = planned()

    def make() -> Lander:
        raise error or ValueError("data")

    case.loop.new_lander = make
    [found] = case.loop.plan_all().values()
    assert found is error or isinstance(found, ValueError)
