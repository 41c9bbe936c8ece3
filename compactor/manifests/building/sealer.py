"""Seals pending parts into manifests, by size or by age, so that no announced file waits for ever.

A part is fenced first: its id is tied to it, where its builder died before that, so that whoever finds its claims
lapsed cannot give it up any more. Then it is claimed for the manifest, as files are, and the manifest is written and
tied. Last, the part is removed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from compactor.core.crash_points import BuildCrashPoint, OnBuildCrashPoint, ignore_build_crash_point
from compactor.core.errors import ObjectNotFound, RecordUnreadable, StuckError, TryAgainError
from compactor.core.layout import Layout, base_name
from compactor.core.manifest import Manifest
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Clock, ObjectInfo, ObjectStore
from compactor.core.records import read_record
from compactor.manifests.claiming import Claimed, Claimer, part_key
from compactor.manifests.partitioning import due, new_manifest_id
from compactor.telemetry.logs import log_event

SEAL_INTERVAL_SECONDS = 60
"""How often the sealer is called; a part that would be too old at the next call is sealed at this one."""


@dataclass(slots=True)
class SealReport:
    """What one call of the sealer did.

    Attributes:
        manifests: That were written.
        sealed_parts: That went into them.
        waiting_parts: That go on waiting.
        oldest_seconds: Age of the oldest of these; 0 if there is none.
        discarded: Parts whose files others had taken over before.
        unreadable: Objects among the parts that are none, by place; they stay for a person to look at.
    """

    manifests: list[Manifest] = field(default_factory=list)
    sealed_parts: int = 0
    waiting_parts: int = 0
    oldest_seconds: float = 0.0
    discarded: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)


class Sealer:
    """Ends the waiting of pending parts. Safe to run twice at once.

    Args:
        store: Where parts and manifests are.
        layout: Their places.
        claimer: Claims parts for manifests, and ties both.
        clock: Tells their age.
        target_bytes: Says how many stored bytes a manifest should name by now.
        max_wait_seconds: How long a part may wait.
        on_crash_point: Told of each step.
    """

    def __init__(
        self,
        *,
        store: ObjectStore,
        layout: Layout,
        claimer: Claimer,
        clock: Clock,
        target_bytes: Callable[[], float],
        max_wait_seconds: float,
        on_crash_point: OnBuildCrashPoint = ignore_build_crash_point,
    ) -> None:
        self._store = store
        self._layout = layout
        self._claimer = claimer
        self._clock = clock
        self._target_bytes = target_bytes
        self._wait_seconds = max_wait_seconds - SEAL_INTERVAL_SECONDS
        self._on_crash_point = on_crash_point

    def seal(self) -> SealReport:
        """Seal what is enough, or waited long enough."""
        report = SealReport()
        now = self._clock.now()
        by_day: dict[str, list[Manifest]] = {}
        for part in self._pending(report):
            by_day.setdefault(part.date, []).append(part)
        target_bytes = self._target_bytes() if by_day else 0
        waiting = {part.manifest_id: part for parts in by_day.values() for part in parts}
        for day, parts in sorted(by_day.items()):
            for group in due(parts, target_bytes, now=now, wait_seconds=self._wait_seconds):
                for part_id in self._tried(day, group, report):
                    del waiting[part_id]
        report.waiting_parts = len(waiting)
        ages = ((now - part.created_at).total_seconds() for part in waiting.values())
        report.oldest_seconds = max(0.0, *ages, 0.0)
        return report

    def _pending(self, report: SealReport) -> Iterator[Manifest]:
        listed = (info for info in self._store.list(self._layout.pending_folder) if info.uri.endswith(".json"))
        for info, part in map_ordered(self._read, listed):
            if isinstance(part, Manifest):
                yield part
            elif part is not None:
                log_event("part.unreadable", uri=info.uri, error=part)
                report.unreadable[info.uri] = str(part)

    def _read(self, info: ObjectInfo) -> tuple[ObjectInfo, Manifest | RecordUnreadable | None]:
        try:
            data = self._store.read(info.uri)
            part = read_record(Manifest.model_validate_json, data, info.uri, expected="a pending part")
        except ObjectNotFound:  # another sealer was faster
            return info, None
        except RecordUnreadable as exc:
            return info, exc
        name = base_name(info.uri).removesuffix(".json")
        if part.manifest_id != name:
            return info, RecordUnreadable(f"{info.uri}: manifest_id is {part.manifest_id}, expected {name}")
        return info, part

    def _tried(self, day: str, parts: Sequence[Manifest], report: SealReport) -> Iterable[str]:
        """Seal parts together; trouble that should pass leaves them to the next call, and stops no others."""
        try:
            return self._seal_group(day, parts, report)
        except (TryAgainError, StuckError) as exc:
            log_event("group.not_sealed", date=day, parts=len(parts), error=exc)
            return ()

    def _seal_group(self, day: str, parts: Sequence[Manifest], report: SealReport) -> Iterable[str]:
        """Seal parts together; returns the ids of those that wait no longer."""
        fenced = [part for part in parts if self._is_fenced(part)]
        given_up = {part.manifest_id for part in parts} - {part.manifest_id for part in fenced}
        manifest_id = new_manifest_id(day)
        claimed = self._claimer.claim([part_key(part.manifest_id) for part in fenced], manifest_id)
        self._on_crash_point(BuildCrashPoint.GATHERED, manifest_id)
        won = [part for part in fenced if part_key(part.manifest_id) in claimed.won]
        if won:
            files = tuple(file for part in won for file in part.files)
            manifest = Manifest(manifest_id=manifest_id, date=day, created_at=self._clock.now(), files=files)
            self._store.create(self._layout.manifest(manifest_id), manifest.to_json())
            self._on_crash_point(BuildCrashPoint.SEALED, manifest_id)
            if not self._claimer.tie(manifest, "manifest"):
                self._store.delete([self._layout.manifest(manifest_id)])
                raise TryAgainError(f"manifest {manifest_id}: its parts were taken over before it was written")
            report.manifests.append(manifest)
        settled = given_up | {part.manifest_id for part in fenced if _is_settled(part, claimed)}
        self._store.delete([self._layout.pending_part(part_id) for part_id in settled])
        self._on_crash_point(BuildCrashPoint.CLEARED, manifest_id)
        report.sealed_parts += len(won)
        report.discarded += len(given_up)
        return settled

    def _is_fenced(self, part: Manifest) -> bool:
        """Make sure that a part takes effect; False if it was given up, and its files are in other hands."""
        is_bound = self._claimer.tie(part, "part")
        self._on_crash_point(BuildCrashPoint.FENCED, part.manifest_id)
        return is_bound


def _is_settled(part: Manifest, claimed: Claimed) -> bool:
    """Whether a part is in a manifest for good: this one, or one that an interrupted sealer wrote."""
    return part_key(part.manifest_id) in claimed.won | claimed.taken
