"""What came of planning, in figures: it does not grow with the number of files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.documents.manifest import ManifestFile
from compactor.manifests.dating import DatedFiles


@dataclass(frozen=True, slots=True)
class PlannedManifest:
    """A manifest that was written, or would be.

    Attributes:
        manifest_id: Empty in a dry run, which takes none.
    """

    manifest_id: str
    date: str
    files: int
    size_bytes: int


@dataclass(slots=True)
class PlanTotals:
    """The result of planning.

    Attributes:
        manifests: Written ones; in a dry run, those that would be.
        dated: Planned files by the rule that dated them.
        skipped: Objects that are no input, by reason.
        planned_before: Files that are in a manifest already.
        replaced: Files of a listing with another version in a manifest that waits, or is of a date that they can have.
        held: Files that another planner claimed and may still write a manifest for.
        held_until: When the last of those leases runs out.
        misdated: Planned files whose names give a date outside the window, so that they have the day of their arrival.
        first_misdated: The URI of one of them; empty if there is none.
        left_manifests: Manifests beyond the bound, which the next plan writes.
        left_files: Files in these.
        stalled: Whether planning ended because the job finished no manifest.
    """

    manifests: list[PlannedManifest] = field(default_factory=list)
    dated: list[DatedFiles] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    planned_before: int = 0
    replaced: int = 0
    held: int = 0
    held_until: datetime | None = None
    misdated: int = 0
    first_misdated: str = ""
    left_manifests: int = 0
    left_files: int = 0
    stalled: bool = False

    @property
    def files(self) -> int:
        """Planned files."""
        return sum(each.files for each in self.manifests)

    @property
    def size_bytes(self) -> int:
        """Their stored size."""
        return sum(each.size_bytes for each in self.manifests)

    def skip(self, reason: str, files: int = 1) -> None:
        """Count objects that are no input."""
        if files:
            self.skipped[reason] = self.skipped.get(reason, 0) + files


def planned(date: str, files: Sequence[ManifestFile], manifest_id: str) -> PlannedManifest:
    """A manifest in figures."""
    return PlannedManifest(manifest_id, date, len(files), sum(file.size_bytes or 0 for file in files))
