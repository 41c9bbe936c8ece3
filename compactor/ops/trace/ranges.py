"""Finds the range of a Kafka partition that has an offset, by the chains of planned ranges. No broker is asked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from compactor.core.documents.chains.kafka_records import KafkaLink
from compactor.core.documents.manifest import Manifest
from compactor.core.kafka.ranges import KafkaRange, RecordPlace, Topic
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class FoundRange:
    """Where an offset is.

    Attributes:
        uri: The range in its manifest.
        manifest_id: The manifest that was planned for it; a redrive may have it since.
        offset: The offset that was asked for, or the first one of the range that was.
        topic_id: Of its topic.
        is_record: Whether an offset was asked for.
    """

    uri: str
    manifest_id: str
    offset: int
    topic_id: str
    is_record: bool

    @property
    def words(self) -> str:
        """Which line of the range the offset is; empty if a whole range was asked for."""
        if not self.is_record:
            return ""
        line = self.offset - KafkaRange.parse(self.uri).first + 1
        return f"offset {self.offset:,} of topic id {self.topic_id} is line {line:,} of this range"


def range_of(state: State, uri: str) -> FoundRange | None:
    """The range that a URI of an offset, or of a range, is in; of the topic that was planned last. None without one."""
    topic, partition, offset = _asked(uri)
    found = [*_links(Chains(state), topic, partition, offset)]
    if not found:
        return None
    place, link = max(found, key=lambda each: Chains(state).origin(each[0]).planned_at)
    named = next((each for each in _named(state, link) if _has(each, place, offset)), None)
    whole = KafkaRange(topic, partition, link.first, link.end)  # until its manifest is taken in
    is_record = RecordPlace.parse(uri) is not None
    return FoundRange(str(named or whole), link.manifest_id, offset, place.topic_id, is_record)


def part_with(found: FoundRange, redriven: Manifest) -> FoundRange | None:
    """The part of a range with the offset, in a manifest that redrives the range in parts; None if it does not."""
    for file in redriven.files:
        if file.part_of == found.uri and KafkaRange.parse(file.uri).has(found.offset):
            return replace(found, uri=file.uri, manifest_id=redriven.manifest_id)
    return None


def _asked(uri: str) -> tuple[Topic, int, int]:
    """The topic, the partition and the first offset.

    Raises:
        ValueError: The URI names no offset and no range.
    """
    record = RecordPlace.parse(uri)
    if record is not None:
        return record.topic, record.partition, record.offset
    asked = KafkaRange.parse(uri)
    return asked.topic, asked.partition, asked.first


def _links(chains: Chains, topic: Topic, partition: int, offset: int) -> Iterator[tuple[ChainPlace, KafkaLink]]:
    for topic_id in chains.topic_ids(topic):
        place = ChainPlace(topic, topic_id, partition)
        link = chains.link_with(place, offset)
        if link is not None:
            yield place, link


def _named(state: State, link: KafkaLink) -> Iterator[KafkaRange]:
    """The ranges of the manifest of a link, once it was taken in."""
    accepted = state.ledger.accepted(link.manifest_id)
    if accepted is not None and accepted.manifest is not None:
        yield from (KafkaRange.parse(file.uri) for file in accepted.manifest.files)


def _has(found: KafkaRange, place: ChainPlace, offset: int) -> bool:
    return (found.topic, found.partition) == (place.topic, place.partition) and found.has(offset)
