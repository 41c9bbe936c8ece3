"""A topic under planners and jobs that are killed again and again, while it grows and retention is at work."""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactor.core.logs.names import LogGap
from tests.support.extras import KAFKA, NATIVE
from tests.support.kafka_broker import KafkaBroker
from tests.support.settings_files import write_settings
from tests.support.workspace import Workspace

KAFKA.need()
NATIVE.need()

from tests.support.kafka_topics import TopicFeed, ids_in, kafka_settings  # noqa: E402 - it needs the client

pytestmark = pytest.mark.full

ROUNDS = 6
PARTITIONS = 4
SECONDS = 120.0


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as found:
        yield found


def started(place: Workspace, *arguments: str) -> subprocess.Popen[bytes]:
    """A command as a process of its own."""
    command = [sys.executable, "-m", "compactor", "--config", str(place.config), *arguments]
    log = (place.root / "log").open("ab")
    with log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def killed(process: subprocess.Popen[bytes], after_seconds: float) -> None:
    """Let a process run for a while, then end it at once."""
    try:
        process.wait(after_seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)


def feed_all(feed: TopicFeed, chance: random.Random) -> None:
    """Some thousand records, half of them in transactions."""
    feed.produce(0, 900)
    feed.transactions(1, [chance.randint(1, 500) for _ in range(4)])
    feed.produce(2, 800)
    feed.transactions(3, [chance.randint(1, 700) for _ in range(4)])


def test_nothing_is_lost_or_doubled(tmp_path: Path, broker: KafkaBroker) -> None:
    """Against what was produced: each record is one row, or is in a gap that is named."""
    chance = random.Random(11)
    feed = TopicFeed(broker.servers, "storm")
    feed.create(PARTITIONS)
    settings = kafka_settings(broker.servers)
    settings |= {"stream": {"source": "listing"}, "builder": {"target_manifest_bytes": 20_000}}
    place = Workspace(tmp_path, write_settings(tmp_path, **settings))
    assert started(place, "plan", str(feed.topic)).wait(SECONDS) == 0  # all chains begin, at offset 0
    for number in range(ROUNDS):
        feed_all(feed, chance)
        if number == 2:
            feed.grow(PARTITIONS + 1)
        if number >= 2:
            feed.produce(PARTITIONS, 300)
        processes = [started(place, "plan", str(feed.topic)) for _ in range(2)] + [started(place, "run", "--once")]
        for each in processes:
            killed(each, chance.uniform(0.5, 2.5))
        if number == ROUNDS - 2:
            feed.remove_before(2, 3 * 800 + 123)
    for _ in range(2):
        assert started(place, "plan", str(feed.topic)).wait(SECONDS) in {0, 3}
        assert started(place, "run", "--once").wait(SECONDS) in {0, 3}
    verified, _ = place.json("verify", "--deep")
    assert verified["discrepancies"] == []
    assert verified["unfinished"] == 0
    gone = [LogGap.parse(each["uri"]) for each in verified["quarantined_files"]]
    assert all(each.partition_id == "2" and each.after < 3 * 800 + 123 for each in gone)
    covered = {(int(each.partition_id), offset) for each in gone for offset in range(each.after, each.before - 1)}
    kept = [each for each in feed.written if feed.places[each] not in covered]
    assert ids_in(tmp_path / "o") == dict.fromkeys(kept, 1)
    assert len(feed.written) > 15_000
    assert feed.aborted
