"""Seals pending parts into manifests, by size or by age, so that no announced file waits for ever.

The sealer first binds each part, in case its builder died before that, so that it cannot be revoked any more. Then it
claims the parts for a manifest, as builders claim files, writes the manifest and binds it. Last, it deletes the parts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from compactor.core.crash_points import BuildCrashPoint, OnBuildCrashPoint, ignore_build_crash_point
from compactor.core.documents.manifest import Manifest
from compactor.core.errors import (
    AccessError,
    CredentialsRefused,
    ObjectNotFound,
    RecordUnreadable,
    StuckError,
    TryAgainError,
)
from compactor.core.layout import base_name
from compactor.core.map_ordered import THREADS, map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State
from compactor.manifests.claiming import Claimed, Claimer, part_key
from compactor.manifests.partitioning import due, new_manifest_id
from compactor.telemetry.logs import log_event

T = TypeVar("T")

FILES_AT_ONCE = 100_000
"""How many files of parts are read before these parts are sealed. A file takes about 1.7 kB, so they take a sixth of
the function's memory. Only after an outage do more wait."""

PARTS_AT_ONCE = 5_000
"""How many parts are read before they are sealed. Each takes some requests, and the function has 240 seconds: one that
ends before it has sealed anything would never get further."""

SEAL_INTERVAL_SECONDS = 60
"""How often the sealer is called; a part that would be too old at the next call is sealed at this one."""


