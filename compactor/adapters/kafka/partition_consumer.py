"""Reads a partition's committed records from one offset to another."""

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
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
from compactor.adapters.kafka.properties import CONSUMER, client_properties, has_changed, resolved
from compactor.core.errors import StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import LogRecord

IDLE_SECONDS = 60.0
"""How long brokers may deliver nothing, not even aborted records, before a read fails."""

REFUSED_SECONDS = 10.0
"""How long one broker may refuse credentials or have a bad certificate while the others deliver nothing."""

_BATCH = 1_000
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Bounds:
    """A partition's offsets: from `earliest` up to but excluding `end`.

    Attributes:
        earliest: Retention removed everything before it.
        end: The last stable offset: no open transaction is before it.
        undecided: The number of offsets after it: those of an open transaction, and all after its first.
    """

    earliest: int
    end: int
    undecided: int = 0


class PartitionConsumer:
    """A client that reads a partition from one offset to another. Commits nothing for any group.

    Args:
        bounds_of: Returns the partition's current bounds.
        with_columns: Whether records have their key, timestamp and headers.

    Attributes:
        position: The next offset to read.
        timestamp_ms: The last record's timestamp; None if it has none.
    """

    def __init__(
        self,
        topic: LogName,
        partition: int,
        bounds: Bounds,
        properties: Mapping[str, str],
        bounds_of: Callable[[], Bounds],
        *,
        with_columns: bool = False,
    ) -> None:
        self._record = _whole_record if with_columns else _record
        self._topic = topic
        self._partition = partition
        self._end = bounds.end
        self._place = f"{topic}/{partition}"
        self._bounds_of = bounds_of
        self._noted = NotedErrors()
        self._properties = properties
        self._fetched_to = self._next = self.position = bounds.earliest
        self._heard_at = time.monotonic()
        self.timestamp_ms: int | None = None
        self._resolved = resolved(topic.source, properties)
        with constructed(topic.source):
            callbacks = {"error_cb": self._noted.note, "stats_cb": self._note_progress}
            made = client_properties(topic.source, properties, self._resolved)
            self._consumer = Consumer({**made, **CONSUMER, **callbacks})

    def records(self) -> Generator[Sequence[LogRecord]]:
        """Yield the records, some at a time. Ends early if retention has meanwhile removed the next ones.

        Raises:
            StoreUnavailable: A transient failure.
            AccessError: An operator must act.
        """
        with translated(self._place):
            self._consumer.assign([TopicPartition(self._topic.name, self._partition, self.position)])
        self._heard_at = time.monotonic()
        while self.position < self._end:
            with translated(self._place):
                messages = self._messages()
            try:
                records = self._taken(messages)
            except _OutOfRangeError:
                self._check_removed()
                return
            if records:
                yield records
                self._heard_at = time.monotonic()
            else:
                self._check_silence()

    def _messages(self) -> list[Message]:
        """The client's fetched messages, limited in bytes; waits only if there are none."""
        at_most = min(_BATCH, self._end - self.position)
        found: list[Message] = self._consumer.consume(at_most, timeout=0)
        return found or list(self._consumer.consume(1, timeout=_POLL_SECONDS))

    def _check_silence(self) -> None:
        """Fail if nothing has arrived for too long; earlier if a connection error needs an operator."""
        silence = time.monotonic() - self._heard_at
        if silence > REFUSED_SECONDS:
            refusal = self._noted.refusal(self._place, self._properties)
            if refusal is not None and has_changed(self._topic.source, self._properties, self._resolved):
                raise StoreUnavailable(f"{self._place}: refused because a secret was changed meanwhile") from refusal
            if refusal is not None:
                raise refusal
        if silence > IDLE_SECONDS:
            raise self._silence()

    def _note_progress(self, statistics: str) -> None:
        """Note how far the client has fetched: a long stretch of aborted records delivers nothing else."""
        topics = json.loads(statistics).get("topics", {})
        found = topics.get(self._topic.name, {}).get("partitions", {}).get(str(self._partition), {})
        fetched_to = int(found.get("next_offset", 0))
        if fetched_to > self._fetched_to:
            self._fetched_to, self._heard_at = fetched_to, time.monotonic()

    def close(self) -> None:
        self._consumer.close()

    def _taken(self, messages: Sequence[Message]) -> list[LogRecord]:
        """The records among messages. Other messages concern the partition, or come after the end."""
        records = list[LogRecord]()
        end, record, last = self._end, self._record, None
        for message in messages:  # about a third of the reading time: no call is made twice
            error, offset = message.error(), message.offset()
            if error is not None or offset is None:
                self._on_error(error, offset or 0)
            elif offset < end:
                records.append(record(offset, message))
                self._next = self.position = offset + 1
                last = message
            else:
                # A record after the end proves that there is nothing more before it; so does the end of the partition
                # there.
                self.position = max(self.position, offset)
        if last is not None:
            self.timestamp_ms = _timestamp(last)
        return records

    def _on_error(self, error: KafkaError | None, offset: int) -> None:
        """Process a message that is not a record."""
        if error is None:
            raise StoreUnavailable(f"{self._place}: the brokers returned a record without an offset")
        if error.code() == END_OF_PARTITION:
            self.position = max(self.position, offset)
        elif error.code() in OUT_OF_RANGE:
            raise _OutOfRangeError
        elif error.code() in OF_GROUP:
            self._noted.note(error)
        else:
            raise error_of(self._place, error)

    def _check_removed(self) -> None:
        """Raise unless retention has removed the next record."""
        bounds = self._bounds_of()
        if bounds.earliest > self._next:
            return
        if bounds.end >= self._end:
            raise StoreUnavailable(f"{self._place}: the brokers refused offset {self._next}, which now exists")
        raise cut_off(self._place, bounds.end, self._end)

    def _silence(self) -> StoreUnavailable:
        bounds = self._bounds_of()
        if bounds.end < self._end:
            return cut_off(self._place, bounds.end, self._end)
        why = f" ({self._noted.text})" if self._noted.text else ""
        return StoreUnavailable(f"{self._place}: nothing for {IDLE_SECONDS:g} s at offset {self.position}{why}")


class _OutOfRangeError(Exception):
    pass


def cut_off(place: str, end: int, had: int) -> StoreUnavailable:
    """A partition ends before offsets that it once had, as after an unclean leader election."""
    return StoreUnavailable(
        f"{place}: ends at offset {end}, but once had records up to {had}: its log was truncated; records written "
        "before that are not landed"
    )


def _record(offset: int, message: Message) -> LogRecord:
    return LogRecord(offset + 1, message.value())


def _whole_record(offset: int, message: Message) -> LogRecord:
    return LogRecord(offset + 1, message.value(), None, message.key(), _timestamp(message), _headers(message))


def _timestamp(message: Message) -> int | None:
    kind, milliseconds = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds


# For a name that is not UTF-8, the client returns a list with gaps together with an error. Python detects that and
# raises `SystemError`, except in an optimised method call: then the list is used, which crashes the process.
_headers_of = methodcaller("headers")


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...] | bytes:
    try:
        return tuple(_headers_of(message) or ())
    except SystemError as exc:
        if isinstance(exc.__cause__, UnicodeDecodeError):
            return exc.__cause__.object
        raise
