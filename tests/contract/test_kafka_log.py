"""What every `KafkaLog` does: one suite, in memory and on a real broker."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from compactor.core.documents.records import FileStatus
from compactor.core.errors import AccessError, FileError, StoreUnavailable
from compactor.core.kafka.ports import Bounds, KafkaLog, RangeEnd, Record, TopicFacts, bounds_of
from compactor.core.kafka.ranges import KafkaRange, Topic
from tests.support.extras import KAFKA
from tests.support.kafka_broker import PASSWORD, KafkaBroker
from tests.support.memory_kafka import MemoryKafka


@dataclass(frozen=True)
class Case:
    """A log with a topic of two partitions, which were written in some way."""

    log: KafkaLog
    topic: Topic
    append: Callable[[int, Sequence[bytes | None]], None]
    abort: Callable[[int, int], int]  # write so many records in vain; returns how many offsets they take
    remove_before: Callable[[int, int], None]
    hold: Callable[[int, int], None]  # write so many records in a transaction that stays open
    make_again: Callable[[], object]


def memory_case() -> Case:
    """In memory."""
    log, topic = MemoryKafka(), Topic("main", "events")
    log.create(topic, "one", 2)

    def abort(partition: int, records: int) -> int:
        log.topics[topic][1][partition].skip(records + 1)
        return records + 1

    return Case(
        log,
        topic,
        append=lambda partition, values: log.topics[topic][1][partition].append(*values),
        abort=abort,
        remove_before=lambda partition, offset: log.topics[topic][1][partition].remove_before(offset),
        hold=lambda partition, records: setattr(log.topics[topic][1][partition], "undecided", records),
        make_again=lambda: log.create(topic, "two", 2),
    )


def broker_case(servers: str, name: str) -> Case:
    """On a broker."""
    from compactor.adapters.kafka_clusters import KafkaClusters  # noqa: PLC0415 - the client may not be there
    from tests.support.kafka_topics import TopicFeed  # noqa: PLC0415

    feed = TopicFeed(servers, name)
    feed.create(2)

    def abort(partition: int, records: int) -> int:
        feed.transactions(partition, [0, records])
        return records + 1  # the transaction without a record writes no marker

    def make_again() -> None:
        feed.delete()
        feed.create(2)

    return Case(
        KafkaClusters.of({"main": {"bootstrap.servers": servers}}).open(),
        feed.topic,
        append=lambda partition, values: feed.send(partition, *values),
        abort=abort,
        remove_before=feed.remove_before,
        hold=feed.hold,
        make_again=make_again,
    )


@pytest.fixture(params=["memory", pytest.param("broker", marks=pytest.mark.full)])
def case(request: pytest.FixtureRequest) -> Case:
    if request.param == "memory":
        return memory_case()
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    return broker_case(request.getfixturevalue("broker").servers, name)


def read(case: Case, first: int, end: int, topic_id: str = "") -> tuple[list[tuple[int, bytes | None]], Any]:
    """Offsets and values of all records of a range of partition 0, and the proof."""
    reading = case.log.read(KafkaRange(case.topic, 0, first, end), topic_id or id_of(case))
    found: list[Record] = []
    while True:
        try:
            found += next(reading)
        except StopIteration as stop:
            return [(each.offset, each.value) for each in found], stop.value


def id_of(case: Case) -> str:
    live = case.log.topic(case.topic)
    assert live is not None
    return live.topic_id


def test_topics(case: Case) -> None:
    """One that is there has an id and its partitions; another one is None."""
    live = case.log.topic(case.topic)
    assert live is not None
    assert (live.partitions, "/" in live.topic_id) == ((0, 1), False)
    assert case.log.topic(Topic("main", "none")) is None


def test_what_the_doctor_asks(case: Case) -> None:
    """Brokers, and what a topic is like; a week is the default of its retention."""
    assert case.log.nodes("main") == 1
    assert case.log.inspect(case.topic) == TopicFacts(2, may_read=True, retention_seconds=7 * 86_400)
    assert case.log.inspect(Topic("main", "none")) is None


def test_records_of_a_range(case: Case) -> None:
    """In order, with tombstones and without what was not committed; the proof is not below the end."""
    case.append(0, [b"0", None, b""])
    gap = case.abort(0, 2)
    case.append(0, [b"x", b"y"])
    end = 3 + gap + 2
    assert case.log.bounds(case.topic, [0, 1]) == {0: Bounds(0, end), 1: Bounds(0, 0)}
    found, proof = read(case, 0, end)
    assert found == [(0, b"0"), (1, None), (2, b""), (3 + gap, b"x"), (4 + gap, b"y")]
    assert proof == RangeEnd(end, end)
    found, proof = read(case, 1, 3 + gap)
    assert found == [(1, None), (2, b"")]
    assert proof.position >= 3 + gap
    found, proof = read(case, 3, 3 + gap)
    assert (found, proof.position >= 3 + gap) == ([], True)


def test_records_behind_an_open_transaction(case: Case) -> None:
    """They are counted, and no range may have them yet."""
    case.append(0, [b"0", b"1"])
    case.hold(0, 3)
    assert case.log.bounds(case.topic, [0]) == {0: Bounds(0, 2, 3)}


def test_density(case: Case) -> None:
    """Bytes by offset, without partitions that have nothing."""
    case.append(0, [b"x" * 100] * 10)
    found = case.log.samples(case.topic, {0: 0, 1: 0})
    assert {each: sample.offset_bytes for each, sample in found.items()} == {0: 100.0}
    assert case.log.samples(case.topic, {}) == {}


def test_removed_records(case: Case) -> None:
    """They are named, and those that are left can be read."""
    case.append(0, [b"x"] * 10)
    case.remove_before(0, 4)
    assert case.log.bounds(case.topic, [0]) == {0: Bounds(4, 10)}
    with pytest.raises(FileError, match="offsets 2 to 3 were removed before they were read") as raised:
        read(case, 2, 10)
    assert raised.value.status == FileStatus.MISSING
    with pytest.raises(FileError, match="offsets 0 to 3 were removed"):
        read(case, 0, 4)
    assert len(read(case, 4, 10)[0]) == 6


def check_offline(log: KafkaLog, topic: Topic) -> None:
    """Partition 1 of the topic has no leader: it has the error in place of its bounds, and the other one has bounds."""
    found = log.bounds(topic, [0, 1])
    assert found[0] == bounds_of(log, topic, 0) == Bounds(0, 1)
    assert isinstance(found[1], StoreUnavailable)
    assert "LEADER_NOT_AVAILABLE" in str(found[1])
    with pytest.raises(StoreUnavailable):  # asked for alone, it may time out
        bounds_of(log, topic, 1)
    live = log.topic(topic)
    assert live is not None
    assert live.partitions == (0, 1)


def test_a_partition_without_a_leader() -> None:
    """In memory."""
    case = memory_case()
    case.append(0, [b"x"])
    assert isinstance(case.log, MemoryKafka)
    case.log.topics[case.topic][1][1].is_offline = True
    check_offline(case.log, case.topic)


@pytest.mark.full
def test_a_partition_whose_broker_is_down(tmp_path: Path) -> None:
    """No answer while its dead broker passes for its leader, then no leader, and bounds once it is back.

    The cluster is its own: topics of other tests may be placed on the broker that is gone.
    """
    KAFKA.need()
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415 - the client may not be there

    from compactor.adapters.kafka import broker_log  # noqa: PLC0415
    from tests.support.kafka_topics import TopicFeed  # noqa: PLC0415

    for name in "12":
        (tmp_path / name).mkdir()
    with KafkaBroker(tmp_path / "1") as broker, KafkaBroker(tmp_path / "2", beside=broker) as second:
        admin = AdminClient({"bootstrap.servers": broker.servers})
        wait_until(lambda: len(admin.list_topics(timeout=5).brokers) == 2)
        feed = TopicFeed(broker.servers, "leaderless")
        admin.create_topics([NewTopic(feed.name, 2, replica_assignment=[[1], [2]])])[feed.name].result(60)
        feed.send(0, b"x")
        feed.send(1, b"y")
        log = broker_log.BrokerLog({"main": {"bootstrap.servers": broker.servers}}, request_seconds=3.0)
        assert log.bounds(feed.topic, [0, 1]) == {0: Bounds(0, 1), 1: Bounds(0, 1)}
        second.kill()
        assert isinstance(log.bounds(feed.topic, [0, 1])[1], StoreUnavailable)
        wait_until(lambda: "LEADER_NOT_AVAILABLE" in str(as_planned(log, feed.topic)))
        check_offline(log, feed.topic)
        second.start()
        wait_until(lambda: log.bounds(feed.topic, [0, 1]) == {0: Bounds(0, 1), 1: Bounds(0, 1)})


def as_planned(log: KafkaLog, topic: Topic) -> Bounds | StoreUnavailable:
    """What partition 1 has, asked as a plan does: clients learn of leaders where they ask for the topic."""
    try:
        log.topic(topic)
        return log.bounds(topic, [0, 1])[1]
    except StoreUnavailable as exc:
        return exc


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for what a cluster does by itself."""
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_topic_made_again(case: Case) -> None:
    """It has another id, and nothing of it is read as of the former one."""
    case.append(0, [b"x"] * 3)
    former = id_of(case)
    case.make_again()
    case.append(0, [b"y"] * 3)
    assert id_of(case) != former
    with pytest.raises(FileError, match=former) as raised:
        read(case, 0, 3, former)
    assert raised.value.status == FileStatus.MISSING
    assert [value for _, value in read(case, 0, 3)[0]] == [b"y"] * 3


