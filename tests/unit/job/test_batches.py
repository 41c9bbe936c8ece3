"""Micro-batches: repeats count once, suspects are alone, one failure stops no other, an operator's error stops all."""

import threading
import time
from collections.abc import Mapping

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.changes import Commit
from compactor.core.errors import AccessError, StoreUnavailable
from compactor.core.layout import ManifestKey
from compactor.core.rules.attempts import SUSPICIOUS_DEATHS
from compactor.engines.engine import Staged, StageRequest
from compactor.job.recovery import Recovery
from compactor.job.scheduler import Scheduler
from compactor.wiring import operating, streaming
from tests.support.fakes import FaultyStore, PlainEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness


@pytest.fixture
def harness() -> Harness:
    return Harness(stream={"manifests_in_flight": 2})


class WatchedEngine(PlainEngine):
    """Notes which manifests were in work at once, and raises where it is told to."""

    def __init__(self, harness: Harness, errors: Mapping[str, BaseException] | None = None) -> None:
        super().__init__(harness.store)
        self.errors = dict(errors or {})
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


def runner(harness: Harness, engine: PlainEngine) -> Scheduler:
    return streaming.scheduler(harness.app(), engine)


def test_repeated_uris(harness: Harness) -> None:
    """A URI that comes several times is one manifest, done once."""
    engine = WatchedEngine(harness)
    uri = harness.deliver("m1", GOOD)
    batch = runner(harness, engine).run([uri, uri, uri])
    assert [result.manifest_id for result in batch.finished] == ["m1"]
    again = runner(harness, engine).run([uri])
    assert (again.finished, again.failures, engine.seen) == ([], {}, [("m1", 1)])
    harness.check_exact()


def test_suspects_run_apart(harness: Harness) -> None:
    """Two manifests that were in flight when drivers died are not in flight together again, and hold up no other."""
    suspects = [harness.deliver(name, GOOD) for name in ("a", "b")]
    for _ in range(SUSPICIOUS_DEATHS):
        with pytest.raises(DiedError):
            harness.runner(on_crash_point=_die_after_staging).run(suspects)
        app = harness.app()
        Recovery(app.state, app.runs, operating.cleaner(app)).find()
    engine = WatchedEngine(harness)
    runner(harness, engine).run([*suspects, *(harness.deliver(name, FLAWED) for name in ("x", "y", "z"))])
    assert {name for name, _ in engine.seen} - {"self-test"} == {"a", "b", "x", "y", "z"}
    assert not any({"a", "b"} <= group for group in engine.together)
    harness.check_exact()


def test_the_last_attempt_of_a_killer_runs_with_nothing_else(harness: Harness) -> None:
    """A manifest is never made a dead letter for a death that a neighbour may have caused."""
    engine = WatchedEngine(harness, {"killer": DiedError()})
    uri = harness.deliver("killer", GOOD)
    neighbours: list[str] = []
    while harness.layout.failed_manifest("killer") not in [info.uri for info in harness.store.list("/w/state/failed/")]:
        names = [f"n{len(neighbours)}", f"n{len(neighbours) + 1}"]
        neighbours += names
        engine.together.clear()
        try:
            runner(harness, engine).run([uri, *(harness.deliver(name, GOOD) for name in names)])
        except DiedError:
            last = [group for group in engine.together if "killer" in group]
        app = harness.app()
        Recovery(app.state, app.runs, operating.cleaner(app)).find()
    assert last == [{"killer"}]
    runner(harness, engine).run(harness.waiting())
    assert harness.dead_letter("killer").reason == "retries_exhausted"
    assert all(isinstance(harness.outcome(name), Commit) for name in neighbours)


def test_resumed_run_beside_each_other(harness: Harness) -> None:
    """What was open when a driver died is carried on in all slots at once: one death is no reason for suspicion."""
    uris = [harness.deliver(name, GOOD) for name in ("a", "b")]
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=_die_after_staging).run(uris)
    engine = WatchedEngine(harness)
    runner(harness, engine).resume(list(harness.ledger.open_ids()))
    assert {in_flight for _, in_flight in engine.seen} <= {1, 2}
    runner(harness, engine).run(harness.waiting())
    harness.check_exact()


