"""Reads the committed records of one range, and proves that it has read to its end."""

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from operator import methodcaller

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from compactor.adapters.kafka.errors import (
    END_OF_PARTITION,
    OF_GROUP,
    OUT_OF_RANGE,
    NotedErrors,
    constructed,
    error_of,
    translated,
)
from compactor.adapters.kafka.properties import consumer_properties, has_changed, resolved
from compactor.core.documents.records import FileStatus
from compactor.core.errors import CompactorError, FileError, StoreUnavailable
from compactor.core.kafka.ports import Bounds, RangeEnd, Record
from compactor.core.kafka.ranges import KafkaRange

IDLE_SECONDS = 60.0
"""How long brokers may give nothing, not even aborted records, before a reading fails."""

REFUSED_SECONDS = 10.0
"""How long one of several brokers may refuse credentials, or have a wrong certificate, while others give nothing."""

_BATCH = 1_000
_POLL_SECONDS = 0.2


class RangeConsumer:
    """A client that reads one range from its first offset. Nothing is committed for any group.

    Args:
        wanted: The range.
        properties: Those of its cluster.
        bounds_of: Tells where its partition begins and ends now.
        with_columns: Whether records have their key, timestamp and headers.
    """

    def __init__(
        self,
        wanted: KafkaRange,
        properties: Mapping[str, str],
        bounds_of: Callable[[KafkaRange], Bounds],
        *,
        with_columns: bool = False,
    ) -> None:
        self._record = _whole_record if with_columns else _record
        self._wanted = wanted
        self._bounds_of = bounds_of
        self._noted = NotedErrors()
        self._properties = properties
        self._fetched_to = wanted.first
        self._heard_at = time.monotonic()
        self._next = wanted.first  # the offset after the last record that was delivered
        self._position = wanted.first
        cluster = wanted.topic.cluster
        self._resolved = resolved(cluster, properties)
        with constructed(cluster):
            callbacks = {"error_cb": self._noted.note, "stats_cb": self._note_progress}
            self._consumer = Consumer({**consumer_properties(cluster, properties, self._resolved), **callbacks})

    def records(self) -> Generator[Sequence[Record], None, RangeEnd]:
        """See `KafkaLog.read`."""
        place = TopicPartition(self._wanted.topic.name, self._wanted.partition, self._wanted.first)
        with translated(str(self._wanted)):
            self._consumer.assign([place])
        self._heard_at = time.monotonic()
        while self._position < self._wanted.end:
            with translated(str(self._wanted)):
                messages = self._messages()
            if records := self._taken(messages):
                yield records
                self._heard_at = time.monotonic()
            else:
                self._check_silence()
        with translated(str(self._wanted)):
            _, high = self._consumer.get_watermark_offsets(place, cached=True)
        return RangeEnd(self._position, max(int(high), self._position))

    def _messages(self) -> list[Message]:
        """What the client has fetched, which is bounded in bytes; waits only if there is nothing."""
        at_most = min(_BATCH, self._wanted.end - self._position)
        found: list[Message] = self._consumer.consume(at_most, timeout=0)
        return found or list(self._consumer.consume(1, timeout=_POLL_SECONDS))

    def _check_silence(self) -> None:
        """Fail if nothing has come for too long: for less if a person must act on what the connections met."""
        silence = time.monotonic() - self._heard_at
        if silence > REFUSED_SECONDS:
            refusal = self._noted.refusal(str(self._wanted), self._properties)
            if refusal is not None and has_changed(self._wanted.topic.cluster, self._properties, self._resolved):
                raise StoreUnavailable(f"{self._wanted}: refused with a secret that was changed meanwhile") from refusal
            if refusal is not None:
                raise refusal
        if silence > IDLE_SECONDS:
            raise self._silence()

    def _note_progress(self, statistics: str) -> None:
        """Note how far the client has fetched: a long stretch of aborted records gives nothing else."""
        topics = json.loads(statistics).get("topics", {})
        found = topics.get(self._wanted.topic.name, {}).get("partitions", {}).get(str(self._wanted.partition), {})
        fetched_to = int(found.get("next_offset", 0))
        if fetched_to > self._fetched_to:
            self._fetched_to, self._heard_at = fetched_to, time.monotonic()

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def _taken(self, messages: Sequence[Message]) -> list[Record]:
        """The records of the range among messages. Others are about the range, or behind it."""
        records = list[Record]()
        end, record = self._wanted.end, self._record
        for message in messages:  # about a third of the time of reading: no call is made twice
            error, offset = message.error(), message.offset()
            if error is not None or offset is None:
                self._told(error, offset or 0)
            elif offset < end:
                records.append(record(offset, message))
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
            self._noted.note(error)
        else:
            raise error_of(str(self._wanted), error)

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
        bounds = self._bounds_of(self._wanted)
        if bounds.end < self._wanted.end:
            return self._truncated(bounds)
        why = f" ({self._noted.text})" if self._noted.text else ""
        return StoreUnavailable(f"{self._wanted}: nothing for {IDLE_SECONDS:g} s at offset {self._position}{why}")


def _record(offset: int, message: Message) -> Record:
    return Record(offset, message.value())


def _whole_record(offset: int, message: Message) -> Record:
    kind, milliseconds = message.timestamp()
    return Record(
        offset,
        message.value(),
        message.key(),
        None if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds,
        _headers(message),
    )


# Of a name that is not UTF-8, the client gives a list with holes and an error at once. Python finds that out and raises
# `SystemError`, except where it has made a call of a method faster: then the list is used, which ends the process.
_headers_of = methodcaller("headers")


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...] | bytes:
    try:
        return tuple(_headers_of(message) or ())
    except SystemError as exc:
        if isinstance(exc.__cause__, UnicodeDecodeError):
            return exc.__cause__.object
        raise
