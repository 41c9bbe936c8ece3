"""How far behind a topic its manifests are, in figures. Decisions, no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from compactor.core.documents.chains.kafka_records import PartitionProgress
from compactor.core.kafka.ranges import SCHEME, Topic
from compactor.ledger.kafka.planned_work import Place
from compactor.manifests.kafka.cutting import Uncut


def about_topic(topic: Topic) -> dict[str, str]:
    """The dimension of the metrics of a topic."""
    return {"Topic": str(topic).removeprefix(SCHEME)}


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """What of a partition is not done.

    Attributes:
        unplanned: Offsets that are in no manifest, those of open transactions included.
        unplanned_seconds: For how long the first of these has waited; 0 without one.
        planned: Offsets in manifests that are not done.
    """

    partition: int
    unplanned: int
    unplanned_seconds: float
    planned: int


@dataclass(frozen=True, slots=True)
class Lag:
    """What of a topic is not done, partition by partition, and how far each of them is planned."""

    partitions: Sequence[PartitionLag]
    progress: tuple[PartitionProgress, ...]

    @classmethod
    def of(
        cls,
        topic: Topic,
        waits: Mapping[int, datetime],
        partitions: Sequence[Uncut],
        planned: Mapping[Place, int],
        now: datetime,
    ) -> Self:
        """The lag of a topic.

        Args:
            topic: The topic.
            waits: Since when the first unplanned record of a partition waits, by its number.
            partitions: What they have.
            planned: How many offsets are in manifests that are not done.
            now: The time.
        """
        found = [
            PartitionLag(
                each.partition,
                each.unplanned,
                max((now - waits[each.partition]).total_seconds(), 0.0) if each.partition in waits else 0.0,
                planned.get((topic, each.partition), 0),
            )
            for each in partitions
        ]
        progress = tuple(
            PartitionProgress(
                partition=each.partition,
                planned_to=each.head,
                end=each.bounds.end,
                undecided=each.bounds.undecided,
                waits_since=waits.get(each.partition),
            )
            for each in partitions
        )
        return cls(found, progress)

    @property
    def planned_offsets(self) -> int:
        """Offsets in manifests that are not done."""
        return sum(each.planned for each in self.partitions)

    def metrics(self) -> dict[str, float]:
        """The metrics of the topic."""
        return {
            "TopicOffsetsUnplanned": sum(each.unplanned for each in self.partitions),
            "TopicOffsetsUnplannedMax": max((each.unplanned for each in self.partitions), default=0),
            "TopicUnplannedSeconds": max((each.unplanned_seconds for each in self.partitions), default=0.0),
            "TopicOffsetsPlanned": self.planned_offsets,
        }

    def metrics_of(self, partition: PartitionLag) -> dict[str, float]:
        """The metrics of one partition."""
        return {
            "TopicOffsetsUnplanned": partition.unplanned,
            "TopicUnplannedSeconds": partition.unplanned_seconds,
            "TopicOffsetsPlanned": partition.planned,
        }
