"""The stream moves to a new checkpoint: no manifest is missed or delivered twice, and trouble leaves the old one."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.errors import EngineLost, StoreUnavailable
from compactor.core.ports import ObjectStore
from compactor.job.rotating_source import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, SILENT_SECONDS, RotatingSource
from tests.support.fakes import FaultyStore
from tests.support.harness import Harness, counted
from tests.support.logged import events_logged

MOST = 10


class SteppedStream:
    """Spark's stream, one trigger at a time: it delivers each name once, and keeps all names in its checkpoint.

    As Spark's, it lists again only once it has delivered all that it listed, although some may be gone by then.
    """

    def __init__(self, lake: "Lake", checkpoint: str) -> None:
        self.lake, self.checkpoint = lake, checkpoint
        self.seen: list[str] = []
        self.listed: list[str] = []
        self.error: Exception | None = None
        self.is_stopped = self._is_idle = False
        self.on_batch: Callable[[Sequence[str]], None] = lambda _: None
        self.while_stopping: Callable[[], None] = lambda: None

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:  # noqa: ARG002 - of the port
        self.lake.streams.append(self)
        self.lake.write(f"{self.checkpoint}/metadata")
        if self.lake.start_error is not None:
            raise self.lake.start_error
        self.on_batch = on_batch

    def wait(self, timeout_seconds: float) -> bool:
        assert timeout_seconds > 0, "Spark does not take 0"
        if self.error is not None:
            raise self.error
        return False

    def is_idle(self) -> bool:
        return self._is_idle

    def stop(self) -> None:
        self.while_stopping()
        self.is_stopped = True

    def trigger(self, most: int = 4) -> None:
        """One micro-batch, of the oldest names that are new to this stream."""
        self.listed = self.listed or [uri for uri in self.lake.waiting() if uri not in self.seen]
        batch, self.listed = self.listed[:most], self.listed[most:]
        self._is_idle = not batch
        if batch:
            self.seen += batch
            self.lake.write(f"{self.checkpoint}/sources/0/{len(self.seen)}")
            self.on_batch(batch)


class Lake:
    """A watched prefix, and a rotating source on it whose streams make their triggers by hand."""

    def __init__(self, *, once: bool = False, store: ObjectStore | None = None) -> None:
        self.harness = Harness(store=store)
        self.app = self.harness.app()
        self.streams: list[SteppedStream] = []
        self.start_error: Exception | None = None
        self.now = 0.0
        self.delivered: list[str] = []
        self.source = RotatingSource(
            state=self.app.state,
            new_source=lambda checkpoint: SteppedStream(self, checkpoint),
            checkpoints=self.app.rotating_source(lambda _: ListedManifests(self.app.store, "/")).checkpoints,
            metrics=self.harness.metrics,
            max_manifests=MOST,
            monotonic=lambda: self.now,
        )
        self.on_batch: Callable[[Sequence[str]], None] = self.delivered.extend
        self.source.start(self.take, once=once)

    def take(self, uris: Sequence[str]) -> None:
        self.on_batch(uris)

    def write(self, uri: str) -> None:
        self.harness.store.put(uri, b"x")

    def waiting(self) -> list[str]:
        return self.harness.waiting()

    def arrive(self, number: int) -> list[str]:
        """So many manifests arrive."""
        first = len(self.delivered) + len(self.waiting())
        return [self.harness.put_manifest(f"{first + each:05d}.json", b"{}") for each in range(number)]

    def finish(self, uris: Sequence[str]) -> None:
        """The job archives manifests."""
        self.harness.store.delete(uris)

    def work_through(self, number: int) -> None:
        """So many arrive at the only stream that runs, and are done."""
        uris = self.arrive(number)
        while set(uris) - set(self.delivered):
            self.running()[0].trigger()
        self.finish(uris)

    def wait(self) -> None:
        self.source.wait(0.01)

    def running(self) -> list[SteppedStream]:
        return [each for each in self.streams if not each.is_stopped]

    def checkpoints(self) -> list[str]:
        """The numbers of the checkpoints that have objects."""
        folder = self.app.layout.checkpoints_folder
        names = {info.uri.removeprefix(folder).partition("/")[0] for info in self.harness.store.list(folder)}
        return sorted(name.rpartition("-")[2] for name in names)

    def metric(self, name: str) -> int:
        return counted(self.harness, name)


def test_the_stream_moves_to_a_new_checkpoint() -> None:
    """The old stream delivers until the new one has come as far; each manifest comes once; the old log is gone."""
    lake = Lake()
    lake.work_through(MOST - 1)
    lake.wait()
    assert len(lake.streams) == 1, "not yet"
    lake.work_through(1)
    stuck = lake.arrive(2)
    lake.running()[0].trigger()
    lake.wait()
    old, new = lake.streams
    during = lake.arrive(1)
    old.trigger()
    lake.wait()
    assert not old.is_stopped, "the new one has not listed anything yet"
    assert lake.delivered[-1:] == during
    new.trigger()
    lake.wait()
    assert not old.is_stopped, "the new one has only delivered what the old one had"
    late = lake.arrive(1)
    new.trigger()
    old.trigger()
    with events_logged("checkpoint.rotated") as events:
        lake.wait()
        lake.wait()
    assert (old.is_stopped, new.is_stopped) == (True, False)
    assert Counter(lake.delivered).most_common(1)[0][1] == 1
    assert lake.delivered[MOST:] == [*stuck, *during, *late]
    assert lake.checkpoints() == ["2"]
    [event] = events
    assert (event["delivered"], event["kept"]) == (MOST + 4, 4)
    assert lake.metric("CheckpointRotations") == 1
    assert lake.metric("CheckpointRotationsFailed") == 0


@pytest.mark.parametrize("is_stopping", [False, True])
def test_what_the_new_stream_listed_before_the_old_one_delivered_it(*, is_stopping: bool) -> None:
    """It comes once, although the old stream is gone when the new one gets there; and so in the move after that."""
    lake = Lake()
    for _ in range(2):
        lake.work_through(MOST)
        lake.wait()
        old, new = lake.running()
        late = lake.arrive(8)
        new.trigger()
        old.trigger(8)
        lake.finish(late)
        if is_stopping:
            old.while_stopping = new.trigger
        lake.wait()
        lake.wait()
        assert lake.running() == [new]
        new.trigger()
        new.trigger()
    assert Counter(lake.delivered).most_common(1)[0][1] == 1


def test_thirty_moves() -> None:
    """However many manifests there were, the log has few, and two checkpoints are there at most."""
    lake = Lake()
    longest = 0
    for _ in range(30):
        lake.work_through(MOST)
        lake.wait()
        assert lake.checkpoints() == lake.checkpoints()[:2]
        longest = max(longest, *(len(each.seen) for each in lake.running()))
        lake.arrive(1)
        for stream in lake.running():
            stream.trigger()
        lake.finish(lake.waiting())
        lake.running()[-1].trigger()
        lake.wait()
        lake.wait()
        assert len(lake.running()) == 1
    assert len(lake.streams) == 31
    assert longest <= 2 * MOST
    assert max(Counter(lake.delivered).values()) == 1
    assert lake.checkpoints() == ["31"]


def test_manifests_that_stay_bring_no_move() -> None:
    """While more than half of what was delivered is still there, a new log would be no shorter."""
    lake = Lake()
    staying = lake.arrive(3 * MOST)
    for _ in range(3 * MOST):
        lake.running()[0].trigger()
        lake.wait()
    assert len(lake.streams) == 1
    lake.work_through(3 * MOST - 1)
    lake.wait()
    assert len(lake.streams) == 1
    lake.work_through(MOST)
    lake.wait()
    assert len(lake.streams) == 2, "half of it has left"
    while not lake.streams[1].is_idle():
        lake.streams[1].trigger()
    lake.wait()
    lake.wait()
    assert (lake.streams[0].is_stopped, sorted(lake.streams[1].seen)) == (True, staying)
    for _ in range(100):
        lake.wait()
    assert len(lake.streams) == 2, "the new one has as many as a move needs, and all of them stay"
    assert max(Counter(lake.delivered).values()) == 1


def test_a_stream_that_cannot_start_leaves_the_old_one() -> None:
    """It is tried again after pauses that double up to an hour, for ever; the old stream delivers all the time."""
    lake = Lake()
    lake.work_through(MOST)
    lake.start_error = RuntimeError("Mkdirs failed")
    with events_logged("checkpoint.not_rotated") as events:
        for _ in range(24 * 60):
            lake.wait()
            lake.now += 60
    assert [event["pause_seconds"] for event in events[:3]] == [FIRST_PAUSE_SECONDS * factor for factor in (1, 2, 4)]
    assert events[-1]["pause_seconds"] == LONGEST_PAUSE_SECONDS
    assert len(events) == lake.metric("CheckpointRotationsFailed") < 32
    assert lake.running() == lake.streams[:1]
    assert len(lake.checkpoints()) == 2, "the one in use, and what the last try left"
    lake.work_through(3)
    lake.start_error = None
    lake.now += LONGEST_PAUSE_SECONDS
    lake.wait()
    lake.running()[-1].trigger()
    lake.wait()
    lake.wait()
    assert lake.running() == lake.streams[-1:]
    assert lake.checkpoints() == [str(len(lake.streams))]
    assert max(Counter(lake.delivered).values()) == 1


def begun(lake: Lake) -> tuple[SteppedStream, SteppedStream]:
    """A rotation that has begun: the old and the new stream."""
    lake.work_through(MOST)
    lake.wait()
    old, new = lake.streams
    return old, new


def test_a_new_stream_that_fails_or_is_silent_is_given_up() -> None:
    """Its own error, and also that nothing is heard of it, leave the old stream as it is."""
    lake = Lake()
    old, new = begun(lake)
    new.error = RuntimeError("java.io.FileNotFoundException")
    lake.wait()
    assert (old.is_stopped, new.is_stopped) == (False, True)
    lake.now += FIRST_PAUSE_SECONDS
    lake.wait()
    silent = lake.streams[2]
    lake.now += SILENT_SECONDS - 1
    lake.wait()
    assert not silent.is_stopped
    lake.now += 1
    with events_logged("checkpoint.not_rotated") as events:
        lake.wait()
    assert (old.is_stopped, silent.is_stopped, len(events)) == (False, True, 1)
    assert "has delivered nothing for 600 s" in str(events[0]["error"])


def test_a_new_stream_that_delivers_slowly_is_not_given_up() -> None:
    """A long way to catch up takes as long as it takes."""
    lake = Lake()
    staying = lake.arrive(MOST)
    while set(staying) - set(lake.delivered):
        lake.running()[0].trigger()
    lake.work_through(MOST)
    lake.wait()
    _, new = lake.streams
    for _ in range(3):
        lake.now += SILENT_SECONDS - 1
        new.trigger()
        lake.wait()
    assert not new.is_stopped


def test_a_lost_engine_ends_the_stream() -> None:
    """There is no old stream to stay with."""
    lake = Lake()
    _, new = begun(lake)
    new.error = EngineLost("the JVM is gone")
    with pytest.raises(EngineLost):
        lake.wait()


def test_the_old_stream_is_stopped_between_two_batches() -> None:
    """A batch of it that waits for room is waited for, and what it sees then is left to the new stream."""
    lake = Lake()
    old, new = begun(lake)
    room, waits = threading.Event(), threading.Event()

    def on_batch(uris: Sequence[str]) -> None:
        lake.delivered.extend(uris)
        if uris == [blocked]:
            waits.set()
            assert room.wait(10)

    lake.on_batch = on_batch
    [blocked] = lake.arrive(1)
    thread = threading.Thread(target=old.trigger)
    thread.start()
    assert waits.wait(10)
    new.trigger()  # the blocked one again
    new.trigger()
    assert new.is_idle()
    for _ in range(5):
        lake.wait()
        assert not old.is_stopped
    room.set()
    thread.join()
    [left] = lake.arrive(1)
    old.trigger()
    assert left not in lake.delivered
    lake.wait()
    assert old.is_stopped
    new.trigger()
    assert Counter(lake.delivered)[left] == Counter(lake.delivered)[blocked] == 1


@pytest.mark.parametrize("which", [0, 1])
def test_an_error_of_a_batch_ends_the_stream(which: int) -> None:
    """Also one of the stream that is not waited for: what its batch had is in no queue, and has to come again."""
    lake = Lake()
    stream = begun(lake)[which]

    def refuse(_: Sequence[str]) -> None:
        raise StoreUnavailable("503")

    lake.on_batch = refuse
    lake.arrive(1)
    with pytest.raises(StoreUnavailable):
        stream.trigger()
    with pytest.raises(StoreUnavailable):
        lake.wait()
    lake.source.stop()
    assert lake.running() == []
    lake.on_batch = lake.delivered.extend
    lake.source.start(lake.take, once=False)
    lake.running()[0].trigger()
    assert set(lake.waiting()) <= set(lake.delivered)
    lake.wait()
    assert lake.checkpoints() == ["3"]


def test_a_start_that_fails_leaves_no_checkpoint() -> None:
    """The job starts its source again and again; what each start has left is deleted by the next one."""
    lake = Lake()
    lake.source.stop()
    lake.start_error = RuntimeError("no path")
    for _ in range(5):
        with pytest.raises(RuntimeError, match="no path"):
            lake.source.start(lake.take, once=False)
    assert lake.checkpoints() == ["6"]


def test_all_streams_are_stopped() -> None:
    """Amid a rotation there are two; one that cannot be stopped does not keep the other one."""
    lake = Lake()
    old, new = begun(lake)

    def refuse() -> None:
        new.is_stopped = True
        raise RuntimeError("stop failed")

    new.stop = refuse  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="stop failed"):
        lake.source.stop()
    assert (old.is_stopped, new.is_stopped) == (True, True)
    assert lake.source.wait(0.01)
    lake.source.stop()


class KeepingStore(FaultyStore):
    """Deletes no checkpoint while it is told so."""

    keeps = True

    def delete(self, uris: Sequence[str]) -> None:  # type: ignore[override]
        if self.keeps and any("/checkpoint/" in uri for uri in uris):
            raise StoreUnavailable("503")
        super().delete(uris)


def test_checkpoints_that_cannot_be_deleted_do_not_pile_up() -> None:
    """One is left behind; as long as it is there, no further rotation begins."""
    store = KeepingStore(Harness().store)
    lake = Lake(store=store)
    with events_logged("checkpoints.kept") as kept, events_logged("checkpoint.not_rotated") as refused:
        for _ in range(5):
            lake.work_through(2 * MOST)
            lake.wait()
            lake.running()[-1].trigger()
            lake.wait()
            lake.wait()
            lake.now += LONGEST_PAUSE_SECONDS
    assert (len(kept), len(refused)) == (1, 4)
    assert (len(lake.streams), lake.checkpoints()) == (2, ["1", "2"])
    store.keeps = False
    lake.wait()
    assert lake.checkpoints() == ["2", "3"]


def test_a_run_that_is_to_end_does_not_rotate() -> None:
    """It would never end if new manifests came all the time."""
    lake = Lake(once=True)
    lake.work_through(5 * MOST)
    lake.wait()
    assert len(lake.streams) == 1
