"""The ports of the control plane, as protocols.

Every method raises `TryAgainError` for transient errors and `OperatorError` where a person must act.
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

    def defined_at(self) -> datetime | None:
        """When the definition of the job last changed; None if there is no such time."""

    def start(self) -> str | None:
        """Start a run; returns its id, or None if the job already has as many runs as it may, which is no error."""

    def stop(self, run_id: str) -> None:
        """Have Glue kill a run. It ends some time later."""


class Queue(Protocol):
    """The depth and age of one queue."""

    def depth(self) -> QueueDepth:
        """The approximate number of messages."""

    def oldest_seconds(self, now: datetime) -> float | None:
        """The latest measured age of the oldest message; None without a recent measurement."""


class Notifier(Protocol):
    """Tells people."""

    def tell(self, subject: str, text: str) -> None:
        """Send a message; the subject is one short line."""
