"""Plans the objects of an S3 Inventory, date by date and in bounded memory. Claims make it exact, and resumable."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import InventoryError
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.manifests.inventory.document import Inventory
from compactor.manifests.inventory.release import Gate
from compactor.manifests.inventory.rows import InventoryRow, row_reason
from compactor.manifests.partitioning import Group, Packing
from compactor.manifests.planning import Planner
from compactor.manifests.spilled.named_before import NamedBefore, dates_to_search
from compactor.manifests.spilled.spill import PAGE_FILES, FileSpill, SpilledFile
from compactor.manifests.spilled.steps import Steps, with_files
from compactor.manifests.spilled.totals import PlanTotals

MAX_ROUNDS = 10
_PROBES = 3
_GROUPS_AT_ONCE = 4
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class InventoryScope:
    """Which objects of an inventory to plan.

    Attributes:
        prefixes: Folders; each ends with `/`.
        date: Only files of this date.
        since: Only files written at this time or later.
        hidden: Also files whose names, or those of folders, begin with `_` or `.`.
    """

    prefixes: tuple[str, ...]
    date: str | None = None
    since: datetime | None = None
    hidden: bool = False


@dataclass(slots=True)
class _Call:
    """One call of `InventoryPlanner.plan`.

    Attributes:
        most: Manifests that may still be written; None for any number.
        is_over: Whether nothing more is to be written.
    """

    steps: Steps
    most: int | None
    is_over: bool = False


@dataclass(slots=True, kw_only=True)
class InventoryPlanner:
    """Plans what `load` has read. For one thread.

    Attributes:
        planner: Claims and writes groups.
        spill: Sorts the files.
        named: Knows the files that manifests name already.
        gate: Holds manifests back.
        sleep: Waits for a number of seconds.
        on_date: Called after each date, with what was planned so far.
        page_files: How many files are in memory at once, beside those of one manifest.
    """

    planner: Planner
    spill: FileSpill
    named: NamedBefore
    gate: Gate
    sleep: Callable[[float], None]
    on_date: Callable[[str, PlanTotals], None] = lambda _date, _totals: None
    page_files: int = PAGE_FILES

    def close(self) -> None:
        """Give the space of the sorted files back."""
        self.spill.close()

    def load(self, inventory: Inventory, rows: Iterable[InventoryRow], scope: InventoryScope) -> PlanTotals:
        """Sort all files of an inventory that are in the scope. Claims and writes nothing.

        Returns:
            What was skipped.

        Raises:
            InventoryError: No object is below a prefix of the scope.
        """
        totals = PlanTotals()
        self.spill.add(self._in_scope(rows, scope, totals))
        totals.skip("repeated", self.spill.sort())
        if not self.spill.dates() and not totals.skipped.keys() - {"other_prefix"}:
            elsewhere, prefixes = totals.skipped.get("other_prefix", 0), ", ".join(scope.prefixes)
            raise InventoryError(
                f"{inventory.uri}: lists {elsewhere:,} objects, none of them below {prefixes}; expected an inventory "
                "of this place"
            )
        return totals

    def _in_scope(
        self, rows: Iterable[InventoryRow], scope: InventoryScope, totals: PlanTotals
    ) -> Iterator[SpilledFile]:
        rules = self.planner.state.rules
        for row in rows:
            uri = f"s3://{row.bucket}/{row.key}"
            reason = row_reason(row, uri, scope.prefixes, hidden=scope.hidden)
            if reason is None and rules.excludes(uri):
                reason = "excluded"
            if reason is None:
                dated = rules.dates.of_file(uri, row.modified_at)
                reason = _out_of_scope(dated.date, row.modified_at, scope)
                if reason is None:
                    info = ObjectInfo(uri, row.size_bytes, row.etag, row.modified_at)
                    yield SpilledFile.listed(dated.date, info, dated.rule)
                    continue
            totals.skip(reason)

    def plan(self, totals: PlanTotals, *, max_manifests: int | None = None, dry_run: bool = False) -> PlanTotals:
        """Write manifests for the loaded files that are in none, the earliest date first.

        Files that another planner has claimed, such as one that died, are planned when its lease is over.

        Args:
            totals: What `load` returned; gets the result.
            max_manifests: The most manifests to write; None for any number.
            dry_run: Claim and write nothing.
        """
        steps = Steps(  # guard: what a dead planner has claimed is planned later
            planner=self.planner, named=self.named, totals=totals, dry_run=dry_run, on_held=self._keep_for_later,
            still_there=lambda groups: self._still_there(groups, totals),
        )  # fmt: skip
        call = _Call(steps, max_manifests)
        for number in range(MAX_ROUNDS):
            for date, files, size_bytes in self.spill.dates():
                self._plan_date(date, files, size_bytes, call)
                self.on_date(date, totals)
            if dry_run or call.is_over or totals.held_until is None or number == MAX_ROUNDS - 1:
                break
            self.sleep(max(0.0, (totals.held_until - self.planner.state.clock.now()).total_seconds()) + 0.1)
            totals.held, totals.held_until = 0, None
            self.spill.sort()
        return steps.end()

    def _plan_date(self, date: str, files: int, size_bytes: int, call: _Call) -> None:
        target_bytes = self.planner.target_bytes()
        packing = Packing(target_bytes, self.planner.state.rules)
        for page in self.spill.pages(date, self.page_files) if not call.is_over else ():
            files -= len(page)
            size_bytes -= sum(each.size_bytes for each in page)
            free = self._free(date, page, call)
            if not packing.has_rest or call.steps.searched_at != self.named.searched_at():
                call.steps.searched_at = None if packing.has_rest else self.named.searched_at()
            self._release(date, packing.add(free), call)
            if call.is_over:
                break
        self._release(date, packing.end(), call)
        totals = call.steps.totals
        totals.left_files += files
        totals.left_manifests += -(-size_bytes // max(1, round(target_bytes))) if files else 0

    def _free(self, date: str, page: Sequence[SpilledFile], call: _Call) -> list[ManifestFile]:
        """The files of a page that are in no manifest."""
        files = call.steps.unclaimed(page)
        if files:
            self.named.search(dates_to_search(date, files))
        return call.steps.uncovered(files, self.named.found(files))

    def _keep_for_later(self, held: Iterable[ManifestFile]) -> None:
        dates = self.planner.state.rules.dates
        self.spill.add(SpilledFile.of(dates.of_file(file.uri, file.event_time or _EPOCH).date, file) for file in held)

    def _release(self, date: str, groups: Sequence[Group], call: _Call) -> None:
        """Write groups, as fast as the gate lets them through."""
        totals = call.steps.totals
        while groups and not call.is_over:
            most = len(groups) if call.most is None else min(len(groups), call.most)
            allowed = most if call.steps.dry_run or not most else self.gate.allow(most)
            call.is_over = not allowed
            totals.stalled = bool(most) and not allowed
            call.most = None if call.most is None else call.most - allowed
            call.steps.write([(date, group) for group in groups[:allowed]])
            groups = groups[allowed:]
        totals.left_manifests += len(groups)
        totals.left_files += sum(len(group.files) for group in groups)

    def _still_there(self, groups: Sequence[Group], totals: PlanTotals) -> list[Group]:
        left = []
        for group, troubles in zip(groups, map_ordered(self._troubles, groups, threads=_GROUPS_AT_ONCE), strict=True):
            for reason in ("gone", "replaced"):
                totals.skip(reason, troubles.count(reason))
            left.append(with_files(group, [file for file, why in zip(group.files, troubles, strict=True) if not why]))
        return left

    def _troubles(self, group: Group) -> list[str]:
        """Why each file cannot be read any more, else empty; if a few of them can be, all are taken to be there."""
        if any(map(self._trouble, group.files[:: max(1, len(group.files) // _PROBES)])):
            return list(map_ordered(self._trouble, group.files))
        return [""] * len(group.files)

    def _trouble(self, file: ManifestFile) -> str:
        info = self.planner.state.store.stat(file.uri)
        if info is None:
            return "gone"
        return "" if info.etag == (file.etag or "") else "replaced"


def _out_of_scope(date: str, modified_at: datetime, scope: InventoryScope) -> str | None:
    if scope.date is not None and date != scope.date:
        return "other_date"
    # S3 gives times in whole seconds
    since = scope.since
    return "too_old" if since is not None and modified_at < since - timedelta(microseconds=since.microsecond) else None
