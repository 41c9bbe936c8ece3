"""A topic of Kafka in the simulated world: its producers, its brokers and what befalls it, and what must come of it."""

from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from compactor.core.documents.changes import Commit, Part
from compactor.core.documents.landing import LandedLink
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import StoreUnavailable
from compactor.core.logs.names import LogGap, LogName, is_log
from compactor.core.logs.ports import Batch, LiveLog, Partition, TopicFacts
from tests.simulation.scheduler import Broken
from tests.simulation.store import Line
from tests.support.memory_kafka import MemoryKafka, MemoryPartition

TOPIC = LogName("kafka", "main", "events")
PACE_SECONDS = 60.0
"""Mean seconds between two batches of records; more in a long run."""

TROUBLE_SECONDS = 700.0
MAX_PARTITIONS = 4

T = TypeVar("T")


@dataclass
class SimulatedTopic:
    """One topic, which may be deleted and made again under its name.

    Attributes:
        written: By topic id, partition and offset, the value of each committed record that ever was.
        removed: Those that compaction of the topic may have taken.
        gone: For each topic id that is gone, where its partitions ended.
        down_until: No broker answers before that second.
    """

    chance: Random
    log: MemoryKafka = field(default_factory=MemoryKafka)
    written: dict[tuple[str, int, int], bytes] = field(default_factory=dict)
    removed: set[tuple[str, int, int]] = field(default_factory=set)
    gone: dict[str, list[int]] = field(default_factory=dict)
    down_until: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._number = 0
        self._ids = 0
        self._make(self.chance.randrange(1, 3))

    @property
    def topic_id(self) -> str:
        """That of the topic that has the name now."""
        return self.log.topics[TOPIC][0]

    def produce(self) -> None:
        """Write some records into one partition: rows, tombstones, no JSON, aborted ones and markers."""
        number = self.chance.randrange(len(self._partitions))
        partition = self._partitions[number]
        for _ in range(self.chance.randrange(1, 5)):
            kind = self.chance.random()
            if kind < 0.15:
                partition.skip(self.chance.randrange(1, 4))
                continue
            self._number += 1
            value = (
                None if kind < 0.2 else f"no json t{self._number}" if kind < 0.27 else f'{{"id": "t{self._number}"}}'
            )
            self.counts["records"] += 1
            if value is not None:
                self.written[self.topic_id, number, partition.end] = value.encode()
            partition.append(None if value is None else value.encode())

    def suffer(self, now: float) -> None:
        """Something befalls it: retention, compaction, another partition, brokers that are down, or its end."""
        kind, number = self.chance.random(), self.chance.randrange(len(self._partitions))
        partition = self._partitions[number]
        if kind < 0.35:
            partition.remove_before(self.chance.randint(partition.earliest, partition.end))
            self.counts["retention"] += 1
        elif kind < 0.6:
            for offset in [each for each in partition.records if self.chance.random() < 0.3]:
                del partition.records[offset]
                self.removed.add((self.topic_id, number, offset))
        elif kind < 0.7 and len(self._partitions) < MAX_PARTITIONS:
            self._partitions.append(MemoryPartition())
        elif kind < 0.9:
            self.down_until = now + self.chance.expovariate(1.0) * 300
            self.counts["brokers down"] += 1
        elif kind > 0.95:
            self.gone[self.topic_id] = [each.end for each in self._partitions]
            self._make(max(len(self._partitions), self.chance.randrange(1, MAX_PARTITIONS)))
            self.counts["topics made again"] += 1

    def is_gone(self, topic_id: str, partition: int, offset: int) -> bool:
        """Whether brokers have no offset of this kind any more, but had it once."""
        if topic_id in self.gone:
            return offset < self.gone[topic_id][partition]
        return topic_id == self.topic_id and offset < self._partitions[partition].earliest

    @property
    def _partitions(self) -> list[MemoryPartition]:
        return self.log.topics[TOPIC][1]

    def _make(self, partitions: int) -> None:
        self._ids += 1
        self.log.create(TOPIC, f"id{self._ids}", partitions)


