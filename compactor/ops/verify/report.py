"""The report of a verification: figures, discrepancies, quarantined files and dead letters."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compactor.core.documents.changes import Part
from compactor.core.documents.closed_dates import ManifestSums, commit_totals, quarantined_of, without_zeros
from compactor.core.documents.records import Commit, DeadLetter, FileStatus
from compactor.core.results import Sealable, as_document
from compactor.core.rules.next_steps import Cause
from compactor.ledger.accounts.account import QuarantinedFile, quarantined_files


@dataclass(slots=True)
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
class DeadLetterManifest:
    """One manifest that is a dead letter."""

    manifest_id: str
    reason: str
    message: str
    redriven: bool  # whether it was redriven under another id, so that it needs no operator
    settled_by: str = ""  # if it was not, the manifest that took over its last file; empty if files of it are left

    @property
    def is_settled(self) -> bool:
        """Whether it needs no operator any more: it was redriven, or later manifests took over all of its files."""
        return self.redriven or bool(self.settled_by)


@dataclass(frozen=True, slots=True)
class ExpiredFiles:
    """Files that are gone under a rule of retention."""

    date: str  # of their manifests
    part: Part  # what they hold
    why: str  # when they expired, and under which rule
    files: int  # how many


@as_document(
    shows=(
        "input_files",
        "quarantined_by_status",
        "open_quarantined_files",
        "open_dead_letters",
        "complete",
        "needs_operator",
    )
)
@dataclass(slots=True)
class VerifyResult(Sealable):
    """What a verification has found.

    `rows + rejected_lines + blank_lines + erased_lines == lines`, or a discrepancy names the file or the commit.
    """

    manifests: int = 0  # committed manifests
    dead_letters: int = 0  # manifests that are dead letters
    unfinished: int = 0  # manifests on record that are not done yet
    closed_dates: int = 0  # dates of which the summary was read in place of the records
    retired_dates: int = 0  # dates that `compactor retire` took, if everything was verified
    expiring: int = 0  # records of what expired whose deletion is not finished, if everything was verified
    # Files of the committed manifests by the result for each; one that was quarantined and redriven counts again
    files_by_status: Counter[str] = field(default_factory=Counter)
    lines: int = 0  # lines of all files that could be read to their end
    rows: int = 0  # rows on record; those of `output_files_verified` were counted in their footers
    rejected_lines: int = 0  # lines that are in the rejects, or only counted there
    unkept_rejects: int = 0  # rejected lines that are only counted; their bytes are in the input file alone
    blank_lines: int = 0  # lines without anything but white space
    erased_lines: int = 0  # lines whose row or reject was erased on request: no other count has them
    rejects_by_reason: Counter[str] = field(default_factory=Counter)  # rejected lines by reason
    rescued_values: int = 0  # values in _rescued_data because they do not fit the type of their column
    misfits: Counter[str] = field(default_factory=Counter)  # the same by column, as far as it is on record
    output_files: int = 0  # Parquet files with rows, as they are on record
    output_bytes: int = 0  # their size
    output_files_verified: int = 0  # those whose footers were read, and have the rows and the size on record
    output_files_missing: int = 0  # those that are gone, without a rule of retention
    output_files_summed: int = 0  # those of closed dates, of which the summaries were read in place of the footers
    inputs_gone: int = 0  # inputs that `--deep` could not read again, because they are deleted or replaced
    inputs_erased: int = 0  # inputs that `--deep` did not compare: lines of their manifests were erased on request
    inputs_compared: int = 0  # inputs of which `--deep` compared every value
    discrepancies: list[Discrepancy] = field(default_factory=list)  # empty if everything adds up
    # Files that are gone under a rule of retention, by date, part and rule
    expired: list[ExpiredFiles] = field(default_factory=list)
    # Quarantined input files, without those that changed, whose new version has its own event
    quarantined_files: list[QuarantinedFile] = field(default_factory=list)
    dead_letter_manifests: list[DeadLetterManifest] = field(default_factory=list)  # dead letters, settled or not
    orphans: int = 0  # files that attempts wrote in place in the output and no commit names; no table lists them
    orphaned_bytes: int = 0  # their total length
    table: VerifiedTable | None = None  # the table that lists the output; null if the settings name none
    deep: bool = False  # whether input files were read again

    @property
    def input_files(self) -> int:
        """Compacted versions of files: each of their lines is a row, a reject or blank."""
        return self.files_by_status[FileStatus.COMPACTED]

    @property
    def quarantined_by_status(self) -> Counter[str]:
        """How many files were ever quarantined, by status; one that is quarantined again counts again."""
        return quarantined_of(self.files_by_status)

    @property
    def open_files(self) -> list[QuarantinedFile]:
        """The quarantined files that need a person: those that are not settled."""
        return [each for each in self.quarantined_files if not each.is_settled]

    @property
    def open_quarantined_files(self) -> int:
        """Quarantined files that need a person: not settled."""
        return len(self.open_files)

    @property
    def open_dead_letters(self) -> int:
        """Dead letters that need a person: not settled."""
        return len(self.open_letters)

    @property
    def open_letters(self) -> list[DeadLetterManifest]:
        """The dead letters that need a person: those that are not settled."""
        return [each for each in self.dead_letter_manifests if not each.is_settled]

    @property
    def adds_up(self) -> bool:
        """Whether each line is accounted for, in sum."""
        return self.rows + self.rejected_lines + self.blank_lines + self.erased_lines == self.lines

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

    def add_commit(self, commit: Commit, *, with_source: bool) -> None:
        """Add the figures of a commit, and its quarantined files as if nothing had settled them.

        If it has redriven lines, `with_source` says whether the manifest that rejected them is added as well.
        """
        self.add_sums(sums_of(commit, with_source=with_source))
        self.quarantined_files += quarantined_files(commit)

    @property
    def sums(self) -> ManifestSums:
        """The figures that are sums over manifests."""
        return ManifestSums.model_validate({name: getattr(self, name) for name in ManifestSums.model_fields})

    def add_sums(self, sums: ManifestSums) -> None:
        """Add the figures of many manifests."""
        for name in ManifestSums.model_fields:
            known, more = getattr(self, name), getattr(sums, name)
            if isinstance(known, Counter):
                known.update(more)
                setattr(self, name, without_zeros(known))
            else:
                setattr(self, name, known + more)

    def add_expired(self, date: str, part: Part, why: str, files: int) -> None:
        """Add files that are gone under a rule."""
        for at, each in enumerate(self.expired):
            if (each.date, each.part, each.why) == (date, part, why):
                self.expired[at] = ExpiredFiles(date, part, why, each.files + files)
                return
        self.expired.append(ExpiredFiles(date, part, why, files))

    def add_surplus(self, found: Iterable[Discrepancy | Orphan]) -> None:
        """Add files that no commit names."""
        for each in found:
            if isinstance(each, Orphan):
                self.orphans += 1
                self.orphaned_bytes += each.size_bytes
            else:
                self.discrepancies.append(each)

    def add_dead_letter(self, letter: DeadLetter) -> None:
        """Add a dead letter as if nothing had settled it."""
        self.add_sums(sums_of(letter))
        self.dead_letter_manifests.append(
            DeadLetterManifest(letter.manifest_id, letter.reason, letter.message, redriven=False)
        )


def sums_of(outcome: Commit | DeadLetter, *, with_source: bool = True) -> ManifestSums:
    """The figures of one manifest among all others; `with_source` is as for `VerifyResult.add_commit`."""
    if isinstance(outcome, DeadLetter):
        return ManifestSums(dead_letters=1)
    found = commit_totals(outcome, with_source=with_source)
    of_commit = {name: getattr(found, name) for name in ManifestSums.model_fields if hasattr(found, name)}
    return ManifestSums(manifests=1, **of_commit)
