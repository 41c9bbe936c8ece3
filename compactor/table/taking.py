"""Commits one placed manifest at once, for a command that waits for it."""

from dataclasses import dataclass, field
from threading import Lock

from compactor.core.documents.records import Commit
from compactor.core.errors import TryAgainError
from compactor.table.committer import Committer
from compactor.table.named import Placed, needs_table


@dataclass(frozen=True, slots=True)
class TakesNow:
    """Has the table take the files of a commit at once. Several threads may use it."""

    committer: Committer
    _lock: Lock = field(default_factory=Lock)

    def take_now(self, commit: Commit) -> None:
        """Commit the files of a commit that are in their final places; return once the table has them.

        Raises:
            TryAgainError: It does not have them now.
            StuckError: A person must fix the manifest.
            OperatorError: A person must act.
        """
        placed = Placed(commit.key, commit.generation)
        while needs_table(commit):
            with self._lock:
                progress = self.committer.commit([placed])
            if placed in progress.visible:
                return
            if placed in progress.stuck:
                raise progress.stuck[placed]
            if placed in progress.superseded or (progress.applied is None and progress.refused is None):
                raise TryAgainError(f"manifest {placed.key.id}: it was rebuilt once more meanwhile")
