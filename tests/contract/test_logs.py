"""What every `Log` does, topics and streams alike, and what only logs of Kafka or of Kinesis do.

Topics are in memory and on a broker; streams in memory, by enhanced fan-out, on moto and on a server from npm.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.core.errors import AccessError, SettingsError, StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch, Log, LogRecord, Partition, TopicFacts
from tests.support.extras import KAFKA, KINESIS
from tests.support.fan_out_server import FanOutServer
from tests.support.kafka_broker import PASSWORD, KafkaBroker
from tests.support.kinesis_server import KinesisServer
from tests.support.log_cases import (
    LIMIT_BYTES,
    LogCase,
    StreamCase,
    TopicCase,
    broker_topic,
    memory_stream,
    memory_topic,
    server_stream,
)
from tests.support.memory_kafka import MemoryKafka
from tests.support.memory_kinesis import STREAM, MemoryKinesis
from tests.support.memory_store import ManualClock

BROKER = pytest.param("broker", marks=pytest.mark.full)
STREAMS = ["memory", "fan-out", "fan-out over http", "moto"]
NPM = "npm"  # only it keeps the records of a shard that was split, and it takes seconds to start


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KinesisServer]:
    KINESIS.need()
    with KinesisServer(tmp_path_factory.mktemp("kinesis")) as found:
        yield found


@pytest.fixture(params=["memory", BROKER])
def topic(request: pytest.FixtureRequest) -> TopicCase:
    return topic_case(request, request.param)


@pytest.fixture(params=[*STREAMS, NPM])
def stream(request: pytest.FixtureRequest) -> Iterator[StreamCase]:
    with ExitStack() as stack:
        yield stream_case(request, request.param, stack)


@pytest.fixture(params=["memory topic", BROKER, *STREAMS, NPM])
def case(request: pytest.FixtureRequest) -> Iterator[LogCase]:
    with ExitStack() as stack:
        is_topic = request.param in {"memory topic", "broker"}
        yield topic_case(request, request.param) if is_topic else stream_case(request, request.param, stack)


def topic_case(request: pytest.FixtureRequest, name: str) -> TopicCase:
    if name != "broker":
        return memory_topic()
    topic_name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    return broker_topic(request.getfixturevalue("broker").servers, topic_name)


def stream_case(request: pytest.FixtureRequest, name: str, stack: ExitStack) -> StreamCase:
    if name == "moto":
        return server_stream(name, request.getfixturevalue("aws_endpoint"))
    if name == NPM:
        return server_stream(name, request.getfixturevalue("server").url)
    is_served = name == "fan-out over http"
    return memory_stream(name, (lambda of: stack.enter_context(FanOutServer(of)).url) if is_served else None)


def partition_ids(case: LogCase) -> list[str]:
    return [each.partition_id for each in case.log.partitions(case.of)]


def test_logs(case: LogCase) -> None:
    """One that is there has an id, and a different one once it was made again; one that is not there is None."""
    first = case.log.describe(case.of)
    assert first is not None
    assert "/" not in first.log_id
    assert case.log.describe(case.of) == first
    assert case.log.describe(replace(case.of, name="none")) is None
    assert len(partition_ids(case)) == 2
    case.make_again()
    again = case.log.describe(case.of)
    assert again is not None
    assert again.log_id != first.log_id


def test_records_of_a_partition(case: LogCase) -> None:
    """In order, from the beginning or from one on, and none of another partition; then answers without any."""
    one, other = partition_ids(case)
    case.put(one, [b"a", b"b", b"", b"\x00\xff", b"e"])
    case.put(other, [b"x"])
    records, tip = case.read(one)
    assert [each.data for each in records] == [b"a", b"b", b"", b"\x00\xff", b"e"]
    assert (tip.is_end, tip.behind_seconds) == (False, 0.0)
    numbers = [each.position for each in records]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 0
    rest = [each.data for each in case.read(one, numbers[2])[0]]
    assert rest in ([b"", b"\x00\xff", b"e"], [b"\x00\xff", b"e"])  # a log may begin with the one after it
    assert [each.data for each in case.read(other)[0]] == [b"x"]


def answers(topic: TopicCase, at: int = 0, partition: int = 0) -> list[Batch]:
    return list(topic.log.read(topic.of, str(partition), at, 1_000_000))


def read(topic: TopicCase, at: int = 0) -> list[tuple[int, bytes | None]]:
    """Offsets and values of all records of partition 0, behind the first ones."""
    return [(each.position - 1, each.data) for batch in answers(topic, at) for each in batch.records]


def test_what_a_topic_tells(topic: TopicCase) -> None:
    """Its partitions, by number, and gaps."""
    live = topic.log.describe(topic.of)
    assert live is not None
    assert live.tells_gaps
    assert topic.log.partitions(topic.of) == [Partition("0"), Partition("1")]


def test_what_the_doctor_asks(topic: TopicCase) -> None:
    """Brokers, and what a topic is like; a week is the default of its retention."""
    assert topic.log.nodes("main") == 1
    assert topic.log.inspect(topic.of) == TopicFacts(2, may_read=True, retention_seconds=7 * 86_400)
    assert topic.log.inspect(LogName("kafka", "main", "none")) is None


def test_offsets_of_a_partition(topic: TopicCase) -> None:
    """In order, with tombstones and without what was not committed; the last answer reached all that is decided."""
    topic.put("0", [b"0", None, b""])
    gap = topic.abort(0, 2)
    topic.put("0", [b"x", b"y"])
    end = 3 + gap + 2
    assert read(topic) == [(0, b"0"), (1, None), (2, b""), (3 + gap, b"x"), (4 + gap, b"y")]
    first, *_, last = answers(topic)
    assert (first.kept_from, first.reached, bool(first.behind_seconds)) == (1, 0, True)
    assert last == Batch((), 0.0, reached=end)
    assert read(topic, 2) == [(2, b""), (3 + gap, b"x"), (4 + gap, b"y")]
    assert [each.reached for each in answers(topic, end)] == [end, end]
    assert [each.reached for each in answers(topic, 0, 1)] == [0, 0]


def test_records_behind_an_open_transaction(topic: TopicCase) -> None:
    """They are not read yet, and the last answer tells of them."""
    topic.put("0", [b"0", b"1"])
    topic.hold(0, 3)
    assert read(topic) == [(0, b"0"), (1, b"1")]
    assert answers(topic)[-1] == Batch((), 0.0, reached=2, is_held=True)


def test_removed_records(topic: TopicCase) -> None:
    """The first answer tells where what is left begins, wherever reading was to begin."""
    topic.put("0", [b"x"] * 10)
    topic.remove_before(0, 4)
    for at in (0, 2, 4, 9):
        first = answers(topic, at)[0]
        assert (first.kept_from, first.reached) == (5, max(at, 4))
    assert [offset for offset, _ in read(topic)] == [4, 5, 6, 7, 8, 9]


def test_a_log_that_was_cut_off(topic: TopicCase) -> None:
    """A partition that ends before records that it had is trouble."""
    topic.put("0", [b"x"] * 3)
    with pytest.raises(StoreUnavailable, match="ends at offset 3"):
        answers(topic, 4)


def test_a_partition_without_a_leader() -> None:
    """In memory: it is trouble, and the other one is read."""
    topic = memory_topic()
    topic.put("0", [b"x"])
    assert isinstance(topic.log, MemoryKafka)
    topic.log.topics[topic.of][1][1].is_offline = True
    check_offline(topic)


def check_offline(topic: TopicCase) -> None:
    assert read(topic) == [(0, b"x")]
    with pytest.raises(StoreUnavailable):
        answers(topic, 0, 1)
    assert len(topic.log.partitions(topic.of)) == 2


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
        topic = replace(memory_topic(), log=log, of=feed.topic)

        def of_second() -> str:
            try:
                return str([each.data for batch in answers(topic, 0, 1) for each in batch.records])
            except StoreUnavailable as exc:
                return str(exc)

        assert of_second() == "[b'y']"
        second.kill()
        check_offline(topic)
        wait_until(lambda: "LEADER_NOT_AVAILABLE" in of_second())
        check_offline(topic)
        second.start()
        wait_until(lambda: of_second() == "[b'y']")


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for what a cluster does by itself."""
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_topic_made_again(topic: TopicCase) -> None:
    """It has its own records."""
    topic.put("0", [b"x"] * 3)
    topic.make_again()
    topic.put("0", [b"y"] * 2)
    assert read(topic) == [(0, b"y"), (1, b"y")]


