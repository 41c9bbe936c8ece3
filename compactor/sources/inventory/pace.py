"""Holds planned manifests back until the watched prefix has room for them, so that live data keeps its latency."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.core.layout import is_delivery
from compactor.ledger.backlog import WaitingManifests, waiting_manifests
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class PaceRules:
    """How fast to release.

    Attributes:
        slots: Manifests that the job processes at once.
        most_waiting: Manifests in the watched prefix up to which planned ones are added, those in work included.
        most_age_seconds: Age of the oldest of them up to which planned ones are added.
        per_hour: The most manifests to release in an hour; None for any number.
    """

    slots: int
    most_waiting: int
    most_age_seconds: float
    per_hour: float | None = None

    def is_late(self, backlog: WaitingManifests) -> bool:
        """Whether the oldest manifest has waited too long for others to be added."""
        return backlog.oldest_seconds > self.most_age_seconds


@dataclass(slots=True)
class Pace:
    """Keeps a few manifests waiting for the job, and fewer where they wait too long.

    A live manifest finds at most as many planned ones before it as may wait. That number grows by one when a slot of
    the job has nothing to do, falls by one when more than one manifest waits behind those in work, and is halved when
    a manifest gets too old. So it settles where the job just stays busy.
    """

    rules: PaceRules
    _width: int = field(init=False)
    _was_late: bool = field(default=False, init=False)
    _next_at: datetime | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._width = min(self.rules.slots + 1, self.rules.most_waiting)

    def allowed(self, backlog: WaitingManifests, now: datetime) -> int:
        """How many manifests may be released now."""
        is_late, slots = self.rules.is_late(backlog), self.rules.slots
        if is_late and not self._was_late:
            self._width = max(1, self._width // 2)
        elif not is_late and backlog.manifests < slots:
            self._width = min(self.rules.most_waiting, self._width + 1)
        elif backlog.manifests > slots + 1:
            self._width = max(1, min(self._width, slots + 1), self._width - 1)
        self._was_late = is_late
        free = 0 if is_late else max(0, self._width - backlog.manifests)
        if self.rules.per_hour is None:
            return free
        return min(free, 1) if self._next_at is None or now >= self._next_at else 0

    def note_released(self, manifests: int, now: datetime) -> None:
        """Note that manifests were released."""
        if self.rules.per_hour is not None and manifests:
            pause = timedelta(seconds=manifests * _HOUR_SECONDS / self.rules.per_hour)
            self._next_at = max(now, self._next_at or now) + pause


WAITING_FOR = "the job"


@dataclass(slots=True, kw_only=True)
class PacedGate:
    """A `planner.Gate` that lists the watched prefix before each release. For one thread.

    Attributes:
        poll_seconds: Time between two listings.
        stall_seconds: It gives up after this long in which the job finished no manifest, or was always late.
        sleep: Waits for a number of seconds.
        on_wait: Called at the begin of each wait, with its cause.
    """

    state: State
    pace: Pace
    poll_seconds: float
    stall_seconds: float
    sleep: Callable[[float], None]
    on_wait: Callable[[str], None] = lambda _why: None
    _seen: frozenset[str] = field(default_factory=frozenset, init=False)
    _moved_at: datetime | None = field(default=None, init=False)
    _late_since: datetime | None = field(default=None, init=False)

    def allow(self, most: int) -> int:
        is_waiting = False
        while True:
            now = self.state.clock.now()
            backlog = self._backlog(now)
            if allowed := min(most, self.pace.allowed(backlog, now)):
                self.pace.note_released(allowed, now)
                self._moved_at = now
                return allowed
            if backlog.manifests and self._is_stalled(now):
                return 0
            if not is_waiting:
                is_waiting = True
                log_event("planning.waiting", waiting_for=WAITING_FOR, seconds=round(self.poll_seconds, 1))
                self.on_wait(_why(backlog))
            self.sleep(self.poll_seconds)

    def _is_stalled(self, now: datetime) -> bool:
        since = min(filter(None, (self._moved_at, self._late_since)), default=now)
        return (now - since).total_seconds() > self.stall_seconds

    def _backlog(self, now: datetime) -> WaitingManifests:
        written_at = {
            info.uri: info.modified_at
            for info in self.state.store.list(self.state.layout.manifests_folder)
            if is_delivery(info.uri)
        }
        seen = frozenset(written_at)
        if self._moved_at is None or self._seen - seen:
            self._moved_at = now
        self._seen = seen
        backlog = waiting_manifests(written_at.values(), now)
        is_late = self.pace.rules.is_late(backlog)
        self._late_since = (self._late_since or now) if is_late else None
        return backlog


def _why(backlog: WaitingManifests) -> str:
    if not backlog.manifests:
        return "the given rate"
    return f"{backlog.manifests} waiting manifests, the oldest for {backlog.oldest_seconds:.0f} s"
