"""The steps of a plan whose files are sorted by date on disk: from a listing, or from an inventory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from compactor.core.documents.manifest import ManifestFile
from compactor.core.inputs.dates import ARRIVAL
from compactor.core.layout import canonical
from compactor.manifests.claiming import claim_key
from compactor.manifests.dating import DatingTally
from compactor.manifests.others import count_others
from compactor.manifests.partitioning import Group
from compactor.manifests.planning import Planner
from compactor.manifests.spilled.named_before import FoundFiles, NamedBefore, dates_to_search
from compactor.manifests.spilled.spill import SpilledFile
from compactor.manifests.spilled.totals import PlanTotals, planned
from compactor.telemetry.logs import log_event

_EPOCH = datetime.fromtimestamp(0, UTC)

DatedGroup = tuple[str, Group]
"""A group with its date."""


@dataclass(slots=True, kw_only=True)
class Steps:
    """One call of a planner.

    Attributes:
        planner: Claims and writes groups.
        named: Knows the files that manifests name already.
        totals: Gets the result.
        dry_run: Claim and write nothing.
        on_held: Called with files that another planner has claimed, and that may still become free.
        still_there: Returns groups without the files that are gone since they were listed.
        searched_at: When manifests were searched for all files that are not written yet; None if at several times.
    """

    planner: Planner
    named: NamedBefore
    totals: PlanTotals
    dry_run: bool
    on_held: Callable[[Sequence[ManifestFile]], None] = lambda _files: None
    still_there: Callable[[Sequence[Group]], list[Group]] = list
    searched_at: datetime | None = None
    _tally: DatingTally = field(default_factory=DatingTally, init=False)

    def unclaimed(self, page: Sequence[SpilledFile]) -> list[ManifestFile]:
        """The files of a page that are not claimed; counts the others."""
        files = {claim_key(file): file for file in map(self.file, page)}
        claimed = self.planner.claimer.states(list(files))
        held = count_others(self.totals, claimed)
        self.on_held([files[key] for key in held])
        return [file for key, file in files.items() if key not in claimed or claimed[key][0] == "free"]

    def uncovered(self, files: Sequence[ManifestFile], found: FoundFiles) -> list[ManifestFile]:
        """Those of some files that no manifest covers by what was found of them; counts the others."""
        by_key = {claim_key(file): uri for file in files if (uri := canonical(file.uri)) in found.covered}
        # Where a manifest made no rows, the claim knows more: a redrive may have claimed the file, and given it up.
        undone = [key for key, uri in by_key.items() if uri not in found.with_rows]
        claimed = self.planner.claimer.states(undone) if undone else {}
        covered = found.covered - {by_key[key] for key, (state, _) in claimed.items() if state == "free"}
        self.totals.planned_before += len(covered)
        # guard: a file in a manifest without claims is not planned again
        return [file for file in files if canonical(file.uri) not in covered]

    def file(self, spilled: SpilledFile) -> ManifestFile:
        """A file as a manifest names it."""
        return self.planner.state.rules.with_path_columns(spilled.as_named())

    def write(self, groups: Sequence[DatedGroup]) -> None:
        """Write the manifests of groups; in a dry run, only count them."""
        if self.dry_run:
            for date, group in groups:
                self._count(date, group.files, "")
            return
        left = self._left(groups)
        for (_, group), result in zip(left, self.planner.write(left), strict=True):
            held = set(count_others(self.totals, result.others))
            self.on_held([file for file in group.files if claim_key(file) in held])
            if result.manifest is not None:
                self.named.note_own(result.manifest.manifest_id)
                self._count(result.manifest.date, result.manifest.files, result.manifest.manifest_id)

    def end(self) -> PlanTotals:
        """The result, after the last step."""
        totals = self.totals
        totals.dated = self._tally.rules()
        if totals.misdated and not self.dry_run:
            log_event("files.misdated", files=totals.misdated, first=totals.first_misdated)
        return totals

    def _left(self, groups: Sequence[DatedGroup]) -> list[DatedGroup]:
        """The groups without files that were named, deleted or replaced while they were held back."""
        # As long as the search counts that the files were checked by, nothing more would be found.
        is_checked = self.searched_at is not None and self.searched_at == self.named.searched_at()
        fresh = [group if is_checked else self._unnamed(date, group) for date, group in groups]
        there = self.still_there(fresh)
        return [(date, group) for (date, _), group in zip(groups, there, strict=True) if group.files]

    def _unnamed(self, date: str, group: Group) -> Group:
        self.named.search(dates_to_search(date, group.files))
        # guard: files that manifests got while others were held back are not planned again
        return with_files(group, self.uncovered(group.files, self.named.found(group.files)))

    def _count(self, date: str, files: Sequence[ManifestFile], manifest_id: str) -> None:
        totals, dates = self.totals, self.planner.state.rules.dates
        totals.manifests.append(planned(date, files, manifest_id))
        self._tally.add(date, files)
        for file in files:
            if file.dated_by == ARRIVAL and dates.of_file(file.uri, file.event_time or _EPOCH).ignored:
                totals.misdated += 1
                totals.first_misdated = totals.first_misdated or file.uri


def with_files(group: Group, files: Sequence[ManifestFile]) -> Group:
    """A group with only these of its files."""
    return group if len(files) == len(group.files) else replace(group, files=files)
