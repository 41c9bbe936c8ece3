"""What the control plane needs from the outside world, as protocols.

Every method raises `TryAgainError` for passing trouble and `OperatorError` where a person must act.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from compactor.control.runs import JobRun
from compactor.control.snapshot import QueueDepth


class JobRuns(Protocol):
    """The runs of one Glue job."""

    def list(self, since: datetime) -> Sequence[JobRun]:
        """The runs that were started since then, the newest first."""

    def start(self) -> str | None:
        """Start a run.

        Returns:
            Its id; None if as many as may are running already, which is an outcome and no error.
        """

    def stop(self, run_id: str) -> None:
        """Ask that a run be ended, as by a kill. It ends some time later."""


class Queue(Protocol):
    """One queue, as seen from outside."""

    def depth(self) -> QueueDepth:
        """About how many messages there are."""

    def oldest_seconds(self, now: datetime) -> float | None:
        """The age of the oldest message, as it was measured last; None if it was not lately."""


class Notifier(Protocol):
    """Tells people."""

    def tell(self, subject: str, text: str) -> None:
        """Send a message.

        Args:
            subject: One short line.
            text: The whole message.
        """
