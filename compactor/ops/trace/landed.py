"""Finds what became of a record, by the chains of its log: a landed object, or a gap. The log is not asked."""

from dataclasses import dataclass

from compactor.core.documents.landing import LandedLink
from compactor.core.logs.names import KINESIS, LogGap, RecordPlace, record_or_gap
from compactor.core.text.formatting import count
from compactor.ledger.landing.chains import LogChains, PartitionPlace
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class LandedRecord:
    """Where a record is, or a gap.

    Attributes:
        uri: The object that has it, else the gap that it may be in; empty if no file was made of it.
        manifest_id: The manifest that names the object or the gap.
        words: Where in it the record is, as far as the chain tells, or why it is not.
        log_id: Of its log.
    """

    uri: str
    manifest_id: str
    words: str
    log_id: str


def landed_record(state: State, uri: str) -> LandedRecord | None:
    """What became of a record, or of a gap, of the log that was landed last; None if no chain tells.

    Raises:
        ValueError: The URI names neither.
    """
    chains, found = LogChains(state), list[tuple[PartitionPlace, LandedRecord]]()
    asked = record_or_gap(uri)
    for log_id in chains.log_ids(asked.log):
        place = PartitionPlace(asked.log, log_id, asked.partition_id)
        record = _gap(chains, place, asked.after) if isinstance(asked, LogGap) else _record(chains, place, asked)
        if record is not None:
            found.append((place, record))
    return max(found, key=lambda each: chains.origin(each[0]).begun_at)[1] if found else None


def _record(chains: LogChains, place: PartitionPlace, asked: RecordPlace) -> LandedRecord | None:
    # A link has what is behind its first position, up to and with its last.
    position = asked.position
    link, named = chains.chain(place).link_with(position - 1), f"{asked.words} of id {place.log_id}"
    if link is None:
        return _gap_before(chains, place, position, named)
    if link.gap and position < int(link.begins or position + 1):
        return _lost(place, link, _LOST % named)
    return LandedRecord(link.uri, link.manifest_id, f"{named} {_words(place, position, link)}", place.log_id)


def _words(place: PartitionPlace, position: int, link: LandedLink) -> str:
    """Where the records of a link have one, after its name."""
    if link.begins and position < int(link.begins):
        return "is before the first record of this object: no record has it"
    left_out = f"{count(link.strays, 'packed record')} of other shards left out" if link.strays else ""
    if not link.lines:
        return f"is in no object: {f'there were only {left_out}' if left_out else 'no record around it has a value'}"
    if link.end - link.first == link.records == link.lines:
        return f"is line {position - link.first:,} of this object"
    is_one_each = place.log.scheme == KINESIS and not link.packed
    if is_one_each and position in {int(link.last), int(link.begins or 0)}:
        return f"is line {1 if str(position) == link.begins else link.lines:,} of this object"
    among = f"is among the {count(link.lines, 'line')} of this object"
    if link.tombstones:
        return f"{among}, unless it has no value, as {count(link.tombstones, 'record')} of it"
    return f"{among}, unless it was among {left_out}" if left_out else among


def _gap_before(chains: LogChains, place: PartitionPlace, position: int, named: str) -> LandedRecord | None:
    """The gap behind the end of a chain that a record may be in."""
    last = chains.chain(place).last()
    is_in = last is not None and last.gap and not last.begins and position > last.first
    return _lost(place, last, _LOST % named) if last is not None and is_in else None


def _gap(chains: LogChains, place: PartitionPlace, after: int) -> LandedRecord | None:
    """The gap behind a position."""
    link = chains.chain(place).at(after)
    return _lost(place, link) if link is not None and link.gap else None


_LOST = "%s is in this gap: retention may have removed it before it was landed"


def _lost(place: PartitionPlace, link: LandedLink, words: str = "") -> LandedRecord:
    gap = place.gap(link)
    return LandedRecord(
        str(gap), link.manifest_id, words or f"this gap of id {place.log_id}: {gap.words}", place.log_id
    )
