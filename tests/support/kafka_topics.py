"""Topics on a broker of tests: producers that keep a log of what they wrote, and what the output has of it."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import IsolationLevel, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from compactor.core.logs.names import LogName

CLUSTER = "main"
ID = "id"


@dataclass
class TopicFeed:
    """A topic, and what its producers know to be in it.

    Attributes:
        written: The ids of all records that were committed.
        aborted: The ids of those in aborted transactions.
        places: The partition and the offset of each record by its id, aborted or not.
    """

    servers: str
    name: str
    written: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    _open: Producer | None = field(default=None, init=False)

    @property
    def topic(self) -> LogName:
        return LogName("kafka", CLUSTER, self.name)

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers})

    def create(self, partitions: int, **config: str) -> None:
        """Make the topic, and wait until the broker tells of it."""
        wanted = {key.replace("_", "."): value for key, value in config.items()}
        self._wait(self.admin.create_topics([NewTopic(self.name, partitions, 1, config=wanted)]))
        while self.name not in self.admin.list_topics(timeout=30).topics:
            time.sleep(0.1)

    def delete(self) -> None:
        """Delete the topic, and wait until it is gone."""
        admin = self.admin
        self._wait(admin.delete_topics([self.name]))
        while self.name in admin.list_topics(timeout=30).topics:
            time.sleep(0.1)

    def grow(self, partitions: int) -> None:
        """Give the topic more partitions."""
        self._wait(self.admin.create_partitions([NewPartitions(self.name, partitions)]))

    def remove_before(self, partition: int, offset: int) -> None:
        """Remove records as retention does."""
        self._wait(self.admin.delete_records([TopicPartition(self.name, partition, offset)]))

    def produce(self, partition: int, records: int, *, padding: int = 0) -> None:
        """Write records without a transaction."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5})
        self.written += self._send(producer, partition, records, padding)
        producer.flush()

    def send(self, partition: int, *values: bytes | None, key: bytes | None = None) -> None:
        """Write values as they are."""
        producer = Producer({"bootstrap.servers": self.servers})
        for value in values:
            producer.produce(self.name, value, key, partition)
        producer.flush()

    def transactions(self, partition: int, sizes: Sequence[int]) -> None:
        """Write transactions in turns: one that is committed, one that is aborted."""
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": f"{self.name}-{partition}"})
        producer.init_transactions()
        for number, size in enumerate(sizes):
            producer.begin_transaction()
            sent = self._send(producer, partition, size, 0)
            producer.flush()
            if number % 2:
                producer.abort_transaction()
                self.aborted += sent
            else:
                producer.commit_transaction()
                self.written += sent
        self._wait_for_markers(partition)

    def hold(self, partition: int, records: int) -> None:
        """Write records in a transaction that stays open."""
        self._open = Producer({"bootstrap.servers": self.servers, "transactional.id": f"{self.name}-held"})
        self._open.init_transactions()
        self._open.begin_transaction()
        self._send(self._open, partition, records, 0)
        self._open.flush()

    def _wait_for_markers(self, partition: int) -> None:
        """Wait until no transaction is open: brokers write the markers of its end a little later."""
        ends = set[int]()
        while len(ends) != 1:
            ends.clear()
            for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
                asked = {TopicPartition(self.name, partition): OffsetSpec.latest()}
                [answer] = self.admin.list_offsets(asked, isolation_level=level).values()
                ends.add(answer.result(timeout=60).offset)

    def _send(self, producer: Producer, partition: int, records: int, padding: int) -> list[str]:
        first = len(self.written) + len(self.aborted)
        sent = [f"{self.name}-{first + number}" for number in range(records)]
        for each in sent:
            value = json.dumps({ID: each, "padding": "x" * padding}).encode()
            producer.produce(self.name, value, None, partition, on_delivery=partial(self._note, each))
            producer.poll(0)
        return sent

    def _note(self, record_id: str, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        self.places[record_id] = int(message.partition() or 0), int(message.offset() or 0)

    def _wait(self, futures: dict[Any, Any]) -> None:
        for each in futures.values():
            each.result(timeout=60)


def kafka_settings(servers: str, *names: str) -> dict[str, Any]:
    """The sections of settings for topics on a broker, which the job lands; without names, only commands do."""
    topics = [str(LogName("kafka", CLUSTER, each)) for each in names]
    return {
        "input": {"allowed_prefixes": topics or [f"kafka://{CLUSTER}"]},
        "kafka": {"clusters": {CLUSTER: {"bootstrap.servers": servers}}},
        "schema": {"metadata_columns": ["_source_file", "_manifest_id"]},
    }


def ids_in(output: Path) -> Counter[str]:
    """The ids of all rows, with how often each is there."""
    found: Counter[str] = Counter()
    for each in _rows(output):
        found.update(each[ID].to_pylist())
    return found


def _rows(output: Path) -> Iterator[Any]:
    for path in sorted(output.rglob("*.parquet")):
        yield pq.read_table(path)