@dataclass(slots=True)
class SealReport:
    """What one call of the sealer did.

    Attributes:
        manifests: Manifests that were written.
        sealed_parts: How many parts went into them.
        waiting_parts: How many parts still wait.
        oldest_seconds: Age of the oldest waiting part; 0 if there is none.
        discarded: How many parts were deleted because their ids were revoked.
        unreadable: Pending parts that cannot be read, and those of which a record is damaged, each URI with what is
            wrong; a person has to check them.
    """

    manifests: list[Manifest] = field(default_factory=list)
    sealed_parts: int = 0
    waiting_parts: int = 0
    oldest_seconds: float = 0.0
    discarded: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Sealed:
    """The result for one group of parts.

    Attributes:
        manifest: The manifest that was written; None if there is none.
        parts: How many parts went into it.
        discarded: How many parts were deleted because their ids were revoked.
        settled: The ids of parts that no longer wait.
        unreadable: Parts of which a record is damaged, each URI with what is wrong.
    """

    manifest: Manifest | None = None
    parts: int = 0
    discarded: int = 0
    settled: AbstractSet[str] = frozenset()
    unreadable: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealer:
    """Seals pending parts. Safe to run twice at once.

    Attributes:
        target_bytes: Returns how many stored bytes a manifest should name.
        max_wait_seconds: How long a part may wait.
        on_crash_point: Called at each crash point, from the threads.
        groups_at_once: How many threads write groups.
        files_at_once: How many files of parts to read before these parts are sealed.
        parts_at_once: How many parts to read before they are sealed.
    """

    state: State
    claimer: Claimer
    target_bytes: Callable[[], float]
    max_wait_seconds: float
    on_crash_point: OnBuildCrashPoint = ignore_build_crash_point
    groups_at_once: int = THREADS
    files_at_once: int = FILES_AT_ONCE
    parts_at_once: int = PARTS_AT_ONCE

    def seal(self) -> SealReport:
        """Seal the parts that are large enough together, or have waited long enough.

        Raises:
            AccessError: The store refuses parts, and no other one could be read.
        """
        report, now = SealReport(), self.state.clock.now()
        waiting_since, not_due = dict[str, datetime](), list[Manifest]()
        for parts in self._at_once(self._pending(report)):
            waiting_since |= {part.manifest_id: part.created_at for part in parts}
            not_due, settled = self._seal_due([*not_due, *parts], now, report)
            for part_id in settled:
                del waiting_since[part_id]
        report.waiting_parts = len(waiting_since)
        report.oldest_seconds = max([0.0, *((now - since).total_seconds() for since in waiting_since.values())])
        return report

    def _at_once(self, parts: Iterable[Manifest]) -> Iterator[list[Manifest]]:
        """Divide parts into lists that fit into the memory and the time of a call."""
        gathered, files = list[Manifest](), 0
        for part in parts:
            gathered.append(part)
            files += len(part.files)
            if files >= self.files_at_once or len(gathered) >= self.parts_at_once:
                yield gathered
                gathered, files = [], 0
        yield gathered

    def _seal_due(
        self, parts: Iterable[Manifest], now: datetime, report: SealReport
    ) -> tuple[list[Manifest], set[str]]:
        """Seal the parts that are due; return those that are not yet, and the ids of those that no longer wait."""
        by_date: dict[str, list[Manifest]] = {}
        wait_seconds = self.max_wait_seconds - SEAL_INTERVAL_SECONDS
        for part in self._with_readable_records(parts, now - timedelta(seconds=wait_seconds), report):
            by_date.setdefault(part.date, []).append(part)
        target_bytes = self.target_bytes() if by_date else 0
        groups = [
            group
            for of_date in by_date.values()
            for group in due(of_date, target_bytes, self.state.rules, now=now, wait_seconds=wait_seconds)
        ]
        # The oldest part has waited longest, whatever its date is.
        groups.sort(key=lambda group: min(part.created_at for part in group))
        settled = set[str]()
        for sealed in map_ordered(self._tried, groups, threads=self.groups_at_once):
            _add(report, sealed)
            settled |= sealed.settled
        tried = {part.manifest_id for group in groups for part in group}
        return [part for of_date in by_date.values() for part in of_date if part.manifest_id not in tried], settled

    def _pending(self, report: SealReport) -> Iterator[Manifest]:
        listed = (
            info for info in self.state.store.list(self.state.layout.pending_folder) if info.uri.endswith(".json")
        )
        refused, is_any_read = None, False
        for info, part in map_ordered(self._read, listed):
            if isinstance(part, Manifest):
                is_any_read = True
                yield part
            elif part is not None:
                refused = part if isinstance(part, AccessError) else refused
                _note_unreadable(info.uri, part, report.unreadable)
        if refused is not None and not is_any_read:
            raise refused

    def _read(self, info: ObjectInfo) -> tuple[ObjectInfo, Manifest | StuckError | AccessError | None]:
        return info, _or_fault(partial(self._part, info.uri))

    def _part(self, uri: str) -> Manifest | None:
        try:
            data = self.state.store.read(uri)
        except ObjectNotFound:  # another sealer was faster
            return None
        part = Manifest.read(data, uri, "a pending part")
        name = base_name(uri).removesuffix(".json")
        if part.manifest_id != name:
            raise RecordUnreadable(f"{uri}: manifest_id is {part.manifest_id}, expected {name}")
        return part

    def _with_readable_records(
        self, parts: Iterable[Manifest], old_until: datetime, report: SealReport
    ) -> Iterator[Manifest]:
        """Leave out old parts of which a record is damaged: they stay, and would make young ones due at each call."""

        def read(part: Manifest) -> tuple[Manifest, object]:
            is_old = part.created_at <= old_until
            return part, _or_fault(partial(self.state.ledger.accepted, part.manifest_id)) if is_old else None

        for part, found in map_ordered(read, parts):
            if isinstance(found, Exception):
                _note_unreadable(self.state.layout.pending_part(part.manifest_id), found, report.unreadable)
            else:
                yield part

    def _tried(self, parts: Sequence[Manifest]) -> _Sealed:
        """Seal parts together. After a passing error, leave them to the next call and go on with other groups."""
        sealed = _Sealed()
        try:
            self._seal_group(parts[0].date, parts, sealed)
        except (TryAgainError, StuckError) as exc:
            log_event("group.not_sealed", date=parts[0].date, parts=len(parts), error=exc)
            return _Sealed(unreadable=sealed.unreadable)
        return sealed

    def _seal_group(self, date: str, parts: Sequence[Manifest], sealed: _Sealed) -> None:
        """Seal parts of one date together."""
        bound, revoked = self._bound(parts, sealed)
        manifest_id = new_manifest_id(date)
        claimed = self.claimer.claim([part_key(part.manifest_id) for part in bound], manifest_id)
        self.on_crash_point(BuildCrashPoint.PARTS_CLAIMED, manifest_id)
        # guard: a part is sealed into one manifest
        won = [part for part in bound if part_key(part.manifest_id) in claimed.won]
        if won:
            files = tuple(file for part in won for file in part.files)
            manifest = Manifest(manifest_id=manifest_id, date=date, created_at=self.state.clock.now(), files=files)
            self.state.store.create(self.state.layout.manifest(manifest_id), manifest.to_json())
            self.on_crash_point(BuildCrashPoint.SEALED, manifest_id)
            if not self.claimer.bind(manifest, "manifest"):  # guard: a sealer whose id was revoked removes nothing
                self.state.store.delete([self.state.layout.manifest(manifest_id)])
                raise TryAgainError(f"manifest {manifest_id}: its parts were taken over before it was written")
            sealed.manifest = manifest
        settled = revoked | {part.manifest_id for part in bound if _is_settled(part, claimed)}
        self.state.store.delete([self.state.layout.pending_part(part_id) for part_id in settled])
        self.on_crash_point(BuildCrashPoint.CLEARED, manifest_id)
        sealed.parts, sealed.discarded, sealed.settled = len(won), len(revoked), settled

    def _bound(self, parts: Sequence[Manifest], sealed: _Sealed) -> tuple[list[Manifest], set[str]]:
        """Bind parts; return those that are, and the ids that were revoked. A damaged record holds up its own part."""
        bound, revoked = list[Manifest](), set[str]()
        for part in parts:
            is_bound = _or_fault(partial(self._is_bound, part))
            if isinstance(is_bound, Exception):
                _note_unreadable(self.state.layout.pending_part(part.manifest_id), is_bound, sealed.unreadable)
            elif is_bound:
                bound.append(part)
            else:
                revoked.add(part.manifest_id)
        return bound, revoked

    def _is_bound(self, part: Manifest) -> bool:
        """Bind a part; return False if its id was revoked and another claimant took its files over."""
        is_bound = self.claimer.bind(part, "part")
        self.on_crash_point(BuildCrashPoint.PART_BOUND, part.manifest_id)
        return is_bound  # guard: a revoked part is never sealed


def _or_fault(call: Callable[[], T]) -> T | StuckError | AccessError:
    """What a call about one part returns, or the error that has to do with this part alone."""
    try:
        return call()
    except CredentialsRefused:  # no part is to blame
        raise
    except (StuckError, AccessError) as exc:
        return exc


def _note_unreadable(uri: str, error: Exception, unreadable: dict[str, str]) -> None:
    log_event("part.unreadable", uri=uri, error=error)
    unreadable[uri] = str(error)


def _add(report: SealReport, sealed: _Sealed) -> None:
    report.manifests += [sealed.manifest] if sealed.manifest is not None else []
    report.sealed_parts += sealed.parts
    report.discarded += sealed.discarded
    report.unreadable |= sealed.unreadable


def _is_settled(part: Manifest, claimed: Claimed) -> bool:
    """Return whether a part is finally in a manifest: this one, or one that an interrupted sealer wrote."""
    return part_key(part.manifest_id) in claimed.won | claimed.taken
