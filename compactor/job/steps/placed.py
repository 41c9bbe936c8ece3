"""Manifests that are placed: decided, with their files in their final places, and not in the table yet."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from compactor.core.documents.records import Accepted, Commit
from compactor.job.steps.results import CompactionResult
from compactor.table.named import Placed


@dataclass(frozen=True, slots=True)
class Waiting:
    """A placed manifest that waits for the table.

    Attributes:
        uri: The object that it was delivered in.
        result: What became of it, given the time when it was done.
        since: When it was placed.
    """

    uri: str
    accepted: Accepted
    commit: Commit
    result: Callable[[datetime], CompactionResult]
    since: datetime

    @property
    def placed(self) -> Placed:
        return Placed(self.commit.key, self.commit.generation)


class Table(Protocol):
    """Takes placed manifests, and brings them to done once the table has their files."""

    def take(self, waiting: Waiting) -> None:
        """Wait with a manifest. Called from several threads."""

    def __contains__(self, manifest_id: str) -> bool:
        """Return whether a manifest waits."""
