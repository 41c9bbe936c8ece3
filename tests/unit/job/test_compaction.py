"""The life of one manifest: whatever dies, fails or races on the way, its lines come out exactly once."""

import threading
import time

import pytest

from compactor.core.crash_points import CrashPoint, OnCrashPoint
from compactor.core.documents.changes import Commit
from compactor.core.errors import (
    CompactorError,
    EngineLost,
    ManifestError,
    OperatorError,
    StagingError,
    StoreUnavailable,
    TryAgainError,
)
from compactor.core.layout import ManifestKey, base_name
from compactor.engines.engine import Staged, StageRequest
from compactor.job import service
from compactor.job.attempts import COMMON_FAILURES
from compactor.job.report import ManifestsUnfinished
from compactor.wiring import streaming
from tests.support.fakes import FailingEngine, FaultyStore, PlainEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, dying_at
from tests.support.interleaving import interleave

M1 = ManifestKey(DAY, "m1")

LIFE = list(CrashPoint)

ALWAYS = 1_000_000


@pytest.fixture
def harness() -> Harness:
    return Harness()


@pytest.fixture(autouse=True)
def _no_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FIRST_PAUSE_SECONDS", 0.0)


def test_life_in_order(harness: Harness) -> None:
    """Every step is reached, in the order of the life, and the record of each is where the layout says."""
    seen: list[CrashPoint] = []
    uri = harness.deliver("m1", GOOD, FLAWED)
    harness.runner(on_crash_point=lambda step, _: seen.append(step)).run([uri])
    assert list(dict.fromkeys(seen)) == LIFE
    assert seen.count(CrashPoint.PUBLISHED_ONE) == 3
    records = [base_name(info.uri) for info in harness.store.list(harness.layout.ledger_records(M1))]
    assert records == ["attempt-1.json", "done.json", "outcome.json"]
    assert harness.store.stat(harness.layout.archived_manifest(M1)) is not None
    harness.check_exact()


@pytest.mark.parametrize("step", LIFE)
@pytest.mark.parametrize("occurrence", [1, 2])
def test_death_and_delay_at_each_step(step: CrashPoint, occurrence: int) -> None:
    """A driver that dies at any step, or is overtaken there, leaves the exact output, and spoils nothing later."""

    def world() -> Harness:
        made = Harness()
        made.deliver("m1", GOOD, FLAWED)
        made.deliver("m2", FLAWED)
        return made

    def process(made: Harness, on_crash_point: OnCrashPoint) -> None:
        made.runner(on_crash_point=on_crash_point).run(made.waiting())

    def others(made: Harness) -> None:
        assert made.run_once().failures == {}

    def kept(made: Harness) -> object:
        outputs = {info.uri: made.store.read(info.uri) for info in made.store.list("/w/output/")}
        return outputs, made.outcome("m1"), made.outcome("m2")

    def check(made: Harness) -> None:
        made.check_exact()
        assert isinstance(made.outcome("m1"), Commit)
        assert isinstance(made.outcome("m2"), Commit)

    interleave(step, world, process, others, check, occurrence=occurrence, kept=kept)


@pytest.mark.parametrize(
    "step",
    [
        CrashPoint.ACCEPTED,
        CrashPoint.DECIDED,
        CrashPoint.PUBLISHED,
        CrashPoint.DONE,
        CrashPoint.UNSTAGED,
        CrashPoint.ARCHIVED,
    ],
)
def test_death_with_a_dead_letter(harness: Harness, step: CrashPoint) -> None:
    """A refused manifest becomes a dead letter with its bytes and its reason, wherever the first driver dies."""
    uri = harness.put_manifest("bad.json", b"no json")
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(step)).run([uri])
    harness.run_once()
    assert harness.dead_letter("bad").reason == "not_json"
    assert harness.store.read(harness.layout.failed_manifest("bad")) == b"no json"
    assert harness.store.stat(harness.layout.failure_reason("bad")) is not None
    assert harness.waiting() == []


