"""What an audit found: figures, discrepancies, and what was set aside."""

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field

from compactor.core.records import NEEDS_OPERATOR, Commit, DeadLetter, FileStatus


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One thing that is not as the ledger says.

    Attributes:
        manifest_id: The manifest it belongs to; empty where none is known.
        where: The file or record.
        expected: What the ledger says.
        found: What is there.
    """

    manifest_id: str
    where: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """One input file that was set aside whole.

    Attributes:
        redriven: It was put back under another manifest since, so that nobody has to look at it here.
    """

    manifest_id: str
    uri: str
    status: FileStatus
    detail: str
    redriven: bool


@dataclass(frozen=True, slots=True)
class DeadLetterManifest:
    """One dead letter.

    Attributes:
        redriven: It was put back under another id since, so that nobody has to look at this one.
    """

    manifest_id: str
    reason: str
    message: str
    redriven: bool


@dataclass(slots=True)
class VerifyReport:
    """What was proved.

    `rows + rejected_lines + blank_lines == lines` holds for every file, or there is a discrepancy that says where not.

    Attributes:
        manifests: Committed manifests that were looked at.
        dead_letters: Manifests that were set aside.
        unfinished: Manifests on record that are not done; their input is still to be done.
        files: Input files of the committed manifests.
        files_by_status: The same, by what became of them.
        inputs_gone: Inputs that a deep audit could not read again, because they are gone or another version by now.
        inputs_compared: Inputs whose every value a deep audit compared.
        discrepancies: Empty if all is well.
        quarantined_files: Input files that were set aside whole, but for those that changed.
        dead_letter_manifests: The dead letters.
    """

    manifests: int = 0
    dead_letters: int = 0
    unfinished: int = 0
    files: int = 0
    files_by_status: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    rows: int = 0
    rejected_lines: int = 0
    blank_lines: int = 0
    rejects_by_reason: Counter[str] = field(default_factory=Counter)
    output_files: int = 0
    output_bytes: int = 0
    inputs_gone: int = 0
    inputs_compared: int = 0
    discrepancies: list[Discrepancy] = field(default_factory=list)
    quarantined_files: list[QuarantinedFile] = field(default_factory=list)
    dead_letter_manifests: list[DeadLetterManifest] = field(default_factory=list)

    @property
    def needs_operator(self) -> bool:
        """Whether a person has to look: something does not add up, or was set aside whole and not put back since."""
        files = any(not each.redriven for each in self.quarantined_files)
        manifests = any(not each.redriven for each in self.dead_letter_manifests)
        return bool(self.discrepancies) or files or manifests

    def add_commit(self, commit: Commit, *, redriven: Container[str] = ()) -> None:
        """Count what a commit says of its files.

        Args:
            commit: The commit.
            redriven: The files that were put back.
        """
        self.manifests += 1
        for file in commit.files:
            self.files += 1
            self.files_by_status[file.status] += 1
            self.lines += file.lines
            self.rows += file.records
            self.rejected_lines += file.rejected_lines
            self.blank_lines += file.blank_lines
            self.rejects_by_reason.update(file.rejects)
            if file.status in NEEDS_OPERATOR:
                self.quarantined_files.append(
                    QuarantinedFile(commit.manifest_id, file.uri, file.status, file.detail, file.uri in redriven)
                )
        self.output_files += len(commit.outputs)
        self.output_bytes += sum(output.size_bytes for output in commit.outputs)

    def add_dead_letter(self, letter: DeadLetter, *, redriven: bool) -> None:
        """Count a dead letter."""
        self.dead_letters += 1
        self.dead_letter_manifests.append(
            DeadLetterManifest(letter.manifest_id, letter.reason, letter.message, redriven)
        )
