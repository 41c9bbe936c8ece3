"""What came of planning, in figures: it does not grow with the number of files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.manifest import ManifestFile
from compactor.manifests.dating import DatedFiles, dated_files
from compactor.manifests.planning import Plan


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
    """The result of planning; see `compactor.manifests.planning.Plan`.

    Attributes:
        stalled: Whether planning ended because the job finished no manifest.
    """

    manifests: list[PlannedManifest] = field(default_factory=list)
    dated: list[DatedFiles] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    planned_before: int = 0
    held: int = 0
    held_until: datetime | None = None
    misdated: int = 0
    first_misdated: str = ""
    left_manifests: int = 0
    left_files: int = 0
    stalled: bool = False

    @classmethod
    def of(cls, plan: Plan, *, dry_run: bool) -> "PlanTotals":
        """The figures of a plan."""
        return cls(
            manifests=[planned(each.date, each.files, "" if dry_run else each.manifest_id) for each in plan.manifests],
            dated=dated_files(plan.manifests),
            skipped=plan.skipped,
            planned_before=plan.planned_before,
            held=plan.held,
            held_until=plan.held_until,
            misdated=plan.misdated,
            first_misdated=plan.first_misdated,
            left_manifests=plan.left_manifests,
            left_files=plan.left_files,
        )

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
