"""What is on record about closed dates: a log of create-only summaries, and what many of them add up to. No I/O.

A date is closed by a summary of the manifests that are done and verified. A manifest of that date that ends later, and
one that is rebuilt, go into an addition, the next summary of the same date. No summary ever changes.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from pydantic import AwareDatetime, Field

from compactor.core.documents.counts import Counts
from compactor.core.documents.document import Document
from compactor.core.documents.records import FileStatus
from compactor.core.layout import ManifestKey

T = TypeVar("T")

COMMIT_MARK = b"{}"
"""The mark of a commit. Any other mark is longer, so a listing tells which manifests cannot be dead letters."""


class OpenLetter(Document):
    """A dead letter that nothing had settled when its date was closed."""

    manifest_id: str
    date: str
    reason: str
    message: str


class OpenFile(Document):
    """A quarantined file that nothing had settled for good when its date was closed.

    Attributes:
        started_at: When the attempt began that quarantined it.
    """

    manifest_id: str
    date: str
    uri: str
    status: FileStatus
    detail: str
    committed_at: datetime
    started_at: datetime


class SettledFile(Document):
    """A quarantined file of a closed date that was settled since."""

    manifest_id: str
    uri: str


class DoubledVersion(Document):
    """Two manifests of closed dates that have compacted the same version of a file; dates and ids of both."""

    first_date: str
    first_id: str
    second_date: str
    second_id: str

    @property
    def keys(self) -> tuple[ManifestKey, ManifestKey]:
        return ManifestKey(self.first_date, self.first_id), ManifestKey(self.second_date, self.second_id)


class ClosedDate(Document):
    """A summary of manifests of one date, each done and verified. Behind it stand its members and their file versions.

    Attributes:
        number: 1 closes the date; each further one is an addition.
        begins_at: The store's time of the earliest record of its members.
        until: The store's time of their latest record.
        sums: The sums over the members; less what they had in earlier summaries of the date.
        letters: Dead letters among them that were not settled.
        quarantined: Quarantined files of theirs that were not settled.
        redriven: Dead letters of any closed date that were settled since, by id: redriven, or taken over file by file.
        settled: Quarantined files of any closed date that were settled since.
        doubled: Manifests that have file versions in common, at least one of them a member.
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
        """Tells it from the summary that another log has in its place."""
        return f"{self.date} {self.run_id} {self.closed_at.isoformat()}"


class DateSpan(Document):
    """The summaries of one closed date, by their places in the log, and the times of the records behind them.

    Attributes:
        without_rejects: Places whose members have no rejected lines, or had all of them redriven.
    """

    places: list[int]
    begins_at: AwareDatetime
    until: AwareDatetime
    without_rejects: list[int] = Field(default_factory=list)


class ClosedTotals(Document):
    """What the first summaries of the log add up to. A cache: overwritten with each closing, and made again if lost.

    Attributes:
        upto: The place in the log of the last summary that is in here; 0 if none is.
        dates: The closed dates.
        sums: The sums over all their manifests.
        letters: Dead letters that are not known to be settled.
        quarantined: Quarantined files that are not known to be settled.
        doubled: Manifests that have file versions in common.
    """

    upto: int = 0
    dates: dict[str, DateSpan] = Field(default_factory=dict)
    sums: Counts = Field(default_factory=Counts)
    letters: list[OpenLetter] = Field(default_factory=list)
    quarantined: list[OpenFile] = Field(default_factory=list)
    doubled: list[DoubledVersion] = Field(default_factory=list)


class ClosingBegun(Document):
    """Says that each manifest on record is open, marked as unsummarised, of a date marked so, or in a summary."""

    run_id: str
    begun_at: AwareDatetime


class Member(NamedTuple):
    """A manifest in a summary.

    Attributes:
        generation: Of the outcome that was summarised.
        kept_rejects: Its rejected lines whose bytes are in the rejects.
        counted_rejects: Its rejected lines that are only counted.
    """

    id: str
    generation: int
    kept_rejects: int
    counted_rejects: int


def totals_with(totals: ClosedTotals, later: Sequence[tuple[int, ClosedDate]]) -> ClosedTotals:
    """Add the summaries that follow in the log, each with its place. What one settles may be in an earlier one."""
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
        # In an addition the sums of what it takes back may hide rejects.
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
