"""The chains of planned ranges: one for each partition of each topic id, of records that are only ever created."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compactor.core.documents.chains.kafka_records import KafkaLink, KafkaOrigin
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.kafka.ranges import SCHEME, Topic
from compactor.core.map_ordered import map_ordered
from compactor.ledger.chains.chain import Chain, children
from compactor.ledger.state import State

_DIGITS = 19  # of the largest offset


@dataclass(frozen=True, slots=True, order=True)
class ChainPlace:
    """One chain: a partition of one topic id."""

    topic: Topic
    topic_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition} of topic id {self.topic_id}"


@dataclass(frozen=True, slots=True)
class Chains:
    """Reads and writes the chains."""

    state: State

    def drafts_folder(self, topic: Topic, topic_id: str) -> str:
        """The folder of the drafts of manifests of a topic."""
        return f"{self._topic_folder(topic)}{topic_id}/drafts/"

    def drafts_folders(self) -> Iterator[tuple[str, str]]:
        """The folders of all drafts, each with its topic."""
        for topic in self._topics():
            yield from ((str(topic), self.drafts_folder(topic, each)) for each in self.topic_ids(topic))

    def begin(self, place: ChainPlace, first: int, partitions: int) -> int:
        """Return where a chain begins: at this offset, unless another planner began it before.

        Args:
            place: The chain.
            first: The offset.
            partitions: How many the topic has.
        """
        origin = KafkaOrigin(first=first, planned_at=self.state.clock.now(), partitions=partitions)
        uri = self._origin(place)
        if self.state.store.create(uri, origin.to_json()):
            return first
        return self._read_origin(uri).first

    def head(self, place: ChainPlace) -> int | None:
        """The offset at which the next link begins; None for a chain that was not begun."""
        last = self.chain(place).last()
        if last is not None:
            return last.end
        try:
            return self._read_origin(self._origin(place)).first
        except ObjectNotFound:
            return None

    def chain(self, place: ChainPlace) -> Chain[KafkaLink]:
        """The links of a partition."""
        return Chain(self.state.store, self._folder(place), _DIGITS, _read_link)

    def link(self, place: ChainPlace, link: KafkaLink) -> KafkaLink:
        """Create a link, unless there is one that begins at the same offset; return the one that is there then."""
        return self.chain(place).create(link)

    def link_at(self, place: ChainPlace, first: int) -> KafkaLink | None:
        """The link that begins at an offset; None if there is none."""
        return self.chain(place).at(first)

    def links(self, place: ChainPlace) -> Iterator[KafkaLink]:
        """All links of a chain, in order."""
        return self.chain(place).links()

    def link_with(self, place: ChainPlace, offset: int) -> KafkaLink | None:
        """The link that has an offset; None if there is none."""
        return self.chain(place).link_with(offset)

    def origin(self, place: ChainPlace) -> KafkaOrigin:
        """Where a chain begins.

        Raises:
            ObjectNotFound: It was not begun.
        """
        return self._read_origin(self._origin(place))

    def partitions_at_first(self, begun: Iterable[ChainPlace]) -> int | None:
        """How many partitions a topic had when it was first planned.

        Args:
            begun: Its chains that were begun.

        Returns:
            None without such a chain; 0 if where one began cannot be read, so that no loss is kept quiet.
        """
        return min(map_ordered(self._partitions_then, begun), default=None)

    def _partitions_then(self, place: ChainPlace) -> int:
        try:
            return self.origin(place).partitions
        except (ObjectNotFound, StuckError):
            return 0  # guard: no loss of a new partition is kept quiet because a record is damaged

    def places(self, topic: Topic | None = None) -> Iterator[ChainPlace]:
        """All chains that were begun, of one topic or of all."""
        for each in self._topics() if topic is None else [topic]:
            for topic_id in self.topic_ids(each):
                partitions = children(self.state.store, f"{self._topic_folder(each)}{topic_id}/")
                found = [int(name) for name in partitions if name.isdecimal()]
                yield from (ChainPlace(each, topic_id, partition) for partition in sorted(found))

    def topic_ids(self, topic: Topic) -> list[str]:
        """The ids of all topics of a name of which something was planned."""
        return list(children(self.state.store, self._topic_folder(topic)))

    def _topics(self) -> Iterator[Topic]:
        root, store = self.state.layout.kafka_folder, self.state.store
        for cluster in children(store, root):
            yield from (Topic(cluster, name) for name in children(store, f"{root}{cluster}/"))

    def _topic_folder(self, topic: Topic) -> str:
        return f"{self.state.layout.kafka_folder}{str(topic).removeprefix(SCHEME)}/"

    def _folder(self, place: ChainPlace) -> str:
        return f"{self._topic_folder(place.topic)}{place.topic_id}/{place.partition}/"

    def _origin(self, place: ChainPlace) -> str:
        return f"{self._folder(place)}origin.json"

    def _read_origin(self, uri: str) -> KafkaOrigin:
        return KafkaOrigin.read(self.state.store.read(uri), uri, "the beginning of a chain")


def _read_link(data: bytes, uri: str) -> KafkaLink:
    return KafkaLink.read(data, uri, "a link of a chain")
