"""The port for logs: what landing needs from topics and streams. Its contract suite is in `tests/contract`."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from compactor.core.logs.names import LogName

LAST_HASH = 2**128 - 1
"""The largest hash of a Kinesis partition key."""


class LogRecord(NamedTuple):
    """One committed record of a partition.

    Attributes:
        position: Increases within its partition. From 1.
        data: Its bytes; None for a Kafka tombstone.
        arrived_at: About when the log received it, UTC; None if unknown, for instance where producers choose the time.
        key: Its key; None if it has none, or if it was not requested; the same for the fields below.
        timestamp_ms: Time from its producer or broker, in milliseconds since 1970; None if neither gives one.
        headers: Names and values, in order. Kafka requires UTF-8 names but does not check them: for a record that
            breaks this, only its first such name, because clients then return no headers at all.
    """

    position: int
    data: bytes | None
    arrived_at: datetime | None = None
    key: bytes | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] | bytes = ()


@dataclass(frozen=True, slots=True)
class LiveLog:
    """An existing log.

    Attributes:
        log_id: Unique to this log, even among logs with the same name before or after it.
        retention: Younger records are never removed, unless it is lowered.
        tells_gaps: Whether reads report what retention has removed, so that times need not be consulted.
    """

    log_id: str
    retention: timedelta = timedelta(days=1)
    tells_gaps: bool = False


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of a topic, or a shard of a stream, open or closed.

    Attributes:
        partition_id: For a topic its number, in digits.
        parents: The shards that were split or merged into it, listed or not.
        first_hash: The smallest partition key hash in it.
        last_hash: The largest partition key hash in it.
        is_closed: Whether it was split or merged, so that it gets no more records.
    """

    partition_id: str
    parents: tuple[str, ...] = ()
    first_hash: int = 0
    last_hash: int = LAST_HASH
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """One response from a partition.

    Attributes:
        records: In order. An empty response does not mean that there are no more.
        behind_seconds: How far this response lags behind the partition's newest record; 0 at its tip.
        is_end: Whether the partition is closed and this is its last batch.
        reached: The position up to which, inclusive, nothing more will come: beyond the last record where offsets have
            no record, such as markers and aborted ones. 0 if only the records show it.
        kept_from: The position of the first record that retention has kept, if the log reports it, as Kafka does in the
            first response of each read.
        is_held: Whether records that arrived are still undecided, as in an open transaction, so that the time says
            nothing.
    """

    records: Sequence[LogRecord]
    behind_seconds: float = 0.0
    is_end: bool = False
    reached: int = 0
    kept_from: int | None = None
    is_held: bool = False


class Log(Protocol):
    """The logs of some clusters or sources. One object may be used by several threads.

    Every method raises `StoreUnavailable` for transient failures, `AccessError` if an operator must act, and
    `SettingsError` for a cluster or source that the settings do not define.
    """

    def describe(self, log: LogName) -> LiveLog | None:
        """Describe a log; None if there is none with this name."""

    def partitions(self, log: LogName) -> list[Partition]:
        """List all partitions that are open, contain records, or did so within the retention."""

    def read(self, log: LogName, partition_id: str, at: int, limit_bytes: int) -> Generator[Batch]:
        """Yield the responses of a partition, starting at a position, or at the next record after it.

        Starts at the earliest remaining record if that one is gone, or if `at` is 0. Ends after the last batch of a
        closed partition, and may end at any time before: then read again from the last record seen. A log that charges
        for unfinished reads ends after about `limit_bytes`. At the tip of an open partition it yields batches without
        records. It waits as the log's limits require.

        Raises:
            StoreUnavailable: Also if the partition ends before a record that it once had: its log was truncated.
        """


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """The doctor's facts about a Kafka topic.

    Attributes:
        may_read: Whether the user may read it; None if brokers do not say.
        retention_seconds: How long it keeps records; None for ever.
        retention_bytes: How many bytes of a partition it keeps; None if unlimited.
        unknown_because: Why the last two are unknown; empty if they are known.
    """

    partitions: int
    may_read: bool | None
    retention_seconds: float | None = None
    retention_bytes: int | None = None
    unknown_because: str = ""


class KafkaLog(Log, Protocol):
    """The topics of some clusters, with the doctor's queries."""

    def nodes(self, cluster: str) -> int:
        """The number of brokers of a cluster; one of them responded and accepted the user."""

    def inspect(self, topic: LogName) -> TopicFacts | None:
        """Describe the permissions and retention of a topic; None if there is none with this name."""