@pytest.mark.full
def test_a_password_by_reference(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The right one reads; with a wrong one a person must act."""
    from compactor.adapters.kafka import broker_log  # noqa: PLC0415 - the client may not be there

    feed_case = broker_case(broker.servers, "secured")
    feed_case.append(0, [b"x"])
    given = {"main": {**broker.secured, "sasl.password": "env:KAFKA_PASSWORD"}}
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    secured = replace(feed_case, log=broker_log.BrokerLog(given, request_seconds=30.0))
    assert read(secured, 0, 1)[0] == [(0, b"x")]
    monkeypatch.setenv("KAFKA_PASSWORD", "wrong")
    with pytest.raises(AccessError, match="expected the right to read"):
        broker_log.BrokerLog(given, request_seconds=3.0).topic(feed_case.topic)


@pytest.mark.full
def test_brokers_that_are_down(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passing trouble, before a reading and in the middle of it; they may come back."""
    from compactor.adapters.kafka import broker_log, range_consumer  # noqa: PLC0415 - the client may not be there

    case = broker_case(broker.servers, "down")
    hurried = broker_log.BrokerLog({"main": {"bootstrap.servers": broker.servers}}, request_seconds=3.0)
    case.append(0, [b"x" * 100_000] * 400)
    topic_id = id_of(case)
    with monkeypatch.context() as impatient:
        impatient.setattr(range_consumer, "IDLE_SECONDS", 2.0)
        reading = hurried.read(KafkaRange(case.topic, 0, 0, 400), topic_id)
        assert next(reading)
        broker.kill()
        try:
            with pytest.raises(StoreUnavailable):
                list(reading)
            with pytest.raises(StoreUnavailable):
                hurried.topic(case.topic)
        finally:
            broker.start()
    assert len(read(case, 0, 400, topic_id)[0]) == 400


def test_a_broker_gives_what_records_have_beside_their_values(broker: KafkaBroker) -> None:
    """If it is asked for: keys, times, and headers, of which a name may come twice and a value may be missing."""
    from confluent_kafka import Producer  # noqa: PLC0415 - the client may not be there

    from compactor.adapters.kafka_clusters import KafkaClusters  # noqa: PLC0415
    from tests.support.kafka_topics import TopicFeed  # noqa: PLC0415

    feed = TopicFeed(broker.servers, "beside-values")
    feed.create(1)
    producer = Producer({"bootstrap.servers": broker.servers})
    headers = [("h", b"\xff"), ("h", None), ("other", b"")]
    producer.produce(feed.name, b"{}", b"key", 0, timestamp=1_700_000_000_123, headers=headers)
    producer.produce(feed.name, b"{}", None, 0, timestamp=5)
    producer.flush()
    log = KafkaClusters.of({"main": {"bootstrap.servers": broker.servers}}).open()
    wanted, topic = KafkaRange(feed.topic, 0, 0, 2), log.topic(feed.topic)
    assert topic is not None
    found = [each for batch in log.read(wanted, topic.topic_id, with_columns=True) for each in batch]
    assert found == [
        Record(0, b"{}", b"key", 1_700_000_000_123, tuple(headers)),
        Record(1, b"{}", None, 5),
    ]
    assert [each for batch in log.read(wanted, topic.topic_id) for each in batch] == [
        Record(0, b"{}"),
        Record(1, b"{}"),
    ]


@pytest.mark.full
def test_a_name_of_a_header_that_is_not_text(broker: KafkaBroker) -> None:
    """A producer may send it: brokers check no names. The record is given all the same, and those behind it.

    Many of them, for Python calls a method in another way once it has called it often.
    """
    from compactor.adapters.kafka_clusters import KafkaClusters  # noqa: PLC0415 - the client may not be there
    from tests.support.kafka_topics import TopicFeed  # noqa: PLC0415
    from tests.support.raw_headers import send_with_headers  # noqa: PLC0415

    feed = TopicFeed(broker.servers, "names-of-headers")
    feed.create(1)
    send_with_headers(broker.servers, feed.name, 0, [b"1"] * 500, [(b"good", b"1"), (b"\xff\xfe", b"2"), (b"g", b"")])
    send_with_headers(broker.servers, feed.name, 0, [b"2"], [(b"good", b"3")])
    log = KafkaClusters.of({"main": {"bootstrap.servers": broker.servers}}).open()
    topic = log.topic(feed.topic)
    assert topic is not None
    read = log.read(KafkaRange(feed.topic, 0, 0, 501), topic.topic_id, with_columns=True)
    found = [(each.value, each.headers) for batch in read for each in batch]
    assert found == [*[(b"1", b"\xff\xfe")] * 500, (b"2", (("good", b"3"),))]


def test_density_of_records_that_grow(case: Case) -> None:
    """The first ones tell nothing of those behind them."""
    case.append(0, [b"x"] * 300)
    case.append(0, [b"x" * 2_000] * 2_700)
    found = case.log.samples(case.topic, {0: 0})[0].offset_bytes
    assert 900 < found < 3_600
