"""The store's clock: every driver goes by it, however wrong the clock of its machine is."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.core.ports import Clock

TOLERATED_SECONDS = 2.0
"""Stores tell times to the second, and an answer takes a while: a smaller difference is none."""


@dataclass(slots=True)
class StoreClock:
    """This machine's clock, set right by the times that the store gives to what this process writes.

    Attributes:
        machine: The clock of this machine.
    """

    machine: Clock
    _ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return self.machine.now() - self._ahead

    def learn(self, modified_at: datetime) -> None:
        """Compare the clocks.

        Args:
            modified_at: The store's time of an object that this process wrote just now.
        """
        ahead = self.machine.now() - modified_at
        self._ahead = ahead if abs(ahead.total_seconds()) >= TOLERATED_SECONDS else timedelta()
