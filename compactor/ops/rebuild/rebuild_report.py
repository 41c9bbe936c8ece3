"""What a rebuild did, or would do."""

from dataclasses import dataclass, field

from compactor.ops.verify.report import Discrepancy


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One manifest whose rows were made again."""

    manifest_id: str
    why: str  # what was wrong with its files
    generation: int  # of its commit; 2 after the first rebuild
    input_files: int  # how many files were read again
    output_files: int
    rows: int
    rejected_lines: int


@dataclass(frozen=True, slots=True)
class NotRebuilt:
    """One manifest that cannot be rebuilt, or whose rebuild failed."""

    manifest_id: str
    why: str  # the reason, in words


@dataclass(slots=True)
class RebuildReport:
    """What a rebuild did. With `--dry-run` nothing is written."""

    intact: int = 0  # committed manifests whose files are as their commits say
    expired: int = 0  # committed manifests whose rows expired under a rule, and which are left alone
    rebuilt: list[Rebuilt] = field(default_factory=list)  # manifests whose rows were made again
    refused: list[NotRebuilt] = field(default_factory=list)  # manifests that cannot be rebuilt
    failed: list[NotRebuilt] = field(default_factory=list)  # manifests whose rebuild failed; a later call may succeed
    discrepancies: list[Discrepancy] = field(default_factory=list)  # what does not add up after it
    dry_run: bool = False  # whether nothing was written

    def add(self, other: "RebuildReport") -> None:
        """Add what was done with other manifests."""
        self.expired += other.expired
        self.rebuilt += other.rebuilt
        self.refused += other.refused
        self.failed += other.failed
        self.discrepancies += other.discrepancies
