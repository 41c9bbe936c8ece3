"""Samples the records of partitions: how long they are, and how old the first is."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, Message, TopicPartition

from compactor.adapters.kafka.errors import OF_GROUP, constructed, error_of, is_refusal
from compactor.core.kafka.ports import Sample
from compactor.core.kafka.ranges import Topic

SAMPLE_RECORDS = 200
SAMPLE_SECONDS = 5.0

_BATCH = 1_000
_POLL_SECONDS = 0.2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Sum:
    """What was seen of one partition."""

    start: int
    next_offset: int
    length: int = 0
    records: int = 0
    first_at: datetime | None = None

    def add(self, message: Message) -> None:
        if not self.records:
            self.first_at = _timestamp(message)
        self.records += 1
        self.length += len(message.value() or b"")
        self.next_offset = int(message.offset() or 0) + 1

    def sample(self) -> Sample:
        return Sample(self.length / (self.next_offset - self.start), self.first_at)


def sampled(properties: Mapping[str, object], topic: Topic, starts: Mapping[int, int]) -> dict[int, Sample]:
    """What records are like, by partition; see `KafkaLog.samples`."""
    if not starts:
        return {}
    sums = {each: _Sum(first, first) for each, first in starts.items()}
    open_ones = set(starts)
    with constructed(topic.cluster):
        consumer = Consumer(dict(properties))
    try:
        consumer.assign([TopicPartition(topic.name, each, first) for each, first in starts.items()])
        ends_at = time.monotonic() + SAMPLE_SECONDS
        while open_ones and time.monotonic() < ends_at:
            for message in consumer.consume(_BATCH, timeout=0) or consumer.consume(1, timeout=_POLL_SECONDS):
                partition, error = int(message.partition() or 0), message.error()
                if error is not None and is_refusal(error):
                    raise error_of(topic.uri, error)
                if partition not in open_ones or (error is not None and error.code() in OF_GROUP):
                    continue
                if error is None:
                    sums[partition].add(message)
                if error is not None or sums[partition].records >= SAMPLE_RECORDS:
                    open_ones.discard(partition)
                    consumer.incremental_unassign([TopicPartition(topic.name, partition)])
    finally:
        consumer.close()
    return {each: found.sample() for each, found in sums.items() if found.records}


def _timestamp(message: Message) -> datetime | None:
    kind, milliseconds = message.timestamp()
    if kind == TIMESTAMP_NOT_AVAILABLE:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:  # a producer may write any number
        return None
