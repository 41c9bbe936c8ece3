"""A job whose stream moves to new checkpoints, on streams with threads of their own: each line is one row."""

import threading
from collections import Counter
from contextlib import nullcontext

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.crash_points import OnCrashPoint, RotationCrashPoint, ignore_crash_point
from compactor.core.errors import CompactorError
from compactor.core.layout import base_name
from compactor.job.rotating_source import RotatingSource
from compactor.job.service import Service
from compactor.wiring import streaming
from compactor.wiring.app import App
from tests.support.harness import GOOD, DiedError, Harness, counted
from tests.support.logged import events_logged

MOST = 10


class FiledStream(ListedManifests):
    """A stream that leaves something in its checkpoint."""

    def __init__(self, harness: Harness, checkpoint: str) -> None:
        super().__init__(harness.store, harness.layout.manifests_folder, batch_size=2, poll_seconds=0.01)
        harness.store.put(f"{checkpoint}/metadata", b"x")


def job(
    harness: Harness,
    app: App,
    on_rotation: OnCrashPoint = ignore_crash_point,
) -> Service:
    source = streaming.rotating_source(app, lambda checkpoint: FiledStream(harness, checkpoint))
    source.on_crash_point = on_rotation
    service = streaming.service_on(app, harness.engine(), source)
    service.poll_seconds = 0.01
    return service


def feeding(harness: Harness, app: App, number: int) -> threading.Event:
    """Deliver manifests one by one, as others end; the event is set when all of them have."""
    done, lock, ended = threading.Event(), threading.Lock(), Counter[str]()

    def on_result(_: object) -> None:
        with lock:
            ended["manifests"] += 1
            if ended["manifests"] < number - 2:
                harness.deliver(f"m{ended['manifests'] + 3:03d}", GOOD)
            if ended["manifests"] == number:
                done.set()

    app.on_result = on_result
    for first in range(3):
        harness.deliver(f"m{first + 1:03d}", GOOD)
    return done


def run_until(service: Service, done: threading.Event) -> None:
    thread = threading.Thread(target=lambda: done.wait(60) and service.stop())
    thread.start()
    service.run(once=False)
    thread.join()
    assert done.is_set()


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Harness:
    monkeypatch.setattr(streaming, "MANIFESTS_PER_CHECKPOINT", MOST)
    return Harness(stream={"trigger_interval_seconds": 0.01})


def test_the_job_moves_on_while_manifests_arrive(harness: Harness) -> None:
    """Rotation after rotation, each line is one row; the run leaves no checkpoint, and nothing looks like a restart."""
    app = harness.app()
    done = feeding(harness, app, 45)
    with events_logged("checkpoint.rotated") as rotated, events_logged("stream.restarting") as restarts:
        run_until(job(harness, app), done)
    assert len(rotated) >= 3
    assert restarts == []
    assert counted(harness, "CheckpointRotations") == len(rotated)
    harness.check_exact()
    assert list(harness.store.list(harness.layout.checkpoints_folder)) == []
    assert len(list(harness.ledger.manifests())) == 45


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("point", RotationCrashPoint)
def test_an_end_at_each_step(
    harness: Harness, point: RotationCrashPoint, monkeypatch: pytest.MonkeyPatch, *, dies: bool
) -> None:
    """A run that dies amid a rotation leaves one checkpoint at most, one that is stopped none; the next misses none."""
    app = harness.app()
    feeding(harness, app, 30)

    def end(reached: RotationCrashPoint, _run_id: str) -> None:
        if reached is point and dies:
            raise DiedError
        if reached is point:
            service.stop()

    service = job(harness, app, end)
    with monkeypatch.context() as dying, pytest.raises(DiedError) if dies else nullcontext():
        if dies:
            dying.setattr(RotatingSource, "stop", lambda _: None)
        service.run(once=False)
    left = {base_name(info.uri.rpartition("/")[0]) for info in harness.store.list(harness.layout.checkpoints_folder)}
    assert len(left) == (dies and point is not RotationCrashPoint.DROPPED)
    harness.deliver("late", GOOD)
    job(harness, harness.app()).run(once=True)
    harness.check_exact()


def test_two_drivers_that_rotate(harness: Harness) -> None:
    """Each has checkpoints of its own, and deletes those only."""
    apps = [harness.app(), harness.app()]
    done = feeding(harness, apps[0], 40)
    apps[1].on_result = apps[0].on_result
    services = [job(harness, app) for app in apps]
    threads = [threading.Thread(target=each.run, kwargs={"once": False}) for each in services]
    for thread in threads:
        thread.start()
    try:
        assert done.wait(60)
    finally:
        for each in services:
            each.stop()
        for thread in threads:
            thread.join()
    job(harness, harness.app()).run(once=True)
    harness.check_exact()
    assert list(harness.store.list(harness.layout.checkpoints_folder)) == []


def test_a_stream_that_cannot_start_is_the_jobs_to_restart(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start of the run, or amid a rotation."""
    app = harness.app()
    done = feeding(harness, app, 20)
    tries: list[str] = []

    def new_source(checkpoint: str) -> FiledStream:
        tries.append(checkpoint)
        if len(tries) in {1, 3}:
            raise CompactorError("no stream today")
        return FiledStream(harness, checkpoint)

    monkeypatch.setattr("compactor.job.service.FIRST_PAUSE_SECONDS", 0.001)
    service = streaming.service_on(app, harness.engine(), streaming.rotating_source(app, new_source))
    service.poll_seconds = 0.01
    with events_logged("stream.restarting") as restarts:
        run_until(service, done)
    assert (len(restarts), len(set(tries))) == (2, len(tries))
    harness.check_exact()