def _die_after_staging(step: str, _manifest_id: str) -> None:
    if step == "converted":
        raise DiedError


def test_operator_error_stops(harness: Harness) -> None:
    """Where a person must act, manifests in flight come to their end, and no other is begun."""
    in_flight = threading.Event()

    class TurnEngine(WatchedEngine):
        """The first manifest is in flight from before the failure of its neighbour until the runner knows of it."""

        def stage(self, request: StageRequest) -> Staged:
            if request.manifest.manifest_id == "m0":
                in_flight.set()
                give_up_at = time.monotonic() + 30
                while not has_failed() and time.monotonic() < give_up_at:
                    time.sleep(0.001)
            else:
                assert in_flight.wait(30)
            return super().stage(request)

    def has_failed() -> bool:
        try:
            runner.take_ended()
        except AccessError:
            return True
        return False

    def note(step: CrashPoint, manifest_id: str) -> None:
        if step == CrashPoint.ATTEMPTED:
            begun.append(manifest_id)

    begun: list[str] = []
    uris = [harness.deliver(f"m{number}", GOOD) for number in range(8)]
    engine = TurnEngine(harness, {f"m{number}": AccessError("denied") for number in range(1, 8)})
    runner = streaming.scheduler(harness.app(on_crash_point=note), engine)
    with pytest.raises(AccessError, match="denied"):
        runner.run(uris)
    assert isinstance(harness.outcome("m0"), Commit)
    assert sorted(begun) == ["m0", "m1"]
    harness.run_once()
    harness.check_exact()


def test_one_object_that_cannot_be_read_now(harness: Harness) -> None:
    """Passing trouble with one object of the prefix leaves the other manifests of the batch to their work."""
    harness.deliver("a", GOOD)
    uris = [*harness.waiting(), harness.deliver("b", GOOD)]

    class Locked(FaultyStore):
        def read(self, uri: str, *, etag: str | None = None) -> bytes:
            if uri.endswith("/a.json"):
                raise StoreUnavailable(f"{uri}: slow down")
            return super().read(uri, etag=etag)

    batch = harness.runner(store=Locked(harness.store)).run(uris)
    assert list(batch.failures) == ["a"]
    assert isinstance(harness.outcome("b"), Commit)
    harness.run_once()
    harness.check_exact()


def test_results_are_told_once(harness: Harness) -> None:
    """`on_result` is called for each manifest that finished, and not for those that were done before."""
    told: list[str] = []
    app = harness.app()
    app.on_result = lambda result: told.append(result.manifest_id)
    scheduler = streaming.scheduler(app, harness.engine())
    uri = harness.deliver("m1", GOOD)
    scheduler.run([uri])
    harness.put_manifest("again.json", harness.store.read(harness.layout.archived_manifest(ManifestKey(DAY, "m1"))))
    scheduler.run(harness.waiting())
    assert told == ["m1"]
    assert harness.waiting() == []


@pytest.mark.parametrize("record", ["accepted", "attempt"])
def test_a_record_that_cannot_be_read(harness: Harness, record: str) -> None:
    """A damaged record holds up its own manifest and no other."""
    uris = [harness.deliver("m1", GOOD), harness.deliver("m2", GOOD)]
    layout = harness.layout
    harness.store.put(
        layout.accepted("m1") if record == "accepted" else layout.attempt(ManifestKey(DAY, "m1"), 1), b"?"
    )
    batch = runner(harness, WatchedEngine(harness)).run(uris)
    assert (list(batch.stuck), [result.manifest_id for result in batch.finished]) == (["m1"], ["m2"])
    assert (batch.failures, harness.layout.state in str(batch.stuck["m1"])) == ({}, True)


def test_a_name_that_is_no_text(harness: Harness) -> None:
    """An object whose name no record can hold is told of, and holds up nothing else."""
    harness.deliver("m1", GOOD)
    strange = harness.put_manifest("strange-\udcff.json", b"{}")
    batch = runner(harness, WatchedEngine(harness)).run(harness.waiting())
    assert [result.manifest_id for result in batch.finished] == ["m1"]
    assert ["rename" in str(error) for error in batch.stuck.values()] == [True]
    assert harness.waiting() == [strange]
