"""Streams landed by a job: again and again, whatever fails, and so that people see it."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from compactor.control.diagnosis.alarms import logs_behind
from compactor.core.errors import StoreUnavailable
from compactor.core.layout import Layout
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch
from compactor.ledger.landing.progress import LandingNotes, LogSeen, LogWatch, progress_of
from compactor.sources.landing.lander import Lander, LandingTurns
from tests.support.interleaving import Meddling
from tests.support.logged import events_logged
from tests.support.memory_kinesis import STREAM
from tests.unit.sources.test_kinesis_planning import Scene, Silent, scene

LATE = 600.0


@dataclass
class Case:
    """A stream that a job lands every two minutes."""

    made: Scene
    shards: list[str]
    error: Exception | None = None
    silent: str = ""
    max_manifests: int = 1000

    @property
    def turns(self) -> LandingTurns:
        return LandingTurns(
            log=STREAM,
            every_seconds=120.0,
            max_manifests=self.max_manifests,
            new_lander=self.lander,
            notes=LandingNotes(self.made.planner().state, "run"),
            metrics=self.made.metrics,
        )

    def lander(self) -> Lander:
        if self.error is not None:
            raise self.error
        lander, log = self.made.planner(), Silent(self.made, self.silent)
        return replace(lander, log=log) if self.silent else lander  # type: ignore[arg-type]

    def land_all(self, **changed: Any) -> None:
        replace(self.turns, **changed).land_all(lambda: False)

    def pass_by(self, seconds: float) -> None:
        """Let time pass, with all turns in it."""
        end = self.made.clock.now().timestamp() + seconds
        while (pause := self.turns.take()) <= end - self.made.clock.now().timestamp():
            self.made.clock.advance(pause)
        self.made.clock.advance(end - self.made.clock.now().timestamp())

    def seen_by(self, **changed: Any) -> LogSeen:
        watch = LogWatch(state=self.made.planner().state, logs=[STREAM], late_seconds=LATE, **changed)
        [found] = watch.seen(self.made.clock.now())
        return found

    @property
    def seen(self) -> LogSeen:
        return self.seen_by()

    @property
    def age(self) -> float:
        """The latest metric."""
        ages = [each["LandingAgeSeconds"] for each in self.made.metrics.emitted if "LandingAgeSeconds" in each]
        assert isinstance(ages[-1], float)
        return ages[-1]


def case_of(shards: int = 1, **given: Any) -> Case:
    made, ids = scene(shards)
    return Case(made, ids, **given)


def test_records_are_landed_every_two_minutes() -> None:
    """Those that came meanwhile, in one plan; people see that all is well."""
    case = case_of()
    assert case.seen.words == "not landed yet"
    for _ in range(3):
        case.made.put(2)
        case.pass_by(120)
    assert case.made.is_exact()
    assert 3 <= len(list(case.made.manifests())) <= 4
    assert (case.age, case.seen.is_behind) == (0.0, False)
    assert case.seen.words == "all landed, as of 0 s ago"


def test_what_one_turn_leaves_is_landed_at_once() -> None:
    """A turn writes only so many manifests; `run --once` waits for all of them."""
    case = case_of(max_manifests=1)
    case.made.put(60)
    assert case.turns.take() == 0.0
    case.land_all()
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
    case = case_of(shards, max_manifests=1)
    case.made.put(60)
    log: Any = Growing(case.made)
    lander, looks = replace(case.made.planner(), log=log), itertools.count()
    had = set(case.made.written)
    replace(case.turns, new_lander=lambda: lander).land_all(lambda: next(looks) > 60)
    assert had <= set(case.made.lines())
    assert next(looks) < 40
    plan = case.made.plan()
    assert (plan.gaps, case.made.is_exact()) == ([], True)


def test_run_once_lands_what_another_planner_left_amid_a_shard() -> None:
    """One that landed some of it meanwhile, and died."""
    case, is_met = case_of(), list[int]()
    case.made.put(60)

    def meet() -> None:
        if not is_met and "/landed/" in "".join(case.made.left()):
            is_met.append(1)
            case.made.plan(max_manifests=1)

    case.land_all(new_lander=lambda: case.made.planner(Meddling(case.made.store, meet)))
    assert is_met
    assert case.made.is_exact()


def test_a_stream_that_is_down() -> None:
    """It is tried again each minute, which tells how long records may wait; status agrees."""
    case = case_of()
    case.made.put(2)
    case.pass_by(60)
    case.error = StoreUnavailable("no way to Kinesis")
    with events_logged("landing.failed") as told:
        case.pass_by(3600)
    assert {each["pause_seconds"] for each in told} == {60.0}
    assert 3480 <= case.age <= 3660
    assert (case.seen.is_behind, case.seen.error, case.seen.failures) == (True, "no way to Kinesis", len(told))
    [found] = logs_behind([case.seen])
    assert (found.condition.word, found.subject) == ("behind", "kinesis/main/events")
    assert sum("LandingsFailed" in each for each in case.made.metrics.emitted) == len(told)
    with pytest.raises(StoreUnavailable):
        case.land_all()
    case.error = None
    case.pass_by(61)
    assert (case.seen.is_behind, case.seen.error, case.age) == (False, "", 0.0)
    assert case.made.is_exact()


def test_a_shard_that_fails_holds_up_no_other() -> None:
    """The age is that of the shard."""
    case = case_of(2)
    case.pass_by(120)
    case.silent = case.shards[1]
    case.made.put(3, case.shards[1])
    with events_logged("landing.failed") as told:
        for _ in range(10):
            case.made.put(1, case.shards[0])
            case.pass_by(120)
    assert {each["pause_seconds"] for each in told} == {120.0}
    case.pass_by(1)
    assert len(case.made.lines()) == 10
    assert 1000 < case.age < 1400
    assert (case.seen.is_behind, case.seen.error) == (True, "no answer")
    case.silent = ""
    case.pass_by(121)
    assert case.made.is_exact()
    assert not case.seen.is_behind


def test_a_shard_that_fails_keeps_no_turn_from_going_on_at_once() -> None:
    """What one turn leaves of the other shards is landed by the next ones, as if none had failed."""
    case = case_of(2, max_manifests=1)
    case.silent = case.shards[1]
    case.made.put(60, case.shards[0])
    assert case.turns.take() == 0.0
    with pytest.raises(StoreUnavailable, match="no answer"):
        case.land_all()
    assert case.made.is_exact()
    assert case.turns.take() > 0.0


def test_a_stream_that_no_job_lands() -> None:
    """What comes meanwhile is not known, so that it may wait. A watcher notes when it first looked."""
    case = case_of()
    assert not case.seen_by(may_note=True).is_behind
    case.made.clock.advance(LATE + 1)
    found = case.seen_by(may_note=True)
    assert (found.is_behind, found.words) == (True, "not landed yet, due for 10 min 1 s")
    assert case.seen.is_behind
    case.pass_by(1)
    found = case.seen_by(may_note=True)
    assert (found.is_behind, found.words) == (False, "all landed, as of 1 s ago")
    case.made.clock.advance(LATE)
    assert case.seen.is_behind


def test_gaps_and_former_streams_are_told() -> None:
    """Former streams once, gaps with their number."""
    case = case_of()
    case.made.put(1)
    case.pass_by(1)
    case.made.put(1)
    case.made.clock.advance(2 * 86_400)
    case.made.put(1)
    case.pass_by(1)
    assert case.seen.gaps == 1
    assert "1 gap found by this run: `compactor verify` lists the losses" in case.seen.words
    case.made.kinesis.create()
    with events_logged("landing.made_again") as told:
        case.pass_by(600)
    assert len(told) == 1


def test_notes_that_cannot_be_read_or_written() -> None:
    """They hold up nothing."""
    case = case_of()
    case.pass_by(1)
    uri = Layout("s3://lake/m", "s3://lake/o", "s3://lake/s").landing_progress("kinesis", "main/events")
    case.made.store.put(uri, b"no record")
    assert progress_of(case.made.planner().state, STREAM) is None
    assert case.seen.words == "not landed yet"
    case.made.put(1)
    case.pass_by(300)
    assert case.made.is_exact()
    assert case.seen.seen_at is not None


@pytest.mark.parametrize("error", [StoreUnavailable("away"), ValueError("data")])
def test_a_lander_that_cannot_be_made(error: Exception) -> None:
    """That is trouble of its stream."""
    with pytest.raises(type(error)):
        case_of(error=error).land_all()


def test_a_note_that_cannot_be_read_once() -> None:
    """What the run noted before stays: how far landing is, and its gaps."""
    made, _ = scene()
    notes = LandingNotes(made.planner().state, "run")
    noted = notes.known(STREAM).model_copy(update={"gaps": 2, "seen_at": made.clock.now()})
    notes.keep(STREAM, noted)
    made.store.put(notes.state.layout.landing_progress(STREAM.scheme, STREAM.path), b"no record")
    assert notes.known(STREAM) == noted
