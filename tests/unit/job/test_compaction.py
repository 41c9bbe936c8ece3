"""The life of one manifest: whatever dies, fails or races on the way, its lines come out exactly once."""

import threading
from collections.abc import Callable

import pytest

from compactor.core.crash_points import Step
from compactor.core.errors import (
    AccessError,
    CompactorError,
    EngineLost,
    ManifestError,
    OperatorError,
    StagingError,
    StoreUnavailable,
    TryAgainError,
)
from compactor.core.layout import base_name
from compactor.core.ports import ObjectStore
from compactor.core.records import Commit
from compactor.engines.engine import Staged, StageRequest
from compactor.job import service
from compactor.job.compaction import COMMON_FAILURES
from tests.support.fakes import FaultyStore, PlainEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, World

LIFE = [step for step in Step if step not in {Step.CLAIMED, Step.PLANNED}]


class FailingEngine(PlainEngine):
    """Fails for one manifest, with whatever it is told to raise."""

    def __init__(self, world: World, manifest_id: str, error: BaseException) -> None:
        super().__init__(world.store)
        self._manifest_id = manifest_id
        self._error = error
        self.tries = 0

    def stage(self, request: StageRequest) -> Staged:
        if request.manifest.manifest_id != self._manifest_id:
            return super().stage(request)
        self.tries += 1
        raise self._error


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(autouse=True)
def _no_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FIRST_PAUSE_SECONDS", 0.0)


def dying_at(step: Step, occurrence: int = 1) -> Callable[[Step, str], None]:
    """Dies when a step is reached for the nth time."""
    reached = 0

    def on_step(found: Step, _manifest_id: str) -> None:
        nonlocal reached
        reached += found == step
        if found == step and reached == occurrence:
            raise DiedError

    return on_step


def test_life_in_order(world: World) -> None:
    """Every step is reached, in the order of the life, and the record of each is where the layout says."""
    seen: list[Step] = []
    uri = world.deliver("m1", GOOD, FLAWED)
    world.runner(on_step=lambda step, _: seen.append(step)).run([uri])
    assert list(dict.fromkeys(seen)) == LIFE
    assert seen.count(Step.PUBLISHED_ONE) == 3
    records = [base_name(info.uri) for info in world.store.list(world.layout.ledger_records(DAY, "m1"))]
    assert records == ["attempt-1.json", "done.json", "outcome.json"]
    assert world.store.stat(world.layout.archived_manifest(DAY, "m1")) is not None
    world.check_exact()


@pytest.mark.parametrize("step", LIFE)
@pytest.mark.parametrize("occurrence", [1, 2])
def test_death_at_each_step(world: World, step: Step, occurrence: int) -> None:
    """A driver that dies at any step leaves a state from which the next one makes the exact output."""
    uris = [world.deliver("m1", GOOD, FLAWED), world.deliver("m2", FLAWED)]
    runner = world.runner(on_step=dying_at(step, occurrence))
    with pytest.raises(DiedError):
        runner.run(uris)
    report = world.run_once()
    assert report.failures == {}
    world.check_exact()
    assert isinstance(world.outcome("m1"), Commit)
    assert isinstance(world.outcome("m2"), Commit)


@pytest.mark.parametrize("step", [Step.ACCEPTED, Step.DECIDED, Step.PUBLISHED, Step.DONE, Step.UNSTAGED, Step.ARCHIVED])
def test_death_with_a_dead_letter(world: World, step: Step) -> None:
    """A refused manifest is set aside with its bytes and its reason, wherever the first driver dies."""
    uri = world.put_manifest("bad.json", b"no json")
    with pytest.raises(DiedError):
        world.runner(on_step=dying_at(step)).run([uri])
    world.run_once()
    assert world.dead_letter("bad").reason == "not_json"
    assert world.store.read(world.layout.failed_manifest("bad")) == b"no json"
    assert world.store.stat(world.layout.failure_reason("bad")) is not None
    assert world.waiting() == []


