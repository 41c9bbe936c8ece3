"""Samples the records of partitions: how long they are, and how old the first is.

Later records may be much longer than the first ones. So of a partition with many, some are read of its middle and of
its end, too. These are a help, and no plan waits long for them.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, Message, TopicPartition

from compactor.adapters.kafka.errors import OF_GROUP, constructed, error_of, is_refusal
from compactor.core.kafka.ports import Sample
from compactor.core.kafka.ranges import Topic

SAMPLE_RECORDS = 200
LATER_RECORDS = 50
"""How many are read of the middle, and of the end."""

SAMPLE_SECONDS = 5.0
LATER_SECONDS = 1.0
"""How long to wait for more of the middle and the end of partitions, once all have given their first records."""

_BATCH = 1_000
_POLL_SECONDS = 0.2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Stretch:
    """Records that follow each other."""

    start: int
    wanted: int
    end: int = 0
    length: int = 0
    records: int = 0

    def add(self, message: Message) -> None:
        self.records += 1
        self.length += len(message.value() or b"")
        self.end = int(message.offset() or 0) + 1


@dataclass(slots=True)
class _Partition:
    """What was seen of one partition.

    Attributes:
        now: The stretch that is read now.
        later: Where further ones begin.
        read: Those that have records.
    """

    now: _Stretch
    later: list[int] = field(default_factory=list)
    read: list[_Stretch] = field(default_factory=list)
    first_at: datetime | None = None

    def add(self, message: Message) -> None:
        # The client may still give what it had fetched of the stretch before.
        if int(message.offset() or 0) < max(self.now.start, self.now.end):
            return
        if not self.read:
            self.first_at = _timestamp(message)
        if not self.now.records:
            self.read.append(self.now)
        self.now.add(message)

    def plan_later(self, end: int) -> None:
        """Choose the further stretches, given where the partition ends: none if there is little behind the first."""
        left = end - self.now.end
        if left > SAMPLE_RECORDS:
            self.later = [self.now.end + left // 2, end - LATER_RECORDS]

    def sample(self) -> Sample:
        lengths = [each.length / (each.end - each.start) for each in self.read]
        return Sample(sum(lengths) / len(lengths), self.first_at)


def sampled(properties: Mapping[str, object], topic: Topic, starts: Mapping[int, int]) -> dict[int, Sample]:
    """What records are like, by partition; see `KafkaLog.samples`."""
    if not starts:
        return {}
    with constructed(topic.cluster):
        consumer = Consumer(dict(properties))
    try:
        partitions = {each: _Partition(_Stretch(first, SAMPLE_RECORDS)) for each, first in starts.items()}
        _read(consumer, topic, partitions)
    finally:
        consumer.close()
    return {each: found.sample() for each, found in partitions.items() if found.read}


def _read(consumer: Consumer, topic: Topic, partitions: Mapping[int, _Partition]) -> None:
    """Read records of partitions until each has given enough, or time is over."""
    consumer.assign([TopicPartition(topic.name, each, found.now.start) for each, found in partitions.items()])
    open_ones, first_ones = set(partitions), set(partitions)
    ends_at = time.monotonic() + SAMPLE_SECONDS
    while open_ones and time.monotonic() < ends_at:
        for message in consumer.consume(_BATCH, timeout=0) or consumer.consume(1, timeout=_POLL_SECONDS):
            number, error = int(message.partition() or 0), message.error()
            if error is not None and is_refusal(error):
                raise error_of(topic.uri, error)
            if number not in open_ones or (error is not None and error.code() in OF_GROUP):
                continue
            found = partitions[number]
            if error is None:
                found.add(message)
            if error is None and found.now.records < found.now.wanted:
                continue
            if not _moved_on(consumer, topic, number, found, is_over=error is not None):
                open_ones.discard(number)
            if number in first_ones:
                first_ones.discard(number)
                ends_at = ends_at if first_ones else min(ends_at, time.monotonic() + LATER_SECONDS)


def _moved_on(consumer: Consumer, topic: Topic, number: int, found: _Partition, *, is_over: bool) -> bool:
    """Go on with the next stretch of a partition; False if there is none, or if an error or the end has come."""
    consumer.incremental_unassign([TopicPartition(topic.name, number)])
    if is_over:
        return False
    if found.now is found.read[0]:
        # As the client has it of the last fetch: no broker is asked. It is negative if it is not known.
        found.plan_later(consumer.get_watermark_offsets(TopicPartition(topic.name, number), cached=True)[1])
    if not found.later:
        return False
    found.now = _Stretch(found.later.pop(0), LATER_RECORDS)
    consumer.incremental_assign([TopicPartition(topic.name, number, found.now.start)])
    return True


def _timestamp(message: Message) -> datetime | None:
    kind, milliseconds = message.timestamp()
    if kind == TIMESTAMP_NOT_AVAILABLE:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:  # a producer may write any number
        return None
