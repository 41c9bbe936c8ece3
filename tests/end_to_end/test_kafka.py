"""Topics on a real broker, through planning, both engines, `verify`, `trace` and `redrive`, against their producers."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compactor.wiring import streaming
from compactor.wiring.opening import kafka_log
from tests.support.extras import KAFKA, NATIVE
from tests.support.kafka_broker import KafkaBroker
from tests.support.settings_files import write_settings
from tests.support.workspace import Workspace

KAFKA.need()
NATIVE.need()

from tests.support.kafka_topics import TopicFeed, ids_in, kafka_settings  # noqa: E402 - it needs the client

pytestmark = pytest.mark.full


def workspace(root: Path, broker: KafkaBroker) -> Workspace:
    return Workspace(root, write_settings(root, **kafka_settings(broker.servers)))


def run(place: Workspace) -> None:
    """Do all there is to do, by the native engine."""
    assert streaming.threaded_job(place.app, 2).run(once=True) is not None


def test_every_committed_record_is_one_row(tmp_path: Path, broker: KafkaBroker) -> None:
    """Of four partitions: aborted transactions, tombstones, rejects and a partition that came later."""
    feed = TopicFeed(broker.servers, "orders")
    feed.create(3)
    feed.produce(0, 6000)
    feed.transactions(1, [1500, 700, 1, 1, 2000, 300])
    feed.produce(2, 3000)
    feed.send(2, None, b"no json", b'{"id":\n"several-lines"}', b'{"id": "a\nb"}', None, b"")
    place = workspace(tmp_path, broker)
    planned, code = place.json("plan", str(feed.topic))
    assert code == 0
    assert planned["log"]["lines"] == len(feed.written) + 4
    assert (planned["log"]["tombstones"], planned["log"]["gaps"], planned["log"]["troubles"]) == (2, [], [])
    run(place)
    feed.grow(4)
    feed.produce(3, 5000)
    feed.transactions(1, [500, 500])
    with ThreadPoolExecutor(2) as pool:  # two planners at once
        landers = [streaming.lander(place.app, "kafka") for _ in range(2)]
        list(pool.map(lambda each: each.land(feed.topic, max_manifests=100), landers))
    run(place)
    found = ids_in(tmp_path / "o")
    assert found == {**dict.fromkeys(feed.written, 1), "several-lines": 1}
    for options in ((), ("--deep",)):
        verified, code = place.json("verify", *options)
        assert code == 0, verified
        assert (verified["rows"], verified["rejected_lines"]) == (len(feed.written) + 1, 2)
    again, _ = place.json("plan", str(feed.topic))
    assert again["manifests"] == []
    next((tmp_path / "o").rglob("*.parquet")).unlink()
    rebuilt, code = place.json("rebuild")
    assert code == 0, str(rebuilt)
    assert ids_in(tmp_path / "o") == found
    assert place.json("verify")[1] == 0


def test_a_record_is_traced_and_redriven_by_its_offset(tmp_path: Path, broker: KafkaBroker) -> None:
    """A rejected record is found under its offset; what longer lines allow is redriven."""
    feed = TopicFeed(broker.servers, "trace")
    feed.create(1)
    feed.produce(0, 50)
    feed.send(0, None, b'{"id": "' + b"l" * 500 + b'"}', b"no json")
    feed.produce(0, 10)
    place = workspace(tmp_path, broker)
    settings = place.config.read_text()
    place.config.write_text(settings.replace("[input]", "[input]\nmax_line_bytes = 400"))
    place.json("plan", str(feed.topic))
    run(place)
    found, code = place.json("trace", f"{feed.topic}/0?offset=51")
    assert (code, found["state"]) == (0, "done")
    assert "is among the 62 lines of this object, unless it has no value" in found["message"]
    assert [each["line_number"] for each in found["rejected"]] == [51, 52]
    assert place.json("trace", f"{feed.topic}/0?offset=63")[1] == 1
    place.config.write_text(settings)
    redriven, code = place.json("redrive", "rejects")
    assert (code, [each["counts"] for each in redriven["redriven"]]) == (3, [{"line_too_long": 1}])
    assert redriven["unchanged"] == {"invalid_json": 1}
    run(place)
    assert ids_in(tmp_path / "o") == dict.fromkeys([*feed.written, "l" * 500], 1)
    found, _ = place.json("trace", f"{feed.topic}/0?offset=51")
    assert [each["line_number"] for each in found["rejected"]] == [52]
    assert place.json("verify", "--deep")[1] == 0


def test_retention_is_faster(tmp_path: Path, broker: KafkaBroker) -> None:
    """What is gone before it is landed is quarantined under its offsets; what is landed needs no topic."""
    feed = TopicFeed(broker.servers, "short")
    feed.create(2)
    feed.produce(0, 100)
    feed.produce(1, 100)
    place = workspace(tmp_path, broker)
    place.json("plan", str(feed.topic))
    feed.remove_before(1, 100)
    run(place)
    feed.produce(0, 100)
    feed.remove_before(0, 150)
    planned, code = place.json("plan", str(feed.topic))
    assert (code, planned["log"]["gaps"]) == (3, [f"{feed.topic}/0?from=100&to=150"])
    run(place)
    verified, code = place.json("verify")
    assert (code, verified["discrepancies"]) == (3, [])
    assert {each["uri"]: each["detail"] for each in verified["quarantined_files"]} == {
        f"{feed.topic}/0?from=100&to=150": "retention removed offsets 100 to 149"
    }
    redriven, code = place.json("redrive", "files")
    assert (code, [each["why"][:20] for each in redriven["refused"]]) == (3, ["retention removed it"])
    lost = {each for each in feed.written if feed.places[each] in {(0, at) for at in range(100, 150)}}
    assert ids_in(tmp_path / "o") == dict.fromkeys([each for each in feed.written if each not in lost], 1)
    assert place.json("trace", f"{feed.topic}/0?offset=149")[0]["state"] == "quarantined"
    assert place.json("trace", f"{feed.topic}/0?offset=151")[0]["state"] == "done"
    gap = f"{feed.topic}/0?from=100&to=150"
    dismissed, code = place.json("dismiss", gap, "--why", "retention was too short")
    assert (code, [each["uri"] for each in dismissed["inputs"]]) == (0, [gap])
    assert place.json("verify", "--deep")[1] == 0
    assert place.json("redrive", "files")[1] == 0
    assert "retention was too short" in place.call("trace", f"{feed.topic}/0?from=100&to=150").stdout


def test_retention_meets_a_reading(tmp_path: Path, broker: KafkaBroker) -> None:
    """The reading ends; the next one begins behind what is gone, and says so."""
    feed = TopicFeed(broker.servers, "overtaken")
    feed.create(1)
    feed.produce(0, 3000, padding=20_000)  # more than a client holds
    log = kafka_log(workspace(tmp_path, broker).app)
    reading = log.read(feed.topic, "0", 0, 1_000_000_000)
    assert next(reading).kept_from == 1
    assert next(reading).records[0].position == 1
    feed.remove_before(0, 2990)
    last = [batch.reached for batch in reading][-1]
    assert last < 2990
    first, *_ = log.read(feed.topic, "0", last, 1_000_000_000)
    assert (first.kept_from, first.reached) == (2991, 2990)


def test_compaction_and_a_topic_made_again(tmp_path: Path, broker: KafkaBroker) -> None:
    """Offsets without a record are legal; a topic of the same name is another one, and the former one is not needed."""
    feed = TopicFeed(broker.servers, "keyed")
    feed.create(
        1, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="100", max_compaction_lag_ms="1"
    )
    for number in range(40):
        feed.send(0, b'{"id": "%d"}' % number, key=b"%d" % (number % 3))
    place = workspace(tmp_path, broker)
    log = kafka_log(place.app)
    live = log.describe(feed.topic)
    assert live is not None
    deadline = time.monotonic() + 60
    while sum(each.position <= 40 for batch in log.read(feed.topic, "0", 0, 10**9) for each in batch.records) == 40:
        assert time.monotonic() < deadline, "the broker did not compact the topic"
        time.sleep(0.3)
        feed.send(0, b'{"id": "tail"}', key=b"tail")  # rolls the segment
    place.json("plan", str(feed.topic))
    run(place)
    found = ids_in(tmp_path / "o")
    assert 3 < len(found) < 40
    assert set(found.values()) <= {1} | {found["tail"]}
    assert place.json("verify")[1] == 0
    feed.send(0, b'{"id": "landed"}', key=b"landed")
    place.json("plan", str(feed.topic))
    feed.delete()
    feed.create(1)
    feed.send(0, b'{"id": "anew"}')
    planned, _ = place.json("plan", str(feed.topic))
    assert planned["log"]["former_ids"] == [live.log_id]
    run(place)
    assert ids_in(tmp_path / "o") == {**found, "landed": 1, "anew": 1}
    verified, code = place.json("verify")
    assert (code, verified["discrepancies"]) == (0, [])
