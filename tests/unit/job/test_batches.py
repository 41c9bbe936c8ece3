"""Micro-batches: repeats count once, suspects are alone, one failure stops no other, an operator's error stops all."""

import threading

import pytest

from compactor.core.crash_points import Step
from compactor.core.errors import AccessError, StoreUnavailable
from compactor.core.records import Commit
from compactor.engines.engine import Staged, StageRequest
from compactor.job.batches import BatchRunner
from tests.support.fakes import FaultyStore, PlainEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, World


@pytest.fixture
def world() -> World:
    return World(stream={"manifests_in_flight": 2})


class WatchedEngine(PlainEngine):
    """Notes which manifests were in work at once, and raises where it is told to."""

    def __init__(self, world: World, errors: dict[str, Exception] | None = None) -> None:
        super().__init__(world.store)
        self.errors = errors or {}
        self.seen: list[tuple[str, int]] = []
        self.together: list[set[str]] = []
        self._in_work: set[str] = set()
        self._lock = threading.Lock()

    def stage(self, request: StageRequest) -> Staged:
        manifest_id = request.manifest.manifest_id
        with self._lock:
            self._in_work.add(manifest_id)
            self.seen.append((manifest_id, request.manifests_in_flight))
            self.together.append(set(self._in_work))
        try:
            if manifest_id in self.errors:
                raise self.errors[manifest_id]
            return super().stage(request)
        finally:
            with self._lock:
                self._in_work.remove(manifest_id)


def runner(world: World, engine: PlainEngine) -> BatchRunner:
    return world.app().batch_runner(engine)


def test_repeated_uris(world: World) -> None:
    """A URI that comes several times is one manifest, done once."""
    engine = WatchedEngine(world)
    uri = world.deliver("m1", GOOD)
    batch = runner(world, engine).run([uri, uri, uri])
    assert [result.manifest_id for result in batch.results] == ["m1"]
    again = runner(world, engine).run([uri])
    assert (again.results, again.failures, engine.seen) == ([], {}, [("m1", 1)])
    world.check_exact()


def test_repeated_manifest(world: World) -> None:
    """A manifest that comes under two names is in work once, and alone as if it had come once."""
    engine = WatchedEngine(world)
    data = world.manifest("m1", [world.file("a", GOOD)]).to_json()
    runner(world, engine).run([world.put_manifest(name, data) for name in ("one.json", "two.json")])
    assert engine.seen == [("m1", 1)]
    world.check_exact()


def test_one_failure_stops_no_other(world: World) -> None:
    """The neighbours of a failing manifest are committed, and its error is in the result."""
    error = RuntimeError("boom")
    uris = [world.deliver(name, GOOD) for name in ("a", "bad", "c", "d")]
    batch = runner(world, WatchedEngine(world, {"bad": error})).run(uris)
    assert batch.failures == {"bad": error}
    assert sorted(result.manifest_id for result in batch.results) == ["a", "c", "d"]
    world.run_once()
    world.check_exact()


def test_suspects_run_alone(world: World) -> None:
    """What failed before runs when nothing else does, after the others."""
    engine = WatchedEngine(world, {"bad": RuntimeError("boom")})
    uri = world.deliver("bad", GOOD)
    runner(world, engine).run([uri])
    engine.errors, engine.seen, engine.together = {}, [], []
    others = [world.deliver(name, FLAWED) for name in ("x", "y", "z")]
    runner(world, engine).run([uri, *others])
    assert engine.seen[-1] == ("bad", 1)
    assert {in_flight for _, in_flight in engine.seen[:-1]} == {2}
    assert engine.together[-1] == {"bad"}
    world.check_exact()


def test_resumed_run_alone(world: World) -> None:
    """What was open when a driver died is carried on one at a time, and every attempt says that it was alone."""
    uris = [world.deliver(name, GOOD) for name in ("a", "b")]
    with pytest.raises(DiedError):
        world.runner(on_step=_die_after_staging).run(uris)
    engine = WatchedEngine(world)
    open_ids = list(world.ledger.open_ids())
    runner(world, engine).resume(open_ids)
    assert all(len(group) == 1 for group in engine.together)
    assert {in_flight for _, in_flight in engine.seen} <= {1}
    runner(world, engine).run(world.waiting())
    world.check_exact()


def _die_after_staging(step: str, _manifest_id: str) -> None:
    if step == "converted":
        raise DiedError


