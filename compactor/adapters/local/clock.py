"""The system clock."""

from datetime import UTC, datetime


class SystemClock:
    """The clock of this machine, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)
