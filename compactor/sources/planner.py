"""Puts candidates into manifests: each into exactly one, even after a crash, or with several concurrent planners.

It claims candidates for an id, writes the manifest with that id, and binds the id to it; see `claiming`. A planner that
dies or is delayed leaves its candidates to the next one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import groupby, islice

from compactor.core.crash_points import OnCrashPoint, PlanCrashPoint, ignore_crash_point
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import StuckError, TryAgainError
from compactor.core.inputs.dates import ARRIVAL, date_of_file
from compactor.core.map_ordered import THREADS, map_ordered
from compactor.ledger.state import State
from compactor.sources.candidates import Candidate, Group
from compactor.sources.claiming import Claimer, Kind
from compactor.sources.packing import Packing, new_manifest_id, one_entry_each, weight
from compactor.sources.plan import Plan, PlannedManifest, Written
from compactor.telemetry.logs import log_event

PAGE_FILES = 20_000
"""How many candidates are in memory at once, in addition to one manifest's. Each takes about 1 kB."""

TARGET_SECONDS = 300.0
"""How long a target size is valid. A back-fill may last for days."""

_LATE = "not reached in time; the batch's other groups came first"


class Source:
    """A plan's source of candidates, and how it treats the grouped ones. Subclasses define the differences.

    Attributes:
        rest: What to write for a group that is not full.
        is_listing: Whether manifests record when their files were listed, as no event announced them.
        fails_alone: Whether a failed group fails only its candidates, or the plan.
        dates_files: Whether it dates its files. Those of pending parts were already dated and counted.
    """

    rest: Kind = "manifest"
    is_listing = False
    fails_alone = False
    dates_files = True

    def candidates(self, plan: Plan) -> Iterator[Candidate]:
        """Yield the candidates, grouped by date. Counts everything else in the plan."""
        raise NotImplementedError

    def in_order(self, groups: Sequence[Group]) -> Sequence[Group]:
        """The groups to write, in starting order. Omits groups that are not due."""
        return groups

    def ready(self, group: Group) -> Group:
        """The group without candidates no longer to plan. Called right before claiming, from several threads."""
        return group

    def settle(self, group: Group, written: Written) -> None:
        """Follow up on a group, given as it was before `ready`. Called from several threads."""

    def unread(self) -> Sequence[tuple[int, int]]:
        """For each incompletely read date, the number of files left, and their stored size."""
        return ()


