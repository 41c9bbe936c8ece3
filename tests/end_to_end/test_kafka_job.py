"""A job that plans topics of a real broker itself: until it is stopped, while brokers are down, and beside others."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compactor.wiring import streaming
from tests.support.extras import KAFKA, NATIVE
from tests.support.kafka_broker import KafkaBroker
from tests.support.settings_files import write_settings
from tests.support.workspace import Workspace

KAFKA.need()
NATIVE.need()

from tests.support.kafka_topics import TopicFeed, ids_in, kafka_settings  # noqa: E402 - it needs the client

pytestmark = pytest.mark.full

SECONDS = 240.0


def workspace(root: Path, broker: KafkaBroker, *names: str) -> Workspace:
    """A folder whose job plans these topics, and files of a folder beside them."""
    given = kafka_settings(broker.servers, *names)
    topics = given["input"]["allowed_prefixes"]
    given["input"] = {"allowed_prefixes": [*topics, f"{root}/raw"]}
    given["builder"] = {"max_wait_seconds": 1.0}
    given["stream"] = {"source": "listing", "trigger_interval_seconds": 0.2}
    return Workspace(root, write_settings(root, **given))


def wait_until(condition: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.2)


@contextmanager
def running(place: Workspace) -> Iterator[None]:
    """A job, for as long as the block lasts."""
    job = streaming.threaded_job(place.app, 2)
    thread = threading.Thread(target=job.run, kwargs={"once": False})
    thread.start()
    try:
        yield
    finally:
        job.stop()
        thread.join(SECONDS)
    assert not thread.is_alive()


def rows_of(root: Path) -> Counter[str]:
    return ids_in(root / "o")


def test_two_jobs_plan_what_producers_write(tmp_path: Path, broker: KafkaBroker) -> None:
    """Each record is one row, whichever of them plans it; `status` tells that nothing is left."""
    feed = TopicFeed(broker.servers, "planned-by-jobs")
    feed.create(3)
    place = workspace(tmp_path, broker, feed.name)
    with running(place), running(workspace(tmp_path, broker, feed.name)):
        for number in range(4):
            feed.produce(number % 3, 500)
            feed.transactions(number % 3, [50, 20])
            time.sleep(0.7)
        wait_until(lambda: rows_of(tmp_path).total() >= len(feed.written))
    assert rows_of(tmp_path) == dict.fromkeys(feed.written, 1)
    found, _ = place.json("status")
    [log] = found["logs"]
    assert (log["behind_seconds"], log["gaps"], log["error"]) == (0.0, 0, "")
    assert place.json("verify", "--deep")[1] == 0


def test_brokers_that_are_down_hold_up_nothing_else(tmp_path: Path, broker: KafkaBroker) -> None:
    """Files go on, `status` says what jobs noted and why landing fails, and records follow later."""
    feed = TopicFeed(broker.servers, "down-for-a-while")
    feed.create(1)
    feed.produce(0, 300)
    place = workspace(tmp_path, broker, feed.name)
    (tmp_path / "raw").mkdir()
    with running(place):
        wait_until(lambda: rows_of(tmp_path).total() == len(feed.written))
        broker.kill()
        try:
            (tmp_path / "raw" / "a.ndjson").write_text('{"id": "of-a-file"}\n')
            place.json("plan", f"{tmp_path}/raw")
            wait_until(lambda: "of-a-file" in rows_of(tmp_path))
            wait_until(lambda: bool(place.json("status")[0]["logs"][0]["error"]))
            assert place.json("status")[0]["logs"][0]["seen_at"]
        finally:
            broker.start()
        feed.produce(0, 200)
        wait_until(lambda: rows_of(tmp_path).total() == len(feed.written) + 1)
    assert rows_of(tmp_path) == dict.fromkeys([*feed.written, "of-a-file"], 1)
    assert place.json("verify", "--deep")[1] == 0