@dataclass(slots=True)
class ProcessKafka:
    """The brokers as one process sees them."""

    topic_of_world: SimulatedTopic
    line: Line

    def describe(self, log: LogName) -> LiveLog | None:
        return self._asked("describe", lambda kafka: kafka.describe(log))

    def partitions(self, log: LogName) -> list[Partition]:
        return self._asked("partitions", lambda kafka: kafka.partitions(log))

    def nodes(self, cluster: str) -> int:
        return self._asked("nodes", lambda kafka: kafka.nodes(cluster))

    def inspect(self, topic: LogName) -> TopicFacts | None:
        return self._asked("inspect", lambda kafka: kafka.inspect(topic))

    def read(self, log: LogName, partition_id: str, at: int, limit_bytes: int) -> Generator[Batch]:
        yield from self._asked(
            f"read {log}/{partition_id}", lambda kafka: list(kafka.read(log, partition_id, at, limit_bytes))
        )

    def _asked(self, what: str, ask: Callable[[MemoryKafka], T]) -> T:
        def effect() -> T:
            if self.topic_of_world.down_until > self.line.scheduler.now:
                raise StoreUnavailable(f"kafka {what}: no broker answers")
            return ask(self.topic_of_world.log)

        return self.line.call(f"kafka {what}", effect)


def is_landed(uri: str) -> bool:
    """Whether a file is a landed object, or a gap."""
    return is_log(uri) or "/landed/" in uri


@dataclass(frozen=True, slots=True)
class TopicOracle:
    """What must hold of a topic when all is quiet.

    Attributes:
        topic: The topic.
        origins: By topic id and partition, the offset at which its chain begins.
        links: Likewise, its links.
    """

    topic: SimulatedTopic
    origins: Mapping[tuple[str, int], int]
    links: Mapping[tuple[str, int], Sequence[LandedLink]]

    def check(
        self,
        reports: Collection[tuple[Commit, FileReport]],
        rows: Counter[str],
        rejects: Counter[tuple[str, int, bytes]],
        is_expired: Callable[[Part, Commit], bool],
    ) -> None:
        """Take the rows and rejects of the topic out of all, each of which has to be there as often as it should.

        Args:
            reports: All landed objects and gaps in commits.
            rows: How often each id is there.
            rejects: Likewise by file, number and line.
            is_expired: Whether a part of a commit expired.

        Raises:
            Broken: A record is lost or doubled, or named as missing although it is not.
        """
        owners = {file.uri: commit for commit, file in reports if file.status is FileStatus.COMPACTED}
        gaps = {file.uri for _, file in reports if file.status is not FileStatus.COMPACTED}
        by_line: Counter[bytes] = Counter()
        for uri, number, line in [each for each in rejects if is_landed(each[0])]:
            by_line[line] += rejects.pop((uri, number, line))
        for place, value in self.topic.written.items():
            is_row = value.startswith(b"{")
            found = rows.pop(value.split(b'"')[3].decode(), 0) if is_row else by_line.pop(value, 0)
            link = self._link(*place)
            least = most = 1
            if link is None or (link.gap and place[2] + 1 < int(link.begins)):
                least = most = 0
                self._check_left_out(place, link, gaps)
            elif link.uri in owners and is_expired("rows" if is_row else "rejects", owners[link.uri]):
                least = most = 0
            elif place in self.topic.removed:
                least = 0
            if not least <= found <= most:
                raise Broken(f"{place}: {value!r} is there {found} times, expected {least} to {most}")
        if by_line:
            raise Broken(f"rejects that no record has: {[*by_line][:3]}")

    def _link(self, topic_id: str, partition: int, offset: int) -> LandedLink | None:
        found = [each for each in self.links.get((topic_id, partition), ()) if each.first <= offset < each.end]
        if len(found) > 1:
            raise Broken(f"{topic_id}/{partition}: offset {offset} is in {len(found)} links")
        return found[0] if found else None

    def _check_left_out(self, place: tuple[str, int, int], link: LandedLink | None, gaps: Collection[str]) -> None:
        """A record that was not landed is gone; and it is named, unless it went before anything was landed of it."""
        topic_id, partition, offset = place
        if not self.topic.is_gone(*place):
            raise Broken(f"{place}: is there, and {'not landed' if link is None else 'named as missing'}")
        if link is not None and str(LogGap(TOPIC, str(partition), link.first, int(link.begins))) not in gaps:
            raise Broken(f"{place}: in a gap that no manifest names")
        origin = self.origins.get((topic_id, partition))
        if link is None and topic_id not in self.topic.gone and (origin is None or offset >= origin):
            raise Broken(f"{place}: not landed, and not named as missing")
