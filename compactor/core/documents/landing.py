"""The records of what was landed of a log: where a chain begins, its links, and when it was seen to be whole.

A link says which object has the records behind one position, up to and with another one. Its name has the first of
these, and it is only created where the link before it ends. So the links of a partition have each record once.
Positions are text: those of Kinesis have more digits than numbers of JSON may have.
"""

from datetime import datetime, timedelta

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
    """A run of records that one landed object has.

    Attributes:
        after: The position behind which its records are; "0" at the beginning of the partition.
        last: That behind which the next link begins: of its last record, or of an offset behind it that has none.
        begins: That of its first record, or of the first one that may be left behind a gap; empty without any.
        manifest_id: The manifest that was written for the object.
        uri: The object; empty if the link has no line.
        etag: Its version.
        lines: How many lines it has.
        records: How many records it has as the log counts them.
        tombstones: How many of these have no value, and so no line.
        packed: How many of these have others packed into them.
        strays: How many packed records were left out, because they hash to another shard.
        arrived_at: About when the log took the last record, or any time up to which the partition had no further one.
        gap: Whether records between `after` and `begins` may be lost to retention. The manifest names them, too.
        closes: Whether the partition ended with this link.
    """

    after: str
    last: str
    begins: str = ""
    manifest_id: str
    uri: str = ""
    etag: str = ""
    lines: int = 0
    records: int = 0
    tombstones: int = 0
    packed: int = 0
    strays: int = 0
    arrived_at: AwareDatetime
    gap: bool = False
    closes: bool = False

    @property
    def first(self) -> int:
        """The position in the chain at which it begins."""
        return int(self.after)

    @property
    def end(self) -> int:
        """The position at which the next one begins."""
        return int(self.last)


class EmptySeen(Document):
    """That a partition had no record behind a position at some time.

    Attributes:
        after: The position.
        at: The time.
    """

    after: str
    at: AwareDatetime


class LandedLoss(Document):
    """That records of a shard may be lost to retention, although none has come behind them yet.

    These records of a shard are numbered from 0, so that each loss is in one manifest.

    Attributes:
        after: The position behind which the chain ended.
        seen_at: When the shard had no record behind it. What comes later is not lost by this.
        manifest_id: The manifest that names the loss.
    """

    number: int
    after: str
    seen_at: AwareDatetime
    manifest_id: str

    @property
    def first(self) -> int:
        """Its number."""
        return self.number

    @property
    def end(self) -> int:
        """The number of the next one."""
        return self.number + 1


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


class PartitionLink(Document):
    """A link, and the partition of its chain."""

    partition_id: str
    link: LandedLink


class PartitionLoss(Document):
    """A loss, and its shard."""

    partition_id: str
    loss: LandedLoss


class LandingDraft(Document):
    """A manifest that is to be written, and the links and losses that have to be created before.

    Attributes:
        manifest: It names the objects of the links, and what may be lost. It is not written without any of these.
        links: In the order in which they are created.
    """

    manifest: Manifest
    links: tuple[PartitionLink, ...]
    losses: tuple[PartitionLoss, ...] = ()
