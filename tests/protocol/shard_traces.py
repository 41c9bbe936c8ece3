"""Records what jobs side by side leave of a manifest as one of them dies, or is held up, at each crash point."""

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.changes import Commit
from compactor.core.documents.records import LIFE_SECONDS, Attempt
from compactor.core.layout import ManifestKey
from compactor.core.ports import ProcessName
from compactor.core.rules.sharding import Shard, taker
from compactor.job.shards import REFRESH_SECONDS, ShardShare
from compactor.ledger.heartbeat import Heartbeat, Runs
from compactor.wiring import streaming
from tests.protocol.configurations import Configuration, shards
from tests.protocol.traces import Shared, Trace, seen
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.rebuilding import WatchedStore

NAME = next(name for name in (f"m{number}" for number in count()) if taker(name, (1, 2)) == 2)
KEY = ManifestKey(DAY, NAME)
STEPS = tuple(CrashPoint)
ROUNDS = round((LIFE_SECONDS + 30) / REFRESH_SECONDS)
"""So many looks at the heartbeats are enough for all to see who is gone, and to do its work."""

STORIES: dict[str, Sequence[str]] = {
    "one goes": ("1/2", "2/2"),
    "one is replaced": ("1/1", "1/1"),
    "their number grows": ("1/1", "2/2"),
    "one without a shard becomes two": ("", "1/2", "2/2"),
}
"""The shards of the jobs of each story of `Shards`, in the order in which they begin; none for one that takes all."""

LEFT = "an attempt is left to a living job for a time only"
"""No trace takes so long that this guard is needed, so without it the model tells when an attempt was not left."""


def model_of(story: str) -> Configuration:
    """The model of a story."""
    return shards(story, MaxWrong=1).lacking(LEFT)


class WatchedShare(ShardShare):
    """Tells of each reading of the heartbeats, in whatever thread it is made."""

    note: Callable[[], None]

    def _read(self, now: float) -> None:
        ShardShare._read(self, now)
        self.note()


class Elsewhere:
    """Processes of other machines: only their heartbeats tell whether they live."""

    def is_gone(self, process: ProcessName) -> bool:  # noqa: ARG002 - of the port
        return False


class Job:
    """One of the jobs: all but the threads and the stream is that of `Service`.

    Args:
        scene: Where it works.
        shard: Its shard; empty for a job that takes all.
        on_crash_point: Called at each crash point of it.
    """

    def __init__(self, scene: "Scene", shard: str, on_crash_point: Callable[[CrashPoint, str], None]) -> None:
        harness = scene.harness
        self._scene, self._has_begun = scene, False
        self.is_on, self.beats = True, True
        self.store = WatchedStore(harness.store, on_change=scene.note)
        app = harness.app(store=self.store, on_crash_point=on_crash_point)
        self.run_id = app.run_id
        self.runs = Runs(harness.store, harness.layout, harness.clock, Elsewhere())  # type: ignore[arg-type]
        self.share: Any = app.share

        def monotonic() -> float:
            return harness.clock.now().timestamp()

        if shard:
            self.share = WatchedShare(shard=Shard.parse(shard), run_id=self.run_id, runs=self.runs, monotonic=monotonic)
            self.share.note = scene.note
            vars(app)["share"] = self.share
        self._beat = Heartbeat(
            self.store, harness.layout, harness.clock, self.run_id, ProcessName("there", 1), shard=shard
        )
        source: Any = SimpleNamespace(is_idle=lambda: True)
        self._service = streaming.service_on(app, harness.engine(self.store), source)
        self._service.runner.postponed.monotonic = monotonic

    def beat(self) -> None:
        """Write a heartbeat."""
        self._beat._write_heartbeat()

    def step(self) -> None:
        """Do what there is to do for it now. It is gone if it dies of that."""
        try:
            self._step()
        except DiedError:
            self.is_on = self.beats = False

    def _step(self) -> None:
        service = self._service
        if not self._has_begun:
            if not self.share.has_joined():
                return
            self._has_begun = True
            self.share.has_changed()
            service._resume()
            self._finish()
            service._on_batch(self._scene.harness.waiting())
        else:
            service._follow_shards()
            service._take_listed()
            service.runner.retry()
        self._finish()

    def _finish(self) -> None:
        service, ended = self._service, threading.Event()
        while not service.runner.is_idle():
            service._collect()
            ended.wait(0.001)
        service._collect()

    def close(self) -> None:
        self._service.runner.close()


