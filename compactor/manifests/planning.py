"""Plans manifests from a listing: each file version in exactly one, also after a crash or with two planners."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.errors import SettingsError
from compactor.core.layout import base_name, canonical, date_of_file, first_date, folder, is_within
from compactor.core.manifest import Manifest, ManifestFile
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State
from compactor.manifests.claiming import Claimer, ClaimState, claim_key
from compactor.manifests.data_files import NOT_DATA, not_data_reason
from compactor.manifests.file_search import FileSearch
from compactor.manifests.partitioning import grouped, new_manifest_id

SKIP_REASONS = {
    **NOT_DATA,
    "too_old": "written before the given time",
    "other_date": "belongs to another date than the given one",
    "linked_folder": "a symbolic link to a folder, which is not followed",
    "outside_link": "a symbolic link that leads out of input.allowed_prefixes",
    "unsettled": "written within the last seconds, so it may be incomplete",
}
"""Objects that are not planned, each reason with its meaning."""


@dataclass(slots=True)
class Plan:
    """The result of planning.

    Attributes:
        manifests: Written ones; in a dry run, those that would be.
        skipped: Objects that are no input, by reason.
        planned_before: Files that are in a manifest already.
        replaced: Files with another version in a manifest of their date, or of any date with `look_back`.
        held: Files that another planner claimed and may still write a manifest for.
        held_until: When the last of those leases runs out.
    """

    manifests: list[Manifest] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    planned_before: int = 0
    replaced: int = 0
    held: int = 0
    held_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Groups the files below a prefix into manifests.

    Attributes:
        allowed_prefixes: Folders that input may be in.
        target_bytes: Returns how many stored bytes a manifest should name.
        on_crash_point: Called at each crash point.
    """

    state: State
    claimer: Claimer
    allowed_prefixes: Sequence[str]
    target_bytes: Callable[[], float]
    on_crash_point: OnCrashPoint = ignore_crash_point

    def plan(
        self,
        prefix: str,
        *,
        date: str | None = None,
        since: datetime | None = None,
        settle_seconds: float = 0,
        look_back: bool = False,
        dry_run: bool = False,
    ) -> Plan:
        """Write manifests for all files below a prefix that are in none.

        Args:
            prefix: A folder within the allowed prefixes.
            date: Only files of this date.
            since: Only files written at this time or later.
            settle_seconds: Only files that were last written at least this long ago.
            look_back: Compare with the manifests of all dates for `replaced`; reads all records.
            dry_run: Claim and write nothing.

        Raises:
            SettingsError: The prefix is not within the allowed ones.
        """
        if not any(is_within(folder(prefix), each) for each in self.allowed_prefixes):
            allowed = ", ".join(self.allowed_prefixes)
            raise SettingsError([f"plan: {prefix} -> expected a folder within input.allowed_prefixes: {allowed}"])
        if not prefix.endswith("/") and self.state.store.stat(prefix) is not None:
            raise SettingsError([f"plan: {prefix} -> is a file, expected the folder that it is in"])
        plan, now = Plan(), self.state.clock.now()
        by_date: dict[str, list[ManifestFile]] = {}
        for info in self.state.store.list(folder(prefix)):
            found = date_of_file(info.uri, info.modified_at)
            reason = not_data_reason(info.uri, info.size_bytes, [prefix])
            reason = reason or _left_out(info, date is not None and date != found, since)
            # A time in the future only means that clocks differ, so the file need not wait.
            if not reason and abs((now - info.modified_at).total_seconds()) < settle_seconds:
                reason = "unsettled"
            if reason:
                plan.skipped[reason] = plan.skipped.get(reason, 0) + 1
            else:
                by_date.setdefault(found, []).append(_file(info))
        target_bytes = self.target_bytes()
        replaced: set[str] = set()
        for found, files in sorted(by_date.items()):
            unclaimed = self._unclaimed(found, files, plan, replaced)
            for group in grouped(unclaimed, target_bytes):
                self._plan_group(found, group.files, plan, dry_run=dry_run)
        plan.replaced = len(replaced | self._of_other_dates(plan) if look_back else replaced)
        return plan

    def _of_other_dates(self, plan: Plan) -> set[str]:
        """Return planned files that have another version in a manifest of another date.

        Only a file without a date in its name or key can have versions of several dates.
        """
        planned = ((file.uri, manifest.date) for manifest in plan.manifests for file in manifest.files)
        dates = {canonical(uri): own for uri, own in planned if not (first_date(base_name(uri)) or first_date(uri))}
        found: set[str] = set()
        for date in self.state.ledger.dates() if dates else ():
            others = {uri for uri, own in dates.items() if own != date}
            found.update(each.uri for each in self._search.on_date(date, others) if each.may_have(each.etag))
        return found

    @property
    def _search(self) -> FileSearch:
        return FileSearch(state=self.state, allowed_prefixes=self.allowed_prefixes)

    def _unclaimed(
        self, date: str, files: Sequence[ManifestFile], plan: Plan, replaced: set[str]
    ) -> list[ManifestFile]:
        """The files that are in no manifest and claimed for none; notes those that replace others."""
        claimed = self.claimer.states([claim_key(file) for file in files])
        self._count_others(claimed, plan)
        taken, older = self._named(date, [file for file in files if claim_key(file) not in claimed])
        plan.planned_before += len(taken)
        replaced |= older
        others = taken.union(key for key, (state, _) in claimed.items() if state != "free")
        return [file for file in files if claim_key(file) not in others]

    def _named(self, date: str, files: Sequence[ManifestFile]) -> tuple[set[str], set[str]]:
        """Keys of unclaimed files that manifests of their date have, and files of which they have other versions.

        These manifests may come from elsewhere, or their claims may be lost or expired.
        """
        by_uri = {canonical(file.uri): file for file in files}
        if not by_uri:
            return set(), set()
        # Prefix first: a manifest that a job accepts meanwhile moves from the prefix to the records.
        found = chain(self._search.waiting(by_uri), self._search.on_date(date, by_uri))
        taken: set[str] = set()
        others: set[str] = set()
        for naming in found:
            if naming.has_had(by_uri[naming.uri].etag):
                taken.add(naming.uri)
            elif naming.may_have(naming.etag):
                others.add(naming.uri)
        return {claim_key(by_uri[uri]) for uri in taken}, others - taken

    def _count_others(self, claimed: Mapping[str, tuple[ClaimState, datetime]], plan: Plan) -> None:
        """Count the files that are claimed already."""
        for state, lease_until in claimed.values():
            if state == "taken":
                plan.planned_before += 1
            elif state == "held":
                plan.held += 1
                plan.held_until = max(plan.held_until or lease_until, lease_until)

    def _plan_group(self, date: str, group: Sequence[ManifestFile], plan: Plan, *, dry_run: bool) -> None:
        manifest_id = new_manifest_id(date)
        won = group if dry_run else self._claimed(group, manifest_id, plan)
        if not won:
            return
        manifest = Manifest(manifest_id=manifest_id, date=date, created_at=self.state.clock.now(), files=tuple(won))
        if not dry_run:
            self.state.store.create(self.state.layout.manifest(manifest_id), manifest.to_json())
            self.on_crash_point(CrashPoint.PLANNED, manifest_id)
            if not self.claimer.bind(manifest, "manifest"):
                self.state.store.delete([self.state.layout.manifest(manifest_id)])
                plan.planned_before += len(won)  # by the planner that took them over
                return
        plan.manifests.append(manifest)

    def _claimed(self, group: Sequence[ManifestFile], manifest_id: str, plan: Plan) -> list[ManifestFile]:
        claimed = self.claimer.claim([claim_key(file) for file in group], manifest_id)
        self.on_crash_point(CrashPoint.CLAIMED, manifest_id)
        taken: dict[str, tuple[ClaimState, datetime]] = {
            key: ("taken", self.state.clock.now()) for key in claimed.taken
        }
        self._count_others({**taken, **{key: ("held", until) for key, until in claimed.held.items()}}, plan)
        return [file for file in group if claim_key(file) in claimed.won]


def _file(info: ObjectInfo) -> ManifestFile:
    return ManifestFile(uri=info.uri, size_bytes=info.size_bytes, etag=info.etag, event_time=info.modified_at)


def _left_out(info: ObjectInfo, is_of_other_date: bool, since: datetime | None) -> str | None:
    """Return why a file is left out of the plan."""
    if is_of_other_date:
        return "other_date"
    # S3 gives times in whole seconds
    if since is not None and info.modified_at < since - timedelta(microseconds=since.microsecond):
        return "too_old"
    return None
