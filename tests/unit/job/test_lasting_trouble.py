"""Trouble that stays: brown-outs, killers and closed input, over several processes, beside manifests that are fine."""

import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.errors import CompactorError, EngineFailed, StoreUnavailable
from compactor.core.layout import ManifestKey
from compactor.core.ports import ObjectInfo
from compactor.engines.engine import Staged, StageRequest
from compactor.wiring import streaming
from tests.support.fakes import FailingEngine, FaultyStore, PlainEngine
from tests.support.harness import DAY, GOOD, DiedError, Harness

ALWAYS = 1_000_000


class Ticking(FailingEngine):
    """Takes a second for each attempt, by the clock of the test."""

    def __init__(self, harness: Harness, error: BaseException, times: Mapping[str, int] | None = None) -> None:
        super().__init__(harness.store, error, times)
        self.tried: Counter[str] = Counter()
        self._clock = harness.clock

    def stage(self, request: StageRequest) -> Staged:
        self._clock.advance(1)
        self.tried[request.manifest.manifest_id] += 1
        return super().stage(request)


def letters(harness: Harness) -> set[str]:
    found = (info.uri for info in harness.store.list(harness.layout.failed_folder))
    return {uri.rsplit("/", 1)[-1].removesuffix(".reason.json") for uri in found if uri.endswith(".reason.json")}


@pytest.mark.parametrize("killers", [3, *(pytest.param(many, marks=pytest.mark.full) for many in (8, 24))])
def test_manifests_that_always_fail_hold_up_no_other(killers: int) -> None:
    """However many manifests kill their workers, the first process commits the others and blames the killers alone."""
    harness = Harness(stream={"manifests_in_flight": 4})
    bad = {f"bad{number}" for number in range(killers)}
    for name in sorted(bad):
        harness.deliver(name, GOOD)
    with pytest.raises(CompactorError):
        harness.run_once(engine=FailingEngine(harness.store, EngineFailed("a worker was killed")))
    for number in range(5):
        harness.deliver(f"good{number}", GOOD)
    engine = Ticking(harness, EngineFailed("a worker was killed"), dict.fromkeys(bad, ALWAYS))
    try:
        report = harness.run_once(engine=engine)
        assert report.committed == 5
    except CompactorError:
        pass
    assert all(isinstance(harness.outcome(f"good{number}"), Commit) for number in range(5))
    for number in range(6):
        if letters(harness) == bad:
            break
        harness.clock.advance(600)
        harness.deliver(f"later{number}", GOOD)
        try:
            harness.run_once(engine=engine)
        except CompactorError:
            harness.clock.advance(1)
    assert letters(harness) <= bad


def test_killers_become_dead_letters_beside_commits() -> None:
    """Once others get through, manifests that always fail run out of attempts."""
    harness = Harness(stream={"manifests_in_flight": 2})
    bad = [f"bad{number}" for number in range(4)]
    engine = Ticking(harness, EngineFailed("a worker was killed"), dict.fromkeys(bad, ALWAYS))
    for name in bad:
        harness.deliver(name, GOOD)
    for number in range(12):
        harness.clock.advance(600)
        harness.deliver(f"good{number}", GOOD)
        try:
            harness.run_once(engine=engine)
            break
        except CompactorError:
            continue
    assert letters(harness) == set(bad)
    assert {harness.dead_letter(name).reason for name in bad} == {"retries_exhausted"}


class BrownOut(FaultyStore):
    """Refuses calls by chance."""

    def __init__(self, harness: Harness, share: float, seed: int) -> None:
        super().__init__(harness.store)
        self._share, self._random, self._chance_lock = share, random.Random(seed), threading.Lock()

    def _call(self, method: str, uri: str, work):  # type: ignore[no-untyped-def]
        with self._chance_lock:
            refused = self._random.random() < self._share
        if refused:
            raise StoreUnavailable(f"{uri}: 503 Slow Down")
        return super()._call(method, uri, work)


@pytest.mark.parametrize("seed", range(5))
def test_a_brown_out_makes_no_dead_letter(seed: int) -> None:
    """A store that refuses most calls, over three processes, costs time and nothing else."""
    harness = Harness(stream={"manifests_in_flight": 4})
    for number in range(20):
        harness.deliver(f"m{number}", GOOD)
    for process in range(3):
        store = BrownOut(harness, 0.6, seed * 10 + process)
        try:
            harness.run_once(store=store, engine=PlainEngine(store, rows_per_file=2))
        except CompactorError:
            harness.clock.advance(600)
    assert letters(harness) == set()
    harness.clock.advance(600)
    harness.run_once()
    harness.check_exact()


