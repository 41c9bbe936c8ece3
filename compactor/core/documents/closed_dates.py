"""The records of closed dates: a log of create-only summaries, and their totals. No I/O.

A date is closed by a summary of its manifests that are done and verified. A manifest that is finished or rebuilt later
goes into an addition, the date's next summary. Summaries never change.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from pydantic import AwareDatetime, Field

from compactor.core.documents.counts import Counts
from compactor.core.documents.document import Document, ManifestRecord
from compactor.core.documents.records import FileStatus
from compactor.core.layout import ManifestKey

T = TypeVar("T")

COMMIT_MARK = b"{}"
"""The mark of a commit. All other marks are longer, so a listing shows which manifests are commits."""


class OpenLetter(ManifestRecord):
    """A dead letter that was unsettled when its date was closed."""

    reason: str
    message: str


class OpenFile(ManifestRecord):
    """A quarantined file that was not finally settled when its date was closed.

    Attributes:
        started_at: When the attempt that quarantined the file started.
    """

    uri: str
    status: FileStatus
    detail: str
    committed_at: datetime
    started_at: datetime


class SettledFile(Document):
    """A quarantined file of a closed date that was settled later."""

    manifest_id: str
    uri: str


class DoubledVersion(Document):
    """Two manifests of closed dates that compacted the same version of a file."""

    first_date: str
    first_id: str
    second_date: str
    second_id: str

    @property
    def keys(self) -> tuple[ManifestKey, ManifestKey]:
        return ManifestKey(self.first_date, self.first_id), ManifestKey(self.second_date, self.second_id)


class ClosedDate(Document):
    """A summary of manifests of one date. Their list and their file versions follow it in the object.

    Attributes:
        number: 1 closes the date; later ones are additions.
        begins_at: The store's time of the earliest record of its members.
        until: The store's time of their latest record.
        sums: The sums over the members, minus their share in earlier summaries of the date.
        letters: Members that are dead letters and not settled.
        quarantined: Quarantined files of members that are not settled.
        redriven: Ids of dead letters of any closed date that were settled since.
        settled: Quarantined files of any closed date that were settled since.
        doubled: Manifests with a file version in common, at least one of them a member.
        member_bytes: The length of the list of members, which follows this document and a line feed.
        versions: The number of file versions. Their digests follow the members, then the numbers of their members.
    """

    date: str
    number: int
    run_id: str
    closed_at: AwareDatetime
    begins_at: AwareDatetime
    until: AwareDatetime
    sums: Counts
    letters: list[OpenLetter] = Field(default_factory=list)
    quarantined: list[OpenFile] = Field(default_factory=list)
    redriven: list[str] = Field(default_factory=list)
    settled: list[SettledFile] = Field(default_factory=list)
    doubled: list[DoubledVersion] = Field(default_factory=list)
    members: int
    member_bytes: int
    versions: int

    @property
    def fingerprint(self) -> str:
        """Differs from the fingerprint of a summary at the same place in another log."""
        return f"{self.date} {self.run_id} {self.closed_at.isoformat()}"


class DateSpan(Document):
    """The summaries of one closed date, and the time span of the records that they cover.

    Attributes:
        places: Places of the summaries in the log.
        without_rejects: Places whose members have no rejected lines, or only redriven ones.
    """

    places: list[int]
    begins_at: AwareDatetime
    until: AwareDatetime
    without_rejects: list[int] = Field(default_factory=list)


class ClosedTotals(Document):
    """The totals of the first summaries in the log. A cache: overwritten by each closing, and rebuilt if lost.

    Attributes:
        upto: The place of the last summary that is included; 0 for none.
        letters: Dead letters not known to be settled.
        quarantined: Quarantined files not known to be settled.
        doubled: Manifests with file versions in common.
    """

    upto: int = 0
    dates: dict[str, DateSpan] = Field(default_factory=dict)
    sums: Counts = Field(default_factory=Counts)
    letters: list[OpenLetter] = Field(default_factory=list)
    quarantined: list[OpenFile] = Field(default_factory=list)
    doubled: list[DoubledVersion] = Field(default_factory=list)

    def places(self, date: str) -> Sequence[int]:
        """The places of a date's summaries; empty if it is not closed."""
        return self.dates[date].places if date in self.dates else ()


class ClosingBegun(Document):
    """Declares that each manifest on record is open, summarised, or marked as unsummarised (itself or its date)."""

    run_id: str
    begun_at: AwareDatetime


class Member(NamedTuple):
    """A manifest in a summary.

    Attributes:
        generation: The summarised outcome's generation.
        kept_rejects: Rejected lines whose bytes are in the rejects.
        counted_rejects: Rejected lines that are only counted.
    """

    id: str
    generation: int
    kept_rejects: int
    counted_rejects: int


def totals_with(totals: ClosedTotals, later: Sequence[tuple[int, ClosedDate]]) -> ClosedTotals:
    """Add the next summaries of the log, given with their places. One may settle what an earlier one left open."""
    if not later:
        return totals
    sums, dates = totals.sums, dict(totals.dates)
    for place, each in later:
        sums += each.sums
        dates[each.date] = _span(dates.get(each.date), place, each)
    letters = {each.manifest_id: each for each in _all(totals.letters, (each.letters for _, each in later))}
    files = {
        (each.manifest_id, each.uri): each for each in _all(totals.quarantined, (each.quarantined for _, each in later))
    }
    for _, each in later:
        for manifest_id in each.redriven:
            letters.pop(manifest_id, None)
        for file in each.settled:
            files.pop((file.manifest_id, file.uri), None)
    return ClosedTotals(
        upto=later[-1][0],
        dates=dates,
        sums=sums,
        letters=list(letters.values()),
        quarantined=list(files.values()),
        doubled=_all(totals.doubled, (each.doubled for _, each in later)),
    )


def _span(known: DateSpan | None, place: int, summary: ClosedDate) -> DateSpan:
    if known is None:
        # # In an addition, the subtracted sums may hide rejects.
        without = [place] if not (summary.sums.rejected_lines or summary.sums.rejects_by_reason) else []
        return DateSpan(places=[place], begins_at=summary.begins_at, until=summary.until, without_rejects=without)
    return DateSpan(
        places=[*known.places, place],
        begins_at=min(known.begins_at, summary.begins_at),
        until=max(known.until, summary.until),
        without_rejects=known.without_rejects,
    )


def _all(first: Sequence[T], more: Iterable[Sequence[T]]) -> list[T]:
    return [*first, *(each for some in more for each in some)]
