"""Removes files of the table that nothing needs any more: merged files, and files of commits that were merged.

A merge takes effect by the first batch behind its base that replaces files, or never. So the batches on record tell of
any merged file whether the table may still get it; no clock is needed, and no process has to be asked.

Before a file of a commit goes, it is on record that the merged file has its rows alone, and a batch of the table says
so, too: batches are numbered, so no other one can need the file by then. Later batches that take rows of the merged
file away write anew what is left of it. What a kill leaves undone is on record, and the next call does it.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from compactor.core.documents.records import Release
from compactor.core.documents.table_records import MergedFile, MergedPart, TableBatch
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import folder
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.change_log import (
    end_change,
    find_merge,
    finish_release,
    forget_release,
    is_released,
    merged_files,
    release,
    unfinished,
)
from compactor.ledger.state import State
from compactor.ledger.table.batches import TableBatches
from compactor.ledger.visible import Visible
from compactor.table.catalog import TableCatalog, TableHead
from compactor.table.committer import Committer
from compactor.table.unmerged import looked_up
from compactor.table.upkeep import SAFE_AGE

RELEASED_AT_ONCE = 100
"""So many merged files are in one batch."""


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
        [found] = accounts(self.state, Scope(keys=[part.key]))
        if found.fault is not None:  # `verify` tells of it; until it is known, the rows stay
            return True
        is_valid = found.commit is not None and found.commit.generation == part.generation
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


@dataclass(frozen=True, slots=True)
class ReleasedOriginals:
    """Finds and removes them. Safe beside jobs, merges, rebuilds and itself, and to be repeated after a kill.

    Attributes:
        committer: Takes the batches that say so to the table.
    """

    state: State
    committer: Committer

    def foreseen(self) -> tuple[int, int]:
        """How many files would be removed, and their length. Changes nothing."""
        head = self.committer.catalog.head()
        due = self._due(head, self._merged(head)) if head is not None else []
        return self._sum(due)

    def remove(self) -> tuple[int, int]:
        """Remove what may go; return the number of the files and their length.

        Raises:
            TryAgainError: The catalog or the store does not answer, or the table moves on all the time. What is done
                is done; another call does the rest.
            OperatorError: A person must act.
        """
        if self.committer.catalog.head() is None:
            return 0, 0
        head = self.committer.settled()
        live = self._merged(head)
        due, found = self._due(head, live), (0, 0)
        self._drop_ended({each.uri for each in live})
        for start in range(0, len(due), RELEASED_AT_ONCE):
            some = due[start : start + RELEASED_AT_ONCE]
            for each in some:
                release(self.state, each)  # guard: it is on record where rows are before the files that were merged go
            # guard: files that were merged go only behind a batch that says so
            for each in self.committer.release(some):
                files, size_bytes = self._sum([each])
                self.state.store.delete(part.uri for part in each.parts)
                finish_release(self.state, each)
                found = found[0] + files, found[1] + size_bytes
        return found

    def _merged(self, head: TableHead) -> list[MergedFile]:
        """The merged files of the table."""
        if head.snapshot_id is None:
            return []
        listed = looked_up(self.state, self.committer.catalog.live_files(head.snapshot_id))
        return [each.merged for each in listed if each.merged is not None and not each.differs]

    def _due(self, head: TableHead, live: Sequence[MergedFile]) -> list[MergedFile]:
        """The merged files whose parts may go: no snapshot has them, and no manifest of theirs is being made."""
        layout = self.state.layout
        begun = {each.file.uri for each in unfinished(self.state, Release)}
        now = self.state.clock.now()
        written = {info.uri: info.modified_at for info in self.state.store.list(layout.merged_folder)}
        some = [
            each
            for each in live
            if each.uri in written
            and written[each.uri] < now - SAFE_AGE  # guard: files that were merged stay for a day
            and (each.uri in begun or not is_released(self.state, each.date, each.uri))
        ]
        if not some or head.snapshot_id is None:
            return []
        needed = self.committer.catalog.files_below(folder(layout.output))
        free = [each for each in some if needed.isdisjoint(part.uri for part in each.parts)]
        return [each for each, is_over in map_ordered(lambda one: (one, self._are_over(one.parts)), free) if is_over]

    def _are_over(self, parts: Sequence[MergedPart]) -> bool:
        """Whether all manifests of some files are done, by the generation that has these files."""
        found = accounts(self.state, Scope(keys=dict.fromkeys(part.key for part in parts)))
        over = {(each.key, each.commit.generation) for each in found if each.commit is not None and each.is_done}
        # guard: files that were merged stay until their manifests are done
        return over >= {(part.key, part.generation) for part in parts}

    def _drop_ended(self, live: set[str]) -> None:
        """Forget what is left to do of merged files that are gone, which another merged file has the rows of."""
        for each in list(unfinished(self.state, Release)):
            if each.file.uri not in live and self.state.store.stat(each.file.uri) is None:
                end_change(self.state, each)

    def _sum(self, files: Sequence[MergedFile]) -> tuple[int, int]:
        """How many parts of merged files are there, and their length."""
        uris = (part.uri for each in files for part in each.parts)
        there = [info.size_bytes for info in map_ordered(self.state.store.stat, uris) if info is not None]
        return len(there), sum(there)