@pytest.mark.parametrize("step", LIFE)
def test_two_drivers(world: World, step: Step) -> None:
    """A driver that is overtaken by another one at any step changes nothing when it goes on."""
    uri = world.deliver("m1", GOOD, FLAWED)
    paused, overtaken = threading.Event(), threading.Event()

    def wait_once(found: Step, _manifest_id: str) -> None:
        if found == step and not paused.is_set():
            paused.set()
            assert overtaken.wait(30)

    slow = world.runner(on_step=wait_once)
    results = []
    thread = threading.Thread(target=lambda: results.append(slow.run([uri])))
    thread.start()
    try:
        assert paused.wait(30)
        world.run_once()
        before = {info.uri: world.store.read(info.uri) for info in world.store.list("/w/output/")}
        decided = world.outcome("m1")
    finally:
        overtaken.set()
        thread.join()
    assert results[0].failures == {}
    assert world.outcome("m1") == decided
    assert {info.uri: world.store.read(info.uri) for info in world.store.list("/w/output/")} == before
    world.check_exact()


def store_calls() -> int:
    """How many calls of the store a whole run takes."""
    world = World()
    world.deliver("m1", GOOD + FLAWED)
    store = FaultyStore(world.store)
    world.run_once(store=store)
    return store.calls["any"]


@pytest.mark.parametrize("lost_answer", [False, True])
def test_trouble_at_every_store_call(lost_answer: bool) -> None:
    """Whichever call of the store fails, done or not done, the output is exact in the end and nothing is blamed."""
    for call in range(1, store_calls() + 1):
        world = World(stream={"max_attempts": 1})
        world.deliver("m1", GOOD + FLAWED)
        store = FaultyStore(world.store)
        (store.lose_answer_at if lost_answer else store.unavailable_at)(call)
        try:
            world.run_once(store=store)
        except StoreUnavailable:
            world.run_once()  # the trouble came before or after all work, and ended the process
        world.check_exact()
        assert isinstance(world.outcome("m1"), Commit)


def test_decided_is_not_worked_on_again(world: World) -> None:
    """What was decided when a driver died is published by the next one, without another attempt."""
    uri = world.deliver("m1", GOOD)
    with pytest.raises(DiedError):
        world.runner(on_step=dying_at(Step.DECIDED)).run([uri])
    engine = FailingEngine(world, "m1", RuntimeError("boom"))
    assert world.run_once(engine=engine).committed == 1
    assert engine.tries == 0
    world.check_exact()


def test_retries_exhausted(world: World) -> None:
    """A manifest that always fails is set aside after its attempts, while its neighbours are committed."""
    for name in ("a", "bad", "c"):
        world.deliver(name, GOOD)
    engine = FailingEngine(world, "bad", RuntimeError("boom"))
    report = world.run_once(engine=engine)
    letter = world.dead_letter("bad")
    assert (letter.reason, report.committed, report.dead_lettered, report.failures) == ("retries_exhausted", 2, 1, {})
    assert "3 attempts failed; the last: RuntimeError in " in letter.message
    assert "boom" not in letter.message  # which might be a value that something choked on
    assert engine.tries == 4  # the first was not alone, so it proved nothing
    world.check_exact(["/w/raw/a-0.ndjson", "/w/raw/c-0.ndjson"])


def test_killer_runs_out_of_attempts(world: World) -> None:
    """A manifest that kills its driver each time is set aside, and the neighbour that was in flight is not."""
    uris = [world.deliver("a", GOOD), world.deliver("killer", GOOD)]
    engine = FailingEngine(world, "killer", DiedError())
    with pytest.raises(DiedError):
        world.runner(engine=engine).run(uris)
    for _ in range(3):
        with pytest.raises(DiedError):
            world.run_once(engine=engine)
    world.run_once(engine=engine)
    assert world.dead_letter("killer").reason == "retries_exhausted"
    assert "ended without a word in attempt 4" in world.dead_letter("killer").message
    assert isinstance(world.outcome("a"), Commit)


@pytest.mark.parametrize("error", [StoreUnavailable("throttled"), TryAgainError("later"), OperatorError("denied")])
def test_passing_trouble_never_counts(world: World, error: Exception) -> None:
    """However often passing trouble ends an attempt, the manifest is tried again, also by the next driver."""
    uri = world.deliver("m1", GOOD)
    for _ in range(5):
        runner = world.runner(engine=FailingEngine(world, "m1", error))
        if isinstance(error, OperatorError):
            with pytest.raises(OperatorError):
                runner.run([uri])
        else:
            assert runner.run([uri]).failures == {"m1": error}
    world.run_once()
    world.check_exact()


