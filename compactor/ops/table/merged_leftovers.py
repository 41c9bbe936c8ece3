"""Removes merged files that nothing needs any more. No file of a commit is removed here.

A merge takes effect by the first batch behind its base that replaces files, or never. So the batches on record tell of
any merged file whether the table may still get it; no clock is needed, and no process has to be asked.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from compactor.core.documents.records import Commit
from compactor.core.documents.table_records import MergedFile, MergedPart, TableBatch
from compactor.core.errors import ObjectNotFound, RecordUnreadable, StuckError
from compactor.ledger.change_log import find_merge, forget_release, is_released, merged_files
from compactor.ledger.state import State
from compactor.ledger.table.batches import TableBatches
from compactor.ledger.visible import Visible
from compactor.table.catalog import TableCatalog


@dataclass(frozen=True, slots=True)
class MergedLeftovers:
    """Finds and removes them. Safe at any time, and to be repeated after a kill."""

    state: State
    batches: TableBatches
    catalog: TableCatalog

    def remove(self) -> tuple[int, int]:
        """Remove merged files that neither a snapshot has, nor a batch that is to come; return their number and length.

        One that alone has rows of a valid commit stays: the table may have been lost, and lack it.

        Raises:
            TryAgainError: The catalog or the store does not answer. Some may be removed.
            OperatorError: It refuses.
        """
        found = list(self.state.store.list(self.state.layout.merged_folder))
        if not found:
            return 0, 0
        head = self.catalog.head()
        if head is None:
            return 0, 0  # one that is made again may get them
        ended = _Ended(self.batches, head.fence)
        # guard: merged files stay as long as the table may get them
        may_go = [info for info in found if ended.has(self.state.layout.merge_of(info.uri))]
        current = self.catalog.live_files(head.snapshot_id) if head.snapshot_id is not None else ()
        live = {file.uri for file in current} if may_go else set()
        if all(info.uri in live for info in may_go):
            return 0, 0  # nor do earlier snapshots need to be read
        # After the head: what it does not have by now, it never gets.
        named = self.catalog.files_below(self.state.layout.merged_folder)
        unneeded = [info for info in may_go if info.uri not in named]
        merged = merged_files(self.state, (info.uri for info in unneeded), skips_damaged=True)
        stay = self._only_copies(merged.values(), live)  # guard: a merged file that alone has rows of a manifest stays
        stay |= {info.uri for info in unneeded if info.uri not in merged and self._is_damaged(info.uri)}
        gone = [info for info in unneeded if info.uri not in stay]
        self.state.store.delete(info.uri for info in gone)
        for info in gone:
            if info.uri in merged:
                forget_release(self.state, merged[info.uri])
        return len(gone), sum(info.size_bytes for info in gone)

    def _is_damaged(self, uri: str) -> bool:
        """Whether it cannot be read what a merged file has the rows of."""
        try:
            find_merge(self.state, self.state.layout.merge_of(uri))
        except RecordUnreadable:
            return True
        return False

    def _only_copies(self, files: Iterable[MergedFile], live: AbstractSet[str]) -> set[str]:
        """Those that alone have rows of a valid commit, as where the table was lost and did not get them back."""
        released = [each for each in files if is_released(self.state, each.date, each.uri)]
        if not released:
            return set()
        held = {part.uri for each in merged_files(self.state, live, skips_damaged=True).values() for part in each.parts}
        visible = Visible(self.state)
        return {
            each.uri
            for each in released
            if any(part.uri not in held and self._is_needed(part, visible) for part in each.parts)
        }

    def _is_needed(self, part: MergedPart, visible: Visible) -> bool:
        """Whether the rows of a file of a commit are those of its manifest, and the file is gone."""
        try:
            outcome = self.state.ledger.state(part.key).outcome
        except (ObjectNotFound, StuckError):  # `verify` tells of it; until it is known, the rows stay
            return True
        is_valid = isinstance(outcome, Commit) and outcome.generation == part.generation
        is_valid = is_valid and not visible.has_retired_rows(part.key, part.generation)
        return is_valid and self.state.store.stat(part.uri) is None


@dataclass(slots=True)
class _Ended:
    """Which merges the table has taken, or never takes.

    Attributes:
        batches: The batches on record.
        fence: The last one that the table took.
    """

    batches: TableBatches
    fence: int
    _read: dict[int, TableBatch | None] = field(default_factory=dict)

    def has(self, merge_id: str) -> bool:
        """Whether the table cannot get a merge any more, if it does not have it."""
        base = merge_id.partition("-")[0]
        return base.isdecimal() and any(batch.replaces_files for batch in self._behind(int(base)))

    def _behind(self, base: int) -> Iterator[TableBatch]:
        """The batches that the table has and the merge's base has not."""
        for number in range(base + 1, self.fence + 1):
            if number not in self._read:
                self._read[number] = self.batches.batch(number)
            batch = self._read[number]
            if batch is not None:
                yield batch
