"""Topics on a real broker, through planning, both engines, `verify`, `trace` and `redrive`, against their producers."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compactor.core.errors import FileError
from compactor.core.kafka.ranges import KafkaRange
from tests.support.extras import KAFKA, NATIVE
from tests.support.kafka_broker import KafkaBroker
from tests.support.settings_files import write_settings
from tests.support.workspace import Workspace

KAFKA.need()
NATIVE.need()

from tests.support.kafka_topics import TopicFeed, ids_in, kafka_settings  # noqa: E402 - it needs the client

pytestmark = pytest.mark.full


def workspace(root: Path, broker: KafkaBroker, *names: str) -> Workspace:
    return Workspace(root, write_settings(root, **kafka_settings(broker.servers, *names)))


def run(place: Workspace) -> None:
    """Do all there is to do, by the native engine."""
    assert place.app.threaded_job(2).run(once=True) is not None


def test_every_committed_record_is_one_row(tmp_path: Path, broker: KafkaBroker) -> None:
    """Of four partitions: aborted transactions, tombstones, rejects and a partition that came later."""
    feed = TopicFeed(broker.servers, "orders")
    feed.create(3)
    feed.produce(0, 6000)
    feed.transactions(1, [1500, 700, 1, 1, 2000, 300])
    feed.produce(2, 3000)
    feed.send(2, None, b"no json", b'{"id":\n"several-lines"}', b'{"id": "a\nb"}', None, b"")
    place = workspace(tmp_path, broker, "orders")
    planned, code = place.json("plan", str(feed.topic))
    assert code == 0
    assert planned["topic"] == {"removed": [], "cut_off": [], "former_ids": [], "troubles": []}
    run(place)
    feed.grow(4)
    feed.produce(3, 5000)
    feed.transactions(1, [500, 500])
    with ThreadPoolExecutor(2) as pool:  # two planners at once
        planners = [place.app.kafka_planner for _ in range(2)]
        list(pool.map(lambda each: each.plan(feed.topic, max_manifests=100), planners))
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
    place = workspace(tmp_path, broker, "trace")
    settings = place.config.read_text()
    place.config.write_text(settings.replace("[input]", "[input]\nmax_line_bytes = 400"))
    place.json("plan", str(feed.topic))
    run(place)
    found, code = place.json("trace", f"{feed.topic}/0?offset=51")
    assert (code, found["uri"], found["state"]) == (0, f"{feed.topic}/0?from=0&to=63", "done")
    assert found["message"].endswith("is line 52 of this range")
    assert [each["line_number"] for each in found["rejected"]] == [52, 53]
    assert place.json("trace", f"{feed.topic}/0?offset=63")[1] == 1
    place.config.write_text(settings)
    redriven, code = place.json("redrive", "rejects")
    assert (code, [each["counts"] for each in redriven["redriven"]]) == (3, [{"line_too_long": 1}])
    assert redriven["unchanged"] == {"invalid_json": 1}
    run(place)
    assert ids_in(tmp_path / "o") == dict.fromkeys([*feed.written, "l" * 500], 1)
    found, _ = place.json("trace", f"{feed.topic}/0?offset=51")
    assert [each["line_number"] for each in found["rejected"]] == [53]
    assert place.json("verify", "--deep")[1] == 0


def test_retention_is_faster(tmp_path: Path, broker: KafkaBroker) -> None:
    """What is gone before it is planned, or before it is read, is quarantined under its exact offsets."""
    feed = TopicFeed(broker.servers, "short")
    feed.create(2)
    feed.produce(0, 100)
    feed.produce(1, 100)
    place = workspace(tmp_path, broker, "short")
    place.json("plan", str(feed.topic))
    run(place)
    feed.produce(0, 100)
    feed.remove_before(0, 150)
    planned, code = place.json("plan", str(feed.topic))
    assert (code, planned["topic"]["removed"]) == (3, [f"{feed.topic}/0?from=100&to=150"])
    feed.produce(1, 100)
    place.json("plan", str(feed.topic))
    feed.remove_before(1, 130)
    run(place)
    verified, code = place.json("verify")
    assert (code, verified["discrepancies"]) == (3, [])
    assert {each["uri"]: each["detail"] for each in verified["quarantined_files"]} == {
        f"{feed.topic}/0?from=100&to=150": (
            "offsets 100 to 149 were removed before they were read; expected 100 to 149; left: none"
        ),
        f"{feed.topic}/1?from=100&to=200": (
            "offsets 100 to 129 were removed before they were read; expected 100 to 199; left: 130 to 199"
        ),
    }
    redriven, code = place.json("redrive", "files")
    assert (code, [each["why"][:14] for each in redriven["refused"]]) == (3, ["all of it was "])
    assert [each["counts"] for each in redriven["redriven"]] == [{"missing": 2}]
    run(place)
    lost = {each for each in feed.written if feed.places[each] in {(0, at) for at in range(100, 150)}}
    lost |= {each for each in feed.written if feed.places[each] in {(1, at) for at in range(100, 130)}}
    assert ids_in(tmp_path / "o") == dict.fromkeys([each for each in feed.written if each not in lost], 1)
    verified, code = place.json("verify", "--deep")
    assert (code, verified["discrepancies"]) == (3, [])
    assert {each["uri"] for each in verified["quarantined_files"] if not each["redriven"]} == {
        f"{feed.topic}/0?from=100&to=150",
        f"{feed.topic}/1?from=100&to=130",
    }
    assert place.json("trace", f"{feed.topic}/1?offset=131")[0]["uri"] == f"{feed.topic}/1?from=130&to=200"
    assert place.json("trace", f"{feed.topic}/1?offset=129")[0]["state"] == "quarantined"
    redriven, _ = place.json("redrive", "files")
    assert redriven["redriven"] == []
    accepted, code = place.json("accept", "--why", "retention was too short", "--yes")
    assert (code, sum(each["offsets"] for each in accepted["lost"])) == (0, 80)
    assert place.json("verify", "--deep")[1] == 0
    assert place.json("redrive", "files")[1] == 0
    assert "retention was too short" in place.call("trace", f"{feed.topic}/1?from=100&to=130").stdout


def test_retention_meets_a_reading(tmp_path: Path, broker: KafkaBroker) -> None:
    """What was read of a range that is no longer whole counts for nothing, and is named with the rest."""
    feed = TopicFeed(broker.servers, "overtaken")
    feed.create(1)
    feed.produce(0, 3000, padding=20_000)  # more than a client holds
    log = workspace(tmp_path, broker, "overtaken").app.kafka.open()
    live = log.topic(feed.topic)
    assert live is not None
    reading = log.read(KafkaRange(feed.topic, 0, 0, 3000), live.topic_id)
    assert next(reading)[0].offset == 0
    feed.remove_before(0, 2990)
    with pytest.raises(FileError) as raised:
        list(reading)
    assert raised.value.message == (
        "offsets 0 to 2989 were removed before they were read; expected 0 to 2999; left: 2990 to 2999"
    )


def test_compaction_and_a_topic_made_again(tmp_path: Path, broker: KafkaBroker) -> None:
    """Gaps of compaction are legal; a topic of the same name is another one, of which no offset was read."""
    feed = TopicFeed(broker.servers, "keyed")
    feed.create(
        1, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="100", max_compaction_lag_ms="1"
    )
    for number in range(40):
        feed.send(0, b'{"id": "%d"}' % number, key=b"%d" % (number % 3))
    place = workspace(tmp_path, broker, "keyed")
    log = place.app.kafka.open()
    live = log.topic(feed.topic)
    assert live is not None
    whole = KafkaRange(feed.topic, 0, 0, 40)
    deadline = time.monotonic() + 60
    while sum(map(len, log.read(whole, live.topic_id))) == 40:
        assert time.monotonic() < deadline, "the broker did not compact the topic"
        time.sleep(0.3)
        feed.send(0, b'{"id": "tail"}', key=b"tail")  # rolls the segment
    place.json("plan", str(feed.topic))
    run(place)
    found = ids_in(tmp_path / "o")
    assert 3 < len(found) < 40
    assert set(found.values()) <= {1} | {found["tail"]}
    assert place.json("verify")[1] == 0
    feed.send(0, b'{"id": "unread"}', key=b"unread")
    place.json("plan", str(feed.topic))
    feed.delete()
    feed.create(1)
    feed.send(0, b'{"id": "anew"}')
    planned, _ = place.json("plan", str(feed.topic))
    assert planned["topic"]["former_ids"] == [live.topic_id]
    run(place)
    assert ids_in(tmp_path / "o") == {**found, "anew": 1}
    verified, code = place.json("verify")
    assert (code, verified["discrepancies"]) == (3, [])
    [lost] = verified["quarantined_files"]
    assert f"expected the id {live.topic_id}" in lost["detail"]
