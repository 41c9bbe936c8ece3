"""The records of the ranges that were planned of a Kafka partition: where the first begins, and the links of its chain.

Each of these two is written once and never changed. The name of a link has the offset that it begins at, so there is
one for each offset at most; a link is only written where the one before it ends. So the links of a partition have no
gap, and no offset twice.
"""

from pydantic import AwareDatetime

from compactor.core.documents.chains.plan_progress import PlanProgress
from compactor.core.documents.document import Document


class KafkaOrigin(Document):
    """Where the first link of a partition begins.

    Attributes:
        first: The earliest offset that the partition had when it was first planned, or 0 if it was added after others
            were.
        partitions: How many partitions the topic had then; 0 if the release that wrote this did not tell.
    """

    first: int
    planned_at: AwareDatetime
    partitions: int = 0


class KafkaLink(Document):
    """A run of offsets that one manifest has.

    Attributes:
        first: Its first offset.
        end: The offset after its last one, at which the next link begins.
        manifest_id: The manifest, which names one range of these offsets, or several that follow each other.
    """

    first: int
    end: int
    manifest_id: str


class PartitionProgress(Document):
    """How far a partition is planned.

    Attributes:
        planned_to: The first offset that is in no manifest.
        end: The offset up to which the partition had decided records then.
        waits_since: Since when the record at `planned_to` waits; None if there was none.
        undecided: How many offsets were behind `end`, in open transactions or behind the first of these.
    """

    partition: int
    planned_to: int
    end: int
    waits_since: AwareDatetime | None = None
    undecided: int = 0


class TopicProgress(PlanProgress):
    """How far a job is with planning a topic.

    Attributes:
        topic_id: The id that the topic had.
        partitions: What is known of them.
        unseen: The partitions of which the plan could not tell what they have; `error` says why.
        planned_offsets: Offsets in manifests that are not done.
    """

    topic_id: str = ""
    partitions: tuple[PartitionProgress, ...] = ()
    unseen: tuple[int, ...] = ()
    planned_offsets: int = 0
