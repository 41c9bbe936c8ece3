"""Decides how many planned manifests may be released, so that they leave live data its latency. No I/O, no clock."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.ledger.backlog import Backlog

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

    def is_late(self, backlog: Backlog) -> bool:
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

    def allowed(self, backlog: Backlog, now: datetime) -> int:
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
