"""Finds the range of a Kafka partition that has an offset, by the chains of planned ranges. No broker is asked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from compactor.core.documents.chains.kafka_records import KafkaLink
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import FileReport
from compactor.core.kafka.ranges import KafkaRange, RecordPlace, Topic
from compactor.core.kafka.value_lines import KafkaValues, ValueLines
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
        values: Whether its values are records or lines; None until its manifest is taken in.
    """

    uri: str
    manifest_id: str
    offset: int
    topic_id: str
    is_record: bool
    values: KafkaValues | None

    def words(self, report: FileReport | None) -> str:
        """Which lines of the range the offset has, by the report on it; empty if a whole range was asked for."""
        if not self.is_record:
            return ""
        what = f"offset {self.offset:,} of topic id {self.topic_id} is"
        lines = report.value_lines if report is not None else None
        if lines is None and self.values == "record":
            lines = ValueLines(KafkaRange.parse(self.uri))
        if lines is None:
            return f"{what} in this range"
        first, last = lines.lines_of(self.offset)
        if first == last:
            return f"{what} line {first:,} of this range"
        among = "" if lines.is_exact(self.offset) else "among "
        return f"{what} {among}lines {first:,} to {last:,} of this range"


def range_of(state: State, uri: str) -> FoundRange | None:
    """The range that a URI of an offset, or of a range, is in; of the topic that was planned last. None without one."""
    topic, partition, offset = _asked(uri)
    links = [*_links(Chains(state), topic, partition, offset)]
    if not links:
        return None
    place, link = max(links, key=lambda each: Chains(state).origin(each[0]).planned_at)
    named = next((each for each in _named(state, link) if _has(each, place, offset)), None)
    whole = str(KafkaRange(topic, partition, link.first, link.end))  # until its manifest is taken in
    name, values = (whole, None) if named is None else (named.uri, named.kafka_values or "record")
    return FoundRange(name, link.manifest_id, offset, place.topic_id, RecordPlace.parse(uri) is not None, values)


def part_with(found: FoundRange, redriven: Manifest) -> FoundRange | None:
    """The part of a range with the offset, in a manifest that redrives the range in parts; None if it does not."""
    for file in redriven.files:
        if file.part_of == found.uri and KafkaRange.parse(file.uri).has(found.offset):
            values = file.kafka_values or "record"
            return replace(found, uri=file.uri, manifest_id=redriven.manifest_id, values=values)
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


def _named(state: State, link: KafkaLink) -> Iterator[ManifestFile]:
    """The ranges of the manifest of a link, once it was taken in."""
    accepted = state.ledger.accepted(link.manifest_id)
    if accepted is not None and accepted.manifest is not None:
        yield from accepted.manifest.files


def _has(file: ManifestFile, place: ChainPlace, offset: int) -> bool:
    found = KafkaRange.parse(file.uri)
    return (found.topic, found.partition) == (place.topic, place.partition) and found.has(offset)
