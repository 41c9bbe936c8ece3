"""The records of what was landed of a log: where a chain begins, its links, and when it was seen to be whole.

A link says which object has the records behind one position, up to and with another one. Its name has the first of
these, and it is only created where the link before it ends. So the links of a partition have each record once.
Positions are text: those of Kinesis have more digits than numbers of JSON may have.
"""

from datetime import datetime, timedelta
from typing import Self

from pydantic import AwareDatetime

from compactor.core.documents.document import Document
from compactor.core.documents.manifest import Manifest


class FirstLanding(Document):
    """When a log was first landed. Written once and never changed.

    Attributes:
        partitions: The ids of those that the log listed then. All of their records of that time are landed, or told as
            gone; what had come to the parents of shards before is no matter of the compactor.
    """

    landed_at: AwareDatetime
    partitions: tuple[str, ...]


class LogOrigin(Document):
    """Where the chain of a partition begins.

    Attributes:
        after: The position behind which it begins; "0" at the beginning of the partition.
        first: The position of the earliest record that a shard had then; empty without any, and of a log that tells
            what it has removed.
        whole_since: All records of the shard came at this time or later, or the first one is named.
        gap: Whether records of shards that it comes from may be lost to retention.
    """

    after: str = "0"
    first: str = ""
    whole_since: AwareDatetime
    begun_at: AwareDatetime
    gap: bool = False


class LandedLink(Document):
    """A run of records of a partition that one landed object has.

    Attributes:
        after: The position behind which its records are; "0" at the beginning of the partition.
        last: That behind which the next link begins: of its last record, or of an offset behind it that has none.
        begins: That of its first record, or of the first one that may be left behind a gap; empty without any.
        manifest_id: The manifest that was written for the object.
        uri: The object; empty if the link has no line.
        etag: Its version.
        size_bytes: Its length.
        lines: How many lines it has.
        records: How many records it has as the log counts them.
        tombstones: How many of these have no value, and so no line.
        packed: How many of these have others packed into them.
        strays: How many packed records were left out, because they hash to another shard.
        arrived_at: About when the log took the last record, or any time up to which the partition had no further one.
        gap: Whether records between `after` and `begins` may be lost to retention. The manifest names them, too.
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
        """Records behind a position may be lost, although none has come behind them yet.

        It takes up the next position, which no later record has: between two records of a shard are days then.
        """
        ends = {"after": str(after), "last": str(after + 1)}
        return cls(partition_id=partition_id, manifest_id=manifest_id, arrived_at=seen_at, gap=True, **ends)

    @property
    def first(self) -> int:
        """The position in the chain at which it begins."""
        return int(self.after)

    @property
    def end(self) -> int:
        """The position at which the next one begins."""
        return int(self.last)

    @property
    def is_idle_gap(self) -> bool:
        """Whether it tells of a gap behind which no record was known."""
        return self.gap and not self.begins and not self.closes


class EmptySeen(Document):
    """That a partition had no record behind a position at some time.

    Attributes:
        after: The position.
        at: The time.
    """

    after: str
    at: AwareDatetime


class LandingProgress(Document):
    """How far a job is with landing a log, for people to see. Overwritten after each landing and each failure.

    Attributes:
        expected_since: Since when a job is to land it, as far as that is known; None once one has.
        seen_at: When a landing last succeeded, which all else but the failures is of; None before the first.
        failures: How many landings have failed since.
        failing_since: When the first of these failed.
        error: Why the last of these failed; empty if none did.
        log_id: The id that the log had.
        behind_seconds: For how long the oldest record that was not landed then may have waited.
        gaps: In how many places landings of the run found that records may be lost to retention.
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
        """No record waits that came before this time, as far as was seen; None before the first landing."""
        return None if self.seen_at is None else self.seen_at - timedelta(seconds=self.behind_seconds)


class LandingDraft(Document):
    """A manifest that is to be written, and the links that have to be created before.

    Attributes:
        manifest: It names the objects of the links, and what may be lost. It is not written without any of these.
        links: In the order in which they are created.
    """

    manifest: Manifest
    links: tuple[LandedLink, ...]
