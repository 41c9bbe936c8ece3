"""The records of what was landed of a shard: where its chain begins, its links, and how far it was seen to be empty.

A link says which object has the records behind one sequence number, up to and with another one. Its name has the first
of these, and it is only created where the link before it ends. So the links of a shard have each record once.
"""

from pydantic import AwareDatetime

from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import Document


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
        strays: How many packed records were left out, because they hash to another shard.
        arrived_at: About when the stream took the last record, or any time up to which it had no further one.
        gap: Whether records between `after` and `begins` may be lost to retention.
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
        gap: Whether records behind it had been lost to retention before that time, perhaps.
    """

    after: str
    at: AwareDatetime
    gap: bool = False


class ShardLink(Document):
    """A link, and the shard of its chain."""

    shard_id: str
    link: KinesisLink


class KinesisDraft(Document):
    """A manifest that is to be written, and the links that have to be created before.

    Attributes:
        manifest: It names the objects of the links, and is not written without any.
        links: In the order in which they are created.
    """

    manifest: Manifest
    links: tuple[ShardLink, ...]
