"""The result of a verification: counts, discrepancies, quarantined files and dead letters."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from compactor.core.documents.changes import Part
from compactor.core.documents.counts import Counts, without_zeros
from compactor.core.results import as_document, printed
from compactor.core.rules.next_steps import Cause
from compactor.ledger.accounts.account import DeadLetterManifest, QuarantinedFile


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """The table that lists the output, as compared."""

    name: str  # name of the table, as namespace.table
    files: int = 0  # files listed in the table, within the verified scope
    rows: int = 0  # rows in these files
    last_batch: int = 0  # the last batch that the table took
    snapshot_id: int | None = None  # the current snapshot; null without one
    waiting: int = 0  # published manifests that wait for the table
    waiting_seconds: float | None = None  # how long the first of these has waited; null without one
    held: int = 0  # held-back manifests, because the catalog refuses them
    error: str = ""  # why the table could not be compared; empty if it was


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """A difference between the ledger and the stored data."""

    manifest_id: str  # the manifest, or empty if unknown
    where: str  # the URI of the file or record
    expected: str  # what the ledger says
    found: str  # what is stored
    is_lost: bool = False  # whether it is a lost or damaged file of output or rejects


@dataclass(frozen=True, slots=True)
class Orphan:
    """An uncommitted file in the output that no table lists."""

    uri: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ExpiredFiles:
    """Files that a retention rule removed, or lost files that an operator gave up."""

    date: str  # date of their manifests
    part: Part  # their content
    why: str  # when they expired, and under which rule; or who gave them up, and why
    dismissed: bool = False  # whether they were lost and given up
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
@printed(
    *("complete", "manifests", "unfinished", "input_files", "lines", "rows", "rejected_lines", "blank_lines"),
    *("erased_lines", "output_files", "deep", "problems", "table_error"),
)
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VerifyResult(Counts):
    """The result of a verification of everything or of a part.

    `rows + rejected_lines + blank_lines + erased_lines == lines`, or there is a discrepancy.
    """

    unfinished: int = 0  # recorded manifests that are not done yet
    closed_dates: int = 0  # closed dates whose summary was read instead of the records
    expired_dates: int = 0  # dates deleted by `compactor data expire`, if everything was verified
    expiring: int = 0  # records of expired data whose deletion is unfinished, if everything was verified
    output_files_verified: int = 0  # files whose footers were read, and match the recorded rows and size
    output_files_missing: int = 0  # missing files that no retention rule deleted
    output_files_summed: int = 0  # files of closed dates, from summaries instead of footers
    inputs_gone: int = 0  # inputs that `--deep` could not reread, because they were deleted or replaced
    inputs_erased: int = 0  # inputs that `--deep` did not compare: lines of their manifests were erased on request
    inputs_compared: int = 0  # inputs whose every value was compared by `--deep`
    discrepancies: Sequence[Discrepancy] = field(default_factory=list)  # empty if everything is consistent
    # Files deleted by a retention rule, or lost and given up, by date, part and reason
    expired: Sequence[ExpiredFiles] = field(default_factory=list)
    # Quarantined input files, without those that changed, whose new version has its own event
    quarantined_files: Sequence[QuarantinedFile] = field(default_factory=list)
    dead_letter_manifests: Sequence[DeadLetterManifest] = field(default_factory=list)  # dead letters, settled or not
    orphans: int = 0  # uncommitted files that attempts wrote in place in the output; no table lists them
    orphaned_bytes: int = 0  # their total size
    table: VerifiedTable | None = None  # the table that lists the output; null if the settings name none
    deep: bool = False  # whether input files were reread

    @property
    def open_files(self) -> list[QuarantinedFile]:
        """The quarantined files that need an operator because nothing settled them."""
        return [each for each in self.quarantined_files if not each.is_settled]

    @property
    def open_quarantined_files(self) -> int:
        """Quarantined files that need an operator: not settled."""
        return len(self.open_files)

    @property
    def open_letters(self) -> list[DeadLetterManifest]:
        """The dead letters that need an operator because nothing settled them."""
        return [each for each in self.dead_letter_manifests if not each.is_settled]

    @property
    def open_dead_letters(self) -> int:
        """Dead letters that need an operator: not settled."""
        return len(self.open_letters)

    @property
    def lost_manifests(self) -> list[str]:
        """The manifests with lost or damaged files."""
        return list(dict.fromkeys(each.manifest_id for each in self.discrepancies if each.is_lost))

    @property
    def problems(self) -> list[str]:
        """What a person has to act on, in one line each."""
        return [
            *(f"{each.uri}: {each.status}: {each.detail}" for each in self.open_files),
            *(f"manifest {each.manifest_id}: {each.reason}: {each.message}" for each in self.open_letters),
            *(f"{each.where}: expected {each.expected}, found {each.found}" for each in self.discrepancies),
        ]

    @property
    def table_error(self) -> str:
        """Why the table could not be compared; empty if it was, or if there is none."""
        return self.table.error if self.table is not None else ""

    @property
    def needs_operator(self) -> bool:
        """Whether there is a discrepancy, or an unsettled quarantined file or dead letter: exit code 3."""
        return bool(self.discrepancies or self.open_files or self.open_letters)

    @property
    def complete(self) -> bool:
        """Whether nothing is unfinished, nothing needs an operator, and the table was compared, if there is one."""
        return not (self.needs_operator or self.unfinished or self.table_error)

    @property
    def open_causes(self) -> Mapping[Cause, int]:
        """How many unsettled quarantined files have each cause."""
        return Counter(each.cause for each in self.open_files)


Finding = Discrepancy | Orphan | ExpiredFiles | VerifyResult
"""The result of a check: one item, or the result of a part."""

_NUMBERS = [each.name for each in fields(VerifyResult) if each.type is int]
_BY_NAME = [each.name for each in fields(VerifyResult) if each.default_factory is Counter]


def result_of(findings: Iterable[Finding]) -> VerifyResult:
    """Add up findings in order. A repeated discrepancy is kept once, and the last table counts."""
    numbers: Any = Counter()
    by_name = {name: Counter[str]() for name in _BY_NAME}
    discrepancies, expired = dict[Discrepancy, None](), Counter[tuple[str, Part, str, bool]]()
    files, letters = list[QuarantinedFile](), list[DeadLetterManifest]()
    table, deep = None, False
    for each in findings:
        if isinstance(each, Discrepancy):
            discrepancies[each] = None
        elif isinstance(each, Orphan):
            numbers.update(orphans=1, orphaned_bytes=each.size_bytes)
        elif isinstance(each, ExpiredFiles):
            expired[each.date, each.part, each.why, each.dismissed] += each.files
        else:
            for name in _NUMBERS:
                numbers[name] += getattr(each, name)
            for name, counter in by_name.items():
                counter.update(getattr(each, name))
            discrepancies |= dict.fromkeys(each.discrepancies)
            expired.update({(one.date, one.part, one.why, one.dismissed): one.files for one in each.expired})
            files += each.quarantined_files
            letters += each.dead_letter_manifests
            table, deep = each.table or table, deep or each.deep
    named: Any = {name: without_zeros(counter) for name, counter in by_name.items()}
    return VerifyResult(
        **numbers,
        **named,
        discrepancies=[*discrepancies],
        expired=[ExpiredFiles(*key, files=number) for key, number in expired.items()],
        quarantined_files=files,
        dead_letter_manifests=letters,
        table=table,
        deep=deep,
    )
