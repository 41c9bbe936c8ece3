"""The chains of planned ranges: one for each partition of each topic id, of records that are only ever created.

The name of a link has the offset that it begins at, and it is created where the link before it ends. So of two planners
that go on from the same offset, one gets the link. No link is ever changed or deleted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from compactor.core.documents.kafka_records import KafkaLink, KafkaOrigin
from compactor.core.documents.records import read_record
from compactor.core.errors import ObjectNotFound
from compactor.core.kafka.ranges import SCHEME, Topic
from compactor.core.layout import base_name
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State

HINT_AT = 500
"""Links behind the hint at which a new hint is kept. A listing has about twice as many on one page of S3."""

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

    def begin(self, place: ChainPlace, earliest: int) -> int:
        """Return where a chain begins: at this offset, unless another planner began it before."""
        origin = KafkaOrigin(first=earliest, planned_at=self.state.clock.now())
        uri = self._origin(place)
        if self.state.store.create(uri, origin.model_dump_json().encode()):
            return earliest
        return self._read_origin(uri).first

    def head(self, place: ChainPlace) -> int | None:
        """The offset at which the next link begins; None for a chain that was not begun."""
        names = self._links_behind_hint(place)
        if names:
            return self._read_link(names[-1]).end
        try:
            return self._read_origin(self._origin(place)).first
        except ObjectNotFound:
            return None

    def link(self, place: ChainPlace, link: KafkaLink) -> KafkaLink:
        """Create a link, unless there is one that begins at the same offset; return the one that is there then."""
        uri = self._link(place, link.first)
        return link if self.state.store.create(uri, link.model_dump_json().encode()) else self._read_link(uri)

    def link_at(self, place: ChainPlace, first: int) -> KafkaLink | None:
        """The link that begins at an offset; None if there is none."""
        try:
            return self._read_link(self._link(place, first))
        except ObjectNotFound:
            return None

    def links(self, place: ChainPlace) -> Iterator[KafkaLink]:
        """All links of a chain, in order."""
        found = (info.uri for info in self.state.store.list(self._links_folder(place)))
        return map_ordered(self._read_link, found)

    def link_with(self, place: ChainPlace, offset: int) -> KafkaLink | None:
        """The link that has an offset; None if there is none."""
        last = ""
        for info in self.state.store.list(self._links_folder(place)):
            if _first_of(info.uri) > offset:
                break
            last = info.uri
        found = self._read_link(last) if last else None
        return found if found is not None and offset < found.end else None

    def origin(self, place: ChainPlace) -> KafkaOrigin:
        """Where a chain begins.

        Raises:
            ObjectNotFound: It was not begun.
        """
        return self._read_origin(self._origin(place))

    def places(self, topic: Topic | None = None) -> Iterator[ChainPlace]:
        """All chains that were begun, of one topic or of all."""
        for each in self._topics() if topic is None else [topic]:
            for topic_id in self.topic_ids(each):
                partitions = self._children(f"{self._topic_folder(each)}{topic_id}/")
                found = [int(name) for name in partitions if name.isdecimal()]
                yield from (ChainPlace(each, topic_id, partition) for partition in sorted(found))

    def topic_ids(self, topic: Topic) -> list[str]:
        """The ids of all topics of a name of which something was planned."""
        return list(self._children(self._topic_folder(topic)))

    def _topics(self) -> Iterator[Topic]:
        root = self.state.layout.kafka_folder
        for cluster in self._children(root):
            yield from (Topic(cluster, name) for name in self._children(f"{root}{cluster}/"))

    def _children(self, folder: str) -> Iterator[str]:
        """The names directly below a folder, without listing what is below each of them."""
        after: str | None = None
        while (first := next(iter(self.state.store.list(folder, start_after=after)), None)) is not None:
            name = first.uri.removeprefix(folder).partition("/")[0]
            yield name
            after = f"{folder}{name}/~"  # sorts behind all characters of names below

    def _links_behind_hint(self, place: ChainPlace) -> list[str]:
        """The links from that of the hint on. A hint that is gone, or wrong, costs only a longer listing."""
        folder, hint = self._links_folder(place), self._hint(place)
        hinted = hint if hint and self.state.store.stat(hint) is not None else ""
        behind = [info.uri for info in self.state.store.list(folder, start_after=hinted or None)]
        if len(behind) >= HINT_AT:
            self.state.store.put(self._hint_uri(place), base_name(behind[-1]).encode())
        return [hinted, *behind] if hinted else behind

    def _hint(self, place: ChainPlace) -> str:
        try:
            name = self.state.store.read(self._hint_uri(place)).decode(errors="replace")
        except ObjectNotFound:
            return ""
        is_name = name.removesuffix(".json").isdecimal() and len(name) == _DIGITS + len(".json")
        return f"{self._links_folder(place)}{name}" if is_name else ""

    def _topic_folder(self, topic: Topic) -> str:
        return f"{self.state.layout.kafka_folder}{str(topic).removeprefix(SCHEME)}/"

    def _folder(self, place: ChainPlace) -> str:
        return f"{self._topic_folder(place.topic)}{place.topic_id}/{place.partition}/"

    def _origin(self, place: ChainPlace) -> str:
        return f"{self._folder(place)}origin.json"

    def _hint_uri(self, place: ChainPlace) -> str:
        return f"{self._folder(place)}hint"

    def _links_folder(self, place: ChainPlace) -> str:
        return f"{self._folder(place)}links/"

    def _link(self, place: ChainPlace, first: int) -> str:
        return f"{self._links_folder(place)}{first:0{_DIGITS}d}.json"

    def _read_link(self, uri: str) -> KafkaLink:
        data = self.state.store.read(uri)
        return read_record(KafkaLink.model_validate_json, data, uri, kind="KafkaLink", expected="a link of a chain")

    def _read_origin(self, uri: str) -> KafkaOrigin:
        read = partial(read_record, kind="KafkaOrigin", expected="the beginning of a chain")
        return read(KafkaOrigin.model_validate_json, self.state.store.read(uri), uri)


def _first_of(uri: str) -> int:
    """The first offset of a link, by its name."""
    return int(base_name(uri).removesuffix(".json"))
