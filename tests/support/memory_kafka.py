"""Clusters of Kafka in memory, for tests without brokers: `compactor.core.kafka.ports.KafkaLog`."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError, StoreUnavailable
from compactor.core.kafka.ports import Bounds, LiveTopic, RangeEnd, Record, Sample, TopicFacts
from compactor.core.kafka.ranges import KafkaRange, Topic
from compactor.settings.settings import load_settings
from compactor.wiring.job.app import App
from tests.support.settings_files import write_settings


@dataclass
class MemoryPartition:
    """One partition: its records by offset, without those of offsets that never had one a reader may see; and times.

    What records have beside their values, key, timestamp and headers, is in `more`. One that is offline has no leader.
    """

    records: dict[int, bytes | None] = field(default_factory=dict)
    times: dict[int, datetime] = field(default_factory=dict)
    more: dict[int, tuple[bytes | None, int | None, tuple[tuple[str, bytes | None], ...]]] = field(default_factory=dict)
    earliest: int = 0
    end: int = 0
    undecided: int = 0
    is_offline: bool = False

    def append(self, *values: bytes | None, at: datetime | None = None) -> None:
        """Add records, with a timestamp; None is a tombstone."""
        for value in values:
            self.records[self.end] = value
            if at is not None:
                self.times[self.end] = at
            self.end += 1

    def skip(self, offsets: int = 1) -> None:
        """Add offsets without a record, as a marker of a transaction has one."""
        self.end += offsets

    def remove_before(self, offset: int) -> None:
        """Remove records as retention does."""
        self.earliest = offset
        self.records = {each: value for each, value in self.records.items() if each >= offset}


@dataclass
class MemoryKafka:
    """Topics in memory. What opens it is the same object, so executors cannot have it."""

    topics: dict[Topic, tuple[str, list[MemoryPartition]]] = field(default_factory=dict)
    batch: int = 3
    retention_seconds: float | None = 7 * 86_400

    def open(self) -> "MemoryKafka":
        return self

    def create(self, topic: Topic, topic_id: str, partitions: int = 1) -> list[MemoryPartition]:
        """Make a topic, in place of any of its name."""
        made = [MemoryPartition() for _ in range(partitions)]
        self.topics[topic] = (topic_id, made)
        return made

    def nodes(self, cluster: str) -> int:  # noqa: ARG002 - all clusters are alike
        return 1

    def inspect(self, topic: Topic) -> TopicFacts | None:
        found = self.topics.get(topic)
        if found is None:
            return None
        return TopicFacts(len(found[1]), may_read=True, retention_seconds=self.retention_seconds)

    def topic(self, topic: Topic) -> LiveTopic | None:
        found = self.topics.get(topic)
        return None if found is None else LiveTopic(found[0], tuple(range(len(found[1]))))

    def bounds(self, topic: Topic, partitions: Sequence[int]) -> dict[int, Bounds | StoreUnavailable]:
        return {each: self._bounds(topic, self.topics[topic][1][each]) for each in partitions}

    def _bounds(self, topic: Topic, found: MemoryPartition) -> Bounds | StoreUnavailable:
        if found.is_offline:
            return StoreUnavailable(f"{topic.uri}: LEADER_NOT_AVAILABLE: no leader")
        return Bounds(found.earliest, found.end, found.undecided)

    def samples(self, topic: Topic, starts: Mapping[int, int]) -> dict[int, Sample]:
        found: dict[int, Sample] = {}
        for each, first in starts.items():
            partition = self.topics[topic][1][each]
            if partition.is_offline:
                continue
            length = sum(len(value or b"") for offset, value in partition.records.items() if offset >= first)
            if length:
                oldest = min(offset for offset in partition.records if offset >= first)
                found[each] = Sample(length / (partition.end - first), partition.times.get(oldest))
        return found

    def read(
        self, wanted: KafkaRange, topic_id: str, *, with_columns: bool = False
    ) -> Generator[Sequence[Record], None, RangeEnd]:
        found = self.topics.get(wanted.topic)
        if found is None or found[0] != topic_id:
            raise FileError(FileStatus.MISSING, f"the topic is not that of id {topic_id}")
        partition = found[1][wanted.partition]
        if partition.is_offline:
            raise StoreUnavailable(f"{wanted.topic.uri}: LEADER_NOT_AVAILABLE: no leader")
        if wanted.first < partition.earliest:
            gone = min(partition.earliest, wanted.end) - 1
            raise FileError(FileStatus.MISSING, f"offsets {wanted.first} to {gone} were removed before they were read")
        found_in = sorted(each for each in partition.records.items() if wanted.first <= each[0] < wanted.end)
        more = partition.more if with_columns else {}
        records = [Record(offset, value, *more.get(offset, ())) for offset, value in found_in]
        for at in range(0, len(records), self.batch):
            yield records[at : at + self.batch]
        return RangeEnd(wanted.end, partition.end)


def kafka_app(root: Path, log: MemoryKafka, **more: Any) -> App:
    """The components of a job on folders, with a cluster `main` in memory.

    Args:
        root: For its folders and settings.
        log: The cluster.
        more: Further tables of the settings.
    """
    given = {
        "input": {"allowed_prefixes": ["kafka://main"]},
        "kafka": {"clusters": {"main": {"bootstrap.servers": "none:1"}}},
        **more,
    }
    return App(load_settings(write_settings(root, **given), {}), kafka=log)
