"""Finds what became of a record, by the chains of its shards: a landed object, or a gap. The stream is not asked."""

from dataclasses import dataclass

from compactor.core.documents.chains.kinesis_records import KinesisLink
from compactor.core.kinesis.places import SequencePlace, StreamGap
from compactor.core.text.formatting import count
from compactor.ledger.kinesis.shard_chains import ShardChains, ShardPlace
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class LandedRecord:
    """Where a record is, or a gap.

    Attributes:
        uri: The object that has it, else the gap that it may be in; empty if no file was made of it.
        manifest_id: The manifest that names the object or the gap.
        words: Where in it the record is, as far as the chain tells, or why it is not.
        stream_id: Of its stream.
    """

    uri: str
    manifest_id: str
    words: str
    stream_id: str


def landed_record(state: State, uri: str) -> LandedRecord | None:
    """What became of a record, or of a gap, of the stream that was planned last; None if no chain tells.

    Raises:
        ValueError: The URI names neither.
    """
    chains, found = ShardChains(state), list[tuple[ShardPlace, LandedRecord]]()
    asked = StreamGap.parse(uri) if "?after=" in uri else SequencePlace.parse(uri)
    for stream_id in chains.stream_ids(asked.stream):
        place = ShardPlace(asked.stream, stream_id, asked.shard_id)
        record = (
            _gap(chains, place, asked.after)
            if isinstance(asked, StreamGap)
            else _record(chains, place, asked.sequence) or _gap_before(chains, place, asked.sequence)
        )
        if record is not None:
            found.append((place, record))
    return max(found, key=lambda each: chains.origin(each[0]).planned_at)[1] if found else None


def _record(chains: ShardChains, place: ShardPlace, sequence: int) -> LandedRecord | None:
    # A link has what is behind its first position, up to and with its last.
    link = chains.chain(place).link_with(sequence - 1)
    if link is None:
        return None
    named = f"sequence number {sequence} of stream id {place.stream_id}"
    if link.gap and sequence < int(link.begins or sequence + 1):
        return _lost(place, link.first, int(link.begins or 0), link.manifest_id, named)
    return LandedRecord(link.uri, link.manifest_id, f"{named} {_words(sequence, link)}", place.stream_id)


def _words(sequence: int, link: KinesisLink) -> str:
    """Where the records of a link have one, after its name."""
    if link.begins and sequence < int(link.begins):
        return "is before the first record of this object: no record has it"
    left_out = f"{count(link.strays, 'packed record')} of other shards left out" if link.strays else ""
    if not link.lines:
        return f"is in no object: of its records, there were only {left_out}"
    if not link.packed and sequence == int(link.last):
        return f"is line {link.lines:,} of this object"
    if not link.packed and str(sequence) == link.begins:
        return "is line 1 of this object"
    among = f"is among the {count(link.lines, 'line')} of this object"
    return f"{among}, unless it was among {left_out}" if left_out else among


def _gap_before(chains: ShardChains, place: ShardPlace, sequence: int) -> LandedRecord | None:
    """The gap behind the end of a chain that a record may be in."""
    last = chains.chain(place).last()
    if last is not None and last.end >= sequence:
        return None
    found = _gap(chains, place, 0 if last is None else last.end)
    named = f"sequence number {sequence} of stream id {place.stream_id}"
    return None if found is None else LandedRecord(found.uri, found.manifest_id, _LOST % named, found.stream_id)


def _gap(chains: ShardChains, place: ShardPlace, after: int) -> LandedRecord | None:
    """The latest gap behind a sequence number."""
    link, named = chains.chain(place).at(after), f"of stream id {place.stream_id}"
    if link is not None and link.gap:
        return _lost(place, after, int(link.begins or 0), link.manifest_id, named)
    losses = [each for each in chains.losses(place).links() if int(each.after) == after]
    return _lost(place, after, 0, losses[-1].manifest_id, named) if losses else None


_LOST = "%s is in this gap: retention may have removed it before it was landed"


def _lost(place: ShardPlace, after: int, before: int, manifest_id: str, named: str) -> LandedRecord:
    gap = StreamGap(place.stream, place.shard_id, after, before)
    words = _LOST % named if named.startswith("sequence") else f"this gap {named}: {gap.words}"
    return LandedRecord(str(gap), manifest_id, words, place.stream_id)