def test_a_reading_ends_after_so_many_bytes(topic: TopicCase) -> None:
    """And goes on where it ended."""
    topic.put("0", [b"x" * 1000] * 3000)
    found, at = 0, 0
    readings = itertools.count()
    while next(readings) < 3000 and at < 3000:
        batches = list(topic.log.read(topic.of, "0", at, 100_000))
        found += sum(len(batch.records) for batch in batches)
        at = batches[-1].reached
    assert found == 3000


@pytest.mark.full
def test_a_password_by_reference(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The right one reads; with a wrong one a person must act."""
    from compactor.adapters.kafka import broker_log  # noqa: PLC0415 - the client may not be there

    feed_case = broker_topic(broker.servers, "secured")
    feed_case.put("0", [b"x"])
    given = {"main": {**broker.secured, "sasl.password": "env:KAFKA_PASSWORD"}}
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    secured = replace(feed_case, log=broker_log.BrokerLog(given, request_seconds=30.0))
    assert read(secured) == [(0, b"x")]
    monkeypatch.setenv("KAFKA_PASSWORD", "wrong")
    with pytest.raises(AccessError, match="expected permission to read"):
        broker_log.BrokerLog(given, request_seconds=3.0).describe(feed_case.of)


@pytest.mark.full
def test_brokers_that_are_down(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passing trouble, before a reading and in the middle of it; they may come back."""
    from compactor.adapters.kafka import broker_log, partition_consumer  # noqa: PLC0415 - the client may not be there

    topic = broker_topic(broker.servers, "down")
    hurried = broker_log.BrokerLog({"main": {"bootstrap.servers": broker.servers}}, request_seconds=3.0)
    topic.put("0", [b"x" * 100_000] * 400)
    with monkeypatch.context() as impatient:
        impatient.setattr(partition_consumer, "IDLE_SECONDS", 2.0)
        reading = hurried.read(topic.of, "0", 0, 10**9)
        assert next(reading).kept_from == 1
        assert next(reading).records
        broker.kill()
        try:
            with pytest.raises(StoreUnavailable):
                list(reading)
            with pytest.raises(StoreUnavailable):
                hurried.describe(topic.of)
        finally:
            broker.start()
    assert len(read(topic)) == 400


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


def test_a_source_that_the_settings_do_not_name() -> None:
    with pytest.raises(SettingsError, match=r"kinesis\.sources: expected other"):
        memory_stream("memory").log.describe(LogName("kinesis", "other", "events"))


def test_when_records_arrived(stream: StreamCase) -> None:
    """Each has the time of its arrival, and reading from a record on gives that record first."""
    one, _ = partition_ids(stream)
    stream.put(one, [b"a", b"b"])
    found = stream.read(one)[0]
    assert all(each.arrived_at and each.arrived_at.tzinfo for each in found)
    # From a record on means with that record, by which a reader sees that none before it was lost.
    assert [each.data for each in stream.read(one, found[1].position)[0]] == [b"b"]


def test_split_and_merged_shards(stream: StreamCase) -> None:
    """Children name their parents, divide the hashes among them, and parents end."""
    [one, other] = [each.partition_id for each in stream.log.partitions(stream.of)]
    stream.put(one, [b"before"])
    stream.split(one)
    shards = stream.log.partitions(stream.of)
    low, high = sorted((each for each in shards if each.parents == (one,)), key=lambda each: each.first_hash)
    assert low.last_hash + 1 == high.first_hash
    stream.put(low.partition_id, [b"low"])
    stream.merge(high.partition_id, other)
    shards = stream.log.partitions(stream.of)
    [child] = [each for each in shards if set(each.parents) == {high.partition_id, other}]
    assert (child.first_hash, child.last_hash) == (high.first_hash, 2**128 - 1)
    assert len(shards) == 5
    stream.put(child.partition_id, [b"child"])
    if stream.keeps_records:
        assert [[each.data for each in stream.read(shard)[0]] for shard in (one, low.partition_id)] == [
            [b"before"],
            [b"low"],
        ]
        assert [stream.read(shard)[1].is_end for shard in (one, high.partition_id, other)] == [True, True, True]
        found, tip = stream.read(child.partition_id)
        assert ([each.data for each in found], tip.is_end) == ([b"child"], False)


@pytest.mark.parametrize("stream", [*STREAMS, pytest.param(NPM, marks=pytest.mark.full)], indirect=True)
def test_a_shard_that_is_not_there(stream: StreamCase) -> None:
    """It may have been listed a moment ago, so the next plan has to find out."""
    with pytest.raises(StoreUnavailable, match="disappeared after it was listed"):
        stream.read("shardId-000000000099")


def limited(*, consumer: str = "") -> tuple[MemoryKinesis, Log]:
    """A stream whose limits hold: the clock moves only where the adapter waits."""
    kinesis = MemoryKinesis(ManualClock(), limits=True)
    kinesis.create()
    return kinesis, kinesis.log(consumer=consumer)


def test_the_limits_of_a_shard_are_kept() -> None:
    """Five calls and 2 MiB a second: no call is refused."""
    kinesis, log = limited()
    kinesis.most_records = 1
    kinesis.put(*[b"x" * 1_000_000] * 5, *[b"y"] * 20)
    began = kinesis.clock.now()
    batches = list(
        itertools.takewhile(lambda each: each.records, log.read(STREAM, "shardId-000000000000", 0, LIMIT_BYTES))
    )
    assert sum(len(each.records) for each in batches) == 25
    seconds = (kinesis.clock.now() - began).total_seconds()
    assert 5 * 1_000_000 / (2 * 1024 * 1024) < seconds < 30
    assert kinesis.called.count("GetRecords") == 26


def test_readings_of_a_shard_share_its_limits() -> None:
    """Also readings that end after one answer, as those of a large backlog do."""
    kinesis, log = limited()
    kinesis.most_records = 1
    kinesis.put(*[b"x" * 1_000_000] * 4, *[b"y"] * 10)
    began, at = kinesis.clock.now(), 0
    for _ in range(14):
        with closing(log.read(STREAM, "shardId-000000000000", at, LIMIT_BYTES)) as batches:
            at = next(batches).records[0].position + 7
    assert (kinesis.clock.now() - began).total_seconds() == pytest.approx(4_000_000 / (2 * 1024 * 1024) + 9 * 0.2)
    assert kinesis.called.count("GetRecords") == 14


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "KMSThrottlingException"])
def test_throttling_is_waited_for(code: str) -> None:
    """With pauses that grow; what does not end is passing trouble."""
    kinesis, log = limited()
    kinesis.put(b"x")
    began = kinesis.clock.now()
    reading = log.read(STREAM, "shardId-000000000000", 0, LIMIT_BYTES)
    kinesis.refusals = []
    next(reading)
    kinesis.refusals = [code] * 6
    next(reading)
    assert (kinesis.clock.now() - began).total_seconds() > 3
    kinesis.refusals = [code] * 100
    with pytest.raises(StoreUnavailable):
        next(reading)


