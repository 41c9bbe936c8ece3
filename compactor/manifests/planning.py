"""Plans manifests from a listing: each file version in exactly one, also after a crash or with two planners."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import TypedDict, Unpack

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.dates import FileDate, possible_dates
from compactor.core.errors import SettingsError
from compactor.core.layout import canonical, folder, is_within
from compactor.core.manifest import Manifest, ManifestFile
from compactor.core.map_ordered import THREADS, map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State
from compactor.manifests.claiming import Claimer, ClaimState, claim_key
from compactor.manifests.data_files import NOT_DATA, not_data_reason
from compactor.manifests.file_fates import Replacement
from compactor.manifests.file_search import FileSearch
from compactor.manifests.partitioning import Group, grouped, largest_first, new_manifest_id
from compactor.telemetry.logs import log_event

SKIP_REASONS = {
    **NOT_DATA,
    "too_old": "written before the given time",
    "other_date": "belongs to another date than the given one",
    "linked_folder": "a symbolic link to a folder, which is not followed",
    "outside_link": "a symbolic link that leads out of input.allowed_prefixes",
    "dangling_link": "a symbolic link that leads nowhere",
    "unsettled": "written within the last seconds, so it may be incomplete",
    "other_stream": "belongs to another stream of the settings, which has a longer prefix",
    "hidden": "its name, or that of a folder, begins with _ or .",
}
"""Objects that are not planned, each reason with its meaning."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that was not taken, and that a person has to know of."""

    uri: str
    reason: str  # replaced, forbidden, unsettled, undecided, linked_folder, outside_link, dangling_link or changed
    detail: str  # what was found, and what was expected


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
        misdated: Planned files whose names give a date outside the window, so that they have the day of their arrival.
        first_misdated: The URI of one of them; empty if there is none.
        left_manifests: Manifests beyond the bound, which the next plan writes.
        left_files: Files in these.
        touched: Files of another time that have the bytes of a version in a manifest.
        renamed: Files that are in a manifest under another name, which is gone.
        examples: By reason, the first object of `skipped`.
        left_out: Files and folders that were not taken, and that a person has to know of.
        replacements: The files of `replaced` whose rows can be made again.
    """

    manifests: list[Manifest] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    planned_before: int = 0
    replaced: int = 0
    held: int = 0
    held_until: datetime | None = None
    misdated: int = 0
    first_misdated: str = ""
    left_manifests: int = 0
    left_files: int = 0
    touched: int = 0
    renamed: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    left_out: list["LeftOut"] = field(default_factory=list)
    replacements: list[Replacement] = field(default_factory=list)

    def skip(self, uri: str, reason: str) -> None:
        """Count an object that is no input."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        self.examples.setdefault(reason, uri)

    def count_others(self, claimed: Mapping[str, tuple[ClaimState, datetime]]) -> None:
        """Count the files that are claimed already."""
        for state, lease_until in claimed.values():
            if state == "taken":
                self.planned_before += 1
            elif state == "held":
                self.held += 1
                self.held_until = max(self.held_until or lease_until, lease_until)


