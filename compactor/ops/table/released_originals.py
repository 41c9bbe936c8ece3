"""Removes files of commits whose rows are in merged files, once nothing needs them any more.

Before any is removed, it is on record that the merged file has its rows alone, and a batch of the table says so, too:
batches are numbered, so no other one can need the file by then. Later batches that take rows of the merged file away
write anew what is left of it. What a kill leaves undone is on record, and the next call does it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compactor.core.documents.records import Commit, Release
from compactor.core.documents.table_records import MergedFile, MergedPart
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.layout import folder
from compactor.core.map_ordered import map_ordered
from compactor.ledger.change_log import end_change, finish_release, is_released, release, unfinished
from compactor.ledger.state import State
from compactor.table.catalog import TableHead
from compactor.table.committer import Committer
from compactor.table.unmerged import looked_up
from compactor.table.upkeep import SAFE_AGE

RELEASED_AT_ONCE = 100
"""So many merged files are in one batch."""


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
        for key, generation in dict.fromkeys((part.key, part.generation) for part in parts):
            try:
                found = self.state.ledger.state(key)
            except (ObjectNotFound, StuckError):  # `verify` tells of it
                return False
            outcome = found.outcome
            # guard: files that were merged stay until their manifests are done
            if not (isinstance(outcome, Commit) and outcome.generation == generation and found.is_done):
                return False
        return True

    def _drop_ended(self, live: set[str]) -> None:
        """Forget what is left to do of merged files that are gone, which another merged file has the rows of."""
        for each in list(unfinished(self.state, Release)):
            if each.file.uri not in live and self.state.store.stat(each.file.uri) is None:
                end_change(self.state, each)

    def _sum(self, files: Sequence[MergedFile]) -> tuple[int, int]:
        """How many parts of merged files are there, and their length."""
        there = list(self._there(files))
        return len(there), sum(there)

    def _there(self, files: Sequence[MergedFile]) -> Iterator[int]:
        uris = (part.uri for each in files for part in each.parts)
        found = map_ordered(self.state.store.stat, uris)
        return (info.size_bytes for info in found if info is not None)
