"""What every `KafkaLog` does: one suite, in memory and on a real broker."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from compactor.core.errors import AccessError, StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch, KafkaLog, LogRecord, Partition, TopicFacts
from tests.support.extras import KAFKA
from tests.support.kafka_broker import PASSWORD, KafkaBroker
from tests.support.memory_kafka import MemoryKafka


@dataclass(frozen=True)
class Case:
    """A log with a topic of two partitions, which were written in some way."""

    log: KafkaLog
    topic: LogName
    append: Callable[[int, Sequence[bytes | None]], None]
    abort: Callable[[int, int], int]  # write so many records in vain; returns how many offsets they take
    remove_before: Callable[[int, int], None]
    hold: Callable[[int, int], None]  # write so many records in a transaction that stays open
    make_again: Callable[[], object]


def memory_case() -> Case:
    """In memory."""
    log, topic = MemoryKafka(), LogName("kafka", "main", "events")
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
    from compactor.adapters.logs import kafka_of  # noqa: PLC0415 - the client may not be there
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
        kafka_of({"main": {"bootstrap.servers": servers}}),
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


def answers(case: Case, at: int = 0, partition: int = 0) -> list[Batch]:
    return list(case.log.read(case.topic, str(partition), at, 1_000_000))


def read(case: Case, at: int = 0) -> list[tuple[int, bytes | None]]:
    """Offsets and values of all records of partition 0, behind the first ones."""
    return [(each.position - 1, each.data) for batch in answers(case, at) for each in batch.records]


def id_of(case: Case) -> str:
    live = case.log.describe(case.topic)
    assert live is not None
    return live.log_id


def test_topics(case: Case) -> None:
    """One that is there has an id and its partitions, and tells gaps; another one is None."""
    live = case.log.describe(case.topic)
    assert live is not None
    assert (live.tells_gaps, "/" in live.log_id) == (True, False)
    assert case.log.partitions(case.topic) == [Partition("0"), Partition("1")]
    assert case.log.describe(LogName("kafka", "main", "none")) is None


def test_what_the_doctor_asks(case: Case) -> None:
    """Brokers, and what a topic is like; a week is the default of its retention."""
    assert case.log.nodes("main") == 1
    assert case.log.inspect(case.topic) == TopicFacts(2, may_read=True, retention_seconds=7 * 86_400)
    assert case.log.inspect(LogName("kafka", "main", "none")) is None


def test_records_of_a_partition(case: Case) -> None:
    """In order, with tombstones and without what was not committed; the last answer reached all that is decided."""
    case.append(0, [b"0", None, b""])
    gap = case.abort(0, 2)
    case.append(0, [b"x", b"y"])
    end = 3 + gap + 2
    assert read(case) == [(0, b"0"), (1, None), (2, b""), (3 + gap, b"x"), (4 + gap, b"y")]
    first, *_, last = answers(case)
    assert (first.kept_from, first.reached, bool(first.behind_seconds)) == (1, 0, True)
    assert last == Batch((), 0.0, reached=end)
    assert read(case, 2) == [(2, b""), (3 + gap, b"x"), (4 + gap, b"y")]
    assert [each.reached for each in answers(case, end)] == [end, end]
    assert [each.reached for each in answers(case, 0, 1)] == [0, 0]


def test_records_behind_an_open_transaction(case: Case) -> None:
    """They are not read yet, and the last answer tells of them."""
    case.append(0, [b"0", b"1"])
    case.hold(0, 3)
    assert read(case) == [(0, b"0"), (1, b"1")]
    assert answers(case)[-1] == Batch((), 0.0, reached=2, is_held=True)


def test_removed_records(case: Case) -> None:
    """The first answer tells where what is left begins, wherever reading was to begin."""
    case.append(0, [b"x"] * 10)
    case.remove_before(0, 4)
    for at in (0, 2, 4, 9):
        first = answers(case, at)[0]
        assert (first.kept_from, first.reached) == (5, max(at, 4))
    assert [offset for offset, _ in read(case)] == [4, 5, 6, 7, 8, 9]


def test_a_log_that_was_cut_off(case: Case) -> None:
    """A partition that ends before records that it had is trouble."""
    case.append(0, [b"x"] * 3)
    with pytest.raises(StoreUnavailable, match="ends at offset 3"):
        answers(case, 4)


def test_a_partition_without_a_leader() -> None:
    """In memory: it is trouble, and the other one is read."""
    case = memory_case()
    case.append(0, [b"x"])
    assert isinstance(case.log, MemoryKafka)
    case.log.topics[case.topic][1][1].is_offline = True
    check_offline(case)


def check_offline(case: Case) -> None:
    assert read(case) == [(0, b"x")]
    with pytest.raises(StoreUnavailable):
        answers(case, 0, 1)
    assert len(case.log.partitions(case.topic)) == 2


@pytest.mark.full
def test_a_partition_whose_broker_is_down(tmp_path: Path) -> None:
    """No answer while its dead broker passes for its leader, then no leader, and records once it is back.

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
        case = replace(memory_case(), log=log, topic=feed.topic)

        def of_second() -> str:
            try:
                return str([each.data for batch in answers(case, 0, 1) for each in batch.records])
            except StoreUnavailable as exc:
                return str(exc)

        assert of_second() == "[b'y']"
        second.kill()
        check_offline(case)
        wait_until(lambda: "LEADER_NOT_AVAILABLE" in of_second())
        check_offline(case)
        second.start()
        wait_until(lambda: of_second() == "[b'y']")


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for what a cluster does by itself."""
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_topic_made_again(case: Case) -> None:
    """It has another id, and its own records."""
    case.append(0, [b"x"] * 3)
    former = id_of(case)
    case.make_again()
    case.append(0, [b"y"] * 2)
    assert id_of(case) != former
    assert read(case) == [(0, b"y"), (1, b"y")]


def test_a_reading_ends_after_so_many_bytes(case: Case) -> None:
    """And goes on where it ended."""
    case.append(0, [b"x" * 1000] * 3000)
    found, at = 0, 0
    readings = itertools.count()
    while next(readings) < 3000 and at < 3000:
        batches = list(case.log.read(case.topic, "0", at, 100_000))
        found += sum(len(batch.records) for batch in batches)
        at = batches[-1].reached
    assert found == 3000


@pytest.mark.full
def test_a_password_by_reference(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The right one reads; with a wrong one a person must act."""
    from compactor.adapters.kafka import broker_log  # noqa: PLC0415 - the client may not be there

    feed_case = broker_case(broker.servers, "secured")
    feed_case.append(0, [b"x"])
    given = {"main": {**broker.secured, "sasl.password": "env:KAFKA_PASSWORD"}}
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    secured = replace(feed_case, log=broker_log.BrokerLog(given, request_seconds=30.0))
    assert read(secured) == [(0, b"x")]
    monkeypatch.setenv("KAFKA_PASSWORD", "wrong")
    with pytest.raises(AccessError, match="expected the right to read"):
        broker_log.BrokerLog(given, request_seconds=3.0).describe(feed_case.topic)


