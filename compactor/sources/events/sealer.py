"""Seals pending parts into manifests, by size or age, so that no announced file waits forever.

The sealer first binds each part, in case its builder died before doing so, so that it can no longer be revoked. Then it
plans the parts as builders plan files. Finally, it deletes the parts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from compactor.core.crash_points import OnCrashPoint, PlanCrashPoint
from compactor.core.documents.manifest import Manifest
from compactor.core.errors import AccessError, CredentialsRefused, ObjectNotFound, RecordUnreadable, StuckError
from compactor.core.layout import base_name
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State
from compactor.sources.candidates import Candidate, Group
from compactor.sources.claiming import Claimer, part_key
from compactor.sources.plan import Plan, Written
from compactor.sources.planner import Planner, Source
from compactor.telemetry.logs import log_event

T = TypeVar("T")

FILES_AT_ONCE = 100_000
"""How many files of parts are read before these parts are sealed. A file takes about 1.7 kB, so they use a sixth of the
function's memory. Only after an outage are there more."""

PARTS_AT_ONCE = 5_000
"""How many parts are read before they are sealed. Each takes some requests, and the function has 240 seconds: a call
that ends before sealing anything would never make progress."""

SEAL_INTERVAL_SECONDS = 60
"""How often the sealer is called; a part that would be too old at the next call is sealed in this one."""


@dataclass(slots=True)
class SealedParts(Plan):
    """The plan of one sealer call.

    Attributes:
        sealed_parts: How many parts went into its manifests.
        waiting_parts: How many parts still wait.
        oldest_seconds: Age of the oldest waiting part; 0 if there is none.
        discarded: How many parts were deleted because their ids were revoked.
        unreadable: Pending parts that are unreadable, or have a damaged record: each URI with the fault. They need an
            operator.
    """

    sealed_parts: int = 0
    waiting_parts: int = 0
    oldest_seconds: float = 0.0
    discarded: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, float]:
        """The figures by metric name."""
        return {
            "ManifestsBuilt": len(self.manifests),
            "PartsPending": self.waiting_parts,
            "OldestPartAgeSeconds": self.oldest_seconds,
            "PartsUnreadable": len(self.unreadable),
        }