def test_passing_trouble_that_the_store_kept_quiet_about(world: World) -> None:
    """An attempt whose end the store refused to keep is not taken for a death by later drivers."""
    uri = world.deliver("m1", GOOD)
    for _ in range(3):
        store = FaultyStore(world.store)
        store.unavailable_at(4, "create")  # after acceptance, index and attempt comes the attempt's end
        runner = world.runner(engine=FailingEngine(world, "m1", StoreUnavailable("gone")), store=store)
        runner.run([uri])
        assert world.ledger.state(DAY, "m1").attempts[-1].failure is None
        runner.run([uri])
    ends = [state.failure for state in world.ledger.state(DAY, "m1").attempts]
    assert [end is not None and end.passing for end in ends] == [True] * 6
    world.run_once()
    world.check_exact()


def test_manifest_error_of_the_engine(world: World) -> None:
    """What the engine finds wrong with a manifest makes it a dead letter at once."""
    uri = world.deliver("m1", GOOD)
    engine = FailingEngine(world, "m1", ManifestError("too_many_keys", "m1: 20001 keys"))
    world.runner(engine=engine).run([uri])
    assert (world.dead_letter("m1").reason, engine.tries) == ("too_many_keys", 1)
    assert world.store.read(world.layout.failed_manifest("m1"))
    assert world.waiting() == []