@pytest.mark.full
def test_brokers_that_are_down(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passing trouble, before a reading and in the middle of it; they may come back."""
    from compactor.adapters.kafka import broker_log, partition_consumer  # noqa: PLC0415 - the client may not be there

    case = broker_case(broker.servers, "down")
    hurried = broker_log.BrokerLog({"main": {"bootstrap.servers": broker.servers}}, request_seconds=3.0)
    case.append(0, [b"x" * 100_000] * 400)
    with monkeypatch.context() as impatient:
        impatient.setattr(partition_consumer, "IDLE_SECONDS", 2.0)
        reading = hurried.read(case.topic, "0", 0, 10**9)
        assert next(reading).kept_from == 1
        assert next(reading).records
        broker.kill()
        try:
            with pytest.raises(StoreUnavailable):
                list(reading)
            with pytest.raises(StoreUnavailable):
                hurried.describe(case.topic)
        finally:
            broker.start()
    assert len(read(case)) == 400


def test_a_broker_gives_what_records_have_beside_their_values(broker: KafkaBroker) -> None:
    """If it is asked for: keys, times, and headers, of which a name may come twice and a value may be missing."""
    from confluent_kafka import Producer  # noqa: PLC0415 - the client may not be there

    from compactor.adapters.logs import kafka_of  # noqa: PLC0415
    from tests.support.kafka_topics import TopicFeed  # noqa: PLC0415

    feed = TopicFeed(broker.servers, "beside-values")
    feed.create(1)
    producer = Producer({"bootstrap.servers": broker.servers})
    headers = [("h", b"\xff"), ("h", None), ("other", b"")]
    producer.produce(feed.name, b"{}", b"key", 0, timestamp=1_700_000_000_123, headers=headers)
    producer.produce(feed.name, b"{}", None, 0, timestamp=5)
    producer.flush()
    given = {"main": {"bootstrap.servers": broker.servers}}

    def records(*, with_columns: bool) -> list[LogRecord]:
        log = kafka_of(given, with_columns=with_columns)
        return [each for batch in log.read(feed.topic, "0", 0, 10**9) for each in batch.records]

    assert records(with_columns=True) == [
        LogRecord(1, b"{}", None, b"key", 1_700_000_000_123, tuple(headers)),
        LogRecord(2, b"{}", None, None, 5),
    ]
    assert records(with_columns=False) == [LogRecord(1, b"{}"), LogRecord(2, b"{}")]


@pytest.mark.full
def test_a_name_of_a_header_that_is_not_text(broker: KafkaBroker) -> None:
    """A producer may send it: brokers check no names. The record is given all the same, and those behind it.

    Many of them, for Python calls a method in another way once it has called it often.
    """
    from compactor.adapters.logs import kafka_of  # noqa: PLC0415 - the client may not be there
    from tests.support.kafka_topics import TopicFeed  # noqa: PLC0415
    from tests.support.raw_headers import send_with_headers  # noqa: PLC0415

    feed = TopicFeed(broker.servers, "names-of-headers")
    feed.create(1)
    send_with_headers(broker.servers, feed.name, 0, [b"1"] * 500, [(b"good", b"1"), (b"\xff\xfe", b"2"), (b"g", b"")])
    send_with_headers(broker.servers, feed.name, 0, [b"2"], [(b"good", b"3")])
    log = kafka_of({"main": {"bootstrap.servers": broker.servers}}, with_columns=True)
    found = [(each.data, each.headers) for batch in log.read(feed.topic, "0", 0, 10**9) for each in batch.records]
    assert found == [*[(b"1", b"\xff\xfe")] * 500, (b"2", (("good", b"3"),))]
