"""The port of Kafka: what planning, reading and the doctor need of brokers. `tests/contract` has its contract suite."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from compactor.core.errors import SettingsError, StoreUnavailable
from compactor.core.kafka.ranges import KafkaRange, Topic


class Record(NamedTuple):
    """One committed record.

    Attributes:
        value: Its bytes; None for a tombstone.
        key: Its key; None if it has none, or if it was not asked for, as for the others.
        timestamp_ms: When it was made by its producer or broker, in milliseconds since 1970; None if neither says.
        headers: Names and values, in order. Kafka wants names in UTF-8 and checks none: of a record with another name,
            the first such name, for clients then give no header at all.
    """

    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] | bytes = ()


@dataclass(frozen=True, slots=True)
class LiveTopic:
    """A topic that is there now.

    Attributes:
        topic_id: Differs from that of any other topic, also of one that had the same name before.
        partitions: Their numbers, in order.
    """

    topic_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a partition has: offsets from `earliest` up to and without `end`.

    Attributes:
        earliest: Retention removed all before it.
        end: The last stable offset: what is before it is decided, so no open transaction is in a range below it.
        undecided: How many offsets are behind it: those of an open transaction, and all that came after its first.
    """

    earliest: int
    end: int
    undecided: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """What the records from an offset on are like.

    Attributes:
        offset_bytes: About how many bytes of values an offset has.
        first_at: The timestamp of the first record, by its producer or its broker; None if it has none.
    """

    offset_bytes: float
    first_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RangeEnd:
    """The proof that a range was read to its end.

    Attributes:
        position: The next offset that reading would have had, which is not below the end of the range.
        high_watermark: The end of the partition, as its broker told it meanwhile.
    """

    position: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What the doctor wants to know of a topic.

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


class KafkaLog(Protocol):
    """The committed records of some clusters. One object may be used by several threads.

    Every method raises `StoreUnavailable` for passing trouble, `AccessError` if a person must act, and `SettingsError`
    for a cluster that the settings do not name.
    """

    def nodes(self, cluster: str) -> int:
        """How many brokers a cluster has; one of them answered, and accepted the user."""

    def inspect(self, topic: Topic) -> TopicFacts | None:
        """What may be done with a topic, and how long it keeps records; None if there is none of this name."""

    def topic(self, topic: Topic) -> LiveTopic | None:
        """Describe a topic; None if there is none of this name."""

    def bounds(self, topic: Topic, partitions: Sequence[int]) -> dict[int, Bounds | StoreUnavailable]:
        """Where partitions begin and end now; for one that cannot be asked, such as one without a leader, the error."""

    def samples(self, topic: Topic, starts: Mapping[int, int]) -> dict[int, Sample]:
        """What records are like, from a sample of each partition that begins at these offsets.

        A partition that gives no sample within a few seconds is left out.
        """

    def read(
        self, wanted: KafkaRange, topic_id: str, *, with_columns: bool = False
    ) -> Generator[Sequence[Record], None, RangeEnd]:
        """Yield all committed records of a range in order, some at a time; return the proof that these are all.

        With columns, they have their key, timestamp and headers, too.

        Offsets without a record are legal: markers of transactions, aborted records, what compaction removed.

        Raises:
            FileError: `missing`: the topic, or some of the range, is gone; the message names the exact offsets.
        """


def bounds_of(log: KafkaLog, topic: Topic, partition: int) -> Bounds:
    """Where one partition begins and ends now.

    Args:
        log: The brokers.
        topic: The topic.
        partition: The number of the partition.

    Raises:
        StoreUnavailable: It cannot be asked.
    """
    found = log.bounds(topic, [partition])[partition]
    if isinstance(found, StoreUnavailable):
        raise found
    return found


class OpenKafka(Protocol):
    """How to reach the clusters: a value that driver and executors exchange, so it can be pickled."""

    def open(self) -> KafkaLog:
        """The clients of this process."""


@dataclass(frozen=True, slots=True)
class NoKafka:
    """Settings without clusters."""

    def open(self) -> KafkaLog:
        raise SettingsError(["kafka.clusters: none -> expected the cluster that a manifest names"])
