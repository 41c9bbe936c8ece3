"""Writes manifests for files: each file version in exactly one, also after a crash or with two planners."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import SettingsError
from compactor.core.inputs.dates import FileDate
from compactor.core.layout import folder, is_within
from compactor.core.map_ordered import THREADS, map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State
from compactor.manifests.claiming import Claimer, ClaimState, claim_key
from compactor.manifests.data_files import NOT_DATA
from compactor.manifests.fates.file_fates import Replacement
from compactor.manifests.others import count_others
from compactor.manifests.partitioning import Group, grouped, new_manifest_id
from compactor.telemetry.logs import log_event

LINKS = {
    "linked_folder": "a symbolic link to a folder, which is not followed",
    "outside_link": "a symbolic link that leads out of input.allowed_prefixes",
    "dangling_link": "a symbolic link that leads nowhere",
}
"""Symbolic links that are not planned, each reason with its meaning."""

SKIP_REASONS = {
    **NOT_DATA,
    "too_old": "written before the given time",
    "other_date": "belongs to another date than the given one",
    **LINKS,
    "linked_file": "a symbolic link to a file that is input under its own name",
    "unsettled": "written within the last seconds, so it may be incomplete",
    "other_stream": "belongs to another stream of the settings, which has a longer prefix",
    "hidden": "its name, or that of a folder, begins with _ or .; --hidden takes it",
}
"""Objects that are not planned, each reason with its meaning."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that was not taken, and that a person has to know of."""

    uri: str
    # replaced, unfinished, forbidden, unsettled, undecided, changed, bad_name, or why a link was not followed
    reason: str
    detail: str  # what was found, and what was expected


@dataclass(slots=True)
class Plan:
    """The result of planning sources.

    Attributes:
        manifests: Written ones; in a dry run, those that would be.
        skipped: Objects that are no input, by reason.
        planned_before: Files that are in a manifest already.
        replaced: Files with another version in a manifest.
        held: Files that another planner claimed and may still write a manifest for.
        held_until: When the last of those leases runs out.
        misdated: Planned files whose names give a date outside the window, so that they have the day of their arrival.
        first_misdated: The URI of one of them; empty if there is none.
        touched: Files of another time that have the bytes of a version in a manifest.
        renamed: Files that are in a manifest under another name, which is gone.
        grown: Files that were appended to, of which only the new lines are planned.
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
    touched: int = 0
    renamed: int = 0
    grown: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    left_out: list["LeftOut"] = field(default_factory=list)
    replacements: list[Replacement] = field(default_factory=list)

    def skip(self, uri: str, reason: str) -> None:
        """Count an object that is no input."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        self.examples.setdefault(reason, uri)


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
    """Groups files into manifests.

    Attributes:
        allowed_prefixes: Folders that input may be in.
        target_bytes: Returns how many stored bytes a manifest should name.
        on_crash_point: Called at each crash point, from the threads.
        groups_at_once: How many threads write groups.
    """

    state: State
    claimer: Claimer
    allowed_prefixes: Sequence[str]
    target_bytes: Callable[[], float]
    on_crash_point: OnCrashPoint = ignore_crash_point
    groups_at_once: int = THREADS

    def take(self, by_date: Mapping[str, Sequence[ManifestFile]], plan: Plan, *, dry_run: bool = False) -> None:
        """Write manifests for files that are in none, by date, and add them to a plan."""
        target_bytes = self.target_bytes() if by_date else 0
        groups = [
            (date, group) for date, files in by_date.items() for group in grouped(files, target_bytes, self.state.rules)
        ]
        if dry_run:
            plan.manifests = [self._manifest(date, group.files) for date, group in groups]
        else:
            for planned in self.write(groups):
                count_others(plan, planned.others)
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
        # guard: nothing outside the allowed prefixes is planned
        if not any(is_within(folder(prefix), each) for each in self.allowed_prefixes):
            allowed = ", ".join(self.allowed_prefixes)
            raise SettingsError([f"plan: {prefix} -> expected a folder within input.allowed_prefixes: {allowed}"])
        if not prefix.endswith("/") and self.state.store.stat(prefix) is not None:
            raise SettingsError([f"plan: {prefix} -> is a file, expected the folder that it is in"])

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

    def _date_of(self, file: ManifestFile) -> FileDate:
        return self.state.rules.dates.of_file(file.uri, file.event_time or self.state.clock.now())


def listed_file(info: ObjectInfo, dated_by: str) -> ManifestFile:
    """A listed file as manifests name it, dated by one of `compactor.core.inputs.dates.RULES`."""
    return ManifestFile(
        uri=info.uri, size_bytes=info.size_bytes, etag=info.etag, event_time=info.modified_at, dated_by=dated_by
    )


def is_settled(info: ObjectInfo, now: datetime, settle_seconds: float) -> bool:
    """Return whether a file was last written long enough ago."""
    # A time in the future only means that clocks differ, so the file need not wait.
    return abs((now - info.modified_at).total_seconds()) >= settle_seconds
