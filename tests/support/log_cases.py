"""Logs for the contract suites: topics and streams of two partitions, in memory and on servers."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compactor.adapters.aws.kinesis import KinesisStreams, Pace, Source
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch, KafkaLog, Log, LogRecord
from tests.support.kinesis_server import create_stream, delete_stream, kinesis_client, until_active
from tests.support.memory_kafka import MemoryKafka
from tests.support.memory_kinesis import STREAM, MemoryKinesis
from tests.support.memory_store import ManualClock

LIMIT_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class LogCase:
    """A log with two partitions."""

    log: Log
    of: LogName
    put: Callable[[str, Sequence[Any]], object]  # bytes into a partition; None is a tombstone of Kafka
    make_again: Callable[[], object]

    def read(self, partition_id: str, at: int = 0) -> tuple[list[LogRecord], Batch]:
        """All records of a partition from a position on, and the answer at its tip or end."""
        records = list[LogRecord]()
        reading = self.log.read(self.of, partition_id, at, LIMIT_BYTES)
        for batch in reading:
            records += batch.records
            if batch.is_end or not (batch.records or batch.behind_seconds):
                break
        reading.close()
        return records, batch


@dataclass(frozen=True, kw_only=True)
class TopicCase(LogCase):
    """A topic of Kafka."""

    log: KafkaLog
    abort: Callable[[int, int], int]  # write so many records in vain; returns how many offsets they take
    remove_before: Callable[[int, int], None]
    hold: Callable[[int, int], None]  # write so many records in a transaction that stays open


@dataclass(frozen=True, kw_only=True)
class StreamCase(LogCase):
    """A stream of Kinesis."""

    name: str
    split: Callable[[str], object]
    merge: Callable[[str, str], object]

    @property
    def keeps_records(self) -> bool:
        """Whether a shard that was split or merged keeps its records and ends: on moto it does not."""
        return self.name != "moto"


def memory_topic() -> TopicCase:
    """In memory."""
    log, topic = MemoryKafka(), LogName("kafka", "main", "events")
    log.create(topic, "one", 2)

    def abort(partition: int, records: int) -> int:
        log.topics[topic][1][partition].skip(records + 1)
        return records + 1

    return TopicCase(
        log=log,
        of=topic,
        put=lambda partition, values: log.topics[topic][1][int(partition)].append(*values),
        abort=abort,
        remove_before=lambda partition, offset: log.topics[topic][1][partition].remove_before(offset),
        hold=lambda partition, records: setattr(log.topics[topic][1][partition], "undecided", records),
        make_again=lambda: log.create(topic, "two", 2),
    )


def broker_topic(servers: str, name: str) -> TopicCase:
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

    return TopicCase(
        log=kafka_of({"main": {"bootstrap.servers": servers}}),
        of=feed.topic,
        put=lambda partition, values: feed.send(int(partition), *values),
        abort=abort,
        remove_before=feed.remove_before,
        hold=feed.hold,
        make_again=make_again,
    )


def memory_stream(name: str, url: Callable[[MemoryKinesis], str] | None = None) -> StreamCase:
    """In memory, polled or by enhanced fan-out, which a server at a URL may give."""
    kinesis = MemoryKinesis(ManualClock())
    kinesis.most_records, kinesis.page = 2, 1
    kinesis.create(shards=2)

    def make_again() -> None:
        kinesis.clock.advance(60)
        kinesis.create(shards=2)

    log = kinesis.log(consumer="reader" if name == "fan-out" else "")
    if url is not None:
        log = KinesisStreams({"main": Source(kinesis_client(url(kinesis)), "reader")})
    return StreamCase(
        name=name,
        log=log,
        of=STREAM,
        put=lambda shard, values: kinesis.put(*values, shard=shard),
        split=kinesis.split,
        merge=kinesis.merge,
        make_again=make_again,
    )


def server_stream(name: str, url: str) -> StreamCase:
    """On a server."""
    client: Any = kinesis_client(url)
    stream = LogName("kinesis", "main", f"events-{uuid.uuid4().hex}")
    create_stream(client, stream.name, 2)
    log = KinesisStreams({"main": Source(client)}, Pace(call_seconds=0.0))

    def hashes(partition_id: str) -> tuple[int, int]:
        [found] = [each for each in log.partitions(stream) if each.partition_id == partition_id]
        return found.first_hash, found.last_hash

    def put(partition_id: str, values: Sequence[Any]) -> None:
        first_hash = str(hashes(partition_id)[0])
        for value in values:
            client.put_record(StreamName=stream.name, Data=value, PartitionKey="key", ExplicitHashKey=first_hash)

    def split(partition_id: str) -> None:
        middle = str(sum(hashes(partition_id)) // 2)
        client.split_shard(StreamName=stream.name, ShardToSplit=partition_id, NewStartingHashKey=middle)
        until_active(client, stream.name)

    def merge(one: str, other: str) -> None:
        client.merge_shards(StreamName=stream.name, ShardToMerge=one, AdjacentShardToMerge=other)
        until_active(client, stream.name)

    def make_again() -> None:
        delete_stream(client, stream.name)
        create_stream(client, stream.name, 2)

    return StreamCase(name=name, log=log, of=stream, put=put, split=split, merge=merge, make_again=make_again)
