"""Finds the landed object that has a record of a stream, by the chains of its shards. The stream is not asked."""

from dataclasses import dataclass

from compactor.core.documents.chains.kinesis_records import KinesisLink
from compactor.core.kinesis.places import SequencePlace
from compactor.core.text.formatting import count
from compactor.ledger.kinesis.shard_chains import ShardChains, ShardPlace
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class LandedRecord:
    """Where a record is.

    Attributes:
        sequence: Its sequence number.
        link: What has it.
        stream_id: Of its stream.
    """

    sequence: int
    link: KinesisLink
    stream_id: str

    @property
    def words(self) -> str:
        """Where in the object the record is, as far as its link tells."""
        link, named = self.link, f"sequence number {self.sequence} of stream id {self.stream_id}"
        if link.begins and self.sequence < int(link.begins):
            why = "retention may have removed it before it was landed" if link.gap else "no record has it"
            return f"{named} is before the first record of this object: {why}"
        is_plain = link.lines == link.records
        if self.sequence == int(link.last) and is_plain:
            return f"{named} is line {link.lines:,} of this object"
        if str(self.sequence) == link.begins and is_plain:
            return f"{named} is line 1 of this object"
        return f"{named} is among the {count(link.lines, 'line')} of this object"


def landed_record(state: State, uri: str) -> LandedRecord | None:
    """The landed object with a record, of the stream that was planned last; None without one.

    Raises:
        ValueError: The URI names no record.
    """
    asked, chains = SequencePlace.parse(uri), ShardChains(state)
    found = list[tuple[ShardPlace, KinesisLink]]()
    for stream_id in chains.stream_ids(asked.stream):
        place = ShardPlace(asked.stream, stream_id, asked.shard_id)
        # A link has what is behind its first position, up to and with its last.
        link = chains.chain(place).link_with(asked.sequence - 1)
        if link is not None and link.uri:
            found.append((place, link))
    if not found:
        return None
    place, link = max(found, key=lambda each: chains.origin(each[0]).planned_at)
    return LandedRecord(asked.sequence, link, place.stream_id)
