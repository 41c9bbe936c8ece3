"""Finds the manifests that are in no summary of a closed date, whose records must be read.

A manifest is open, then marked, then summarised, and each state starts before the previous one ends. Reading in this
order misses no manifest that moves on meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from compactor.core.documents.closed_dates import ClosedTotals, Member
from compactor.core.documents.records import OpenMarker
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import ManifestKey, id_from_name, is_delivery, ledger_order
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.history.closed_dates import ClosedDates, Mark
from compactor.ledger.ledger import newest_generation
from compactor.ledger.state import State

Found = tuple[ManifestKey, int]
"""A manifest, and its generation that is open, marked or on record."""


@dataclass(frozen=True, slots=True)
class Unsummarised:
    """The totals of the summaries, and the manifests to read.

    Attributes:
        keys: Manifests that are in no summary, or were rebuilt since; in ledger order.
        superseded: Their generations that the totals already include: subtract them.
        marked_dates: Dates with their own mark or a manifest's mark.
        commits: Manifests that the listing shows to be commits.
    """

    totals: ClosedTotals
    keys: list[ManifestKey]
    superseded: list[Found]
    marked_dates: frozenset[str] = frozenset()
    commits: frozenset[ManifestKey] = frozenset()

    @property
    def open_dates(self) -> list[str]:
        """The dates with manifests that are not closed."""
        return [date for date in dict.fromkeys(key.date for key in self.keys) if date not in self.totals.dates]


def read_unsummarised(state: State, *, begun_only: bool = False) -> Unsummarised | None:
    """Find the manifests in no summary; None if this state closes no dates, so that all records must be read.

    Args:
        state: Source of the records.
        begun_only: Omit accepted manifests that were not started: they wait in the watched prefix.

    Raises:
        RecordUnreadable: A summary or the record of an open manifest is damaged, or in a newer format.
    """
    dates = ClosedDates(state.store, state.layout)
    if not dates.has_begun():
        return None
    found = _opened(state) + ([] if begun_only else _waiting(state))
    marks = list(dates.marks())
    found += marked(state, marks)
    marked_dates, commits = {mark.key.date for mark in marks}, {mark.key for mark in marks if mark.is_of_commit}
    whole = unsummarised_of(dates, dates.totals(), found)
    return replace(whole, marked_dates=frozenset(marked_dates), commits=frozenset(commits))


def dates_of_records(state: State, since: datetime, until: datetime) -> Iterable[str]:
    """The dates that may have records written in a time span, earliest first."""
    found = unsummarised_if_readable(state)
    if found is None:
        return state.ledger.dates()
    spans = found.totals.dates.items()
    near = {date for date, span in spans if span.begins_at <= until and since <= span.until}
    return sorted(near | found.marked_dates | {key.date for key in found.keys})


def unsummarised_if_readable(state: State, *, begun_only: bool = False) -> Unsummarised | None:
    """As `read_unsummarised`; None also if a summary is unreadable, so that all records must be read."""
    try:
        return read_unsummarised(state, begun_only=begun_only)
    except RecordUnreadable:  # `verify` reports it
        return None


def unsummarised_of(dates: ClosedDates, totals: ClosedTotals, found: Iterable[Found]) -> Unsummarised:
    """Those of the given manifests that are in no summary, or were rebuilt since."""
    generations: dict[ManifestKey, int] = {}
    for key, generation in found:
        generations[key] = max(generation, generations.get(key, 0))
    keys: list[ManifestKey] = []
    superseded: list[Found] = []
    in_order = sorted(generations, key=ledger_order)
    for date, group in groupby(in_order, key=lambda key: key.date):
        known = summarised_generations(dates, totals, date)
        for key in group:
            summarised = known.get(key.id, 0)
            if summarised < generations[key]:  # guard: a manifest is in no summary twice
                keys.append(key)
                superseded += [(key, summarised)] if summarised else []
    return Unsummarised(totals, keys, superseded)


def summarised_generations(dates: ClosedDates, totals: ClosedTotals, date: str) -> dict[str, int]:
    """The summarised generation of each manifest of a date; empty if the date is not closed."""
    return {member.id: member.generation for place in totals.places(date) for member in dates.members(place)}


def marked(state: State, marks: Sequence[Mark]) -> Iterator[Found]:
    """The marked manifests, and every one on record of the dates that are marked as a whole."""
    yield from ((mark.key, mark.generation) for mark in marks if mark.key.id)
    for date in dict.fromkeys(mark.key.date for mark in marks if not mark.key.id):
        yield from recorded(state, date)


def recorded(state: State, date: str) -> Iterator[Found]:
    """Every manifest of a date with records, and the generation of its outcome, or 1."""
    return ((key, newest_generation(records) or 1) for key, records in state.ledger.listed(date))


def summarised_since(state: State, totals: ClosedTotals, moment: datetime) -> Iterator[ManifestKey]:
    """The members of closed dates with records from a time on. See `_members`."""
    for date, span in totals.dates.items():
        if span.until >= moment:
            yield from _members(state, date, span.places)


def members_with_rejects(state: State, totals: ClosedTotals, *, counted: bool = False) -> Iterator[ManifestKey]:
    """The members of summaries with kept rejected lines, optionally also only counted ones, redriven or not. By date.

    See `_members`.
    """

    def has_rejects(member: Member) -> bool:
        return bool(member.kept_rejects or (counted and member.counted_rejects))

    def of_date(span: tuple[str, list[int]]) -> list[ManifestKey]:
        return _members(state, *span, has_rejects)

    spans = sorted(totals.dates.items())
    places = [(date, [each for each in span.places if each not in span.without_rejects]) for date, span in spans]
    for found in map_ordered(of_date, places):
        yield from found


def _members(
    state: State, date: str, places: Iterable[int], is_wanted: Callable[[Member], bool] = lambda _: True
) -> list[ManifestKey]:
    """The members of a date's summaries; all recorded manifests of the date if a summary is unreadable."""
    dates = ClosedDates(state.store, state.layout)
    try:
        members = [member for place in places for member in dates.members(place)]
    except RecordUnreadable:  # `data close` reports it
        return [key for key, _ in recorded(state, date)]
    return list(dict.fromkeys(ManifestKey(date, each.id) for each in members if is_wanted(each)))


def _opened(state: State) -> list[Found]:
    """Open manifests. One that was closed since the listing is marked by now."""
    infos = (info for info in state.store.list(state.layout.open_folder) if info.uri.endswith(".json"))

    def read(info: ObjectInfo) -> Found | None:
        marker = OpenMarker.find(state.store, info.uri)
        return None if marker is None else (marker.key, state.layout.opened_generation(info.uri))

    return [each for each in map_ordered(read, infos) if each is not None]


def _waiting(state: State) -> list[Found]:
    """Accepted manifests in the watched prefix, found by the names that planners give."""
    infos = (info for info in state.store.list(state.layout.manifests_folder) if is_delivery(info.uri))

    def read(info: ObjectInfo) -> Found | None:
        accepted = state.ledger.accepted(id_from_name(info.uri))
        is_one = accepted is not None and accepted.source_uri == info.uri
        return (accepted.key, 1) if accepted is not None and is_one else None

    return [each for each in map_ordered(read, infos) if each is not None]
