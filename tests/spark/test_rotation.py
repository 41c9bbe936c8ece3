"""Spark's own log of what it delivered: it grows for ever, unless the stream moves to a new checkpoint."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median
from threading import Event, Lock

import pytest

from compactor.job.results import Result
from compactor.wiring import streaming
from compactor.wiring.opening import spark_session
from tests.support.engine_workspace import EngineWorkspace, NewWorkspace
from tests.support.extras import NATIVE
from tests.support.logged import events_logged
from tests.support.memory_store import MemoryMetrics

MOST = 10
THIRTY = 30
TIMEOUT_SECONDS = 240
ENTRY_BYTES = 60
"""An entry of the log has more: its path, the time and the number of the micro-batch."""


@pytest.fixture
def engine() -> str:
    """The quicker one, for none of these tests is about rows."""
    return "native" if NATIVE.found() else "spark"


class Feed:
    """Manifests that arrive, are delivered by the job's stream, and leave the prefix.

    Attributes:
        logged: The largest log of the source that was seen, in bytes.
        checkpoints: The most checkpoints that were seen at once.
        moved_at: How many were delivered when a checkpoint was left last.
        spent: Milliseconds of the triggers that delivered something.
    """

    def __init__(self, workspace: EngineWorkspace) -> None:
        self.app = workspace.app
        self.source = streaming.service(self.app).source
        self.arrived: list[str] = []
        self.delivered: list[str] = []
        self.logged = self.checkpoints = self.moved_at = 0
        self.last_checkpoint = set[str]()
        self.spent: dict[tuple[str, int], int] = {}

    def arrive(self, number: int) -> None:
        for _ in range(number):
            uri = f"{self.app.layout.manifests_folder}{len(self.arrived):05d}.json"
            self.app.store.put(uri, b"{}")
            self.arrived.append(uri)

    def take(self, uris: Sequence[str]) -> None:
        self.delivered.extend(uris)
        self.app.store.delete(uris)

    @contextmanager
    def running(self) -> Iterator[None]:
        self.app.store.create(self.app.layout.keep_marker, b"")
        self.source.start(self.take, once=False)
        try:
            yield
        finally:
            self.source.stop()

    def work_through(self, total: int, *, at_once: int = MOST, most_since_move: int = sys.maxsize) -> None:
        """Manifests arrive until there were so many, a few at a time, and all of them are delivered.

        Args:
            total: So many.
            at_once: How many arrive together.
            most_since_move: So many arrive before a checkpoint is left, which a slow machine does late.
        """
        while len(self.delivered) < total:
            if len(self.arrived) - len(self.delivered) < at_once and len(self.arrived) < total:
                self.wait_for(lambda: len(self.arrived) < self.moved_at + most_since_move)
                self.arrive(min(at_once, total - len(self.arrived)))
            self.wait_for(lambda: len(self.delivered) > len(self.arrived) - at_once or len(self.delivered) >= total)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            assert time.monotonic() < deadline
            assert not self.source.wait(0.05)
            self.measure()

    def measure(self) -> None:
        folder, logs = self.app.layout.checkpoints_folder, Counter[str]()
        for info in self.app.store.list(folder):
            logs[info.uri.removeprefix(folder).partition("/")[0]] += "/sources/0/" in info.uri and info.size_bytes
        self.logged = max(self.logged, *logs.values(), 0)
        self.checkpoints = max(self.checkpoints, len(logs))
        if len(logs) == 1 and logs.keys() != self.last_checkpoint:
            self.last_checkpoint, self.moved_at = set(logs), len(self.delivered)
        for query in spark_session(self.app).streams.active:
            for progress in query.recentProgress:
                if progress["numInputRows"]:
                    self.spent[progress["runId"], progress["batchId"]] = progress["durationMs"]["triggerExecution"]

    def check_exact(self) -> None:
        assert Counter(self.delivered) == Counter(self.arrived)


def numbers(feed: Feed) -> list[str]:
    """The numbers of the checkpoints."""
    folder = feed.app.layout.checkpoints_folder
    names = {info.uri.removeprefix(folder).partition("/")[0] for info in feed.app.store.list(folder)}
    return sorted(name.rpartition("-")[2] for name in names)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_the_log_has_a_bound(
    new_workspace: NewWorkspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without moves Spark keeps all names for ever, although the manifests left long ago; with them a few."""
    total, shown = 31 * MOST, list[str]()
    kept = Feed(new_workspace(stream={"trigger_interval_seconds": 0.1}))
    with kept.running():
        kept.work_through(total)
    monkeypatch.setattr(streaming, "MANIFESTS_PER_CHECKPOINT", MOST)
    moved = Feed(new_workspace(stream={"trigger_interval_seconds": 0.1}))
    with events_logged("checkpoint.rotated") as rotated, moved.running():
        moved.work_through(total, most_since_move=5 * MOST)
    for feed in (kept, moved):
        feed.check_exact()
        spent = list(feed.spent.values())
        shown.append(f"log {feed.logged} bytes, checkpoints {feed.checkpoints}, trigger {median(spent):.0f} ms")
    with capsys.disabled():
        print("\n".join(["", *shown, f"{len(rotated)} rotations"]))  # noqa: T201
    assert kept.logged > total * ENTRY_BYTES
    assert moved.logged < kept.logged / 3
    assert (kept.checkpoints, moved.checkpoints <= 3) == (1, True)
    assert len(rotated) >= 5


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_thirty_moves_of_a_whole_job(new_workspace: NewWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job commits what arrives meanwhile, rotation after rotation, and every row is there once at the end."""
    monkeypatch.setattr(streaming, "MANIFESTS_PER_CHECKPOINT", MOST)
    stream = {"trigger_interval_seconds": 0.1, "manifests_in_flight": 4}
    workspace = new_workspace(stream=stream)
    app, metrics = workspace.app, MemoryMetrics()
    app.metrics = metrics
    delivered: list[str] = []
    committed: list[str] = []
    lock, done = Lock(), Event()

    def deliver() -> None:
        number = f"{len(delivered):05d}"
        delivered.append(number)
        workspace.deliver(f"m{number}", [workspace.write(number, b'{"n":"%s"}' % number.encode())])

    def on_result(result: Result) -> None:
        with lock:
            committed.append(result.manifest_id)
            if rotations(metrics) < THIRTY:
                deliver()
            elif len(committed) >= len(delivered):
                done.set()

    app.on_result = on_result
    for _ in range(12):
        deliver()
    service = streaming.service(app)
    with ThreadPoolExecutor(1) as pool, events_logged("stream.restarting") as restarts:
        run = pool.submit(service.run, once=False)
        try:
            assert done.wait(3000)
        finally:
            service.stop()
        report = run.result(TIMEOUT_SECONDS)
    assert (report.committed, report.failures, restarts) == (len(delivered), {}, [])
    assert rotations(metrics) >= THIRTY
    rows = [record["n"] for found in committed for record in workspace.compacted(found).records]
    assert sorted(rows) == delivered
    assert list(app.store.list(app.layout.checkpoints_folder)) == []
    workspace.check()


def rotations(metrics: MemoryMetrics) -> int:
    return [values.get("CheckpointRotations") for values in metrics.emitted].count(1)