class PlanScope(TypedDict, total=False):
    """Which files to plan."""

    date: str | None  # only files of this date
    since: datetime | None  # only files written at this time or later
    settle_seconds: float  # only files that were last written at least this long ago


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """The result for one group.

    Attributes:
        manifest: What was written; None if other planners have all files.
        others: The files that other planners have, by claim key.
    """

    manifest: Manifest | None
    others: Mapping[str, tuple[ClaimState, datetime]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Groups the files below a prefix into manifests.

    Attributes:
        allowed_prefixes: Folders that input may be in.
        target_bytes: Returns how many stored bytes a manifest should name.
        on_crash_point: Called at each crash point, from the threads.
        groups_at_once: How many threads write groups.
        is_of_other_stream: Tells the files of another stream, which are left to it.
    """

    state: State
    claimer: Claimer
    allowed_prefixes: Sequence[str]
    target_bytes: Callable[[], float]
    is_of_other_stream: Callable[[str], bool] = lambda _: False
    on_crash_point: OnCrashPoint = ignore_crash_point
    groups_at_once: int = THREADS

    def plan(
        self,
        prefix: str,
        *,
        look_back: bool = False,
        max_manifests: int | None = None,
        dry_run: bool = False,
        **scope: Unpack[PlanScope],
    ) -> Plan:
        """Write manifests for all files below a prefix that are in none.

        Args:
            prefix: A folder within the allowed prefixes.
            look_back: Compare with the manifests of all dates for `replaced`; reads all records.
            max_manifests: The most manifests to write, the largest first; None for any number.
            dry_run: Claim and write nothing.
            scope: Which of the files.

        Raises:
            SettingsError: The prefix is not within the allowed ones.
        """
        self.check(prefix)
        plan = Plan()
        by_date = self._listed(prefix, plan, **scope)
        claimed = self.claimer.states([claim_key(file) for files in by_date.values() for file in files])
        plan.count_others(claimed)
        named, replaced = self._named(_without(by_date, claimed), plan)
        others = named.union(key for key, (state, _) in claimed.items() if state != "free")
        self.take(_without(by_date, others), plan, max_manifests=max_manifests, dry_run=dry_run)
        plan.replaced = len(replaced | self._of_other_dates(plan) if look_back else replaced)
        return plan

    def take(
        self,
        by_date: Mapping[str, Sequence[ManifestFile]],
        plan: Plan,
        *,
        max_manifests: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Write manifests for files that are in none, by date, and add them to a plan."""
        groups = self._bounded(by_date, plan, max_manifests)
        if dry_run:
            plan.manifests = [self._manifest(date, group.files) for date, group in groups]
        else:
            for planned in self.write(groups):
                plan.count_others(planned.others)
                plan.manifests += [planned.manifest] if planned.manifest is not None else []
        self._note_misdated(plan, dry_run=dry_run)

    def write(self, groups: Iterable[tuple[str, Group]]) -> Iterator[PlannedGroup]:
        """Claim the files of groups, each with its date, and write their manifests, several at a time."""
        return map_ordered(self._plan_group, groups, threads=self.groups_at_once)

    def check(self, prefix: str) -> None:
        """Check that a prefix may be planned.

        Raises:
            SettingsError: It is not within the allowed ones, or no folder.
        """
        if not any(is_within(folder(prefix), each) for each in self.allowed_prefixes):
            allowed = ", ".join(self.allowed_prefixes)
            raise SettingsError([f"plan: {prefix} -> expected a folder within input.allowed_prefixes: {allowed}"])
        if not prefix.endswith("/") and self.state.store.stat(prefix) is not None:
            raise SettingsError([f"plan: {prefix} -> is a file, expected the folder that it is in"])

    def _listed(self, prefix: str, plan: Plan, **scope: Unpack[PlanScope]) -> dict[str, list[ManifestFile]]:
        """The files below a prefix that are input, by date; counts all other objects."""
        now = self.state.clock.now()
        by_date: dict[str, list[ManifestFile]] = {}
        for info in self.state.store.list(folder(prefix)):
            dated = self.state.rules.dates.of_file(info.uri, info.modified_at)
            date = dated.date
            reason = not_data_reason(info.uri, info.size_bytes, [prefix])
            if reason is None and self.is_of_other_stream(info.uri):
                reason = "other_stream"
            reason = reason or _left_out(info, date, now, scope)
            if reason:
                plan.skip(info.uri, reason)
            else:
                by_date.setdefault(date, []).append(self.state.rules.with_path_columns(listed_file(info, dated.rule)))
        return dict(sorted(by_date.items()))

    def _named(self, by_date: Mapping[str, Sequence[ManifestFile]], plan: Plan) -> tuple[set[str], set[str]]:
        """Keys of unclaimed files that manifests have, and files of which manifests have other versions.

        These manifests wait, or are of a date that the file can have. They may come from elsewhere, or their claims may
        be lost or expired. Each is read once, however many dates the files have.
        """
        by_uri = {canonical(file.uri): file for files in by_date.values() for file in files}
        if not by_uri:
            return set(), set()
        uris_by_date: dict[str, set[str]] = {}
        for uri, file in by_uri.items():
            for date in possible_dates(uri, file.event_time or self.state.clock.now()):
                uris_by_date.setdefault(date, set()).add(uri)
        # Prefix first: a manifest that a job accepts meanwhile moves from the prefix to the records.
        found = chain(self._search.waiting(by_uri), self._search.on_dates(uris_by_date))
        taken: set[str] = set()
        others: set[str] = set()
        for naming in found:
            if naming.has_had(by_uri[naming.uri].etag):
                taken.add(naming.uri)
            elif naming.may_have(naming.etag):
                others.add(naming.uri)
        plan.planned_before += len(taken)
        return {claim_key(by_uri[uri]) for uri in taken}, others - taken

    def _bounded(
        self, by_date: Mapping[str, Sequence[ManifestFile]], plan: Plan, max_manifests: int | None
    ) -> list[tuple[str, Group]]:
        """The groups for one plan, date by date: the largest, up to the bound; counts what is left."""
        target_bytes = self.target_bytes() if by_date else 0
        groups = [
            (date, group) for date, files in by_date.items() for group in grouped(files, target_bytes, self.state.rules)
        ]
        if max_manifests is None or len(groups) <= max_manifests:
            return groups
        ordered = largest_first(groups)
        plan.left_manifests = len(groups) - max_manifests
        plan.left_files = sum(len(group.files) for _, group in ordered[max_manifests:])
        return sorted(ordered[:max_manifests], key=lambda each: each[0])

    def _plan_group(self, dated: tuple[str, Group]) -> PlannedGroup:
        date, group = dated
        manifest_id = new_manifest_id(date)
        claimed = self.claimer.claim([claim_key(file) for file in group.files], manifest_id)
        self.on_crash_point(CrashPoint.CLAIMED, manifest_id)
        now = self.state.clock.now()
        others: dict[str, tuple[ClaimState, datetime]] = dict.fromkeys(claimed.taken, ("taken", now))
        others.update({key: ("held", until) for key, until in claimed.held.items()})
        won = [file for file in group.files if claim_key(file) in claimed.won]
        if not won:
            return PlannedGroup(None, others)
        manifest = self._manifest(date, won, manifest_id)
        self.state.store.create(self.state.layout.manifest(manifest_id), manifest.to_json())
        self.on_crash_point(CrashPoint.PLANNED, manifest_id)
        if self.claimer.bind(manifest, "manifest"):
            return PlannedGroup(manifest, others)
        self.state.store.delete([self.state.layout.manifest(manifest_id)])
        taken_over: dict[str, tuple[ClaimState, datetime]] = {claim_key(file): ("taken", now) for file in won}
        return PlannedGroup(None, {**others, **taken_over})

    def _manifest(self, date: str, files: Sequence[ManifestFile], manifest_id: str = "") -> Manifest:
        now = self.state.clock.now()
        return Manifest(
            manifest_id=manifest_id or new_manifest_id(date),
            date=date,
            created_at=now,
            files=tuple(files),
            listed_at=now,
        )

    def _note_misdated(self, plan: Plan, *, dry_run: bool) -> None:
        files = (file for manifest in plan.manifests for file in manifest.files)
        misdated = [file.uri for file in files if self._date_of(file).ignored]
        if misdated:
            plan.misdated, plan.first_misdated = len(misdated), misdated[0]
            if not dry_run:
                log_event("files.misdated", files=len(misdated), first=misdated[0])

    def _of_other_dates(self, plan: Plan) -> set[str]:
        """Return planned files that have another version in a manifest of another date.

        Only a file whose name gives no date can have versions of several dates.
        """
        planned = [(file, manifest.date) for manifest in plan.manifests for file in manifest.files]
        dates = {canonical(file.uri): own for file, own in planned if not self._date_of(file).in_name}
        if not dates:
            return set()
        others = {date: {uri for uri, own in dates.items() if own != date} for date in self.state.ledger.dates()}
        return {each.uri for each in self._search.on_dates(others) if each.may_have(each.etag)}

    def _date_of(self, file: ManifestFile) -> FileDate:
        return self.state.rules.dates.of_file(file.uri, file.event_time or self.state.clock.now())

    @property
    def _search(self) -> FileSearch:
        return FileSearch(state=self.state, allowed_prefixes=self.allowed_prefixes)


def listed_file(info: ObjectInfo, dated_by: str) -> ManifestFile:
    """A listed file as manifests name it, dated by one of `compactor.core.named_dates.RULES`."""
    return ManifestFile(
        uri=info.uri, size_bytes=info.size_bytes, etag=info.etag, event_time=info.modified_at, dated_by=dated_by
    )


def _without(by_date: Mapping[str, Sequence[ManifestFile]], keys: Container[str]) -> dict[str, list[ManifestFile]]:
    """The files by date, without those that have one of these claim keys."""
    left = {date: [file for file in files if claim_key(file) not in keys] for date, files in by_date.items()}
    return {date: files for date, files in left.items() if files}


def _left_out(info: ObjectInfo, date: str, now: datetime, scope: PlanScope) -> str | None:
    """Return why a file is left out of the plan."""
    wanted, since = scope.get("date"), scope.get("since")
    if wanted is not None and date != wanted:
        return "other_date"
    # S3 gives times in whole seconds
    if since is not None and info.modified_at < since - timedelta(microseconds=since.microsecond):
        return "too_old"
    return None if is_settled(info, now, scope.get("settle_seconds", 0)) else "unsettled"


def is_settled(info: ObjectInfo, now: datetime, settle_seconds: float) -> bool:
    """Return whether a file was last written long enough ago."""
    # A time in the future only means that clocks differ, so the file need not wait.
    return abs((now - info.modified_at).total_seconds()) >= settle_seconds