def test_operator_error_stops(world: World) -> None:
    """Where a person must act, manifests in flight come to their end, and no other is begun."""
    in_flight = threading.Event()
    released = threading.Event()

    class TurnEngine(WatchedEngine):
        def stage(self, request: StageRequest) -> Staged:
            if request.manifest.manifest_id == "m0":
                in_flight.set()
                assert released.wait(30)
            else:
                assert in_flight.wait(30)
            return super().stage(request)

    class ReleasingStore(FaultyStore):
        """Lets the one in flight go on when the failure of its neighbour goes on record."""

        def create(self, uri: str, data: bytes) -> bool:
            created = super().create(uri, data)
            if uri.endswith("-failed.json"):
                released.set()
            return created

    def note(step: Step, manifest_id: str) -> None:
        if step == Step.ATTEMPTED:
            begun.append(manifest_id)

    begun: list[str] = []
    uris = [world.deliver(f"m{number}", GOOD) for number in range(8)]
    engine = TurnEngine(world, {f"m{number}": AccessError("denied") for number in range(1, 8)})
    with pytest.raises(AccessError, match="denied"):
        world.app(on_step=note, store=ReleasingStore(world.store)).batch_runner(engine).run(uris)
    assert isinstance(world.outcome("m0"), Commit)
    assert sorted(begun) == ["m0", "m1"]
    world.run_once()
    world.check_exact()


def test_one_object_that_cannot_be_read_now(world: World) -> None:
    """Passing trouble with one object of the prefix leaves the other manifests of the batch to their work."""
    world.deliver("a", GOOD)
    uris = [*world.waiting(), world.deliver("b", GOOD)]

    class Locked(FaultyStore):
        def read(self, uri: str, *, etag: str | None = None) -> bytes:
            if uri.endswith("/a.json"):
                raise StoreUnavailable(f"{uri}: slow down")
            return super().read(uri, etag=etag)

    batch = world.runner(store=Locked(world.store)).run(uris)
    assert list(batch.failures) == ["a"]
    assert isinstance(world.outcome("b"), Commit)
    world.run_once()
    world.check_exact()


def test_results_are_told_once(world: World) -> None:
    """Whoever wants to know hears of each manifest that came to an end, and not of those that had before."""
    told: list[str] = []
    app = world.app()
    app.on_result = lambda result: told.append(result.manifest_id)
    batch_runner = app.batch_runner(world.engine())
    uri = world.deliver("m1", GOOD)
    batch_runner.run([uri])
    world.put_manifest("again.json", world.store.read(world.layout.archived_manifest(DAY, "m1")))
    batch_runner.run(world.waiting())
    assert told == ["m1"]
    assert world.waiting() == []


@pytest.mark.parametrize("record", ["accepted", "attempt"])
def test_a_record_that_cannot_be_read(world: World, record: str) -> None:
    """A record of a newer release, or a damaged one, holds up its own manifest and no other."""
    uris = [world.deliver("m1", GOOD), world.deliver("m2", GOOD)]
    layout = world.layout
    world.store.put(layout.accepted("m1") if record == "accepted" else layout.attempt(DAY, "m1", 1), b"?")
    batch = runner(world, WatchedEngine(world)).run(uris)
    assert (list(batch.stuck), [result.manifest_id for result in batch.results]) == (["m1"], ["m2"])
    assert (batch.failures, world.layout.state in str(batch.stuck["m1"])) == ({}, True)


def test_an_open_manifest_whose_record_cannot_be_read(world: World) -> None:
    """Recovery goes on with the other open manifests."""
    uris = [world.deliver("m1", GOOD), world.deliver("m2", GOOD)]
    engine = WatchedEngine(world, {"m1": StoreUnavailable("busy"), "m2": StoreUnavailable("busy")})
    runner(world, engine).run(uris)
    world.store.put(world.layout.accepted("m1"), b"?")
    batch = runner(world, WatchedEngine(world)).resume(["m1", "m2"])
    assert (list(batch.stuck), [result.manifest_id for result in batch.results]) == (["m1"], ["m2"])


def test_a_name_that_is_no_text(world: World) -> None:
    """An object whose name no record can hold is told of, and holds up nothing else."""
    world.deliver("m1", GOOD)
    strange = world.put_manifest("strange-\udcff.json", b"{}")
    batch = runner(world, WatchedEngine(world)).run(world.waiting())
    assert [result.manifest_id for result in batch.results] == ["m1"]
    assert ["rename" in str(error) for error in batch.stuck.values()] == [True]
    assert world.waiting() == [strange]
