"""The records of the ranges that were planned of a Kafka partition: where the first begins, and the links of its chain.

Each is written once and never changed. The name of a link has the offset that it begins at, so there is one for each
offset at most; a link is only written where the one before it ends. So the links of a partition have no gap, and no
offset twice.
"""

from pydantic import AwareDatetime

from compactor.core.documents.records import Document


class KafkaOrigin(Document):
    """Where the first link of a partition begins.

    Attributes:
        first: The earliest offset that the partition had when it was first planned.
    """

    first: int
    planned_at: AwareDatetime


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
