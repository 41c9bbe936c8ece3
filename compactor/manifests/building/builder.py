"""Turns announced files into manifests: claims each once, writes full manifests at once, leaves the rest pending."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compactor.core.crash_points import BuildCrashPoint, OnBuildCrashPoint, ignore_build_crash_point
from compactor.core.errors import StuckError, TryAgainError
from compactor.core.layout import date_of_file
from compactor.core.manifest import Manifest, ManifestFile
from compactor.core.manifest_key import ManifestKey
from compactor.ledger.state import State
from compactor.manifests.claiming import Claimer, claim_key
from compactor.manifests.data_files import not_data_reason
from compactor.manifests.partitioning import Group, grouped, is_worth_a_manifest, new_manifest_id
from compactor.manifests.s3_events import Announcement, EventError, parse_body
from compactor.telemetry.logs import log_event


@dataclass(slots=True)
class BuildReport:
    """The result of a batch of messages.

    Attributes:
        messages: How many there were.
        announced: Files that they announced, each version once.
        announced_bytes: Their stored size.
        skipped: Objects and records that are no input, by reason.
        repeated: Files that were announced before.
        manifests: Manifests that were written.
        parts: Pending parts that were written.
        failed: The reason for each message that has to be delivered again, by message id.
    """

    messages: int = 0
    announced: int = 0
    announced_bytes: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    manifests: list[Manifest] = field(default_factory=list)
    parts: list[Manifest] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Works through batches of messages.

    Attributes:
        allowed_prefixes: Folders that input may be in.
        target_bytes: Returns how many stored bytes a manifest should name.
        on_crash_point: Called at each crash point.
        read_body: Parses the body of a message; raises `EventError` if it cannot.
    """

    state: State
    claimer: Claimer
    allowed_prefixes: Sequence[str]
    target_bytes: Callable[[], float]
    on_crash_point: OnBuildCrashPoint = ignore_build_crash_point
    read_body: Callable[[str | bytes], Announcement] = parse_body

    def build(self, messages: Mapping[str, str | bytes]) -> BuildReport:
        """Take in a batch of messages.

        A message succeeds once each file that it announces is in a manifest or a pending part, whichever builder wrote
        it. Any other message fails, and has to be delivered again.

        Args:
            messages: The bodies by message id.

        Raises:
            OperatorError: A person must act. No message may be acknowledged.
        """
        report = BuildReport(messages=len(messages))
        announced_by: dict[str, list[str]] = {}  # claim key → messages
        by_date: dict[str, dict[str, ManifestFile]] = {}
        for message_id, body in messages.items():
            for file in self._announced(message_id, body, report):
                key = claim_key(file)
                announced_by.setdefault(key, []).append(message_id)
                date = date_of_file(file.uri, file.event_time or self.state.clock.now())
                by_date.setdefault(date, {}).setdefault(key, file)
        report.announced = len(announced_by)
        report.announced_bytes = sum(file.size_bytes or 0 for files in by_date.values() for file in files.values())
        target_bytes = self.target_bytes() if by_date else 0
        for date, files in sorted(by_date.items()):
            for group in grouped(files.values(), target_bytes):
                for key, why in self._build(date, group, target_bytes, report).items():
                    report.failed.update(dict.fromkeys(announced_by[key], why))
        return report

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
            if reason is None:
                yield file
            else:
                report.skipped[reason] += 1

    def _build(self, date: str, group: Group, target_bytes: float, report: BuildReport) -> dict[str, str]:
        """Write a group as a manifest or part; return why each file that is in neither has to be announced again."""
        keys = [claim_key(file) for file in group.files]
        manifest_id = new_manifest_id(date)
        try:
            claimed = self.claimer.claim(keys, manifest_id)
            self.on_crash_point(BuildCrashPoint.CLAIMED, manifest_id)
            report.repeated += len(claimed.taken)
            won = [file for file in group.files if claim_key(file) in claimed.won]
            if won:
                is_full = group.is_full and is_worth_a_manifest(won, target_bytes)
                self._write(ManifestKey(date, manifest_id), won, report, is_full=is_full)
        except (TryAgainError, StuckError) as exc:
            log_event("group.not_built", manifest_id=manifest_id, files=len(keys), error=exc)
            return dict.fromkeys(keys, f"passing trouble: {exc}")
        if claimed.held:
            until = max(claimed.held.values())
            log_event("files.held", files=len(claimed.held), first=min(claimed.held), until=until)
        return {key: f"claimed by another builder until {until:%H:%M:%S} UTC" for key, until in claimed.held.items()}

    def _write(self, key: ManifestKey, files: Sequence[ManifestFile], report: BuildReport, *, is_full: bool) -> None:
        manifest = Manifest(manifest_id=key.id, date=key.date, created_at=self.state.clock.now(), files=tuple(files))
        uri = self.state.layout.manifest(key.id) if is_full else self.state.layout.pending_part(key.id)
        self.state.store.create(uri, manifest.to_json())
        self.on_crash_point(BuildCrashPoint.BUILT if is_full else BuildCrashPoint.PENDING, key.id)
        if not self.claimer.bind(manifest, "manifest" if is_full else "part"):
            self.state.store.delete([uri])
            raise TryAgainError(
                f"{uri}: its files were taken over before it was written; they have to be announced again"
            )
        self.on_crash_point(BuildCrashPoint.BOUND, key.id)
        (report.manifests if is_full else report.parts).append(manifest)
