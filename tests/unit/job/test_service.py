"""The job: recovery, stream and restarts, until told to stop or nothing helps."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.changes import Commit
from compactor.core.errors import AccessError, CompactorError, StoreUnavailable
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.engines.engine import Engine
from compactor.job.report import ManifestsUnfinished
from compactor.job.service import (
    HEARTBEAT_SECONDS,
    LATE_SECONDS,
    MAX_CONSECUTIVE_FAILURES,
    ONCE_TRIES,
    SWEEP_SECONDS,
    Service,
)
from compactor.wiring import streaming
from tests.support.fakes import FailingEngine, FaultyStore, ListSource
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, counted

YEAR_SECONDS = 365 * 24 * 3600.0


@pytest.fixture
def harness() -> Harness:
    return Harness()


def service(harness: Harness, source: ListSource, engine: Engine | None = None) -> Service:
    return streaming.service_on(harness.app(), engine or harness.engine(), source)


def source(
    harness: Harness,
    on_wait: Callable[[], None] = lambda: None,
    *,
    batch_size: int = 8,
    repeat: int = 1,
    fail_starts: int = 0,
) -> ListSource:
    return ListSource(
        harness.store,
        harness.layout.manifests_folder,
        batch_size=batch_size,
        repeat=repeat,
        fail_starts=fail_starts,
        on_wait=on_wait,
    )


def test_once(harness: Harness) -> None:
    """A run that is to end does all there is, batch by batch, and reports what it did."""
    for number in range(5):
        harness.deliver(f"m{number}", GOOD, FLAWED)
    stream = source(harness, batch_size=2, repeat=2)
    report = service(harness, stream).run(once=True)
    assert [len(batch) for batch in stream.batches] == [2, 2, 1]
    assert (report.committed, report.records, report.rejected_lines, report.output_files) == (5, 20, 10, 10)
    assert report.output_bytes == sum(info.size_bytes for info in harness.store.list("/w/output/"))
    assert report.input_bytes == sum(info.size_bytes for info in harness.store.list("/w/raw/"))
    assert harness.store.stat(harness.layout.keep_marker) is not None
    harness.check_exact()


def test_unseen_manifests(harness: Harness) -> None:
    """What the stream cannot see, hidden, empty, nested or overlooked, is found and dealt with before the end."""
    harness.deliver("overlooked", GOOD)
    for name in ("_hidden.json", "empty.json", "sub/nested.json"):
        harness.put_manifest(name, b"")
    stream = ListSource(harness.store, harness.layout.manifests_folder, hidden=["overlooked.json"])
    report = service(harness, stream).run(once=True)
    assert (stream.batches, report.committed, report.dead_lettered) == ([], 1, 3)
    harness.check_exact()


class BusySource(ListSource):
    """A stream that is never idle."""

    def is_idle(self) -> bool:
        return False


def test_unseen_manifests_while_busy(harness: Harness) -> None:
    """A run whose stream is never idle finds what the stream cannot see all the same, and leaves the rest to it."""

    def on_wait() -> None:
        harness.clock.advance(SWEEP_SECONDS)
        waits.append(1)
        if harness.waiting() == [seen] or len(waits) > 5_000:
            job.stop()

    waits: list[int] = []
    seen = harness.deliver("seen", GOOD)
    for name in ("_hidden.json", "empty.json", "sub/nested.json"):
        harness.put_manifest(name, b"")
    stream = BusySource(harness.store, harness.layout.manifests_folder, hidden=["seen.json"], on_wait=on_wait)
    job = service(harness, stream)
    assert (job.run(once=False).dead_lettered, harness.waiting()) == (3, [seen])


def test_what_the_stream_does_not_deliver_again_while_busy(harness: Harness) -> None:
    """An object under a name that the stream has delivered before waits for an hour, not until the job is idle."""

    def on_wait() -> None:
        harness.clock.advance(SWEEP_SECONDS)
        waits.append(1)
        if not harness.waiting() or len(waits) > 1_000:
            job.stop()

    waits: list[int] = []
    harness.deliver("again", GOOD)
    stream = BusySource(harness.store, harness.layout.manifests_folder, hidden=["again.json"], on_wait=on_wait)
    job = service(harness, stream)
    assert job.run(once=False).committed == 1
    assert LATE_SECONDS <= len(waits) * SWEEP_SECONDS < 2 * LATE_SECONDS
    harness.check_exact()


def test_a_clock_that_was_ahead_for_a_moment(harness: Harness) -> None:
    """It was set right since: what the stream cannot see is found as soon as ever, and the heartbeats go on."""

    def on_wait() -> None:
        waits.append(1)
        step = len(waits)
        if step == 6:
            harness.put_manifest("empty.json", b"")
            beats.append(counted(harness, "Heartbeat"))
        harness.clock.advance({3: YEAR_SECONDS, 6: -YEAR_SECONDS}.get(step, SWEEP_SECONDS))
        if len(waits) > 1_000 or (beats and not harness.waiting() and counted(harness, "Heartbeat") > beats[0] + 3):
            job.stop()

    waits: list[int] = []
    beats: list[int] = []
    job = service(harness, source(harness, on_wait))
    assert (job.run(once=False).dead_lettered, harness.waiting()) == (1, [])
    assert len(waits) < 1_000


def test_a_manifest_that_a_person_must_put_right_stops_no_other(harness: Harness) -> None:
    """Neither a committed manifest without its staging nor an unreadable record keeps the stream from going on."""
    for manifest_id in ("lost", "unreadable"):
        uri = harness.deliver(manifest_id, GOOD)
        with pytest.raises(DiedError):
            harness.runner(on_crash_point=_die_when_decided).run([uri])
    harness.store.delete([info.uri for info in harness.store.list(harness.layout.staging_of("lost"))])
    held_up = {"lost": harness.layout.state, "unreadable": harness.layout.accepted("unreadable")}
    record = harness.store.read(held_up["unreadable"])
    harness.store.put(held_up["unreadable"], b'{"why": "unknown"}')
    harness.deliver("good", GOOD)
    report = service(harness, source(harness)).run(once=True)
    assert (report.committed, report.failures, set(report.stuck)) == (1, {}, set(held_up))
    assert all(place in report.stuck[manifest_id] for manifest_id, place in held_up.items())
    harness.store.put(held_up["unreadable"], record)
    report = service(harness, source(harness)).run(once=True)
    assert (report.committed, set(report.stuck)) == (1, {"lost"})


def test_new_work_arrives(harness: Harness) -> None:
    """A run without end takes what comes while it waits, and ends when it is told to."""
    done = threading.Event()
    app = harness.app()
    app.on_result = lambda _: done.set()

    def on_wait() -> None:
        if stream.is_idle() and not done.is_set():
            harness.deliver("late", GOOD) if harness.ledger.accepted("late") is None else None
            stream.poke()
        if done.is_set():
            job.stop()

    stream = source(harness, on_wait)
    job = streaming.service_on(app, harness.engine(), stream)
    assert job.run(once=False).committed == 1
    harness.check_exact()


def test_stop_finishes_what_is_in_flight(harness: Harness) -> None:
    """A stop lets the manifests in flight come to their end and begins no other."""
    for number in range(4):
        harness.deliver(f"m{number}", GOOD)
    app = harness.app(on_crash_point=lambda step, _: job.stop() if step == CrashPoint.INSPECTED else None)
    stream = source(harness, batch_size=2)
    job = streaming.service_on(app, harness.engine(), stream)
    report = job.run(once=False)
    assert 1 <= report.committed <= harness.settings.stream.manifests_in_flight
    assert len(harness.waiting()) == 4 - report.committed
    harness.run_once()
    harness.check_exact()


def test_gives_up_on_a_manifest(harness: Harness) -> None:
    """A run that is to end gives up on a manifest after a fixed number of tries, and fails; the next run goes on."""
    harness.deliver("m1", GOOD)
    engine = FailingEngine(harness.store, StoreUnavailable("503 from afar"), {"m1": 1000})
    with pytest.raises(ManifestsUnfinished, match=r"1 manifests are not done; manifest m1: 503 from afar"):
        service(harness, source(harness), engine).run(once=True)
    assert engine.tries == ONCE_TRIES
    harness.run_once()
    harness.check_exact()


def test_leaves_a_manifest_whose_next_attempt_is_due_much_later(harness: Harness) -> None:
    """A run that is to end does not wait for hours, and says when the manifest is due."""
    harness = Harness(retry_pause_seconds=3600)
    uri = harness.deliver("m1", GOOD)
    engine = FailingEngine(harness.store, StoreUnavailable("503"), {"m1": 1})
    harness.runner(engine=engine).run([uri])
    with pytest.raises(ManifestsUnfinished, match=r"its next attempt is due at 2026-01-02 1\d:\d\d:\d\d UTC"):
        service(harness, source(harness)).run(once=True)
    harness.clock.advance(3600)
    assert service(harness, source(harness)).run(once=True).committed == 1


def test_gives_up_on_a_stream_that_cannot_start(harness: Harness) -> None:
    """A stream that never starts ends the process too, though there is nothing to recover each time."""
    stream = source(harness, fail_starts=1000)
    with pytest.raises(CompactorError, match="the stream failed 7 times in a row: RuntimeError in "):
        service(harness, stream).run(once=False)
    assert stream.starts == MAX_CONSECUTIVE_FAILURES + 1


def test_a_stream_that_cannot_start_is_stopped(harness: Harness) -> None:
    """What its start has left, such as a checkpoint, is not left behind by a run that ends for another reason."""
    stream = source(harness, fail_starts=1000)
    stops = list[None]()
    stream.stop = lambda: stops.append(None)  # type: ignore[method-assign]
    with pytest.raises(CompactorError, match="the stream failed 7 times"):
        service(harness, stream).run(once=False)
    assert len(stops) == stream.starts


def test_begins_again_after_passing_trouble(harness: Harness) -> None:
    """Progress sets the count of failures of the stream back."""
    for number in range(3):
        harness.deliver(f"m{number}", GOOD)
    stream = source(harness, fail_starts=MAX_CONSECUTIVE_FAILURES)
    assert service(harness, stream).run(once=True).committed == 3


def test_what_recovery_cannot_finish_fails_the_run(harness: Harness) -> None:
    """A run that is to end fails if an open manifest, which the stream does not deliver, could not be finished."""
    uri = harness.deliver("m1", GOOD)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=_die_when_attempted).run([uri])
    harness.store.delete([uri])
    engine = FailingEngine(harness.store, StoreUnavailable("503 from afar"), {"m1": 1_000})
    with pytest.raises(ManifestsUnfinished, match="503 from afar"):
        service(harness, source(harness), engine).run(once=True)
    assert service(harness, source(harness)).run(once=True).committed == 1


def test_one_manifest_in_lasting_trouble_stops_no_other(harness: Harness) -> None:
    """A manifest that passing trouble never leaves keeps no other from being done, in this process or the next."""
    stuck = harness.deliver("a-stuck", GOOD)
    engine = FailingEngine(harness.store, StoreUnavailable("503"), {"a-stuck": 1_000})
    with pytest.raises(CompactorError):
        service(harness, source(harness, batch_size=1), engine).run(once=True)
    neighbours = [harness.deliver(f"m{number}", GOOD) for number in range(20)]
    with pytest.raises(CompactorError):
        service(harness, source(harness, batch_size=4), engine).run(once=True)
    assert harness.waiting() == [stuck]
    assert all(isinstance(harness.outcome(f"m{number}"), Commit) for number in range(len(neighbours)))
    harness.clock.advance(600)
    harness.run_once()
    harness.check_exact()


def test_operator_error_ends_the_run(harness: Harness) -> None:
    """Where a person must act, the run ends at once with that very error."""
    harness.deliver("m1", GOOD)
    stream = source(harness)
    error = AccessError("denied")
    with pytest.raises(AccessError) as caught:
        service(harness, stream, FailingEngine(harness.store, error, {"m1": 1})).run(once=False)
    assert (caught.value, stream.starts) == (error, 1)


def test_batch_that_comes_while_the_stream_is_torn_down(harness: Harness) -> None:
    """A batch that a failed stream delivers as it is stopped is left for the next one; no thread hangs."""

    class EagerSource(ListSource):
        """Delivers once more while it is stopped, as a stream may that was between two batches."""

        def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
            self.on_batch = on_batch
            super().start(on_batch, once=once)

        def stop(self) -> None:
            if self.starts == 1:
                late = threading.Thread(target=self.on_batch, args=([harness.deliver("late", GOOD)],), daemon=True)
                late.start()
                late.join(5)
                seen.append((late.is_alive(), harness.ledger.accepted("late") is None))
            super().stop()

    def on_wait() -> None:
        if stream.starts == 1:
            raise RuntimeError("the stream broke")
        if not harness.waiting():
            job.stop()

    seen: list[tuple[bool, bool]] = []
    stream = EagerSource(harness.store, harness.layout.manifests_folder, on_wait=on_wait)
    job = service(harness, stream)
    job.run(once=False)
    assert seen == [(False, True)]
    harness.check_exact()


def test_heartbeat(harness: Harness) -> None:
    """An idle run says every minute that it is alive."""
    beats: list[int] = []

    def on_wait() -> None:
        if stream.is_idle():
            harness.clock.advance(HEARTBEAT_SECONDS / 2)
            beats.append(1)
        if len(beats) > 10:
            job.stop()

    stream = source(harness, on_wait)
    job = service(harness, stream)
    job.run(once=False)
    assert harness.metrics.emitted == [{"Heartbeat": 1, "ManifestsRetrying": 0}] * 5


def test_no_heartbeat_beside_a_batch(harness: Harness) -> None:
    """A run whose stream is busy leaves the heartbeat to its batches, so that one that hangs is missed."""
    beats: list[int] = []

    def on_wait() -> None:
        harness.clock.advance(HEARTBEAT_SECONDS)
        beats.append(1)
        if len(beats) > 5:
            job.stop()

    job = service(harness, BusySource(harness.store, harness.layout.manifests_folder, on_wait=on_wait))
    job.run(once=False)
    assert harness.metrics.emitted == []


def _die_when_attempted(step: CrashPoint, _manifest_id: str) -> None:
    if step == CrashPoint.ATTEMPTED:
        raise DiedError


def _die_when_decided(step: CrashPoint, _manifest_id: str) -> None:
    if step == CrashPoint.DECIDED:
        raise DiedError


def test_markers_of_folders(harness: Harness) -> None:
    """The empty objects that consoles make for folders are neither manifests nor records, and change nothing."""
    places = harness.layout
    markers = [places.manifests_folder, places.manifests_folder + "sub/", places.open_folder, places.ledger_folder]
    for uri in (*markers, places.ledger_folder_of(DAY)):
        harness.store.put(uri, b"")
    harness.deliver("m1", GOOD)
    report = service(harness, source(harness)).run(once=True)
    assert (report.committed, report.dead_lettered) == (1, 0)
    assert list(harness.ledger.manifests()) == list(harness.ledger.manifests(DAY)) == [(DAY, "m1")]


class HidingSource:
    """A stream whose own error hides that of its batch, as when the job's thread fails while a batch runs."""

    def __init__(self, uris: list[str]) -> None:
        self._uris = uris

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:  # noqa: ARG002
        with suppress(CompactorError):
            on_batch(self._uris)

    def wait(self, timeout_seconds: float) -> bool:  # noqa: ARG002
        raise StoreUnavailable("listing failed")

    def is_idle(self) -> bool:
        return True

    def stop(self) -> None:
        pass


