"""Turns announced files into manifests: claims each once, writes full manifests at once, leaves the rest pending."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from compactor.core.crash_points import BuildCrashPoint, OnBuildCrashPoint, ignore_build_crash_point
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import StuckError, TryAgainError
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import THREADS, map_ordered
from compactor.ledger.state import State
from compactor.manifests.claiming import Claimer, claim_key
from compactor.manifests.data_files import not_data_reason
from compactor.manifests.partitioning import Group, grouped, is_worth_a_manifest, largest_first, new_manifest_id
from compactor.manifests.s3_events import Announcement, EventError, parse_body
from compactor.telemetry.logs import log_event

BUILD_SECONDS = 60.0
"""How long a call of the builder begins new groups: half of the function's time-out, so that the last ones end."""

_NOT_REACHED = "not reached in time; the other groups of the batch came first"


@dataclass(slots=True)
class BuildReport:
    """The result of a batch of messages.

    Attributes:
        messages: How many there were.
        announced: Files that they announced, each version once.
        announced_bytes: Their stored size.
        skipped: Objects and records that are no input, by reason.
        repeated: Files that were announced before.
        misdated: Announced files whose names give a date outside the window; they have the day of their arrival.
        groups_left: Groups that were not begun in time; their messages fail.
        manifests: Manifests that were written.
        parts: Pending parts that were written.
        failed: The reason for each message that has to be delivered again, by message id.
    """

    messages: int = 0
    announced: int = 0
    announced_bytes: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    misdated: int = 0
    groups_left: int = 0
    manifests: list[Manifest] = field(default_factory=list)
    parts: list[Manifest] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Built:
    """The result for one group.

    Attributes:
        manifest: The manifest or part that was written; None if there is none.
        is_full: Whether it is a manifest.
        repeated: Files that were announced before.
        failed: By claim key, why a file is in neither and has to be announced again.
        is_left: Whether the group was not begun.
    """

    manifest: Manifest | None = None
    is_full: bool = False
    repeated: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    is_left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Works through batches of messages.

    Attributes:
        allowed_prefixes: Folders that input may be in.
        target_bytes: Returns how many stored bytes a manifest should name.
        on_crash_point: Called at each crash point, from the threads.
        groups_at_once: How many threads write groups.
        read_body: Parses the body of a message; raises `EventError` if it cannot.
    """

    state: State
    claimer: Claimer
    allowed_prefixes: Sequence[str]
    target_bytes: Callable[[], float]
    on_crash_point: OnBuildCrashPoint = ignore_build_crash_point
    groups_at_once: int = THREADS
    read_body: Callable[[str | bytes], Announcement] = parse_body

    def build(self, messages: Mapping[str, str | bytes], begins_until: datetime | None = None) -> BuildReport:
        """Take in a batch of messages.

        A message succeeds once each file that it announces is in a manifest or a pending part, whichever builder wrote
        it. Any other message fails, and has to be delivered again.

        Args:
            messages: The bodies by message id.
            begins_until: When it begins no further groups; `BUILD_SECONDS` from now if not said.

        Raises:
            OperatorError: A person must act. No message may be acknowledged.
        """
        report = BuildReport(messages=len(messages))
        begins_until = begins_until or self.state.clock.now() + timedelta(seconds=BUILD_SECONDS)
        announced_by: dict[str, list[str]] = {}  # claim key → messages
        files: dict[str, ManifestFile] = {}
        for message_id, body in messages.items():
            for file in self._announced(message_id, body, report):
                key = claim_key(file)
                announced_by.setdefault(key, []).append(message_id)
                files.setdefault(key, file)
        report.announced = len(files)
        report.announced_bytes = sum(file.size_bytes or 0 for file in files.values())
        by_date = self._by_date(files.values(), report)
        target_bytes = self.target_bytes() if by_date else 0
        rules = self.state.rules
        groups = [(day, each) for day, of_day in by_date.items() for each in grouped(of_day, target_bytes, rules)]
        build = partial(self._build, target_bytes, begins_until)
        for built in map_ordered(build, largest_first(groups), threads=self.groups_at_once):
            _add(report, built)
            for key, why in built.failed.items():
                report.failed.update(dict.fromkeys(announced_by[key], why))
        if report.groups_left:
            log_event("groups.left", groups=report.groups_left, seconds=BUILD_SECONDS)
        return report

    def _by_date(self, files: Iterable[ManifestFile], report: BuildReport) -> dict[str, list[ManifestFile]]:
        by_date: dict[str, list[ManifestFile]] = {}
        misdated: list[str] = []
        for file in files:
            found = self.state.rules.dates.of_file(file.uri, file.event_time or self.state.clock.now())
            misdated += [file.uri] if found.ignored else []
            dated = self.state.rules.with_path_columns(file.model_copy(update={"dated_by": found.rule}))
            by_date.setdefault(found.date, []).append(dated)
        if misdated:
            report.misdated = len(misdated)
            log_event("files.misdated", files=len(misdated), first=misdated[0])
        return by_date

    def _announced(self, message_id: str, body: str | bytes, report: BuildReport) -> Iterable[ManifestFile]:
        """The files of one message that are input."""
        try:
            announcement = self.read_body(body)
        except EventError as exc:
            log_event("message.unreadable", message_id=message_id, error=exc)
            report.failed[message_id] = str(exc)
            return
        report.skipped.update(announcement.ignored)
        for file in announcement.files:
            reason = not_data_reason(file.uri, file.size_bytes or 0, self.allowed_prefixes)
            if reason is None and self.state.rules.excludes(file.uri):
                reason = "excluded"
            if reason is None:
                yield file
            else:
                report.skipped[reason] += 1

    def _build(self, target_bytes: float, begins_until: datetime, dated: tuple[str, Group]) -> _Built:
        """Write a group as a manifest or part."""
        date, group = dated
        built, keys = _Built(), [claim_key(file) for file in group.files]
        if self.state.clock.now() > begins_until:
            return _Built(failed=dict.fromkeys(keys, _NOT_REACHED), is_left=True)
        manifest_id = new_manifest_id(date)
        try:
            claimed = self.claimer.claim(keys, manifest_id)
            self.on_crash_point(BuildCrashPoint.CLAIMED, manifest_id)
            built.repeated = len(claimed.taken)
            # guard: what a builder could not claim is left to its holder
            won = [file for file in group.files if claim_key(file) in claimed.won]
            if won:
                built.is_full = group.is_full and is_worth_a_manifest(won, target_bytes, self.state.rules)
                built.manifest = self._written(ManifestKey(date, manifest_id), won, is_full=built.is_full)
        except (TryAgainError, StuckError) as exc:
            log_event("group.not_built", manifest_id=manifest_id, files=len(keys), error=exc)
            # guard: a message whose group was not written comes again
            built.failed = dict.fromkeys(keys, f"passing trouble: {exc}")
            return built
        if claimed.held:
            until = max(claimed.held.values())
            log_event("files.held", files=len(claimed.held), first=min(claimed.held), until=until)
            why = "claimed by another builder until"
            # guard: a message whose file another builder may still write comes again
            built.failed = {key: f"{why} {until:%H:%M:%S} UTC" for key, until in claimed.held.items()}
        return built

    def _written(self, key: ManifestKey, files: Sequence[ManifestFile], *, is_full: bool) -> Manifest:
        manifest = Manifest(manifest_id=key.id, date=key.date, created_at=self.state.clock.now(), files=tuple(files))
        uri = self.state.layout.manifest(key.id) if is_full else self.state.layout.pending_part(key.id)
        self.state.store.create(uri, manifest.to_json())
        self.on_crash_point(BuildCrashPoint.BUILT if is_full else BuildCrashPoint.PENDING, key.id)
        # guard: a builder whose id was revoked acknowledges nothing
        if not self.claimer.bind(manifest, "manifest" if is_full else "part"):
            self.state.store.delete([uri])
            raise TryAgainError(
                f"{uri}: its files were taken over before it was written; they have to be announced again"
            )
        self.on_crash_point(BuildCrashPoint.BOUND, key.id)
        return manifest


def _add(report: BuildReport, built: _Built) -> None:
    report.repeated += built.repeated
    report.groups_left += built.is_left
    if built.manifest is not None:
        (report.manifests if built.is_full else report.parts).append(built.manifest)
