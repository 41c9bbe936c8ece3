"""Plans the objects of an S3 Inventory, date by date and in bounded memory. Claims make it exact, and resumable."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from compactor.core.errors import InventoryError
from compactor.core.layout import canonical
from compactor.core.manifest import ManifestFile
from compactor.core.map_ordered import map_ordered
from compactor.core.named_dates import ARRIVAL
from compactor.core.versions import is_same_version
from compactor.manifests.claiming import ClaimState, claim_key
from compactor.manifests.dating import DatingTally
from compactor.manifests.inventory.document import Inventory
from compactor.manifests.inventory.named_before import NamedBefore
from compactor.manifests.inventory.release import Gate
from compactor.manifests.inventory.rows import InventoryRow, row_reason
from compactor.manifests.inventory.spill import FileSpill, SpilledFile
from compactor.manifests.inventory.totals import PlanTotals, planned
from compactor.manifests.partitioning import Group, grouped
from compactor.manifests.planning import Planner
from compactor.telemetry.logs import log_event

PAGE_FILES = 20_000
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
    """

    prefixes: tuple[str, ...]
    date: str | None = None
    since: datetime | None = None


@dataclass(slots=True)
class _Call:
    """One call of `InventoryPlanner.plan`.

    Attributes:
        most: Manifests that may still be written; None for any number.
        is_over: Whether nothing more is to be written.
        searched_at: When manifests were searched for all files that are not written yet; None if at several times.
    """

    totals: PlanTotals
    most: int | None
    dry_run: bool
    is_over: bool = False
    searched_at: datetime | None = None
    tally: DatingTally = field(default_factory=DatingTally)


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
        dates = self.planner.state.rules.dates
        for row in rows:
            uri = f"s3://{row.bucket}/{row.key}"
            reason = row_reason(row, uri, scope.prefixes)
            if reason is None:
                dated = dates.of_file(uri, row.modified_at)
                reason = _out_of_scope(dated.date, row.modified_at, scope)
                if reason is None:
                    yield SpilledFile(
                        dated.date, uri, row.size_bytes, row.etag, _milliseconds(row.modified_at), dated.rule
                    )
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
        call = _Call(totals, max_manifests, dry_run)
        for number in range(MAX_ROUNDS):
            for date, files, size_bytes in self.spill.dates():
                self._plan_date(date, files, size_bytes, call)
                self.on_date(date, totals)
            if dry_run or call.is_over or totals.held_until is None or number == MAX_ROUNDS - 1:
                break
            self.sleep(max(0.0, (totals.held_until - self.planner.state.clock.now()).total_seconds()) + 0.1)
            totals.held, totals.held_until = 0, None
            self.spill.sort()
        totals.dated = call.tally.rules()
        if totals.misdated and not dry_run:
            log_event("files.misdated", files=totals.misdated, first=totals.first_misdated)
        return totals

    def _plan_date(self, date: str, files: int, size_bytes: int, call: _Call) -> None:
        target_bytes = self.planner.target_bytes()
        rest: list[ManifestFile] = []
        for page in self.spill.pages(date, self.page_files) if not call.is_over else ():
            files -= len(page)
            size_bytes -= sum(each.size_bytes for each in page)
            free = self._free(date, page, call)
            if not rest or call.searched_at != self.named.searched_at():
                call.searched_at = None if rest else self.named.searched_at()
            groups = grouped([*rest, *free], target_bytes, self.planner.state.rules)
            # What does not fill a manifest waits for the next page.
            rest = [file for group in groups if not group.is_full for file in group.files]
            self._release(date, [group for group in groups if group.is_full], call)
            if call.is_over:
                break
        self._release(date, grouped(rest, target_bytes, self.planner.state.rules), call)
        call.totals.left_files += files
        call.totals.left_manifests += -(-size_bytes // max(1, round(target_bytes))) if files else 0

    def _free(self, date: str, page: Sequence[SpilledFile], call: _Call) -> list[ManifestFile]:
        """The files of a page that are in no manifest."""
        files = {claim_key(file): file for file in map(self._file, page)}
        claimed = self.planner.claimer.states(list(files))
        self._count_others(files, claimed, call)
        free = [file for key, file in files.items() if key not in claimed or claimed[key][0] == "free"]
        named = self.named.among(date, free)
        call.totals.planned_before += len(named)
        return [file for file in free if canonical(file.uri) not in named]

    def _file(self, spilled: SpilledFile) -> ManifestFile:
        file = ManifestFile(
            uri=spilled.uri,
            size_bytes=spilled.size_bytes,
            etag=spilled.etag,
            event_time=_EPOCH + timedelta(milliseconds=spilled.modified_ms),
            dated_by=spilled.rule,
        )
        return self.planner.state.rules.with_path_columns(file)

    def _count_others(
        self, files: dict[str, ManifestFile], claimed: dict[str, tuple[ClaimState, datetime]], call: _Call
    ) -> None:
        """Count the files that others claimed, and keep those for later that may still become free."""
        totals, held = call.totals, []
        for key, (state, lease_until) in claimed.items():
            if state == "taken":
                totals.planned_before += 1
            elif state == "held":
                totals.held += 1
                totals.held_until = max(totals.held_until or lease_until, lease_until)
                held.append(files[key])
        if held:
            dates = self.planner.state.rules.dates
            self.spill.add(_spilled(dates.of_file(file.uri, _time(file)).date, file) for file in held)

    def _release(self, date: str, groups: Sequence[Group], call: _Call) -> None:
        """Write groups, as fast as the gate lets them through."""
        while groups and not call.is_over:
            most = len(groups) if call.most is None else min(len(groups), call.most)
            allowed = most if call.dry_run or not most else self.gate.allow(most)
            call.is_over = not allowed
            call.totals.stalled = bool(most) and not allowed
            call.most = None if call.most is None else call.most - allowed
            self._write(date, groups[:allowed], call)
            groups = groups[allowed:]
        call.totals.left_manifests += len(groups)
        call.totals.left_files += sum(len(group.files) for group in groups)

    def _write(self, date: str, groups: Sequence[Group], call: _Call) -> None:
        if call.dry_run:
            for group in groups:
                self._count(date, group.files, "", call)
            return
        left = self._left(date, groups, call)
        written = self.planner.write([(date, group) for group in left])
        for group, result in zip(left, written, strict=True):
            self._count_others({claim_key(file): file for file in group.files}, dict(result.others), call)
            if result.manifest is not None:
                self.named.note_own(result.manifest.manifest_id)
                self._count(date, result.manifest.files, result.manifest.manifest_id, call)

    def _left(self, date: str, groups: Sequence[Group], call: _Call) -> list[Group]:
        """The groups without files that were named, deleted or replaced while they were held back."""
        # As long as the search counts that the files were checked by, nothing more would be found.
        is_checked = call.searched_at is not None and call.searched_at == self.named.searched_at()
        named = self.named.among(date, () if is_checked else [file for group in groups for file in group.files])
        call.totals.planned_before += len(named)
        fresh = [_with(group, [file for file in group.files if canonical(file.uri) not in named]) for group in groups]
        left = []
        for group, troubles in zip(fresh, map_ordered(self._troubles, fresh, threads=_GROUPS_AT_ONCE), strict=True):
            for reason in ("gone", "replaced"):
                call.totals.skip(reason, troubles.count(reason))
            left.append(_with(group, [file for file, why in zip(group.files, troubles, strict=True) if not why]))
        return [group for group in left if group.files]

    def _troubles(self, group: Group) -> list[str]:
        """Why each file cannot be read any more, else empty; if a few of them can be, all are taken to be there."""
        if any(map(self._trouble, group.files[:: max(1, len(group.files) // _PROBES)])):
            return list(map_ordered(self._trouble, group.files))
        return [""] * len(group.files)

    def _trouble(self, file: ManifestFile) -> str:
        info = self.planner.state.store.stat(file.uri)
        if info is None:
            return "gone"
        return "" if is_same_version(info.etag, file.etag or "") else "replaced"

    def _count(self, date: str, files: Sequence[ManifestFile], manifest_id: str, call: _Call) -> None:
        totals = call.totals
        totals.manifests.append(planned(date, files, manifest_id))
        call.tally.add(date, files)
        for file in files:
            if file.dated_by == ARRIVAL and self.planner.state.rules.dates.of_file(file.uri, _time(file)).ignored:
                totals.misdated += 1
                totals.first_misdated = totals.first_misdated or file.uri


def _with(group: Group, files: Sequence[ManifestFile]) -> Group:
    return group if len(files) == len(group.files) else replace(group, files=files)


def _out_of_scope(date: str, modified_at: datetime, scope: InventoryScope) -> str | None:
    if scope.date is not None and date != scope.date:
        return "other_date"
    # S3 gives times in whole seconds
    since = scope.since
    return "too_old" if since is not None and modified_at < since - timedelta(microseconds=since.microsecond) else None


def _spilled(date: str, file: ManifestFile) -> SpilledFile:
    modified_ms, rule = _milliseconds(_time(file)), file.dated_by or ARRIVAL
    return SpilledFile(date, canonical(file.uri), file.size_bytes or 0, file.etag or "", modified_ms, rule)


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _time(file: ManifestFile) -> datetime:
    return file.event_time or _EPOCH
