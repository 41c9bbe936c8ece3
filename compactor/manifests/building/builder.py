"""Turns announced files into manifests: claims each once, writes full manifests at once, leaves the rest pending."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compactor.core.crash_points import BuildCrashPoint, OnBuildCrashPoint, ignore_build_crash_point
from compactor.core.errors import StuckError, TryAgainError
from compactor.core.layout import Layout, date_of_file
from compactor.core.manifest import Manifest, ManifestFile
from compactor.core.ports import Clock, ObjectStore
from compactor.manifests.claiming import Claimer, claim_key
from compactor.manifests.data_files import not_data_reason
from compactor.manifests.partitioning import Group, grouped, is_worth_a_manifest, new_manifest_id
from compactor.manifests.s3_events import Announcement, EventError, parse_body
from compactor.telemetry.logs import log_event

_SHOWN_CHARACTERS = 300


@dataclass(slots=True)
class BuildReport:
    """What became of a batch of messages.

    Attributes:
        messages: How many there were.
        announced: Files that they announced, each version once.
        announced_bytes: Their stored size.
        skipped: Objects and records that are no input, by reason.
        repeated: Files that were announced before.
        manifests: That were written.
        parts: That were written, to wait for others.
        failed: The messages that are to come again, by their id, with the reason.
    """

    messages: int = 0
    announced: int = 0
    announced_bytes: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    manifests: list[Manifest] = field(default_factory=list)
    parts: list[Manifest] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


class Builder:
    """Works through batches of messages.

    Args:
        store: Where manifests and pending parts are written.
        layout: Their places.
        claimer: Claims files.
        clock: Dates manifests.
        allowed_prefixes: Folders that input may be in.
        target_bytes: Says how many stored bytes a manifest should name by now.
        on_crash_point: Told of each step.
        read_body: Understands the body of a message, or raises `EventError`.
    """

    def __init__(
        self,
        *,
        store: ObjectStore,
        layout: Layout,
        claimer: Claimer,
        clock: Clock,
        allowed_prefixes: Sequence[str],
        target_bytes: Callable[[], float],
        on_crash_point: OnBuildCrashPoint = ignore_build_crash_point,
        read_body: Callable[[str | bytes], Announcement] = parse_body,
    ) -> None:
        self._store = store
        self._layout = layout
        self._claimer = claimer
        self._clock = clock
        self._allowed_prefixes = allowed_prefixes
        self._target_bytes = target_bytes
        self._on_crash_point = on_crash_point
        self._read_body = read_body

    def build(self, messages: Mapping[str, str | bytes]) -> BuildReport:
        """Take in a batch of messages.

        A message is done with once each file that it announces is in a manifest or a pending part, by whomever. Any
        other one is among the failed, and has to come again.

        Args:
            messages: The bodies by message id.

        Raises:
            OperatorError: A person must act; nothing is to be acknowledged.
        """
        report = BuildReport(messages=len(messages))
        announced_by: dict[str, list[str]] = {}  # claim key → messages
        by_day: dict[str, dict[str, ManifestFile]] = {}
        for message_id, body in messages.items():
            for file in self._announced(message_id, body, report):
                key = claim_key(file)
                announced_by.setdefault(key, []).append(message_id)
                day = date_of_file(file.uri, file.event_time or self._clock.now())
                by_day.setdefault(day, {}).setdefault(key, file)
        report.announced = len(announced_by)
        report.announced_bytes = sum(file.size_bytes or 0 for files in by_day.values() for file in files.values())
        target_bytes = self._target_bytes() if by_day else 0
        for day, files in sorted(by_day.items()):
            for group in grouped(files.values(), target_bytes):
                for key, why in self._build(day, group, target_bytes, report).items():
                    report.failed.update(dict.fromkeys(announced_by[key], why))
        return report

    def _announced(self, message_id: str, body: str | bytes, report: BuildReport) -> Iterable[ManifestFile]:
        """The files of one message that are input."""
        try:
            announcement = self._read_body(body)
        except EventError as exc:
            log_event("message.unreadable", message_id=message_id, error=exc)
            report.failed[message_id] = str(exc)
            return
        report.skipped.update(announcement.ignored)
        for file in announcement.files:
            reason = not_data_reason(file.uri, file.size_bytes or 0, self._allowed_prefixes)
            if reason is None:
                yield file
            else:
                report.skipped[reason] += 1

    def _build(self, day: str, group: Group, target_bytes: float, report: BuildReport) -> dict[str, str]:
        """Write what becomes of a group; returns the keys of files that nobody has safely, each with the reason."""
        keys = [claim_key(file) for file in group.files]
        manifest_id = new_manifest_id(day)
        try:
            claimed = self._claimer.claim(keys, manifest_id)
            self._on_crash_point(BuildCrashPoint.CLAIMED, manifest_id)
            report.repeated += len(claimed.taken)
            won = [file for file in group.files if claim_key(file) in claimed.won]
            if won:
                is_full = group.is_full and is_worth_a_manifest(won, target_bytes)
                self._write(day, manifest_id, won, report, is_full=is_full)
        except (TryAgainError, StuckError) as exc:
            log_event("group.not_built", manifest_id=manifest_id, files=len(keys), error=exc)
            return dict.fromkeys(keys, f"trouble that should pass: {exc}")
        if claimed.held:
            until = max(claimed.held.values())
            log_event("files.held", files=len(claimed.held), first=min(claimed.held), until=until)
        return {key: f"claimed by another one until {until:%H:%M:%S} UTC" for key, until in claimed.held.items()}

    def _write(
        self, day: str, manifest_id: str, files: Sequence[ManifestFile], report: BuildReport, *, is_full: bool
    ) -> None:
        manifest = Manifest(manifest_id=manifest_id, date=day, created_at=self._clock.now(), files=tuple(files))
        uri = self._layout.manifest(manifest_id) if is_full else self._layout.pending_part(manifest_id)
        self._store.create(uri, manifest.to_json())
        self._on_crash_point(BuildCrashPoint.BUILT if is_full else BuildCrashPoint.PENDING, manifest_id)
        if not self._claimer.tie(manifest, "manifest" if is_full else "part"):
            self._store.delete([uri])
            raise TryAgainError(f"{uri}: its files were taken over before it was written; they have to come again")
        self._on_crash_point(BuildCrashPoint.TIED, manifest_id)
        (report.manifests if is_full else report.parts).append(manifest)