def store_calls() -> int:
    """How many calls of the store a whole run takes."""
    harness = Harness()
    harness.deliver("m1", GOOD + FLAWED)
    store = FaultyStore(harness.store)
    harness.run_once(store=store)
    return store.calls["any"]


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("lost_answer", [False, True])
def test_trouble_at_every_store_call(lost_answer: bool, every: int) -> None:
    """Whichever call of the store fails, done or not done, the output is exact in the end and nothing is blamed."""
    for call in range(1, store_calls() + 1, every):
        harness = Harness(stream={"max_attempts": 2})
        harness.deliver("m1", GOOD + FLAWED)
        store = FaultyStore(harness.store)
        (store.lose_answer_at if lost_answer else store.unavailable_at)(call)
        try:
            harness.run_once(store=store)
        except StoreUnavailable:
            harness.run_once()  # the trouble came before or after all work, and ended the process
        harness.check_exact()
        assert isinstance(harness.outcome("m1"), Commit)


def test_decided_is_not_worked_on_again(harness: Harness) -> None:
    """What was decided when a driver died is published by the next one, without another attempt."""
    uri = harness.deliver("m1", GOOD)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.DECIDED)).run([uri])
    engine = FailingEngine(harness.store, RuntimeError("boom"), {"m1": ALWAYS})
    assert harness.run_once(engine=engine).committed == 1
    assert engine.tries == 0
    harness.check_exact()


