"""A job that plans the topics of its settings itself."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compactor.core.errors import StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import LiveLog
from compactor.wiring.job.app import App
from tests.support.extras import NATIVE
from tests.support.memory_kafka import MemoryKafka, MemoryPartition, kafka_app

NATIVE.need()

TOPIC = LogName("kafka", "main", "events")
SECONDS = 60.0


class HangingKafka(MemoryKafka):
    """Brokers that do not answer until they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answering = threading.Event(), threading.Event()

    def describe(self, log: LogName) -> LiveLog | None:
        self.asked.set()
        assert self.answering.wait(SECONDS)
        return super().describe(log)


class BrokenKafka(MemoryKafka):
    """Brokers that are down."""

    def describe(self, log: LogName) -> LiveLog | None:
        raise StoreUnavailable(f"{log}: brokers are down")


def app_of(root: Path, log: MemoryKafka, **more: Any) -> App:
    """The components of a job that plans one topic."""
    kafka = {"clusters": {"main": {"bootstrap.servers": "none:1"}}, "topics": [str(TOPIC)]}
    given = {"builder": {"max_wait_seconds": 0.05}, "stream": {"source": "listing", "trigger_interval_seconds": 0.05}}
    return kafka_app(root, log, **{**given, "kafka": kafka, **more})


def partition_of(log: MemoryKafka) -> MemoryPartition:
    return log.create(TOPIC, "one")[0]


def wait_until(condition: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.02)


def test_once_plans_and_reads_all_there_is(tmp_path: Path) -> None:
    """Without a call of `compactor plan`."""
    log = MemoryKafka()
    partition_of(log).append(*[b'{"a": 1}'] * 7)
    report = app_of(tmp_path, log).threaded_job(1).run(once=True)
    assert report.records == 7


def test_once_does_the_rest_if_brokers_are_down(tmp_path: Path) -> None:
    """And says so at its end."""
    log = MemoryKafka()
    partition_of(log).append(b'{"a": 1}')
    app_of(tmp_path, log).lander("kafka").land(TOPIC, max_manifests=9)
    broken = BrokenKafka(log.topics)
    app = app_of(tmp_path, broken)
    with pytest.raises(StoreUnavailable, match="brokers are down"):
        app.threaded_job(1).run(once=True)
    assert [each.manifest_id for each in app.ledger.recent()] != []


def test_a_running_job_plans_again_and_again(tmp_path: Path) -> None:
    """Until it is stopped."""
    log = MemoryKafka()
    partition = partition_of(log)
    app = app_of(tmp_path, log)
    job = app.threaded_job(1)
    running = threading.Thread(target=job.run, kwargs={"once": False})
    running.start()
    try:
        for expected in (1, 2):
            partition.append(b'{"a": 1}')
            wait_until(lambda expected=expected: len(app.ledger.recent()) == expected)  # type: ignore[misc]
    finally:
        job.stop()
        running.join(SECONDS)
    assert not running.is_alive()


def test_a_stop_does_not_wait_for_brokers(tmp_path: Path) -> None:
    """They may never answer; what they hold up is left alone, also with `once`."""
    for once in (False, True):
        log = HangingKafka()
        partition_of(log)
        job = app_of(tmp_path, log).threaded_job(1)
        running = threading.Thread(target=job.run, kwargs={"once": once})
        running.start()
        assert log.asked.wait(SECONDS)
        job.stop()
        running.join(SECONDS)
        assert not running.is_alive()
        log.answering.set()