class Scene:
    """A manifest, and the jobs that may take it.

    Args:
        name: Of the traces.
        story: One of `STORIES`.
    """

    def __init__(self, name: str, story: str) -> None:
        self.harness = Harness()
        self.by_shards, self.by_commit = Trace(f"{story}: {name}"), Trace(f"{story}: {name}")
        self._shards = STORIES[story]
        self.jobs: list[Job] = []
        self._lock = threading.RLock()
        self.harness.deliver(NAME, GOOD, FLAWED)
        self.note()

    def start(self, on_crash_point: Callable[[CrashPoint, str], None] = lambda *_: None) -> Job:
        """Start the next job of the story."""
        job = Job(self, self._shards[len(self.jobs)], on_crash_point)
        self.jobs.append(job)
        job.beat()
        job.step()
        return job

    def pass_rounds(self, rounds: int) -> None:
        """Let time pass; all jobs that live send heartbeats and look at those of the others."""
        for _ in range(rounds):
            self.harness.clock.advance(REFRESH_SECONDS)
            self.note()
            for job in self.jobs:
                if job.beats:
                    job.beat()
            for job in self.jobs:
                if job.is_on and job.beats:
                    job.step()

    def note(self) -> None:
        """Add what the store and the jobs show now."""
        with self._lock:
            harness = self.harness
            self.by_commit.add(seen(harness.store, harness.layout, KEY))
            self.by_shards.add(self._shared())

    def _shared(self) -> Shared:
        harness, jobs = self.harness, self.jobs
        numbers = {job.run_id: number for number, job in enumerate(jobs, start=1)}
        absent = len(self._shards) - len(jobs)
        living = {beat.run_id for beat in jobs[0].runs.living()} if jobs else set()
        beats = ["fresh" if job.run_id in living else "old" for job in jobs]
        views = [getattr(job.share, "_view", None) for job in jobs]
        records = [info.uri for info in harness.store.list(harness.layout.ledger_records(KEY))]
        attempts = [Attempt.model_validate_json(harness.store.read(uri)) for uri in records if _is_attempt(uri)]
        outcome = harness.ledger.recorded_outcome(KEY, [uri.rpartition("/")[2] for uri in records])
        return Shared(
            beats=(*beats, *["none"] * absent),
            views=(*[view.numbers if view else frozenset() for view in views], *[frozenset()] * absent),
            taking=(*[bool(view and view.is_taking) for view in views], *[False] * absent),
            last=numbers[max(attempts, key=lambda each: each.number).run_id] if attempts else 0,
            outcome=numbers[outcome.run_id] if isinstance(outcome, Commit) else 0,
            done=any(uri.endswith("/done.json") for uri in records),
        )

    def ended(self) -> "Scene":
        """Let all come to its end."""
        self.pass_rounds(ROUNDS)
        for job in self.jobs:
            job.close()
        return self


def _is_attempt(uri: str) -> bool:
    return re.search(r"/attempt-\d+\.json$", uri) is not None


def _at(step: CrashPoint, happen: Callable[[], None]) -> Callable[[CrashPoint, str], None]:
    """Has something happen when a step is reached for the first time."""
    reached: list[str] = []

    def on_crash_point(found: CrashPoint, manifest_id: str) -> None:
        if found is step and not reached:
            reached.append(manifest_id)
            happen()

    return on_crash_point


def _die() -> None:
    raise DiedError


def _dies(step: CrashPoint) -> Scene:
    """The shard that takes the manifest dies, and the other one takes over."""
    scene = Scene(f"it dies at {step}", "one goes")
    scene.start()
    scene.start(_at(step, _die))
    return scene.ended()


def _is_held_up(step: CrashPoint) -> Scene:
    """It stands still for longer than its heartbeat lives, and goes on when the other one has done all."""
    scene = Scene(f"it is held up at {step}", "one goes")
    scene.start()

    def stand_still() -> None:
        job.beats = False
        scene.pass_rounds(ROUNDS)
        job.beats = True

    job = scene.start(_at(step, stand_still))
    return scene.ended()


def _goes_on(step: CrashPoint) -> Scene:
    """Another shard begins, and the manifest is its own, while the first job is at work on it and lives."""
    scene = Scene(f"another one begins at {step}", "their number grows")

    def another() -> None:
        first.is_on = False  # its thread is at work
        scene.start()
        scene.pass_rounds(ROUNDS // 2)
        first.is_on = True

    first = scene.start(_at(step, another))
    return scene.ended()


def _is_replaced(step: CrashPoint, story: str) -> Scene:
    """A job dies, and others begin while its heartbeat is still there."""
    scene = Scene(f"it dies at {step}", story)
    first = scene.start(_at(step, _die))
    scene.pass_rounds(3)
    assert not first.is_on
    for _ in STORIES[story][1:]:
        scene.start()
    return scene.ended()


SCENES: dict[str, Sequence[Callable[[CrashPoint], Scene]]] = {
    "one goes": (_dies, _is_held_up),
    "their number grows": (_goes_on,),
    "one is replaced": (partial(_is_replaced, story="one is replaced"),),
    "one without a shard becomes two": (partial(_is_replaced, story="one without a shard becomes two"),),
}
"""What happens at a step in each story."""


def shard_scenes(story: str, steps: Iterable[CrashPoint]) -> list[Scene]:
    """A scene for each of some steps, with a death, a delay or a new job there."""
    return [made(step) for step in steps for made in SCENES[story]]
