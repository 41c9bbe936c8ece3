"""The result of a verification: counts, discrepancies, quarantined files and dead letters."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from compactor.core.documents.changes import Part
from compactor.core.documents.counts import Counts, without_zeros
from compactor.core.results import as_document
from compactor.core.rules.next_steps import Cause
from compactor.ledger.accounts.account import DeadLetterManifest, QuarantinedFile


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """The table that lists the output, as it was compared."""

    name: str  # name of the table, as namespace.table
    files: int = 0  # files that the table lists, of what was verified
    rows: int = 0  # the rows of these files
    last_batch: int = 0  # the last batch that the table took
    snapshot_id: int | None = None  # the current snapshot; null without one
    waiting: int = 0  # placed manifests that wait for the table
    waiting_seconds: float | None = None  # for how long the first of these has; null without one
    held: int = 0  # manifests that are held back, because the catalog refuses them
    error: str = ""  # why the table could not be compared; empty if it was


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """A difference between the ledger and what is stored."""

    manifest_id: str  # the manifest, or empty where none is known
    where: str  # the URI of the file or record
    expected: str  # what the ledger says
    found: str  # what is stored


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file in place of no commit, which no table lists."""

    uri: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ExpiredFiles:
    """Files that a retention rule removed."""

    date: str  # of their manifests
    part: Part  # what they hold
    why: str  # when they expired, and under which rule
    files: int = 1  # how many


@as_document(
    shows=(
        "input_files",
        "quarantined_by_status",
        "open_quarantined_files",
        "open_dead_letters",
        "complete",
        "needs_operator",
    ),
    omits=("redriven_by_reason",),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult(Counts):
    """What a verification found, of everything or of a part.

    `rows + rejected_lines + blank_lines + erased_lines == lines`, or there is a discrepancy.
    """

    unfinished: int = 0  # manifests on record that are not done yet
    closed_dates: int = 0  # dates of which the summary was read in place of the records
    retired_dates: int = 0  # dates that `compactor retire` took, if everything was verified
    expiring: int = 0  # records of what expired whose deletion is not finished, if everything was verified
    output_files_verified: int = 0  # those whose footers were read, and have the rows and the size on record
    output_files_missing: int = 0  # those that are missing, and that no retention rule removed
    output_files_summed: int = 0  # those of closed dates, of which the summaries were read in place of the footers
    inputs_gone: int = 0  # inputs that `--deep` could not read again, because they are deleted or replaced
    inputs_erased: int = 0  # inputs that `--deep` did not compare: lines of their manifests were erased on request
    inputs_compared: int = 0  # inputs of which `--deep` compared every value
    discrepancies: Sequence[Discrepancy] = field(default_factory=list)  # empty if everything adds up
    # Files that a retention rule removed, by date, part and rule
    expired: Sequence[ExpiredFiles] = field(default_factory=list)
    # Quarantined input files, without those that changed, whose new version has its own event
    quarantined_files: Sequence[QuarantinedFile] = field(default_factory=list)
    dead_letter_manifests: Sequence[DeadLetterManifest] = field(default_factory=list)  # dead letters, settled or not
    orphans: int = 0  # files that attempts wrote in place in the output and no commit names; no table lists them
    orphaned_bytes: int = 0  # their total length
    table: VerifiedTable | None = None  # the table that lists the output; null if the settings name none
    deep: bool = False  # whether input files were read again

    @property
    def open_files(self) -> list[QuarantinedFile]:
        """The quarantined files that need a person because nothing settled them."""
        return [each for each in self.quarantined_files if not each.is_settled]

    @property
    def open_quarantined_files(self) -> int:
        """Quarantined files that need a person: not settled."""
        return len(self.open_files)

    @property
    def open_letters(self) -> list[DeadLetterManifest]:
        """The dead letters that need a person because nothing settled them."""
        return [each for each in self.dead_letter_manifests if not each.is_settled]

    @property
    def open_dead_letters(self) -> int:
        """Dead letters that need a person: not settled."""
        return len(self.open_letters)

    @property
    def table_error(self) -> str:
        """Why the table could not be compared; empty if it was, or if there is none."""
        return self.table.error if self.table is not None else ""

    @property
    def needs_operator(self) -> bool:
        """Whether there is a discrepancy, or a quarantined file or a dead letter that is not settled: exit code 3."""
        return bool(self.discrepancies or self.open_files or self.open_letters)

    @property
    def complete(self) -> bool:
        """Whether nothing is unfinished, no person has to act, and the table was compared, if there is one."""
        return not (self.needs_operator or self.unfinished or self.table_error)

    @property
    def open_causes(self) -> Mapping[Cause, int]:
        """How many quarantined files that are not settled have each cause."""
        return Counter(each.cause for each in self.open_files)


Finding = Discrepancy | Orphan | ExpiredFiles | VerifyResult
"""What a check yields: one thing, or the result of a part."""

_NUMBERS = [each.name for each in fields(VerifyResult) if each.type is int]
_BY_NAME = [each.name for each in fields(VerifyResult) if each.default_factory is Counter]


def result_of(findings: Iterable[Finding]) -> VerifyResult:
    """Add up findings in their order. A repeated discrepancy is kept once, and the last table counts."""
    numbers: Any = Counter()
    by_name = {name: Counter[str]() for name in _BY_NAME}
    discrepancies, expired = dict[Discrepancy, None](), Counter[tuple[str, Part, str]]()
    files, letters = list[QuarantinedFile](), list[DeadLetterManifest]()
    table, deep = None, False
    for each in findings:
        if isinstance(each, Discrepancy):
            discrepancies[each] = None
        elif isinstance(each, Orphan):
            numbers.update(orphans=1, orphaned_bytes=each.size_bytes)
        elif isinstance(each, ExpiredFiles):
            expired[each.date, each.part, each.why] += each.files
        else:
            for name in _NUMBERS:
                numbers[name] += getattr(each, name)
            for name, counter in by_name.items():
                counter.update(getattr(each, name))
            discrepancies |= dict.fromkeys(each.discrepancies)
            expired.update({(one.date, one.part, one.why): one.files for one in each.expired})
            files += each.quarantined_files
            letters += each.dead_letter_manifests
            table, deep = each.table or table, deep or each.deep
    named: Any = {name: without_zeros(counter) for name, counter in by_name.items()}
    return VerifyResult(
        **numbers,
        **named,
        discrepancies=[*discrepancies],
        expired=[ExpiredFiles(*key, number) for key, number in expired.items()],
        quarantined_files=files,
        dead_letter_manifests=letters,
        table=table,
        deep=deep,
    )
