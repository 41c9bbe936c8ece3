"""The control plane's policy: values of the `[control]` settings. No I/O."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self

Mode = Literal["always", "on_work", "never"]

RESTART_WITHIN_SECONDS = 3 * 3600
"""Glue restarts a streaming job within three hours of the window's start [Glue developer guide]."""

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WINDOW = re.compile(rf"(?P<day>{'|'.join(_DAYS)}):(?P<hour>[01]?\d|2[0-3])")
_WEEK_SECONDS = 7 * 86_400


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """The weekly maintenance window in which Glue may restart a streaming job; it starts at a full hour in UTC."""

    weekday: int  # 0 for Monday
    hour: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a window in Glue's notation, such as `Sun:10`.

        Raises:
            ValueError: The text is not a window.
        """
        found = _WINDOW.fullmatch(text)
        if found is None:
            raise ValueError("a day and an hour in UTC as Glue writes them, such as Sun:10, or empty")
        return cls(_DAYS.index(found["day"]), int(found["hour"]))

    def covers(self, moment: datetime) -> bool:
        """Whether Glue may be restarting the job at this moment, which is in UTC."""
        since_monday = moment.weekday() * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second
        start = self.weekday * 86_400 + self.hour * 3600
        return (since_monday - start) % _WEEK_SECONDS < RESTART_WITHIN_SECONDS


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy. Each field is a key of the section `control`, whose description says what it means."""

    mode: Mode = "always"
    sla_seconds: float = 900
    start_grace_seconds: float = 600
    hang_seconds: float = 300
    stall_seconds: float = 3600
    drain_seconds: float = 900
    expired_grace_seconds: float = 600
    backoff_first_seconds: float = 60
    backoff_longest_seconds: float = 900
    breaker_failures: int = 5
    breaker_window_seconds: float = 3600
    breaker_cooldown_seconds: float = 3600
    idle_stop_seconds: float = 1800
    backlog_start_manifests: int = 1
    maintenance_window: MaintenanceWindow | None = None

    @property
    def proven_seconds(self) -> float:
        """A run this old has worked: a run that hung from its start would have been stopped earlier."""
        return self.start_grace_seconds + self.hang_seconds + self.drain_seconds

    def is_short(self, lived_seconds: float, *, ended_by_itself: bool) -> bool:
        """Whether a run ended too early to count as working. With `on_work`, an idle run may end by itself."""
        may_idle = ended_by_itself and self.mode == "on_work"
        return lived_seconds < (min(self.proven_seconds, self.idle_stop_seconds) if may_idle else self.proven_seconds)

    def is_maintenance(self, moment: datetime) -> bool:
        """Whether Glue may be restarting the job at this moment."""
        return self.maintenance_window is not None and self.maintenance_window.covers(moment)
