"""Which manifests the batches name that the table has. No two batches may have the same generation of a manifest."""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from compactor.core.errors import OperatorError
from compactor.core.manifest_key import ManifestKey
from compactor.core.records import Commit, DeadLetter
from compactor.core.table_records import BatchedManifest, TableBatch
from compactor.ledger.ledger import Ledger
from compactor.ledger.table_batches import TableBatches


class Placed(NamedTuple):
    """A decided generation of a manifest, whose files are in their final places."""

    key: ManifestKey
    generation: int = 1


def needs_table(outcome: Commit | DeadLetter) -> bool:
    """Whether an outcome changes the table: it has rows, or takes the place of a generation that may have some."""
    return isinstance(outcome, Commit) and (bool(outcome.outputs) or outcome.generation > 1)


class PlacedState(Enum):
    """What the batches that the table has say of a placed manifest."""

    UNNAMED = "unnamed"
    VISIBLE = "visible"
    SUPERSEDED = "superseded"  # they have a later generation of it


@dataclass(slots=True)
class NamedManifests:
    """The manifests of all batches that are not finished: those of which a manifest may not be done.

    A manifest of a finished batch is done, so a placed manifest that is found not done later is in none of these. All
    other batches are read once each, so that the cost of a batch does not grow with their number.

    Attributes:
        batches: The batches on record.
        ledger: Tells which manifests are done.
        replays: Whether the table may lack batches that are finished, because it was lost.
    """

    batches: TableBatches
    ledger: Ledger
    replays: bool = False
    _finished: int | None = None
    _read: int = 0
    _left: dict[int, list[BatchedManifest]] = field(default_factory=dict)
    _members: dict[int, list[BatchedManifest]] = field(default_factory=dict)
    _generations: dict[str, int] = field(default_factory=dict)

    def read_to(self, fence: int) -> None:
        """Read the batches that the table has and that were not read before.

        Raises:
            OperatorError: The table is not the one that took the batches on record.
        """
        if self._finished is None:
            self._finished = self._read = 0 if self.replays else self.batches.finished()
        if fence < self._finished:
            raise OperatorError(
                f"the table has batch {fence} as its last one, and batch {self._finished} was in it: it was dropped, "
                "made again or restored; expected the table that took all batches, or `compactor table rebuild`"
            )
        for number in range(self._read + 1, fence + 1):
            batch = self.batches.batch(number)
            if batch is None:
                raise OperatorError(
                    f"the table has batch {fence} as its last one, but batch {number} is not on record at "
                    f"{self.batches.layout.table_batch(number)}; expected the state that the table was made from"
                )
            self._note(batch)
            self._read = number

    def _note(self, batch: TableBatch) -> None:
        self._members[batch.number], self._left[batch.number] = batch.manifests, list(batch.manifests)
        for each in batch.manifests:
            self._generations[each.manifest_id] = max(each.generation, self._generations.get(each.manifest_id, 0))

    def state_of(self, placed: Placed) -> PlacedState:
        """What the batches that were read say of a manifest."""
        named = self._generations.get(placed.key.id, 0)
        if named < placed.generation:
            return PlacedState.UNNAMED
        return PlacedState.VISIBLE if named == placed.generation else PlacedState.SUPERSEDED

    def finish(self, done: Collection[Placed]) -> None:
        """Note that manifests are done, and forget the batches of which all are.

        Args:
            done: Manifests that this process brought to done. Of others, the ledger tells.
        """
        first = self._finished or 0
        upto = first
        while upto < self._read and self._is_finished(upto + 1, done):
            upto += 1
            self._forget(upto)
        if upto > first:
            self._finished = upto
            self.batches.note_finished(upto)

    def _is_finished(self, number: int, done: Collection[Placed]) -> bool:
        left = self._left[number]
        while left:
            last = left[-1]
            if Placed(last.key, last.generation) not in done and not self.ledger.is_done(last.key, last.generation):
                return False
            left.pop()
        return True

    def _forget(self, number: int) -> None:
        del self._left[number]
        for each in self._members.pop(number):
            if self._generations.get(each.manifest_id) == each.generation:
                del self._generations[each.manifest_id]