def test_staging_that_does_not_add_up(world: World) -> None:
    """A staged result that does not add up is never committed, and is held against the manifest."""
    uri = world.deliver("m1", GOOD)

    class ForgetfulEngine(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            staged = super().stage(request)
            return Staged(staged.reports, staged.schema, staged.outputs[:-1], staged.rejects)

    batch = world.runner(engine=ForgetfulEngine(world.store, rows_per_file=1)).run([uri])
    assert isinstance(batch.failures["m1"], StagingError)
    assert "holds 1 rows, expected 2" in str(batch.failures["m1"])
    assert world.output_rows() == {}
    [state] = world.ledger.state(DAY, "m1").attempts
    assert state.failure is not None
    assert not state.failure.passing
    world.run_once()
    world.check_exact()


def test_input_that_is_gone_is_set_aside_alone(world: World) -> None:
    """A missing and a changed file stop nothing else of their manifest, and are on record with what was found."""
    uri = world.deliver("m1", GOOD, GOOD, FLAWED)
    world.store.delete(["/w/raw/m1-0.ndjson"])
    world.store.put("/w/raw/m1-1.ndjson", FLAWED)
    world.runner().run([uri])
    assert [report.status for report in world.commit("m1").files] == ["missing", "changed", "compacted"]
    world.check_exact(["/w/raw/m1-2.ndjson"])


def test_new_columns_are_counted_once(world: World) -> None:
    """Only the manifest that brought columns counts them."""
    uris = [world.deliver("m1", GOOD), world.deliver("m2", GOOD)]
    results = [world.runner().run([uri]).results[0] for uri in uris]
    assert [result.new_columns for result in results] == [3, 0]


def test_a_driver_that_lives_is_no_death(world: World) -> None:
    """An attempt of another run that is still at work is not held against a manifest, where one would be enough."""
    world = World(stream={"max_attempts": 1})
    uri = world.deliver("m1", GOOD)
    other = world.app()
    begun, go_on = threading.Event(), threading.Event()

    class SlowEngine(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            begun.set()
            assert go_on.wait(30)
            return super().stage(request)

    def work() -> None:
        with other.presence:
            other.batch_runner(SlowEngine(world.store, rows_per_file=2)).run([uri])

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(30)
    batch = world.runner().run([uri])
    go_on.set()
    thread.join(30)
    assert [result.outcome.kind for result in batch.results if result.outcome] == ["commit"]
    world.check_exact()


def test_a_driver_that_is_gone_is_a_death(world: World) -> None:
    """Once a run gives no sign of life, its attempts count, and the manifest runs out of them."""
    world = World(stream={"max_attempts": 1})
    uri = world.deliver("m1", GOOD)
    with pytest.raises(DiedError):
        world.runner(on_step=dying_at(Step.ATTEMPTED)).run([uri])
    world.run_once()
    assert world.dead_letter("m1").reason == "retries_exhausted"


def test_an_engine_that_can_do_nothing_is_not_held_against_manifests(world: World) -> None:
    """Trouble that nobody foresaw counts only while the engine can do anything at all."""

    class BrokenEngine(FailingEngine):
        def is_well(self) -> bool:
            return False

    world = World(stream={"max_attempts": 1})
    world.deliver("m1", GOOD)
    with pytest.raises(CompactorError):
        world.run_once(engine=BrokenEngine(world, "m1", RuntimeError("the JVM is gone")))
    world.run_once()
    world.check_exact()


def test_input_that_nobody_may_read_stops_the_job(world: World) -> None:
    """Denied altogether, the job ends with one clear message and no dead letter; one closed file is set aside."""
    uri = world.deliver("m1", GOOD, FLAWED)
    first, second = (f"/w/raw/m1-{number}.ndjson" for number in range(2))
    closed = FaultyStore(world.store)
    for each in (first, second):
        closed.deny(each)
    with pytest.raises(AccessError, match=r"m1-0\.ndjson.*expected to be allowed to read"):
        world.run_once(store=closed)
    assert world.waiting() == [uri]
    half_closed = FaultyStore(world.store)
    half_closed.deny(second)
    world.run_once(store=half_closed)
    assert [file.status for file in world.commit("m1").files] == ["compacted", "forbidden"]
    world.check_exact([first])


def test_an_engine_that_dies_leaves_its_attempts_without_an_end(world: World) -> None:
    """Where the engine dies of a manifest and takes the run along, later runs see deaths, and the manifest runs out."""
    world = World(stream={"max_attempts": 2})
    world.deliver("killer", GOOD)
    engine = FailingEngine(world, "killer", EngineLost("the JVM is gone"))
    for _ in range(2):
        with pytest.raises(EngineLost, match="the JVM is gone"):
            world.run_once(engine=engine)
    world.run_once(engine=engine)
    assert (engine.tries, world.dead_letter("killer").reason) == (2, "retries_exhausted")


def test_passing_trouble_that_could_not_be_put_on_record_is_no_death(world: World) -> None:
    """A store that fails while a failure is put on record does not make the run look dead to later ones."""
    world = World(stream={"max_attempts": 1})
    world.deliver("m1", GOOD)
    for _ in range(3):
        store = RefusingEnds(world.store, times=2)
        with pytest.raises(CompactorError):
            world.run_once(store=store, engine=FailingEngine(world, "m1", StoreUnavailable("503")))
    world.run_once()
    world.check_exact()


def test_an_outage_that_outlasts_an_attempt_is_no_death(world: World) -> None:
    """A store that answers nothing any more when an attempt fails hides nothing from later runs."""

    class OutageEngine(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            for call in range(1, 4):
                store.unavailable_at(store.calls["any"] + call)
            raise StoreUnavailable(f"{request.staging}: 503")

    world = World(stream={"max_attempts": 1})
    world.deliver("m1", GOOD)
    for _ in range(3):
        store = FaultyStore(world.store)
        with pytest.raises(CompactorError):
            world.run_once(store=store, engine=OutageEngine(world.store))
    world.run_once()
    world.check_exact()


class RefusingEnds(FaultyStore):
    """Refuses, so many times, to keep how an attempt ended."""

    def __init__(self, store: ObjectStore, times: int) -> None:
        super().__init__(store)
        self._left = times

    def create(self, uri: str, data: bytes) -> bool:
        if uri.endswith("-failed.json") and self._left:
            self._left -= 1
            raise StoreUnavailable(f"{uri}: 503")
        return super().create(uri, data)


def test_what_fails_all_manifests_is_held_against_none(world: World) -> None:
    """Where different manifests fail one after the other and none commits, all but the first few are spared."""

    class FailsAll(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            raise RuntimeError(f"a fault of the code, met by {request.manifest.manifest_id}")

    world = World(stream={"max_attempts": 2})
    for number in range(8):
        world.deliver(f"m{number}", GOOD)
    for _ in range(3):
        with pytest.raises(CompactorError):
            world.run_once(engine=FailsAll(world.store))
    letters = [info for info in world.store.list(world.layout.failed_folder) if info.uri.endswith(".reason.json")]
    assert len(letters) < COMMON_FAILURES
    assert world.run_once().committed == 8 - len(letters)
