"""The checkpoints of one run: each stream that it starts has one of its own, with a number."""

from dataclasses import dataclass, field

from compactor.core.layout import folder
from compactor.ledger.state import State


@dataclass(slots=True)
class RunCheckpoints:
    """Names checkpoints, and deletes those of streams that ended.

    No checkpoint is used twice, nor by a later run. So whatever of them is lost or stays matters to no stream.
    """

    state: State
    _number: int = 0
    _ended: list[str] = field(default_factory=list)

    def new(self) -> str:
        """The URI of a checkpoint that no stream has had."""
        self._number += 1
        return self.state.layout.checkpoint(f"{self.state.ledger.run_id}-{self._number}")

    def end(self, checkpoint: str) -> None:
        """Note that the stream of a checkpoint has ended."""
        self._ended.append(checkpoint)

    def drop_ended(self) -> None:
        """Delete the checkpoints of streams that ended. What cannot be deleted now is for the next call.

        Raises:
            CompactorError: The store failed.
        """
        while self._ended:
            listed = self.state.store.list(folder(self._ended[0]))
            self.state.store.delete([info.uri for info in listed])
            self._ended.pop(0)
