"""Records of landed log data: where a chain begins, its links, and when it was found to be complete.

A link names the object with the records after one position, up to and including a second one. It is named after the
first position, and created only where the previous link ends. So a partition's links contain each record once.
Positions are text, because those of Kinesis have more digits than JSON numbers may have.
"""

from datetime import datetime, timedelta
from typing import Self

from pydantic import AwareDatetime

from compactor.core.documents.document import Document
from compactor.core.documents.manifest import Manifest


class FirstLanding(Document):
    """When a log was first landed.

    Attributes:
        partitions: The ids that the log listed then. All of their records from that time on are landed or reported
            lost. Earlier records of the parents of shards are not landed.
    """

    landed_at: AwareDatetime
    partitions: tuple[str, ...]


class LogOrigin(Document):
    """Where a partition's chain begins.

    Attributes:
        after: The position before its first record; "0" for the beginning of the partition.
        first: The position of a shard's earliest record at that time; empty if there was none, and for logs that report
            removed records.
        whole_since: All records of the shard arrived at this time or later, or `first` is known.
        gap: Whether records of parent shards may be lost to retention.
    """

    after: str = "0"
    first: str = ""
    whole_since: AwareDatetime
    begun_at: AwareDatetime
    gap: bool = False


class LandedLink(Document):
    """Consecutive records of a partition in one landed object.

    Attributes:
        after: The position before its records; "0" for the beginning of the partition.
        last: The position after which the next link begins: that of the last record, or a later offset without a
            record.
        begins: The position of its first record, or of the first one possibly left after a gap; may be empty.
        manifest_id: The manifest for the object.
        uri: The object; empty if the link has no lines.
        records: The number of records, as the log counts them.
        tombstones: How many of these have no value, hence no line.
        packed: How many of these contain packed records.
        strays: How many packed records were left out because they hash to another shard.
        arrived_at: About when the log received the last record, or a time before which no further one arrived.
        gap: Whether retention may have removed records between `after` and `begins`. The manifest lists them, too.
        closes: Whether the partition ended with this link.
    """

    partition_id: str
    after: str
    last: str
    begins: str = ""
    manifest_id: str
    uri: str = ""
    etag: str = ""
    size_bytes: int = 0
    lines: int = 0
    records: int = 0
    tombstones: int = 0
    packed: int = 0
    strays: int = 0
    arrived_at: AwareDatetime
    gap: bool = False
    closes: bool = False

    @classmethod
    def of_idle_gap(cls, partition_id: str, after: int, seen_at: datetime, manifest_id: str) -> Self:
        """Records after a position may be lost, although no later one has arrived yet.

        It occupies the next position, which no later record can have, because days have passed.
        """
        ends = {"after": str(after), "last": str(after + 1)}
        return cls(partition_id=partition_id, manifest_id=manifest_id, arrived_at=seen_at, gap=True, **ends)

    @property
    def first(self) -> int:
        """Its start in the chain."""
        return int(self.after)

    @property
    def end(self) -> int:
        """Where the next link begins."""
        return int(self.last)

    @property
    def is_idle_gap(self) -> bool:
        """Whether it is a gap with no known record after it."""
        return self.gap and not self.begins and not self.closes


class EmptySeen(Document):
    """A partition had no record after a position at some time."""

    after: str
    at: AwareDatetime


class LandingProgress(Document):
    """A job's progress in landing a log, for operators. Overwritten after each landing and each failure.

    Attributes:
        expected_since: Since when a job should land it, if known; None once it was landed.
        seen_at: When a landing last succeeded; None before the first.
        failures: Failed landings since then.
        failing_since: When the first of these failed.
        error: Why the last of these failed; empty if none did.
        log_id: The id of the log at `seen_at`.
        behind_seconds: The longest wait of a record not landed at `seen_at`.
        gaps: The number of places where the run found records possibly lost to retention.
    """

    run_id: str
    expected_since: AwareDatetime | None = None
    seen_at: AwareDatetime | None = None
    failures: int = 0
    failing_since: AwareDatetime | None = None
    error: str = ""
    log_id: str = ""
    behind_seconds: float = 0.0
    gaps: int = 0

    @property
    def landed_to(self) -> datetime | None:
        """All records that arrived before this time are landed; None before the first landing."""
        return None if self.seen_at is None else self.seen_at - timedelta(seconds=self.behind_seconds)


class LandingDraft(Document):
    """A manifest to write, and the links to create first.

    Attributes:
        manifest: Lists the objects of the links, and possible losses.
        links: In the order in which they are created.
    """

    manifest: Manifest
    links: tuple[LandedLink, ...]
