"""Producers of topics that keep a log of all that they wrote, in little memory: records by their number."""

import random
import time
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.support.kafka_topics import TopicFeed

WRITTEN, ABORTED = 1, 2
_PATIENCE_SECONDS = 300.0


@dataclass
class TopicLog:
    """Writes numbered records of about 100 bytes into a topic, and notes what became of each.

    Attributes:
        fate: Of each record: `WRITTEN` if it is committed, `ABORTED`, or 0.
        partitions: Of each record.
        offsets: Of each record.
    """

    feed: TopicFeed
    chance: random.Random
    fate: bytearray = field(default_factory=bytearray)
    partitions: "array[int]" = field(default_factory=lambda: array("b"))
    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    _plain: Producer | None = None
    _producers: dict[int, Producer] = field(default_factory=dict)

    @property
    def written(self) -> int:
        """How many records are committed."""
        return self.fate.count(WRITTEN)

    def grow(self, partitions: int) -> None:
        """Give the topic more partitions. Producers learn of them minutes later, so new ones take over."""
        self.feed.grow(partitions)
        self._plain = None
        self._producers.clear()

    def write(self, partition: int, records: int) -> None:
        """Write records without a transaction."""
        if self._plain is None:
            self._plain = Producer(
                {"bootstrap.servers": self.feed.servers, "enable.idempotence": True, "linger.ms": 20, "log_level": 0}
            )
        numbers = self._send(self._plain, partition, records)
        self._flush(self._plain)
        self._end(numbers, WRITTEN)

    def transact(self, partition: int, records: int) -> None:
        """Write records in transactions of any size, about a third of which are aborted."""
        producer = self._transactional(partition)
        while records:
            size = min(records, self.chance.randint(1, 20_000))
            records -= size
            producer.begin_transaction()
            numbers = self._send(producer, partition, size)
            self._flush(producer)
            if self.chance.random() < 0.3:
                producer.abort_transaction()
                self._end(numbers, ABORTED)
            else:
                producer.commit_transaction()
                self._end(numbers, WRITTEN)

    def _transactional(self, partition: int) -> Producer:
        if partition not in self._producers:
            settings = {"transactional.id": f"{self.feed.name}-{partition}", "linger.ms": 20}
            made = Producer({"bootstrap.servers": self.feed.servers, "log_level": 0, **settings})
            made.init_transactions()
            self._producers[partition] = made
        return self._producers[partition]

    def _send(self, producer: Producer, partition: int, records: int) -> range:
        numbers = range(len(self.fate), len(self.fate) + records)
        self.fate.extend(bytes(records))
        self.partitions.extend([partition] * records)
        self.offsets.extend([-1] * records)
        for number in numbers:
            value = b'{"id":%d,"padding":"%s"}' % (number, b"%064x" % (number * 0x9E3779B97F4A7C15))
            while True:
                try:
                    producer.produce(
                        self.feed.name, value, self._key(number), partition, on_delivery=partial(self._note, number)
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        return numbers

    def _key(self, _number: int) -> bytes | None:
        return None

    def _note(self, number: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        self.offsets[number] = int(message.offset() or 0)

    def _flush(self, producer: Producer) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while producer.flush(1.0):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.feed.name}: the broker takes no records")

    def _end(self, numbers: Iterable[int], fate: int) -> None:
        for number in numbers:
            if self.offsets[number] < 0:
                raise RuntimeError(f"{self.feed.name}: nothing is known of record {number}")
            self.fate[number] = fate


class KeyedLog(TopicLog):
    """The same for a topic that is compacted: of each key, the broker keeps the last record and perhaps others."""

    KEYS = 1000

    def _key(self, number: int) -> bytes | None:
        return b"%d" % (number % self.KEYS)
