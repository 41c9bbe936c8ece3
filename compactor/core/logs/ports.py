"""The port of logs: what landing needs of topics and streams. Its contract suite is in `tests/contract`."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from compactor.core.logs.names import LogName

LAST_HASH = 2**128 - 1
"""The largest hash of a partition key of Kinesis."""


class LogRecord(NamedTuple):
    """One committed record of a partition.

    Attributes:
        position: Grows within its partition. From 1.
        data: Its bytes; None for a tombstone of Kafka.
        arrived_at: About when the log took it, UTC; None if that is not known, as where producers may say anything.
        key: Its key; None if it has none, or if it was not asked for, as for the others.
        timestamp_ms: When it was made by its producer or broker, in milliseconds since 1970; None if neither says.
        headers: Names and values, in order. Kafka wants names in UTF-8 and checks none: of a record with another name,
            the first such name, for clients then give no header at all.
    """

    position: int
    data: bytes | None
    arrived_at: datetime | None = None
    key: bytes | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] | bytes = ()


@dataclass(frozen=True, slots=True)
class LiveLog:
    """A log that is there now.

    Attributes:
        log_id: Differs from that of any other log, also of one that had the same name before.
        retention: No record is removed that is younger, unless it is lowered.
        tells_gaps: Whether readings tell what retention has removed, so that nothing is concluded from times.
    """

    log_id: str
    retention: timedelta = timedelta(days=1)
    tells_gaps: bool = False


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of a topic, or a shard of a stream, open or closed.

    Attributes:
        partition_id: Of a topic its number, in digits.
        parents: The shards that it was split or merged from, listed or not.
        first_hash: The smallest hash of a partition key that goes to it.
        last_hash: The largest one.
        is_closed: Whether it was split or merged, so that no record comes any more.
    """

    partition_id: str
    parents: tuple[str, ...] = ()
    first_hash: int = 0
    last_hash: int = LAST_HASH
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """What one answer of a partition has.

    Attributes:
        records: In order. An answer without any does not mean that there are no more.
        behind_seconds: How far this answer is behind the newest record of the partition; 0 at its tip.
        is_end: Whether the partition is closed and this is the last of it.
        reached: Up to and with which position nothing else is to come: further than the last record where offsets have
            no record, as those of markers and of aborted ones. 0 if only the records tell.
        kept_from: The position of the first record that retention has left, if the log tells it, as Kafka does in the
            first answer of each reading.
        is_held: Whether records that came are not decided yet, as in an open transaction: nothing is known of the time.
    """

    records: Sequence[LogRecord]
    behind_seconds: float = 0.0
    is_end: bool = False
    reached: int = 0
    kept_from: int | None = None
    is_held: bool = False


class Log(Protocol):
    """The logs of some clusters or sources. One object may be used by several threads.

    Every method raises `StoreUnavailable` for passing trouble, `AccessError` if a person must act, and `SettingsError`
    for a cluster or a source that the settings do not name.
    """

    def describe(self, log: LogName) -> LiveLog | None:
        """Describe a log; None if there is none of this name."""

    def partitions(self, log: LogName) -> list[Partition]:
        """All partitions that have records, or had some within the retention, and those that are open."""

    def read(self, log: LogName, partition_id: str, at: int, limit_bytes: int) -> Generator[Batch]:
        """Yield the answers of a partition, from the record at a position on, or from the one behind it.

        It begins at the earliest record that is left if that one is gone, or if `at` is 0. It ends after the last
        batch of a closed partition, and may end at any time before: then read again from the last record that was
        seen. A log that pays for a reading that is not done with ends it after about so many bytes. At the tip of an
        open partition it yields batches without records. It waits as the limits of the log demand.

        Raises:
            StoreUnavailable: Also if the partition ends before a record that it had: its log was cut off.
        """


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What the doctor wants to know of a topic of Kafka.

    Attributes:
        partitions: How many it has.
        may_read: Whether the user may read it; None if brokers do not tell.
        retention_seconds: For how long it keeps records; None for ever.
        retention_bytes: How many bytes of a partition it keeps; None without a bound.
        not_told: Why the last two are not known; empty if they are.
    """

    partitions: int
    may_read: bool | None
    retention_seconds: float | None = None
    retention_bytes: int | None = None
    not_told: str = ""


class KafkaLog(Log, Protocol):
    """The topics of some clusters, with what the doctor asks of them."""

    def nodes(self, cluster: str) -> int:
        """How many brokers a cluster has; one of them answered, and accepted the user."""

    def inspect(self, topic: LogName) -> TopicFacts | None:
        """What may be done with a topic, and how long it keeps records; None if there is none of this name."""
