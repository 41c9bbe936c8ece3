"""The port of Kinesis: what landing needs of streams. Its contract suite is in `tests/contract`."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from compactor.core.kinesis.places import KinesisStream

LAST_HASH = 2**128 - 1
"""The largest hash of a partition key."""


class StreamRecord(NamedTuple):
    """One record of a shard.

    Attributes:
        sequence: Grows within its shard. From 1.
        arrived_at: About when the stream took it, UTC.
    """

    sequence: int
    data: bytes
    arrived_at: datetime


@dataclass(frozen=True, slots=True)
class LiveStream:
    """A stream that is there now.

    Attributes:
        stream_id: Differs from that of any other stream, also of one that had the same name before.
        retention: No record is removed that is younger, unless it is lowered.
    """

    stream_id: str
    retention: timedelta = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard, open or closed.

    Attributes:
        parents: The shards that it was split or merged from, listed or not.
        first_hash: The smallest hash of a partition key that goes to it.
        last_hash: The largest one.
        is_closed: Whether it was split or merged, so that no record comes any more.
    """

    shard_id: str
    parents: tuple[str, ...] = ()
    first_hash: int = 0
    last_hash: int = LAST_HASH
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """What one answer of a shard has.

    Attributes:
        records: In order. An answer without any does not mean that there are no more.
        behind_seconds: How far this answer is behind the newest record of the shard; 0 at its tip.
        is_end: Whether the shard is closed and this is the last of it.
    """

    records: Sequence[StreamRecord]
    behind_seconds: float = 0.0
    is_end: bool = False


class KinesisLog(Protocol):
    """The streams of some sources. One object may be used by several threads.

    Every method raises `StoreUnavailable` for passing trouble, `AccessError` if a person must act, and `SettingsError`
    for a source that the settings do not name.
    """

    def stream(self, stream: KinesisStream) -> LiveStream | None:
        """Describe a stream; None if there is none of this name."""

    def shards(self, stream: KinesisStream) -> list[Shard]:
        """All shards that have records, or had some within the retention, and those that are open."""

    def read(self, stream: KinesisStream, shard_id: str, at: int) -> Generator[Batch]:
        """Yield the answers of a shard, from the record with a sequence number on.

        It begins at the earliest record that is left if that one is gone, or if `at` is 0. It ends after the last
        batch of a closed shard, and may end at any time before: then read again from the last record that was seen.
        At the tip of an open shard it yields batches without records. It waits as the limits of the stream demand.
        """
