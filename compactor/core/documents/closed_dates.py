"""What is on record about closed dates: a log of create-only summaries, and what many of them add up to. No I/O.

A date is closed by a summary of the manifests that are done and verified. A manifest of that date that ends later, and
one that is rebuilt, go into an addition, the next summary of the same date. No summary ever changes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar

from pydantic import AwareDatetime, Field

from compactor.core.documents.document import Document
from compactor.core.documents.records import NEEDS_OPERATOR, Commit, FileReport, FileStatus
from compactor.core.layout import ManifestKey


@dataclass(slots=True)
class Totals:
    """Sums over files: `lines == rows + rejected_lines + blank_lines + erased_lines`.

    An input file is a version of a file that was compacted: one that is replaced and compacted again counts once a
    version. A quarantined file is none, and neither is one of redriven lines, beside the file that they are from.

    Attributes:
        files_by_status: Files by the result for each; not those of redriven lines, whose files are counted already.
        input_bytes: Stored bytes of the input files, which are the compacted ones of these.
        decoded_bytes: Their length after decoding.
        unkept_rejects: Rejected lines that are only counted; their bytes are in the input file alone.
        erased_lines: Lines whose row or reject was erased on request since. No other count of lines has them.
        rejects_by_reason: Rejected lines by reason.
        redriven_by_reason: Lines that were redriven, by the reason for which they had been rejected before.
    """

    files_by_status: Counter[str] = field(default_factory=Counter)
    input_bytes: int = 0
    decoded_bytes: int = 0
    lines: int = 0
    rows: int = 0
    rejected_lines: int = 0
    unkept_rejects: int = 0
    blank_lines: int = 0
    erased_lines: int = 0
    rejects_by_reason: Counter[str] = field(default_factory=Counter)
    redriven_by_reason: Counter[str] = field(default_factory=Counter)

    @property
    def input_files(self) -> int:
        return self.files_by_status[FileStatus.COMPACTED]

    @property
    def quarantined_by_status(self) -> Counter[str]:
        """How many files were quarantined, by status; one that is quarantined again counts again."""
        return quarantined_of(self.files_by_status)


@dataclass(slots=True)
class CommitTotals(Totals):
    """Sums over the files of a commit, and its output.

    Attributes:
        output_files: Parquet files of rows.
        output_bytes: Their size.
        rescued_values: Values that do not fit the type of their column.
        misfits: The same by column.
    """

    output_files: int = 0
    output_bytes: int = 0
    rescued_values: int = 0
    misfits: Counter[str] = field(default_factory=Counter)


def totals_of(files: Iterable[FileReport], *, with_source: bool) -> Totals:
    """Add up files.

    Args:
        files: The reports.
        with_source: Whether the sums are added to those of the files that redriven lines are from. Such a line is
            counted there as one line and one reject: here it is no further line, and one reject less.
    """
    found = Totals()
    _add(found, files, with_source=with_source)
    return found


def commit_totals(commit: Commit, *, with_source: bool) -> CommitTotals:
    """Add up a commit; `with_source` is as for `totals_of`."""
    found = CommitTotals(
        rows=-commit.erased_rows,
        erased_lines=commit.erased_rows,
        output_files=len(commit.outputs),
        output_bytes=sum(file.size_bytes for file in commit.outputs),
        rescued_values=commit.rescued_values,
        misfits=Counter(commit.misfits),
    )
    _add(found, commit.files, with_source=with_source)
    return found


def _add(found: Totals, files: Iterable[FileReport], *, with_source: bool) -> None:
    for file in files:
        is_redriven = bool(file.source_uri)
        found.rows += file.records
        found.rejected_lines += file.rejected_lines
        found.blank_lines += file.blank_lines
        found.erased_lines += file.erased_rejects
        found.unkept_rejects += sum(file.unkept_rejects.values())
        found.rejects_by_reason.update(file.rejects)
        if is_redriven and file.lines:
            found.redriven_by_reason[file.rejected_as] += file.lines
        if is_redriven and with_source:
            found.rejected_lines -= file.lines
            found.rejects_by_reason[file.rejected_as] -= file.lines
        else:
            found.lines += file.lines
            found.files_by_status[file.status] += 1
            if file.status is FileStatus.COMPACTED:
                found.input_bytes += file.size_bytes
                found.decoded_bytes += file.decoded_bytes


def quarantined_of(files_by_status: Mapping[str, int]) -> Counter[str]:
    """Of files by the result for each, those that were quarantined. One that changed was not: see `NEEDS_OPERATOR`."""
    return Counter({each: files for each, files in files_by_status.items() if each in NEEDS_OPERATOR})


def bytes_per_byte(output_bytes: int, input_bytes: int) -> float | None:
    """Parquet bytes for each stored input byte; None without input."""
    return output_bytes / input_bytes if input_bytes else None


def are_few_rows(rows: int, rejected_lines: int) -> bool:
    """Whether under half of the lines that are not blank became rows."""
    return rows < rejected_lines


def without_zeros(counts: Counter[str]) -> Counter[str]:
    """Counts that are not zero, as a sum of many may have some."""
    return Counter({reason: lines for reason, lines in counts.items() if lines})


T = TypeVar("T")

COMMIT_MARK = b"{}"
"""The mark of a commit. Any other mark is longer, so a listing tells which manifests cannot be dead letters."""

_COUNTS = (
    *("manifests", "dead_letters", "lines", "rows", "rejected_lines", "unkept_rejects", "blank_lines"),
    "erased_lines",
    *("rescued_values", "output_files", "output_bytes"),
)
_BY_NAME = ("files_by_status", "rejects_by_reason", "misfits")


class ManifestSums(Document):
    """Sums over manifests. In an addition they may be negative: it takes back what a rebuild superseded.

    Attributes:
        manifests: Committed manifests.
        dead_letters: Manifests that are dead letters.
        files_by_status: Files of the committed manifests by the result for each; one that was redriven counts again.
        unkept_rejects: Rejected lines that are only counted.
        erased_lines: Lines whose row or reject was erased on request. No other count of lines has them.
        misfits: Values that do not fit the type of their column, by the name of the column.
    """

    manifests: int = 0
    dead_letters: int = 0
    files_by_status: dict[str, int] = Field(default_factory=dict)
    lines: int = 0
    rows: int = 0
    rejected_lines: int = 0
    unkept_rejects: int = 0
    blank_lines: int = 0
    erased_lines: int = 0
    rejects_by_reason: dict[str, int] = Field(default_factory=dict)
    rescued_values: int = 0
    misfits: dict[str, int] = Field(default_factory=dict)
    output_files: int = 0
    output_bytes: int = 0


def added(one: ManifestSums, other: ManifestSums, *, sign: int = 1) -> ManifestSums:
    """The sums of both, or with `sign=-1` their difference. Names whose count is zero are left out."""
    counts = {name: getattr(one, name) + sign * getattr(other, name) for name in _COUNTS}
    by_name = {name: _added(getattr(one, name), getattr(other, name), sign) for name in _BY_NAME}
    return ManifestSums.model_validate({**counts, **by_name})


def _added(one: Mapping[str, int], other: Mapping[str, int], sign: int) -> dict[str, int]:
    names = dict.fromkeys([*one, *other])
    sums = {name: one.get(name, 0) + sign * other.get(name, 0) for name in names}
    return {name: value for name, value in sums.items() if value}


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
    sums: ManifestSums
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
    sums: ManifestSums = Field(default_factory=ManifestSums)
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
        sums = added(sums, each.sums)
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
