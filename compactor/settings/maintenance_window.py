"""The weekly window in which Glue may restart a streaming job. No I/O."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Self

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
