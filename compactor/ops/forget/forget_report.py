"""What a call of `compactor forget` did, or would do. It quotes none of the values."""

from dataclasses import dataclass, field

from compactor.core.results import as_document
from compactor.ops.verify.report import Discrepancy


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was erased of one manifest."""

    manifest_id: str
    date: str
    generation: int  # of the commit without it
    rows: int
    rejected_lines: int  # whose bytes were kept, redriven ones included


@dataclass(frozen=True, slots=True)
class HeldInput:
    """An input file that holds a value, or may hold one."""

    uri: str
    manifest_id: str  # the manifest that has it
    deleted: bool  # whether it was deleted, or would be
    why: str  # why it was not; empty if it was


@dataclass(frozen=True, slots=True)
class NotForgotten:
    """What could not be searched or erased."""

    manifest_id: str  # empty if it is about no manifest
    why: str  # the reason, in words


@as_document(shows=("left",))
@dataclass(slots=True)
class ForgetReport:
    """What was erased. With `--dry-run` nothing is written."""

    erasure: str = ""  # id of the erasure; empty if nothing is written
    searched: int = 0  # committed manifests whose files were searched
    forgotten: list[Forgotten] = field(default_factory=list)  # manifests that held a value
    inputs: list[HeldInput] = field(default_factory=list)  # input files that held a value
    refused: list[NotForgotten] = field(default_factory=list)  # what may still hold a value
    failed: list[NotForgotten] = field(default_factory=list)  # what failed; a later call may succeed
    discrepancies: list[Discrepancy] = field(default_factory=list)  # what does not add up after it
    dry_run: bool = False  # whether nothing was written

    @property
    def left(self) -> int:
        """How many manifests and files still hold a value, or may hold one."""
        return len(self.refused) + len(self.failed) + sum(not each.deleted for each in self.inputs)