def log_sealed(plans: Sequence[SealedParts]) -> dict[str, int]:
    """Log one sealer call, for one or several streams; return its counts."""
    counts = {
        "manifests": sum(len(each.manifests) for each in plans),
        "sealed_parts": sum(each.sealed_parts for each in plans),
        "waiting_parts": sum(each.waiting_parts for each in plans),
        "unreadable_parts": sum(len(each.unreadable) for each in plans),
    }
    log_event(
        "parts.sealed",
        manifests=counts["manifests"],
        sealed_parts=counts["sealed_parts"],
        waiting_parts=counts["waiting_parts"],
        unreadable_parts=counts["unreadable_parts"],
        oldest_seconds=max((each.oldest_seconds for each in plans), default=0.0),
        discarded_parts=sum(each.discarded for each in plans),
    )
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingParts(Source):
    """Some of the pending parts.

    Attributes:
        old_until: Older parts are always sealed.
        unreadable: Receives the URIs of parts with a damaged record, each with the fault.
        sealed: The claim keys of the parts that this plan sealed.
        settled: Those that no longer wait.
    """

    state: State
    claimer: Claimer
    on_crash_point: OnCrashPoint
    parts: Mapping[str, Manifest]
    old_until: datetime
    unreadable: dict[str, str]
    sealed: set[str] = field(default_factory=set, init=False)
    revoked: set[str] = field(default_factory=set, init=False)
    settled: set[str] = field(default_factory=set, init=False)
    tried: set[str] = field(default_factory=set, init=False)
    fails_alone: bool = field(default=True, init=False)
    dates_files: bool = field(default=False, init=False)

    def candidates(self, plan: Plan) -> Iterator[Candidate]:  # noqa: ARG002 - of the port
        parts = self.parts.items()
        sound = {key for key, is_sound in map_ordered(self._sound, parts) if is_sound}
        in_order = sorted(parts, key=lambda each: (each[1].date, each[1].created_at, each[0]))
        return (Candidate(key, part.date, part.files) for key, part in in_order if key in sound)

    def _sound(self, part: tuple[str, Manifest]) -> tuple[str, bool]:
        """Whether a part is sound, as a sort key. An old damaged part would make young ones due each time."""
        key, found = part
        is_young = found.created_at > self.old_until
        return key, is_young or self._is_readable(key, partial(self.state.ledger.accepted, found.manifest_id))

    def in_order(self, groups: Sequence[Group]) -> Sequence[Group]:
        """The groups that are full or old, those with the oldest parts first, whatever their date."""
        dated = [(min(self.parts[key].created_at for key in each.keys), each) for each in groups]
        due = [(since, each) for since, each in dated if each.is_full or since <= self.old_until]
        self.tried.update(key for _, each in due for key in each.keys)
        return [each for _, each in sorted(due, key=lambda each: each[0])]

    def ready(self, group: Group) -> Group:
        """The bound parts. A damaged record delays only its own part."""
        readable = {key for key in group.keys if self._is_readable(key, partial(self._bind, key))}
        return group.only(readable - self.revoked)  # guard: a revoked part is never sealed

    def _bind(self, key: str) -> None:
        """Bind a part, unless its id was revoked and a different claimant took its files over."""
        is_bound = self.claimer.bind(self.parts[key], "part")
        self.on_crash_point(PlanCrashPoint.PART_BOUND, self.parts[key].manifest_id)
        if not is_bound:
            self.revoked.add(key)

    def settle(self, group: Group, written: Written) -> None:
        """Delete the parts that are revoked, or permanently in a manifest, possibly of an interrupted sealer."""
        claimed, manifest = written.claimed, written.manifest
        settled = (claimed.won | claimed.taken | self.revoked) & {*group.keys}
        self.state.store.delete([self.uri(key) for key in settled])
        self.on_crash_point(PlanCrashPoint.CLEARED, manifest.manifest_id if manifest else "")
        self.sealed.update(claimed.won)
        self.settled.update(settled)

    def _is_readable(self, key: str, call: Callable[[], object]) -> bool:
        """Call a function on a part; return whether it found no damaged record."""
        found = _or_fault(call)
        if isinstance(found, Exception):
            _note_unreadable(self.unreadable, self.uri(key), found)
        return not isinstance(found, Exception)

    def uri(self, key: str) -> str:
        return self.state.layout.pending_part(self.parts[key].manifest_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealer:
    """Seals pending parts. Safe to run concurrently.

    Attributes:
        max_wait_seconds: How long a part may wait.
    """

    planner: Planner
    max_wait_seconds: float
    files_at_once: int = FILES_AT_ONCE
    parts_at_once: int = PARTS_AT_ONCE

    def seal(self) -> SealedParts:
        """Seal the parts that are large enough together, or have waited long enough.

        Raises:
            AccessError: The store denies access, and no part could be read.
        """
        planner, sealed = self.planner, SealedParts()
        now, waiting, not_due = planner.state.clock.now(), dict[str, datetime](), dict[str, Manifest]()
        for parts in self._at_once(self._pending(sealed.unreadable)):
            waiting |= {key: part.created_at for key, part in parts.items()}
            source = PendingParts(
                state=planner.state,
                claimer=planner.claimer,
                on_crash_point=planner.on_crash_point,
                parts=not_due | parts,
                old_until=now - timedelta(seconds=self.max_wait_seconds - SEAL_INTERVAL_SECONDS),
                unreadable=sealed.unreadable,
            )
            planner.plan(source, plan=sealed)
            sealed.sealed_parts += len(source.sealed)
            sealed.discarded += len(source.revoked & source.settled)
            not_due = {key: part for key, part in source.parts.items() if key not in source.tried}
            for key in source.settled:
                del waiting[key]
        sealed.waiting_parts = len(waiting)
        sealed.oldest_seconds = max([0.0, *((now - since).total_seconds() for since in waiting.values())])
        return sealed

    def _at_once(self, parts: Iterable[Manifest]) -> Iterator[dict[str, Manifest]]:
        """Divide parts, by claim key, to fit the memory and time of a call."""
        gathered, files = dict[str, Manifest](), 0
        for part in parts:
            gathered[part_key(part.manifest_id)] = part
            files += sum(1 + len(file.other_etags or ()) for file in part.files)
            if files >= self.files_at_once or len(gathered) >= self.parts_at_once:
                yield gathered
                gathered, files = {}, 0
        yield gathered

    def _pending(self, unreadable: dict[str, str]) -> Iterator[Manifest]:
        state = self.planner.state
        listed = (info for info in state.store.list(state.layout.pending_folder) if info.uri.endswith(".json"))
        refused, is_any_read = None, False
        for info, part in map_ordered(self._read, listed):
            if isinstance(part, Manifest):
                is_any_read = True
                yield part
            elif part is not None:
                refused = part if isinstance(part, AccessError) else refused
                _note_unreadable(unreadable, info.uri, part)
        if refused is not None and not is_any_read:
            raise refused

    def _read(self, info: ObjectInfo) -> tuple[ObjectInfo, Manifest | StuckError | AccessError | None]:
        return info, _or_fault(partial(self._part, info.uri))

    def _part(self, uri: str) -> Manifest | None:
        try:
            data = self.planner.state.store.read(uri)
        except ObjectNotFound:  # another sealer was faster
            return None
        part = Manifest.read(data, uri, "a pending part")
        name = base_name(uri).removesuffix(".json")
        if part.manifest_id != name:
            raise RecordUnreadable(f"{uri}: manifest_id is {part.manifest_id}, expected {name}")
        return part


def _or_fault(call: Callable[[], T]) -> T | StuckError | AccessError:
    """The result of a call on one part, or an error that concerns only this part."""
    try:
        return call()
    except CredentialsRefused:  # cannot be the fault of any part
        raise
    except (StuckError, AccessError) as exc:
        return exc


def _note_unreadable(unreadable: dict[str, str], uri: str, error: Exception) -> None:
    log_event("part.unreadable", uri=uri, error=error)
    unreadable[uri] = str(error)