class FailsBetween(FailingEngine):
    """Fails for `bad` always: once before `a` and `c` are staged, and then only after both are done."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness.store, RuntimeError("boom"), {"bad": ALWAYS})
        self._ledger = harness.ledger

    def stage(self, request: StageRequest) -> Staged:
        is_first = request.manifest.manifest_id == "bad" and not self.tries
        while not is_first and not self._may_stage(request.manifest.manifest_id):
            time.sleep(0.001)
        return super().stage(request)

    def _may_stage(self, manifest_id: str) -> bool:
        if manifest_id != "bad":
            return self.tries > 0
        return all(self._ledger.is_done(ManifestKey(DAY, other)) for other in ("a", "c"))


def test_retries_exhausted(harness: Harness) -> None:
    """A manifest that always fails becomes a dead letter after its attempts, while the others are committed."""
    for name in ("a", "bad", "c"):
        harness.deliver(name, GOOD)
    engine = FailsBetween(harness)
    report = harness.run_once(engine=engine)
    letter = harness.dead_letter("bad")
    assert (letter.reason, report.committed, report.dead_lettered, report.failures) == ("retries_exhausted", 2, 1, {})
    assert "3 attempts failed; the last: RuntimeError in " in letter.message
    assert "boom" not in letter.message  # which might be a value that something choked on
    assert engine.tries > 3  # the first was not alone, so it did not count; nor does one while another is still ending
    harness.check_exact(["/w/raw/a-0.ndjson", "/w/raw/c-0.ndjson"])


def test_killer_runs_out_of_attempts(harness: Harness) -> None:
    """A manifest that kills every driver becomes a dead letter, and one that was in flight beside it does not."""
    uris = [harness.deliver("a", GOOD), harness.deliver("killer", GOOD)]
    engine = FailingEngine(harness.store, DiedError(), {"killer": ALWAYS})
    with pytest.raises(DiedError):
        harness.runner(engine=engine).run(uris)
    for _ in range(3):
        with pytest.raises(DiedError):
            harness.run_once(engine=engine)
    harness.run_once(engine=engine)
    assert harness.dead_letter("killer").reason == "retries_exhausted"
    assert "died with 1 manifests in flight" in harness.dead_letter("killer").message
    assert isinstance(harness.outcome("a"), Commit)


@pytest.mark.parametrize("error", [StoreUnavailable("throttled"), TryAgainError("later"), OperatorError("denied")])
def test_passing_trouble_never_counts(harness: Harness, error: Exception) -> None:
    """However often passing trouble ends an attempt, the manifest is tried again, also by the next driver."""
    uri = harness.deliver("m1", GOOD)
    for _ in range(5):
        runner = harness.runner(engine=FailingEngine(harness.store, error, {"m1": ALWAYS}))
        if isinstance(error, OperatorError):
            with pytest.raises(OperatorError):
                runner.run([uri])
        else:
            assert runner.run([uri]).failures == {"m1": error}
    harness.run_once()
    harness.check_exact()


def test_passing_trouble_that_the_store_kept_quiet_about(harness: Harness) -> None:
    """An attempt whose end the store refused to keep is not taken for a death by later drivers."""
    uri = harness.deliver("m1", GOOD)
    for _ in range(3):
        store = FaultyStore(harness.store)
        store.unavailable_at(4, "create")  # after acceptance, index and attempt comes the attempt's end
        runner = harness.runner(
            engine=FailingEngine(harness.store, StoreUnavailable("gone"), {"m1": ALWAYS}), store=store
        )
        runner.run([uri])
        assert harness.ledger.state(M1).attempts.unfolded[-1].failure is None
        runner.run([uri])
    ends = [state.failure for state in harness.ledger.state(M1).attempts.unfolded]
    assert [end is not None and end.passing for end in ends] == [True] * 6
    harness.run_once()
    harness.check_exact()


def test_manifest_error_of_the_engine(harness: Harness) -> None:
    """What the engine finds wrong with a manifest makes it a dead letter at once."""
    uri = harness.deliver("m1", GOOD)
    engine = FailingEngine(harness.store, ManifestError("bad_file", "m1: its first file"), {"m1": ALWAYS})
    harness.runner(engine=engine).run([uri])
    assert (harness.dead_letter("m1").reason, engine.tries) == ("bad_file", 1)
    assert harness.store.read(harness.layout.failed_manifest("m1"))
    assert harness.waiting() == []


def test_staging_that_does_not_add_up(harness: Harness) -> None:
    """A staged result that does not add up is never committed, and is held against the manifest."""
    uri = harness.deliver("m1", GOOD)

    class ForgetfulEngine(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            staged = super().stage(request)
            return Staged(staged.reports, staged.schema, staged.outputs[:-1], staged.rejects)

    batch = harness.runner(engine=ForgetfulEngine(harness.store, rows_per_file=1)).run([uri])
    assert isinstance(batch.failures["m1"], StagingError)
    assert "holds 1 rows, expected 2" in str(batch.failures["m1"])
    assert harness.output_rows() == {}
    [state] = harness.ledger.state(M1).attempts.unfolded
    assert state.failure is not None
    assert not state.failure.passing
    harness.run_once()
    harness.check_exact()


def test_input_that_cannot_be_read_is_quarantined_alone(harness: Harness) -> None:
    """A missing, a changed and a closed file stop nothing else of their manifest, and are on record as found."""
    uri = harness.deliver("m1", GOOD, GOOD, GOOD, FLAWED)
    harness.store.delete(["/w/raw/m1-0.ndjson"])
    harness.store.put("/w/raw/m1-1.ndjson", FLAWED)
    store = FaultyStore(harness.store)
    store.deny("/w/raw/m1-2.ndjson")
    harness.runner(store=store).run([uri])
    statuses = [report.status for report in harness.commit("m1").files]
    assert statuses == ["missing", "changed", "forbidden", "compacted"]
    harness.check_exact(["/w/raw/m1-3.ndjson"])


def test_new_columns_are_counted_once(harness: Harness) -> None:
    """Only the manifest that brought columns counts them."""
    uris = [harness.deliver("m1", GOOD), harness.deliver("m2", GOOD)]
    results = [harness.runner().run([uri]).finished[0] for uri in uris]
    assert [result.new_columns for result in results] == [3, 0]


def test_a_driver_that_lives_is_no_death(harness: Harness) -> None:
    """An attempt of another run that is still at work is not held against a manifest, where one would be enough."""
    harness = Harness(stream={"max_attempts": 2})
    uri = harness.deliver("m1", GOOD)
    other = harness.app()
    begun, go_on = threading.Event(), threading.Event()

    class SlowEngine(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            begun.set()
            assert go_on.wait(30)
            return super().stage(request)

    def work() -> None:
        with other.heartbeat:
            streaming.scheduler(other, SlowEngine(harness.store, rows_per_file=2)).run([uri])

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(30)
    batch = harness.runner().run([uri])
    go_on.set()
    thread.join(30)
    assert [result.outcome.why for result in batch.finished if result.outcome] == ["compacted"]
    harness.check_exact()


def test_an_engine_that_can_do_nothing_is_not_held_against_manifests(harness: Harness) -> None:
    """An unforeseen error counts only while the engine still works."""

    class BrokenEngine(FailingEngine):
        def is_healthy(self) -> bool:
            return False

    harness = Harness(stream={"max_attempts": 2})
    harness.deliver("m1", GOOD)
    with pytest.raises(CompactorError):
        harness.run_once(engine=BrokenEngine(harness.store, RuntimeError("the JVM is gone")))
    harness.run_once()
    harness.check_exact()


def test_input_that_may_not_be_read_stops_only_its_manifest(harness: Harness) -> None:
    """A manifest of which nothing may be read becomes a dead letter, and the job goes on beside it."""
    harness.deliver("closed", GOOD, FLAWED)
    harness.deliver("good", GOOD)
    store = FaultyStore(harness.store)
    for number in range(2):
        store.deny(f"/w/raw/closed-{number}.ndjson")
    report = harness.run_once(store=store)
    assert (report.committed, report.dead_lettered, report.failures) == (1, 1, {})
    letter = harness.dead_letter("closed")
    assert letter.reason == "forbidden"
    assert "closed-0.ndjson: access denied; expected permission to read the input" in letter.message
    harness.check_exact(["/w/raw/good-0.ndjson"])


def test_input_that_nothing_may_read_is_held_against_none(harness: Harness) -> None:
    """Where the right to read all input is missing, manifests wait for it instead of becoming dead letters."""
    store = FaultyStore(harness.store)
    for number in range(6):
        harness.deliver(f"m{number}", GOOD)
        store.deny(f"/w/raw/m{number}-0.ndjson")
    for _ in range(2):
        with pytest.raises(ManifestsUnfinished, match="access denied"):
            harness.run_once(store=store)
        harness.clock.advance(600)
    dead = [info for info in harness.store.list(harness.layout.failed_folder) if info.uri.endswith(".reason.json")]
    assert len(dead) < COMMON_FAILURES
    assert harness.run_once().committed == 6 - len(dead)


def test_an_engine_that_dies_leaves_its_attempts_without_an_end(harness: Harness) -> None:
    """Where the engine dies of a manifest and takes the run along, later runs see deaths, and the manifest runs out."""
    harness = Harness(stream={"max_attempts": 2})
    harness.deliver("killer", GOOD)
    engine = FailingEngine(harness.store, EngineLost("the JVM is gone"), {"killer": ALWAYS})
    for _ in range(3):
        with pytest.raises(EngineLost, match="the JVM is gone"):
            harness.run_once(engine=engine)
    harness.run_once(engine=engine)
    assert (engine.tries, harness.dead_letter("killer").reason) == (3, "retries_exhausted")


def test_an_engine_that_ends_with_the_run_is_no_death(harness: Harness) -> None:
    """What asks the process to end may end the engine first; that counts against nothing."""

    class Ending(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            runner.halt()
            raise EngineLost(f"the JVM is gone with {request.manifest.manifest_id}")

    runner = harness.runner(engine=Ending(harness.store))
    with pytest.raises(EngineLost):
        runner.run([harness.deliver("m1", GOOD)])
    [state] = harness.ledger.state(M1).attempts.unfolded
    assert state.failure is not None
    assert (state.failure.passing, state.failure.died, state.failure.undecided) == (True, False, False)


@pytest.mark.parametrize("calls", [1, 3])
def test_an_outage_that_outlasts_an_attempt_is_no_death(calls: int) -> None:
    """A store that fails while a failure is put on record does not make the run look dead to later ones."""

    class OutageEngine(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            for call in range(1, 1 + calls):
                store.unavailable_at(store.calls["any"] + call)
            raise StoreUnavailable(f"{request.staging}: 503")

    harness = Harness(stream={"max_attempts": 2})
    harness.deliver("m1", GOOD)
    for _ in range(3):
        store = FaultyStore(harness.store)
        with pytest.raises(CompactorError):
            harness.run_once(store=store, engine=OutageEngine(harness.store))
    harness.clock.advance(600)
    harness.run_once()
    harness.check_exact()
