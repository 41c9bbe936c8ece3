"""Clusters of Kafka in memory, for tests without brokers: `compactor.core.logs.ports.KafkaLog`."""

from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compactor.core.errors import StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch, LiveLog, LogRecord, Partition, TopicFacts
from compactor.settings.settings import load_settings
from compactor.wiring.app import App
from tests.support.settings_files import write_settings


@dataclass
class MemoryPartition:
    """One partition: its records by offset, without those of offsets that never had one a reader may see.

    What records have beside their values, key, timestamp and headers, is in `more`. One that is offline has no leader.
    """

    records: dict[int, bytes | None] = field(default_factory=dict)
    more: dict[int, tuple[bytes | None, int | None, tuple[tuple[str, bytes | None], ...]]] = field(default_factory=dict)
    earliest: int = 0
    end: int = 0
    undecided: int = 0
    is_offline: bool = False

    def append(self, *values: bytes | None) -> None:
        """Add records; None is a tombstone."""
        for value in values:
            self.records[self.end] = value
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
    """Topics in memory."""

    topics: dict[LogName, tuple[str, list[MemoryPartition]]] = field(default_factory=dict)
    batch: int = 3
    retention_seconds: float | None = 7 * 86_400
    with_columns: bool = False

    def create(self, topic: LogName, topic_id: str, partitions: int = 1) -> list[MemoryPartition]:
        """Make a topic, in place of any of its name."""
        made = [MemoryPartition() for _ in range(partitions)]
        self.topics[topic] = (topic_id, made)
        return made

    def nodes(self, cluster: str) -> int:  # noqa: ARG002 - all clusters are alike
        return 1

    def inspect(self, topic: LogName) -> TopicFacts | None:
        found = self.topics.get(topic)
        if found is None:
            return None
        return TopicFacts(len(found[1]), may_read=True, retention_seconds=self.retention_seconds)

    def describe(self, log: LogName) -> LiveLog | None:
        found = self.topics.get(log)
        return None if found is None else LiveLog(found[0], tells_gaps=True)

    def partitions(self, log: LogName) -> list[Partition]:
        return [Partition(str(each)) for each in range(len(self.topics[log][1]))]

    def read(self, log: LogName, partition_id: str, at: int, limit_bytes: int) -> Generator[Batch]:  # noqa: ARG002
        found = self.topics[log][1][int(partition_id)]
        if found.is_offline:
            raise StoreUnavailable(f"{log}: LEADER_NOT_AVAILABLE: no leader")
        end, start = found.end, max(at, found.earliest)
        if end < at:
            raise StoreUnavailable(f"{log}/{partition_id}: ends at offset {end}, but once had records up to {at}")
        yield Batch((), 1.0, reached=start, kept_from=found.earliest + 1)
        while start < end:
            if found.earliest > start:
                return
            offsets = sorted(each for each in found.records if start <= each < end)[: self.batch]
            records = [self._record(found, each) for each in offsets]
            start = offsets[-1] + 1 if len(offsets) == self.batch else end
            yield Batch(records, 1.0, reached=start)
        yield Batch((), reached=end, is_held=bool(found.undecided))

    def _record(self, found: MemoryPartition, offset: int) -> LogRecord:
        key, timestamp_ms, headers = found.more.get(offset, (None, None, ())) if self.with_columns else (None, None, ())
        return LogRecord(offset + 1, found.records[offset], None, key, timestamp_ms, headers)


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
    return App(load_settings(write_settings(root, **given), {}), kafka_log=log)
