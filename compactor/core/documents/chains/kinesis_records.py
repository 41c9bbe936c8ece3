"""The records of what was landed of a shard: where its chain begins, its links, and how far it was seen to be empty.

A link says which object has the records behind one sequence number, up to and with another one. Its name has the first
of these, and it is only created where the link before it ends. So the links of a shard have each record once.
"""

from datetime import datetime, timedelta

from pydantic import AwareDatetime

from compactor.core.documents.chains.plan_progress import PlanProgress
from compactor.core.documents.document import Document
from compactor.core.documents.manifest import Manifest


class KinesisFirstPlan(Document):
    """When a stream was first planned. Written once and never changed.

    Attributes:
        shards: The ids of those that the stream listed then. All of their records of that time are landed, or told as
            gone; what had come to their parents before is no matter of the compactor.
    """

    planned_at: AwareDatetime
    shards: tuple[str, ...]


class KinesisOrigin(Document):
    """Where the chain of a shard begins.

    Attributes:
        first: The sequence number of the earliest record that the shard had then; empty without any.
        whole_since: All records of the shard came at this time or later, or the first one is named.
        gap: Whether records of shards that it comes from may be lost to retention.
    """

    first: str = ""
    whole_since: AwareDatetime
    planned_at: AwareDatetime
    gap: bool = False


class KinesisLink(Document):
    """A run of records that one landed object has.

    Attributes:
        after: The sequence number behind which its records are; "0" at the beginning of the shard.
        last: That of its last record, behind which the next link begins.
        begins: That of its first record; empty without any.
        manifest_id: The manifest that was planned for the object.
        uri: The object; empty if the link only says that the shard ended, or that a record was left out.
        etag: Its version.
        lines: How many lines it has: one for each record, and for each one that a producer had packed into another.
        records: How many records it has as the stream counts them.
        packed: How many of these have others packed into them.
        strays: How many packed records were left out, because they hash to another shard.
        arrived_at: About when the stream took the last record, or any time up to which it had no further one.
        gap: Whether records between `after` and `begins` may be lost to retention. The manifest names them, too.
        closes: Whether the shard ended with this link.
    """

    after: str
    last: str
    begins: str = ""
    manifest_id: str
    uri: str = ""
    etag: str = ""
    lines: int = 0
    records: int = 0
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


class KinesisSeen(Document):
    """That a shard had no record behind a sequence number at some time.

    Attributes:
        after: The sequence number.
        at: The time.
    """

    after: str
    at: AwareDatetime


class KinesisLoss(Document):
    """That records of a shard may be lost to retention, although none has come behind them yet.

    These records of a shard are numbered from 0, so that each loss is in one manifest.

    Attributes:
        after: The sequence number behind which the chain ended.
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


class KinesisProgress(PlanProgress):
    """How far a job is with planning a stream.

    Attributes:
        stream_id: The id that the stream had.
        behind_seconds: For how long the oldest record that was not landed then may have waited.
        gaps: In how many places plans of the run found that records may be lost to retention.
    """

    stream_id: str = ""
    behind_seconds: float = 0.0
    gaps: int = 0

    @property
    def landed_to(self) -> datetime | None:
        """No record waits that came before this time, as far as was seen; None before the first plan."""
        return None if self.seen_at is None else self.seen_at - timedelta(seconds=self.behind_seconds)


class ShardLink(Document):
    """A link, and the shard of its chain."""

    shard_id: str
    link: KinesisLink


class ShardLoss(Document):
    """A loss, and its shard."""

    shard_id: str
    loss: KinesisLoss


class KinesisDraft(Document):
    """A manifest that is to be written, and the links and losses that have to be created before.

    Attributes:
        manifest: It names the objects of the links, and what may be lost. It is not written without any of these.
        links: In the order in which they are created.
    """

    manifest: Manifest
    links: tuple[ShardLink, ...]
    losses: tuple[ShardLoss, ...] = ()
