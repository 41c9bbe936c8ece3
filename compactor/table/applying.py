"""Makes the table take one batch, or skip it if the catalog refuses it permanently.

A batch's change asserts the snapshot at which the fence was read, as does the change without files that makes the table
skip it. So the table accepts one of the two, once, and everything any process sent of either before then fails. This
holds even if the refusals were wrong. If the catalog also refuses a change without files, no batch is to blame, and all
wait.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from compactor.core.documents.table_records import TableBatch
from compactor.core.errors import (
    OperatorError,
    RecordUnreadable,
    StuckError,
    TableCommitUnknown,
    TableConflict,
    TableRefused,
)
from compactor.ledger.table.batches import TableBatches
from compactor.table.catalog import TableCatalog, TableChange, TableFile, TableHead
from compactor.table.changes import Changes
from compactor.table.named import UNTOLD

TRIES = 5
"""How often one call sends a change after conflicts and inconclusive responses."""

REFUSALS = 3
"""How many refusals by the catalog make the table skip a batch."""

MAX_HELD = 100
"""The most manifests held back at once. If the catalog refuses more, they are not at fault, and all wait."""


@dataclass(frozen=True, slots=True)
class Applied:
    """A batch that took effect, with its number of added files, and its snapshot or a later one."""

    number: int
    manifests: int
    files: int
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class Refused:
    """A batch that the table skipped, with the catalog's error."""

    number: int
    manifests: int
    error: OperatorError | StuckError


@dataclass(frozen=True, slots=True)
class Applier:
    """Sends the batches' changes."""

    batches: TableBatches
    catalog: TableCatalog
    changes: Changes

    def applied_again(self, head: TableHead, batch: TableBatch) -> Applied | Refused:
        """As `applied`, for a batch from an earlier call, which a lost table may have skipped."""
        if not self.batches.refused.has(batch.number) or self.changes.comes_back(batch, partial(self._live, head)):
            return self.applied(head, batch)
        return self._sent(head, batch, _passing(batch))  # later batches have its content

    def applied(self, head: TableHead, batch: TableBatch) -> Applied | Refused:
        """Make the table take a batch, or skip one that its catalog refuses.

        Raises:
            TryAgainError: The catalog or the store failed temporarily.
            StuckError: A record that the batch needs is unreadable, and no other batch has its rows.
            OperatorError: The catalog refuses any change.
        """
        try:
            return self._sent(head, batch, self.changes.of(batch, head.schema_version, partial(self._live, head)))
        except (TableRefused, RecordUnreadable) as error:
            if self.changes.has_moved_rows(batch, partial(self._live, head)):
                raise
            self._check_may_hold(batch, error)
            try:
                return self._sent(head, batch, _passing(batch), error)
            except TableRefused:
                raise error from None  # it takes no change at all

    def _sent(
        self, head: TableHead, batch: TableBatch, change: TableChange, error: OperatorError | StuckError | None = None
    ) -> Applied | Refused:
        """Send a batch's change, or an empty one because of an error, until the fence shows the result.

        Raises:
            TableRefused: The catalog keeps refusing the change.
        """
        refusals = 0
        for tried in range(1, TRIES + 1):
            try:
                snapshot_id: int | None = self.catalog.commit(head, change)
                is_refused = change.is_refused
                break
            except (TableConflict, TableCommitUnknown, TableRefused) as failure:
                refusals += isinstance(failure, TableRefused)
                now = self.catalog.head()
                if now is None or now.table_id != head.table_id:
                    raise
                if now.fence >= batch.number:  # guard: the fence is read again after a change without an answer
                    snapshot_id = now.snapshot_id
                    # guard: the sender of a batch learns that it was skipped
                    is_refused = batch.number == now.refused or self.batches.refused.has(batch.number)
                    break
                if refusals >= REFUSALS if isinstance(failure, TableRefused) else tried == TRIES:
                    raise
                if tried == TRIES:  # refused too seldom to blame the batch
                    raise TableConflict(str(failure)) from failure
                head = now
        if is_refused:
            found = error or TableRefused(UNTOLD)
            self.batches.refused.record(batch, str(found))
            return Refused(batch.number, len(batch.manifests), found)
        return Applied(batch.number, len(batch.manifests), len(change.added), snapshot_id)

    def _live(self, head: TableHead) -> Iterable[TableFile]:
        return self.catalog.live_files(head.snapshot_id) if head.snapshot_id is not None else ()

    def _check_may_hold(self, batch: TableBatch, error: OperatorError | StuckError) -> None:
        """Raise a batch's error if holding back its manifest would exceed the limit."""
        if len(batch.manifests) == 1 and self.batches.refused.due() >= MAX_HELD:
            raise type(error)(
                f"{error}; {MAX_HELD} manifests are already held back, so all others wait: see `compactor table check`"
            ) from error


def _passing(batch: TableBatch) -> TableChange:
    """The change that makes the table skip a batch."""
    return TableChange(batch.number, (), is_refused=True)