def test_an_expired_iterator_ends_a_reading() -> None:
    """The caller goes on from the last record."""
    kinesis, log = limited()
    kinesis.put(b"x")
    reading = log.read(STREAM, "shardId-000000000000", 0, LIMIT_BYTES)
    next(reading)
    kinesis.clock.advance(301)
    assert list(reading) == []


def test_a_record_that_is_gone() -> None:
    """Reading begins at the earliest one that is left, whether Kinesis refuses the sequence number or not."""
    kinesis, log = limited()
    [gone] = kinesis.put(b"gone")
    kinesis.clock.advance(86_401)
    kinesis.put(b"left")
    batch = next(log.read(STREAM, "shardId-000000000000", gone, LIMIT_BYTES))
    assert [each.data for each in batch.records] == [b"left"]
    kinesis.refusals = ["InvalidArgumentException"]
    batch = next(log.read(STREAM, "shardId-000000000000", gone, LIMIT_BYTES))
    assert [each.data for each in batch.records] == [b"left"]
    assert kinesis.called[-2] == "TRIM_HORIZON"


def test_a_consumer() -> None:
    """Of enhanced fan-out: it subscribes again while a former subscription ends; one that is not there is told."""
    kinesis, log = limited(consumer="reader")
    kinesis.limits = False
    kinesis.put(b"x")
    kinesis.refusals = ["InvalidArgumentException"]
    assert next(log.read(STREAM, "shardId-000000000000", 5, LIMIT_BYTES)).records[0].data == b"x"
    assert "SubscribeToShard" in kinesis.called
    with pytest.raises(SettingsError, match="expected a consumer of"):
        kinesis.log(consumer="other").read(STREAM, "shardId-000000000000", 0, LIMIT_BYTES)