def test_an_error_that_ends_the_run_is_not_hidden(harness: Harness) -> None:
    """An operator's error of a batch ends the run, although the stream reports a passing one."""
    stream = HidingSource([harness.deliver("m1", GOOD)])
    engine = FailingEngine(harness.store, AccessError("s3://lake: denied"), {"m1": 1})
    with pytest.raises(AccessError, match="denied"):
        streaming.service_on(harness.app(), engine, stream).run(once=True)


def test_a_manifest_that_could_not_be_received_comes_again_although_the_stream_is_busy(harness: Harness) -> None:
    """A stream names each object once; what the store did not give then is asked for again, however busy the run is."""

    def on_wait() -> None:
        waits.append(1)
        if not harness.waiting() or len(waits) > 500:
            job.stop()

    waits: list[int] = []
    harness.deliver("m1", GOOD)
    store = ClosedOnce(harness.store, harness.layout.manifests_folder + "m1.json")
    stream = BusySource(harness.store, harness.layout.manifests_folder, on_wait=on_wait)
    app = harness.app(store=store)
    job = streaming.service_on(app, harness.engine(), stream)
    report = job.run(once=False)
    assert (report.committed, report.failures) == (1, {})
    harness.check_exact()


def test_a_failure_of_an_object_under_another_name_is_over_once_it_was_received(harness: Harness) -> None:
    """A manifest need not be named after its id."""
    data = harness.manifest("m1", [harness.file("a", GOOD)]).to_json()
    store = ClosedOnce(harness.store, harness.put_manifest("another-name.json", data))
    app = harness.app(store=store)
    report = streaming.service_on(app, harness.engine(), source(harness)).run(once=True)
    assert (report.committed, report.failures) == (1, {})


class ClosedOnce(FaultyStore):
    """Does not give one object at the first time that it is asked for."""

    def __init__(self, store: ObjectStore, uri: str) -> None:
        super().__init__(store)
        self._closed = [uri]

    def stat(self, uri: str) -> ObjectInfo | None:
        if uri in self._closed:
            self._closed.remove(uri)
            raise StoreUnavailable(f"{uri}: 503 Slow Down")
        return super().stat(uri)
