"""Holds planned manifests back until the watched prefix has room for them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.layout import is_delivery
from compactor.ledger.backlog import Backlog, backlog_of
from compactor.ledger.state import State
from compactor.manifests.inventory.pacing import Pace
from compactor.telemetry.logs import log_event

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

    def _backlog(self, now: datetime) -> Backlog:
        written_at = {
            info.uri: info.modified_at
            for info in self.state.store.list(self.state.layout.manifests_folder)
            if is_delivery(info.uri)
        }
        seen = frozenset(written_at)
        if self._moved_at is None or self._seen - seen:
            self._moved_at = now
        self._seen = seen
        backlog = backlog_of(written_at.values(), now)
        is_late = self.pace.rules.is_late(backlog)
        self._late_since = (self._late_since or now) if is_late else None
        return backlog


def _why(backlog: Backlog) -> str:
    if not backlog.manifests:
        return "the given rate"
    return f"{backlog.manifests} waiting manifests, the oldest for {backlog.oldest_seconds:.0f} s"
