"""Plans manifests from a listing: each file version in exactly one, also after a crash or with two planners.

The listed files are sorted by date on the disk. So memory does not grow with their number.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypedDict, Unpack

from compactor.core.documents.manifest import ManifestFile
from compactor.core.layout import canonical, folder
from compactor.core.ports import ObjectInfo
from compactor.manifests.data_files import is_hidden, skip_reason
from compactor.manifests.partitioning import Packing
from compactor.manifests.planning import Planner, is_settled
from compactor.manifests.spilled.group_sizes import GroupSizes
from compactor.manifests.spilled.named_before import NamedBefore, dates_to_search
from compactor.manifests.spilled.spill import PAGE_FILES, FileSpill, SpilledFile
from compactor.manifests.spilled.steps import DatedGroup, Steps
from compactor.manifests.spilled.totals import PlanTotals


class PlanScope(TypedDict, total=False):
    """Which files to plan."""

    date: str | None  # only files of this date
    since: datetime | None  # only files written at this time or later
    settle_seconds: float  # only files that were last written at least this long ago
    hidden: bool  # also files whose names, or those of folders, begin with _ or .


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingPlanner(Planner):
    """Groups the files below a prefix into manifests.

    Attributes:
        new_spill: Makes what sorts the files of one plan.
        is_of_other_stream: Tells the files of another stream, which are left to it.
        page_files: How many files are in memory at once, beside those of one manifest.
    """

    new_spill: Callable[[], FileSpill]
    is_of_other_stream: Callable[[str], bool] = lambda _: False
    page_files: int = PAGE_FILES

    def plan(
        self, prefix: str, *, max_manifests: int | None = None, dry_run: bool = False, **scope: Unpack[PlanScope]
    ) -> PlanTotals:
        """Write manifests for all files below a prefix that are in none.

        Args:
            prefix: A folder within the allowed prefixes.
            max_manifests: The most manifests to write, the largest first; None for any number.
            dry_run: Claim and write nothing.
            scope: Which of the files.

        Raises:
            SettingsError: The prefix is not within the allowed ones.
        """
        self.check(prefix)
        with closing(self.new_spill()) as spill:
            named = NamedBefore(state=self.state, allowed_prefixes=self.allowed_prefixes, spill=spill)
            steps = Steps(planner=self, named=named, totals=PlanTotals(), dry_run=dry_run)
            spill.add(self._listed(prefix, steps.totals, **scope))
            spill.sort()
            if dates := self._dates_of_unclaimed(spill, steps):
                named.search(dates)
                steps.searched_at = named.searched_at()
            target_bytes = self.target_bytes() if spill.dates() else 0.0
            sizes = self._sizes(spill, steps, target_bytes)
            self._write(self._groups(spill, steps, target_bytes), sizes, steps, max_manifests)
            return steps.end()

    def _listed(self, prefix: str, totals: PlanTotals, **scope: Unpack[PlanScope]) -> Iterator[SpilledFile]:
        """The files below a prefix that are input; counts all other objects."""
        now = self.state.clock.now()
        for info in self.state.store.list(folder(prefix)):
            dated = self.state.rules.dates.of_file(info.uri, info.modified_at)
            reason = self._reason(info.uri, info.size_bytes, prefix, scope)
            if reason is None and info.target and self._reason(info.target, info.size_bytes, prefix, scope) is None:
                reason = "linked_file"
            reason = reason or _left_out(info, dated.date, now, scope)
            if reason:
                totals.skip(reason)
            else:
                yield SpilledFile.listed(dated.date, info, dated.rule)

    def _reason(self, uri: str, size_bytes: int, prefix: str, scope: PlanScope) -> str | None:
        """Why a file is no input because of its name or length; None if it is input."""
        is_passed = not scope.get("hidden", False) and is_hidden(uri, [prefix])
        reason = skip_reason(uri, size_bytes, [prefix], is_hidden=is_passed)
        if reason is None and self.state.rules.excludes(uri):
            return "excluded"
        # guard: a plan leaves the files of other streams
        return "other_stream" if reason is None and self.is_of_other_stream(uri) else reason

    def _dates_of_unclaimed(self, spill: FileSpill, steps: Steps) -> set[str]:
        """Drop the files that are claimed; returns the dates of manifests that may name the others."""
        dates: set[str] = set()
        for date, _, _ in spill.dates():
            for page in spill.pages(date, self.page_files):
                files = steps.unclaimed(page)
                dates |= dates_to_search(date, files) if files else set()
                _drop_others(spill, page, files)
        return dates

    def _sizes(self, spill: FileSpill, steps: Steps, target_bytes: float) -> GroupSizes:
        """Drop the files that manifests name; returns the sizes of the groups of the others."""
        sizes = GroupSizes()
        for date, _, _ in spill.dates():
            packing = Packing(target_bytes, self.state.rules)
            for page in spill.pages(date, self.page_files):
                files = [steps.file(each) for each in page]
                found = steps.named.found(files)
                steps.totals.replaced += len(found.replaced)
                left = steps.uncovered(files, found)
                _drop_others(spill, page, left)  # guard: files that a plan found in manifests are in none of its own
                sizes.add(packing.add(left))
            sizes.add(packing.end())
        return sizes

    def _groups(self, spill: FileSpill, steps: Steps, target_bytes: float) -> Iterator[DatedGroup]:
        """The groups of all files that are left, date by date."""
        for date, _, _ in spill.dates():
            packing = Packing(target_bytes, self.state.rules)
            for page in spill.pages(date, self.page_files):
                yield from ((date, group) for group in packing.add([steps.file(each) for each in page]))
            yield from ((date, group) for group in packing.end())

    def _write(self, groups: Iterator[DatedGroup], sizes: GroupSizes, steps: Steps, max_manifests: int | None) -> None:
        """Write the largest groups, as many at once as are in memory; counts the others."""
        chosen = sizes.largest(max_manifests)
        steps.totals.left_manifests = len(sizes) - len(chosen)
        steps.totals.left_files = sizes.files_without(chosen)
        batch: list[DatedGroup] = []
        files = 0
        for number, (date, group) in enumerate(groups):
            if number in chosen:
                batch.append((date, group))
                files += len(group.files)
            if files >= self.page_files:
                steps.write(batch)
                batch, files = [], 0
        steps.write(batch)


def _drop_others(spill: FileSpill, page: Sequence[SpilledFile], left: Sequence[ManifestFile]) -> None:
    """Drop the files of a page that are not among some."""
    if len(left) < len(page):
        kept = {canonical(file.uri) for file in left}
        spill.drop(each.uri for each in page if each.uri not in kept)


def _left_out(info: ObjectInfo, date: str, now: datetime, scope: PlanScope) -> str | None:
    """Return why a file is left out of the plan."""
    wanted, since = scope.get("date"), scope.get("since")
    if wanted is not None and date != wanted:
        return "other_date"
    # S3 gives times in whole seconds
    if since is not None and info.modified_at < since - timedelta(microseconds=since.microsecond):
        return "too_old"
    return None if is_settled(info, now, scope.get("settle_seconds", 0)) else "unsettled"
