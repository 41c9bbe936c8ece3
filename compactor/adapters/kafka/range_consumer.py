"""Reads the committed records of one range, and proves that it has read to its end."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from compactor.adapters.kafka.errors import END_OF_PARTITION, OF_GROUP, OUT_OF_RANGE, constructed, error_of, translated
from compactor.adapters.kafka.properties import consumer_properties
from compactor.core.documents.records import FileStatus
from compactor.core.errors import AccessError, CompactorError, FileError, StoreUnavailable
from compactor.core.kafka.ports import Bounds, RangeEnd, Record
from compactor.core.kafka.ranges import KafkaRange, Topic

IDLE_SECONDS = 60.0
"""How long brokers may give nothing before a reading fails."""

SAMPLE_RECORDS = 200
SAMPLE_SECONDS = 5.0

_BATCH = 1_000
_POLL_SECONDS = 0.02  # a poll waits for a whole batch at most so long, also at the end of a partition


class RangeConsumer:
    """A client that reads one range from its first offset. Nothing is committed for any group.

    Args:
        wanted: The range.
        properties: Those of its cluster.
        bounds_of: Tells where its partition begins and ends now.
    """

    def __init__(
        self, wanted: KafkaRange, properties: Mapping[str, str], bounds_of: Callable[[KafkaRange], Bounds]
    ) -> None:
        self._wanted = wanted
        self._bounds_of = bounds_of
        self._last_error: KafkaError | None = None
        self._next = wanted.first  # the offset after the last record that was delivered
        self._position = wanted.first
        cluster = wanted.topic.cluster
        with constructed(cluster):
            self._consumer = Consumer({**consumer_properties(cluster, properties), "error_cb": self._note})

    def records(self) -> Generator[Sequence[Record], None, RangeEnd]:
        """See `KafkaLog.read`."""
        place = TopicPartition(self._wanted.topic.name, self._wanted.partition, self._wanted.first)
        with translated(str(self._wanted)):
            self._consumer.assign([place])
        heard_at = time.monotonic()
        while self._position < self._wanted.end:
            with translated(str(self._wanted)):
                at_most = min(_BATCH, self._wanted.end - self._position)
                messages = self._consumer.consume(at_most, timeout=_POLL_SECONDS)
            if records := self._taken(messages):
                yield records
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > IDLE_SECONDS:
                raise self._silence()
        with translated(str(self._wanted)):
            _, high = self._consumer.get_watermark_offsets(place, cached=True)
        return RangeEnd(self._position, max(int(high), self._position))

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def _taken(self, messages: Sequence[Message]) -> list[Record]:
        """The records of the range among messages. Others are about the range, or behind it."""
        records = list[Record]()
        end = self._wanted.end
        for message in messages:  # about a third of the time of reading: no call is made twice
            error, offset = message.error(), message.offset()
            if error is not None or offset is None:
                self._told(error, offset or 0)
            elif offset < end:
                records.append(Record(offset, message.value()))
                self._next = self._position = offset + 1
            else:
                # A record behind the range proves that nothing else is in it; so does the end of the partition there.
                self._position = max(self._position, offset)
        return records

    def _told(self, error: KafkaError | None, offset: int) -> None:
        """Take a message that is no record."""
        if error is None:
            raise StoreUnavailable(f"{self._wanted}: the brokers gave a record without an offset")
        if error.code() == END_OF_PARTITION:
            self._position = max(self._position, offset)
        elif error.code() in OUT_OF_RANGE:
            raise self._gone()
        elif error.code() in OF_GROUP:
            self._note(error)
        else:
            raise error_of(str(self._wanted), error)

    def _note(self, error: KafkaError) -> None:
        # The last error of all is often that no broker is left, which says less than refused credentials.
        if self._last_error is None or isinstance(error_of("", error), AccessError):
            self._last_error = error

    def _gone(self) -> CompactorError:
        """Why the brokers have no record at the next offset any more."""
        wanted, bounds = self._wanted, self._bounds_of(self._wanted)
        if bounds.earliest <= self._next:
            return self._truncated(bounds)
        gone = min(bounds.earliest, wanted.end) - 1
        what = f"offsets {wanted.first} to {gone} were removed before they were read"  # of a whole, or not at all
        left = f"{bounds.earliest} to {wanted.end - 1}" if bounds.earliest < wanted.end else "none"
        return FileError(FileStatus.MISSING, f"{what}; expected {wanted.first} to {wanted.end - 1}; left: {left}")

    def _truncated(self, bounds: Bounds) -> CompactorError:
        wanted = self._wanted
        if bounds.end >= wanted.end:
            return StoreUnavailable(f"{wanted}: the brokers refused offset {self._next}, which is there now")
        what = f"the partition ends at offset {bounds.end}, before offsets that it had"
        return FileError(FileStatus.MISSING, f"{what}; expected {wanted.first} to {wanted.end - 1}")

    def _silence(self) -> CompactorError:
        """Why nothing came for long."""
        error = self._last_error
        if error is not None and isinstance(found := error_of(str(self._wanted), error), AccessError):
            return found
        bounds = self._bounds_of(self._wanted)
        if bounds.end < self._wanted.end:
            return self._truncated(bounds)
        why = f" ({error.name()})" if error is not None else ""
        return StoreUnavailable(f"{self._wanted}: nothing for {IDLE_SECONDS:g} s at offset {self._position}{why}")


def sampled_densities(properties: Mapping[str, object], topic: Topic, starts: Mapping[int, int]) -> dict[int, float]:
    """About how many bytes of values an offset has, by partition; see `KafkaLog.densities`."""
    sums = dict.fromkeys(starts, 0)
    counts = dict.fromkeys(starts, 0)
    nexts = dict(starts)
    open_ones = set(starts)
    with constructed(topic.cluster):
        consumer = Consumer(dict(properties))
    try:
        consumer.assign([TopicPartition(topic.name, each, first) for each, first in starts.items()])
        ends_at = time.monotonic() + SAMPLE_SECONDS
        while open_ones and time.monotonic() < ends_at:
            for message in consumer.consume(_BATCH, timeout=_POLL_SECONDS):
                partition, error = int(message.partition() or 0), message.error()
                if partition not in open_ones:
                    continue
                if error is None:
                    sums[partition] += len(message.value() or b"")
                    counts[partition] += 1
                    nexts[partition] = int(message.offset() or 0) + 1
                if error is not None or counts[partition] >= SAMPLE_RECORDS:
                    open_ones.discard(partition)
                    consumer.incremental_unassign([TopicPartition(topic.name, partition)])
    finally:
        consumer.close()
    return {each: sums[each] / (nexts[each] - starts[each]) for each in starts if counts[each]}
