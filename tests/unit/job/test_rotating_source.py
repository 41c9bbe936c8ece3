"""The stream moves to a new checkpoint: no manifest is missed or delivered twice, and none stays behind."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest

from compactor.core.errors import StoreUnavailable, TryAgainError
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.job.rotating_source import SILENT_SECONDS, RotatingSource
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

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:  # noqa: ARG002 - of the port
        self.lake.streams.append(self)
        self.lake.harness.store.put(f"{self.checkpoint}/metadata", b"x")
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
        self.is_stopped = True

    def trigger(self, most: int = 4) -> None:
        """One micro-batch, of the oldest names that are new to this stream."""
        self.listed = self.listed or [uri for uri in self.lake.harness.waiting() if uri not in self.seen]
        batch, self.listed = self.listed[:most], self.listed[most:]
        self._is_idle = not batch
        if batch:
            self.seen += batch
            self.on_batch(batch)


class Lake:
    """A watched prefix, and a rotating source on it whose streams make their triggers by hand."""

    def __init__(self, *, once: bool = False, store: ObjectStore | None = None) -> None:
        self.harness = Harness(store=store)
        self.app = self.harness.app()
        self.streams: list[SteppedStream] = []
        self.start_error: Exception | None = None
        self.arrived = 0
        self.delivered: list[str] = []
        self.source = RotatingSource(
            state=self.app.state,
            new_source=lambda checkpoint: SteppedStream(self, checkpoint),
            metrics=self.harness.metrics,
            max_manifests=MOST,
        )
        self.on_batch: Callable[[Sequence[str]], None] = self.delivered.extend
        self.source.start(self.take, once=once)

    def take(self, uris: Sequence[str]) -> None:
        self.on_batch(uris)

    @property
    def stream(self) -> SteppedStream:
        """The only one that runs."""
        [running] = [each for each in self.streams if not each.is_stopped]
        return running

    def arrive(self, number: int) -> list[str]:
        """So many manifests arrive."""
        self.arrived += number
        numbers = range(self.arrived - number, self.arrived)
        return [self.harness.put_manifest(f"{each:05d}.json", b"{}") for each in numbers]

    def work_through(self, number: int) -> None:
        """So many arrive, are delivered, and leave."""
        uris = self.arrive(number)
        while set(uris) - set(self.delivered):
            self.stream.trigger()
        self.harness.store.delete(uris)

    def wait(self) -> None:
        self.source.wait(0.01)

    def checkpoints(self) -> list[str]:
        """The numbers of the checkpoints that have objects."""
        folder = self.app.layout.checkpoints_folder
        names = {info.uri.removeprefix(folder).partition("/")[0] for info in self.harness.store.list(folder)}
        return sorted((name.rpartition("-")[2] for name in names), key=int)

    def check_once_each(self) -> None:
        assert Counter(self.delivered) == Counter(set(self.delivered))
        assert len(self.delivered) == self.arrived


def test_the_stream_moves_to_a_new_checkpoint() -> None:
    """What stays in the prefix does not come again, what the old stream had listed comes; the old log is gone."""
    lake = Lake()
    lake.work_through(MOST - 1)
    lake.wait()
    assert len(lake.streams) == 1, "not yet"
    lake.work_through(1)
    lake.arrive(6)
    lake.stream.trigger()
    with events_logged("checkpoint.rotated") as events:
        lake.wait()
    assert [each.is_stopped for each in lake.streams] == [True, False]
    assert [event["delivered"] for event in events] == [MOST + 4]
    assert counted(lake.harness, "CheckpointRotations") == 1
    assert lake.checkpoints() == ["2"]
    lake.streams[0].trigger()  # it was about to, when it was stopped
    lake.arrive(1)
    for _ in range(2):
        lake.stream.trigger()
    lake.check_once_each()


def test_a_prefix_that_cannot_be_listed() -> None:
    """The stream goes on, and moves later."""
    lake = Lake()
    lake.work_through(MOST)
    listed = lake.app.store.list

    def failing(folder: str, start_after: str = "") -> Iterator[ObjectInfo]:
        if folder == lake.app.layout.manifests_folder:
            raise StoreUnavailable("slow down")
        return listed(folder, start_after=start_after)

    with pytest.MonkeyPatch.context() as patch, events_logged("checkpoint.not_rotated") as events:
        patch.setattr(type(lake.app.store), "list", lambda _, *words, **options: failing(*words, **options))
        lake.wait()
    assert (len(lake.streams), len(events)) == (1, 1)
    lake.work_through(MOST)
    lake.wait()
    assert [each.is_stopped for each in lake.streams] == [True, False]
    lake.check_once_each()


def test_a_new_stream_that_is_silent_is_given_up() -> None:
    """Nothing is heard of it for ten minutes: its error ends it, and the job begins another one."""
    lake, now = Lake(), [0.0]
    lake.source.monotonic = lambda: now[0]
    now[0] += 2 * SILENT_SECONDS
    lake.wait()  # the first one may take longer
    lake.work_through(MOST)
    lake.wait()
    assert len(lake.streams) == 2
    now[0] += SILENT_SECONDS - 1
    lake.wait()
    now[0] += 1
    with pytest.raises(TryAgainError, match="has delivered nothing for 600 s"):
        lake.wait()
    lake.source.start(lake.take, once=False)
    lake.arrive(1)
    lake.stream.trigger()
    now[0] += 2 * SILENT_SECONDS
    lake.wait()
    lake.check_once_each()


@pytest.mark.parametrize("arrives", [0, 1])
def test_a_new_stream_that_was_heard_of_may_be_silent(arrives: int) -> None:
    """It delivered something, or found nothing new."""
    lake, now = Lake(), [0.0]
    lake.source.monotonic = lambda: now[0]
    lake.work_through(MOST)
    lake.wait()
    lake.arrive(arrives)
    lake.stream.trigger()
    for _ in range(2):
        lake.wait()
        now[0] += 2 * SILENT_SECONDS
    assert len(lake.streams) == 2


def test_thirty_moves() -> None:
    """However many manifests there were, the log has few, and one checkpoint is there."""
    lake = Lake()
    staying = lake.arrive(3)
    for _ in range(30):
        lake.work_through(MOST)
        lake.wait()
        assert len(lake.checkpoints()) == 1
    assert lake.checkpoints() == ["31"]
    assert max(len(each.seen) for each in lake.streams) <= MOST + len(staying)
    lake.check_once_each()


def test_manifests_that_stay_bring_no_move() -> None:
    """While more than half of what was delivered is still there, a new log would be no shorter."""
    lake = Lake()
    lake.arrive(3 * MOST)
    for _ in range(3 * MOST):
        lake.stream.trigger()
        lake.wait()
    lake.work_through(3 * MOST - 1)
    lake.wait()
    assert len(lake.streams) == 1
    lake.work_through(MOST)
    lake.wait()
    assert len(lake.streams) == 2, "half of it has left"
    for _ in range(100):
        lake.stream.trigger()
        lake.wait()
    assert len(lake.streams) == 2, "the new one has as many as a move needs, and all of them stay"
    lake.check_once_each()


def test_the_old_stream_is_stopped_between_two_batches() -> None:
    """A batch of it that waits for room is waited for, and what it sees then is left to the new stream."""
    lake = Lake()
    lake.work_through(MOST)
    room, waits = threading.Event(), threading.Event()

    def on_batch(uris: Sequence[str]) -> None:
        lake.delivered.extend(uris)
        waits.set()
        assert room.wait(10)

    lake.on_batch = on_batch
    lake.arrive(1)
    old = lake.stream
    thread = threading.Thread(target=old.trigger)
    thread.start()
    assert waits.wait(10)
    for _ in range(5):
        lake.wait()
        assert not old.is_stopped
    room.set()
    thread.join()
    lake.arrive(1)
    old.trigger()
    lake.wait()
    assert old.is_stopped
    lake.stream.trigger()
    lake.check_once_each()


def test_an_error_of_a_batch_ends_the_stream() -> None:
    """No other one follows, although it is time to: what the batch had is in no queue, and has to come again."""
    lake = Lake()
    lake.work_through(MOST)

    def refuse(_: Sequence[str]) -> None:
        raise StoreUnavailable("503")

    lake.on_batch = refuse
    lake.arrive(1)
    with pytest.raises(StoreUnavailable) as raised:
        lake.stream.trigger()
    lake.wait()  # Spark takes a moment to end
    lake.stream.error = raised.value
    with pytest.raises(StoreUnavailable):
        lake.wait()
    lake.on_batch = lake.delivered.extend
    lake.source.start(lake.on_batch, once=False)
    lake.stream.trigger()
    lake.check_once_each()


def test_a_start_that_fails_leaves_no_checkpoint() -> None:
    """Also the start amid a rotation: the job starts its source again, and that deletes what each start has left."""
    lake = Lake()
    lake.work_through(MOST)
    lake.start_error = RuntimeError("no path")
    with pytest.raises(RuntimeError, match="no path"):
        lake.wait()
    for _ in range(5):
        with pytest.raises(RuntimeError, match="no path"):
            lake.source.start(lake.on_batch, once=False)
    assert lake.checkpoints() == ["7"]
    lake.source.stop()
    assert lake.source.wait(0.01)
    assert all(each.is_stopped for each in lake.streams)


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
    with events_logged("checkpoints.kept") as kept:
        for _ in range(5):
            lake.work_through(MOST)
            lake.wait()
    assert len(kept) == 5
    assert lake.checkpoints() == ["1", "2"]
    store.keeps = False
    lake.work_through(MOST)
    lake.wait()
    assert lake.checkpoints() == ["3"]


def test_a_run_that_is_to_end_does_not_rotate() -> None:
    """It would never end if new manifests came all the time."""
    lake = Lake(once=True)
    lake.work_through(5 * MOST)
    lake.wait()
    assert len(lake.streams) == 1