Gate = Callable[[int], int]
"""Waits until at least one of so many manifests may be written. Returns how many; 0 if waiting longer is useless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Writes manifests. Any number of planners may work concurrently on the same files.

    Attributes:
        target_bytes: Returns the target size of a manifest, in stored bytes.
        page_files: How many candidates are in memory at once, in addition to one manifest's.
    """

    state: State
    claimer: Claimer
    target_bytes: Callable[[], float]
    on_crash_point: OnCrashPoint = ignore_crash_point
    groups_at_once: int = THREADS
    page_files: int = PAGE_FILES

    def plan(
        self,
        source: Source,
        *,
        limit: int | None = None,
        dry_run: bool = False,
        gate: Gate | None = None,
        begins_until: datetime | None = None,
        plan: Plan | None = None,
    ) -> Plan:
        """Write manifests for a source's candidates.

        Args:
            source: Source of the candidates.
            limit: The most manifests to write, earliest dates first; None for no limit.
            dry_run: Claim and write nothing.
            gate: Holds manifests back; None to hold none back.
            begins_until: When it begins no further groups.
            plan: That of an earlier pass, which goes on; it decides whether this is a dry run.
        """
        plan, batch, candidates = plan or Plan(dry_run=dry_run), list[Group](), 0
        for group in self._groups(source, plan):
            batch.append(group)
            candidates += len(group.candidates)
            if candidates >= self.page_files:
                self._write(source, batch, plan, limit=limit, gate=gate, begins_until=begins_until)
                batch, candidates = [], 0
        self._write(source, batch, plan, limit=limit, gate=gate, begins_until=begins_until)
        for files, size_bytes in source.unread():
            plan.left_files += files
            plan.left_manifests += -(-size_bytes // max(1, round(plan.target_bytes)))
        if plan.misdated and not plan.dry_run:
            log_event("files.misdated", files=plan.misdated, first=plan.first_misdated)
        return plan

    def _groups(self, source: Source, plan: Plan) -> Iterator[Group]:
        """The groups of all candidates, date by date, with few of them in memory."""
        found_at = None
        for date, of_date in groupby(source.candidates(plan), key=lambda each: each.date):
            now = self.state.clock.now()
            if found_at is None or (now - found_at).total_seconds() > TARGET_SECONDS:
                plan.target_bytes, found_at = self.target_bytes(), now
            packing = Packing(date, plan.target_bytes)
            while not plan.is_over and (page := list(islice(of_date, self.page_files))):
                files = [file for each in page for file in each.files]
                plan.candidates += len(files)
                plan.candidate_bytes += sum(file.size_bytes or 0 for file in files)
                yield from packing.add(page)
            yield from packing.end()
            if plan.is_over:
                return

    def _write(
        self,
        source: Source,
        batch: Sequence[Group],
        plan: Plan,
        *,
        limit: int | None,
        gate: Gate | None,
        begins_until: datetime | None,
    ) -> None:
        groups = source.in_order(batch)
        while groups and not plan.is_over:
            most = len(groups) if limit is None else min(len(groups), limit - len(plan.manifests))
            allowed = most if plan.dry_run or not most or gate is None else gate(most)
            plan.is_over, plan.stalled = not allowed, bool(most) and not allowed
            some, groups = groups[:allowed], groups[allowed:]
            if plan.dry_run:
                for group in some:
                    plan.manifests.append(PlannedManifest.of(group.date, group.files, ""))
                    self._count_dates(source, plan, group.date, group.files)
                continue
            write = partial(self._written, source, plan.target_bytes, begins_until)
            for written in map_ordered(write, some, threads=self.groups_at_once):
                plan.add(written)
                if written.manifest is not None:
                    self._count_dates(source, plan, written.manifest.date, written.manifest.files)
        for group in groups:
            plan.leave(group)

    def _written(self, source: Source, target_bytes: float, begins_until: datetime | None, group: Group) -> Written:
        if begins_until is not None and self.state.clock.now() > begins_until:
            return Written(group, failed=dict.fromkeys(group.keys, _LATE), is_late=True)
        manifest_id = new_manifest_id(group.date)
        try:
            ready = source.ready(group)
            written = self._claimed(source, ready, manifest_id, target_bytes) if ready.candidates else Written(ready)
            source.settle(group, written)
        except (TryAgainError, StuckError) as exc:
            if not source.fails_alone:
                raise
            _log_trouble(group, manifest_id, exc)
            # guard: a message is redelivered if its group was not written
            return Written(group, failed=dict.fromkeys(group.keys, f"passing trouble: {exc}"))
        return written if source.fails_alone else replace(written, failed={})

    def _claimed(self, source: Source, group: Group, manifest_id: str, target_bytes: float) -> Written:
        """Claim a group, and write the claimed candidates."""
        claimed = self.claimer.claim(group.keys, manifest_id)
        self.on_crash_point(PlanCrashPoint.CLAIMED, manifest_id)
        # guard: a message is redelivered if another planner may still write its file
        failed = {key: f"claimed by another planner until {until:%H:%M:%S} UTC" for key, until in claimed.held.items()}
        won = group.only(claimed.won)  # guard: what a planner could not claim is left to its holder
        if not won.candidates:
            return Written(group, claimed=claimed, failed=failed)
        # Too little of a full group may be left.
        is_full = group.is_full and weight(won.files, target_bytes) >= target_bytes / 2
        kind: Kind = "manifest" if is_full else source.rest
        layout, now = self.state.layout, self.state.clock.now()
        manifest = Manifest(
            manifest_id=manifest_id,
            date=group.date,
            created_at=now,
            # guard: no manifest names two versions of one object
            files=tuple(one_entry_each(won.files)),
            listed_at=now if source.is_listing else None,
        )
        uri = layout.manifest(manifest_id) if kind == "manifest" else layout.pending_part(manifest_id)
        self.state.store.create(uri, manifest.to_json())
        self.on_crash_point(PlanCrashPoint.PLANNED if kind == "manifest" else PlanCrashPoint.PENDING, manifest_id)
        if not self.claimer.bind(manifest, kind):  # guard: a planner whose id was revoked acknowledges nothing
            self.state.store.delete([uri])
            lost = TryAgainError(
                f"{uri}: others took its files over before it was written; they have to be planned again"
            )
            _log_trouble(won, manifest_id, lost)
            # Their id is revoked, so some of them are free.
            claimed.held.update(dict.fromkeys(won.keys, self.state.clock.now()))
            claimed.won.clear()
            return Written(group, claimed=claimed, failed={**failed, **dict.fromkeys(won.keys, str(lost))})
        self.on_crash_point(PlanCrashPoint.BOUND, manifest_id)
        return Written(group, manifest, kind, claimed, failed)

    def _count_dates(self, source: Source, plan: Plan, date: str, files: Sequence[ManifestFile]) -> None:
        if not source.dates_files:
            return
        plan.count_dates(date, files)
        for file in files:
            if file.dated_by == ARRIVAL and date_of_file(file.uri, file.event_time or self.state.clock.now()).ignored:
                plan.misdated += 1
                plan.first_misdated = plan.first_misdated or file.uri


def _log_trouble(group: Group, manifest_id: str, error: Exception) -> None:
    log_event("group.not_planned", manifest_id=manifest_id, files=len(group.files), error=error)