def test_workers_that_fail_for_a_while_make_no_dead_letter() -> None:
    """Where every attempt fails for some minutes, and then none does, no manifest is blamed."""

    class Sick(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            raise EngineFailed(f"no worker lives long: {request.manifest.manifest_id}")

    harness = Harness(stream={"manifests_in_flight": 4})
    for number in range(12):
        harness.deliver(f"m{number}", GOOD)
    for _ in range(3):
        with pytest.raises(CompactorError):
            harness.run_once(engine=Sick(harness.store))
        harness.clock.advance(600)
    assert letters(harness) == set()
    assert harness.run_once().committed == 12
    harness.check_exact()


def test_a_manifest_object_that_may_not_be_read_stops_no_other() -> None:
    """It is told of, and stays where it is."""
    harness = Harness()
    closed = harness.deliver("closed", GOOD)
    harness.deliver("good", GOOD)
    store = FaultyStore(harness.store)
    store.deny(closed)
    report = harness.run_once(store=store)
    assert (report.committed, list(report.stuck), harness.waiting()) == (1, ["closed"], [closed])
    assert "expected permission to read the manifest" in report.stuck["closed"]


def test_input_that_becomes_unreadable_while_it_is_read() -> None:
    """A refusal in the middle of a file is that file's trouble."""

    class Closing(FaultyStore):
        def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
            if start:
                self.deny(uri)
            return super().read_range(uri, start, length, etag=etag)

    harness = Harness()
    harness.deliver("m1", b'{"id": "1", "text": "' + b"x" * (9 << 20) + b'"}\n', GOOD)
    harness.run_once(store=Closing(harness.store))
    assert [file.status for file in harness.commit("m1").files] == ["forbidden", "compacted"]


def test_work_goes_on_beside_a_slow_manifest() -> None:
    """No micro-batch waits for its slowest manifest."""
    harness = Harness(stream={"manifests_in_flight": 2})
    done = threading.Event()
    seen: list[str] = []

    class Slow(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            if request.manifest.manifest_id == "a-slow":
                assert done.wait(30)
            else:
                seen.append(request.manifest.manifest_id)
                if len(seen) == 8:
                    done.set()
            return super().stage(request)

    for name in ("a-slow", *(f"m{number}" for number in range(8))):
        harness.deliver(name, GOOD)
    assert harness.run_once(engine=Slow(harness.store)).committed == 9
    harness.check_exact()


def test_dead_letters_do_not_queue_behind_each_other() -> None:
    """Refused manifests are buried in all slots at once."""
    harness = Harness(stream={"manifests_in_flight": 4})
    barrier = threading.Barrier(4, timeout=30)

    class Meeting(FaultyStore):
        def put(self, uri: str, data: bytes) -> None:
            if uri.endswith(".reason.json"):
                barrier.wait()
            super().put(uri, data)

        def stat(self, uri: str) -> ObjectInfo | None:
            return super().stat(uri)

    for number in range(4):
        harness.put_manifest(f"bad{number}.json", b"no json")
    assert harness.run_once(store=Meeting(harness.store)).dead_lettered == 4
    assert isinstance(harness.ledger.outcome(ManifestKey(DAY, "bad0")), DeadLetter)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_runs_that_all_die_make_no_dead_letter(slots: int) -> None:
    """Where no run lives long enough for a commit, whatever kills them, no manifest is to blame."""
    harness = Harness(stream={"manifests_in_flight": slots})
    for number in range(6):
        harness.deliver(f"m{number}", GOOD)
    for _ in range(15):
        try:
            harness.run_once(engine=FailingEngine(harness.store, DiedError("killed from outside")))
        except (DiedError, CompactorError):
            harness.clock.advance(60)
    assert letters(harness) == set()
    harness.clock.advance(3_600)
    harness.run_once()
    harness.check_exact()


def test_a_failed_manifest_is_tried_again_while_its_batch_goes_on() -> None:
    """A pause ends when it ends, however slow the neighbours in the micro-batch are."""
    harness = Harness(stream={"manifests_in_flight": 2})
    again = threading.Event()
    waited: list[bool] = []

    class Slow(FailingEngine):
        def stage(self, request: StageRequest) -> Staged:
            if request.manifest.manifest_id == "a-slow":
                waited.append(again.wait(5))
            elif self.tries:
                again.set()
            return super().stage(request)

    for name in ("a-slow", "fails-once"):
        harness.deliver(name, GOOD)
    source = ListedManifests(harness.store, harness.layout.manifests_folder, poll_seconds=0.05)
    app = harness.app()
    job = streaming.service_on(app, Slow(harness.store, StoreUnavailable("503"), {"fails-once": 1}), source)
    app.on_result = lambda result: job.stop() if result.manifest_id == "a-slow" else None
    job.runner.on_result = app.on_result
    job.run(once=False)
    assert waited == [True]


def processes(harness: Harness, engine: PlainEngine, most: int) -> Iterator[int]:
    """Run processes one after the other, each of which does what it can, or dies."""
    for number in range(1, most + 1):
        with suppress(DiedError, CompactorError):
            harness.run_once(engine=engine)
        yield number
        harness.clock.advance(60)


def committed(harness: Harness) -> set[str]:
    ids = {info.uri.rsplit("/", 1)[-1].removesuffix(".json") for info in harness.store.list("/w/state/accepted/")}
    states = {each: harness.ledger.state(ManifestKey(DAY, each)).outcome for each in ids}
    return {each for each, outcome in states.items() if isinstance(outcome, Commit)}


@pytest.mark.parametrize("killers", [3, 8, pytest.param(24, marks=pytest.mark.full)])
@pytest.mark.parametrize("first", [True, False])
def test_good_data_moves_in_the_process_after_the_first_death(killers: int, first: bool) -> None:
    """Killers of the driver before all others cost them one process; killers behind them, one more."""
    harness = Harness(stream={"manifests_in_flight": 2})
    bad = [f"killer{number:02}" for number in range(killers)]
    good = [f"good{number}" for number in range(5)]
    for name in [*bad, *good] if first else [*good, *bad]:
        harness.deliver(f"{'ab'[name in bad] if not first else 'ab'[name in good]}-{name}", GOOD)
        harness.clock.advance(1)
    ids = {f"{'b' if first else 'a'}-{name}" for name in good}
    killed = dict.fromkeys((f"{'a' if first else 'b'}-{name}" for name in bad), ALWAYS)
    for number in processes(harness, FailingEngine(harness.store, DiedError(), killed), 3):
        moved = committed(harness)
        assert moved == ids if first and number > 1 else moved <= ids
        assert first or number < 3 or len(moved) >= len(ids) - 1
    assert letters(harness) == set()


@pytest.mark.parametrize("beside", [0, 4])
def test_killers_without_other_traffic_become_dead_letters(beside: int) -> None:
    """What kills each process alone, between two self-tests that pass, is to blame though nothing else gets through."""
    harness = Harness(stream={"manifests_in_flight": 4})
    bad = {f"killer{number}" for number in range(3)}
    for name in sorted(bad):
        harness.deliver(name, GOOD)
    engine = FailingEngine(harness.store, DiedError(), dict.fromkeys(bad, ALWAYS))
    most = next((number for number in processes(harness, engine, 30) if letters(harness) == bad), 30)
    assert letters(harness) == bad
    assert most <= 20
    for number in range(beside):
        harness.deliver(f"good{number}", GOOD)
    assert harness.run_once(engine=engine).committed == beside


def test_killers_leave_few_innocents_suspected() -> None:
    """What was in flight beside a killer is cleared, whatever its order, and the killer alone becomes a dead letter."""
    harness = Harness(stream={"manifests_in_flight": 8})
    for number in range(12):
        harness.deliver(f"m{number:02}", GOOD)
    engine = FailingEngine(harness.store, DiedError(), {"m03": ALWAYS})
    most = next((number for number in processes(harness, engine, 12) if letters(harness)), 12)
    assert letters(harness) == {"m03"}
    assert len(committed(harness)) == 11
    assert most <= 9


@pytest.mark.parametrize(("killers", "good"), [pytest.param(24, 5, marks=pytest.mark.full), (6, 5), (3, 0)])
def test_one_process_decides_of_what_kills_only_workers(killers: int, good: int) -> None:
    """No good manifest is converted twice, bad ones a bounded number of times, and the run ends as done."""
    harness = Harness(stream={"manifests_in_flight": 4})
    bad = {f"bad{number:02}" for number in range(killers)}
    for name in [*sorted(bad), *(f"good{number}" for number in range(good))]:
        harness.deliver(name, GOOD)
    engine = Ticking(harness, EngineFailed("a worker was killed"), dict.fromkeys(bad, ALWAYS))
    report = harness.run_once(engine=engine)
    assert (report.committed, report.dead_lettered, report.failures, letters(harness)) == (good, killers, {}, bad)
    assert all(engine.tried[f"good{number}"] == 1 for number in range(good))
    most = 2 * harness.settings.stream.max_attempts - 1
    assert all(engine.tried[name] <= most for name in bad), engine.tried


def test_a_flood_of_tiny_manifests_leaves_the_others_their_turns() -> None:
    """Honest manifests behind a flood are done after about twice as many turns as they have slots for."""
    harness = Harness(stream={"manifests_in_flight": 2})
    for number in range(120):
        harness.deliver(f"attack-{number:04}", GOOD)
    for number in range(5):
        harness.deliver(f"honest-{number}", GOOD * 60)
    order: list[str] = []
    app = harness.app()
    app.on_result = lambda result: order.append(result.manifest_id)
    streaming.service_on(app, harness.engine(), ListedManifests(harness.store, harness.layout.manifests_folder)).run(
        once=True
    )
    last = max(place for place, name in enumerate(order) if name.startswith("honest"))
    assert (len(order), last < 40) == (125, True), last
