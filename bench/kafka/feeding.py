"""Fills a topic with events of 1 kB."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import orjson
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compactor.demo.events import make_event_lines

RECORD_BYTES = 1000
CLUSTER = "main"
TOPIC = "events"
_BLOCK_RECORDS = 10_000
_KEPT = "topic.json"


@dataclass(frozen=True, slots=True)
class Filled:
    """A topic that has all of its records.

    Attributes:
        servers: The address of its broker.
        value_bytes: The total length of the values.
        keys: Of its first record.
    """

    servers: str
    records: int
    value_bytes: int
    partitions: int
    keys: tuple[str, ...]

    def keep(self, folder: Path) -> None:
        """Write this where contenders find it: in the folder of their input."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _KEPT).write_text(json.dumps(asdict(self)))

    @classmethod
    def kept(cls, folder: Path) -> Self:
        """The topic that a folder of input names."""
        found = json.loads((folder / _KEPT).read_text())
        return cls(**{**found, "keys": tuple(found["keys"])})


def fill(servers: str, total_bytes: int, partitions: int, seed: int) -> Filled:
    """Make the topic and write its records, in turn to all partitions, without compression.

    Raises:
        RuntimeError: The broker did not take a record.
    """
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(60)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 20_000})
    failed = list[str]()

    def note(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(str(error))

    records = total_bytes // RECORD_BYTES
    keys: tuple[str, ...] = ()
    for number, value in enumerate(values(records, seed)):
        keys = keys or tuple(orjson.loads(value))
        while True:
            try:
                producer.produce(TOPIC, value, partition=number % partitions, on_delivery=note)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    if failed:
        raise RuntimeError(f"{len(failed)} records were not taken: {failed[0]}")
    return Filled(servers, records, records * RECORD_BYTES, partitions, keys)


def values(records: int, seed: int) -> Iterator[bytes]:
    """Events of a shop, each with a note that makes it `RECORD_BYTES` long. The same seed gives the same bytes."""
    for first in range(0, records, _BLOCK_RECORDS):
        count = min(_BLOCK_RECORDS, records - first)
        lines = make_event_lines(f"{seed}-{first}", count).splitlines()
        for line, next_line in zip(lines, [*lines[1:], lines[0]], strict=True):
            note = next_line.replace(b'"', b"'").replace(b"\\", b"/")
            yield _of_length(line, note)


def _of_length(line: bytes, note: bytes) -> bytes:
    """An event with a note, cut to the length. The note is made of another event, so it compresses as text does."""
    left = RECORD_BYTES - len(line) - len(b',"note":""')
    text = (note * (left // len(note) + 1))[:left].decode("utf-8", "ignore").encode().ljust(left)
    return line[:-1] + b',"note":"' + text + b'"}'
