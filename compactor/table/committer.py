"""Commits published manifests to the table, in numbered batches. Any number of processes may do so concurrently.

A batch is recorded before it takes effect, and its record never changes. Batch n + 1 is recorded only after the table
has batch n. So at most one recorded batch is missing from the table, and every process applies that one first. If more
are missing, the table was lost: only `table repair` applies them, and every other process waits for it.

A batch's change asserts the snapshot at which the fence was read, so that it takes effect once even if it is sent twice
or lands late. A response proves nothing: only a later read of the fence shows whether a batch took effect.

A permanently refused batch does not stop others. The table skips it, and its manifests go into smaller and smaller
batches until the one at fault is alone. That one is held back for an operator.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from compactor.core.documents.changes import Commit, Merge
from compactor.core.documents.table_records import BatchedManifest, MergedFile, TableBatch
from compactor.core.errors import (
    OperatorError,
    RecordUnreadable,
    StuckError,
    TableConflict,
    TableHeldBack,
    TryAgainError,
)
from compactor.core.map_ordered import map_ordered
from compactor.ledger.change_log import is_released, merged_files
from compactor.ledger.state import State
from compactor.ledger.table.batches import TableBatches
from compactor.schema.schema import SchemaVersion
from compactor.table.applying import Applied, Applier, Refused
from compactor.table.catalog import TableCatalog, TableHead
from compactor.table.changes import Changes
from compactor.table.merging.remainders import Remainders
from compactor.table.named import NamedManifests, Published, PublishedState, needs_table
from compactor.table.unmerged import LiveFile, looked_up

_PATIENCE = 20
"""After this many batches by other processes, a merge is left to the next call."""


@dataclass(slots=True)
class Progress:
    """The state of published manifests.

    Attributes:
        visible: The table has their files.
        superseded: They were rebuilt meanwhile, and a later generation replaces them.
        stuck: They need an operator.
        applied: The batch that took effect; None if there was none.
        refused: The batch that the table skipped instead. Its manifests are retried unless they are held back.
    """

    visible: list[Published] = field(default_factory=list)
    superseded: list[Published] = field(default_factory=list)
    stuck: dict[Published, StuckError] = field(default_factory=dict)
    applied: Applied | None = None
    refused: Refused | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Commits batches. Use it in one thread at a time, except for `take_now`.

    Every method raises `TryAgainError` for transient failures of the catalog or the store, `StuckError` if a record
    that the batch needs is unreadable, and `OperatorError` if an operator must act.

    Attributes:
        changes: Derives a batch's effect on the table.
        named: Tracks the manifests in the batches. If it replays, manifests that are done may be in a batch.
        latest: Returns the latest schema version, for a new table.
        max_manifests: The most manifests per batch.
        remainders: Writes what remains of merged files whose parts may be missing.
    """

    state: State
    batches: TableBatches
    catalog: TableCatalog
    changes: Changes
    named: NamedManifests
    latest: Callable[[], SchemaVersion]
    max_manifests: int
    remainders: Remainders
    _lock: Lock = field(default_factory=Lock)

    def commit(self, published: Iterable[Published]) -> Progress:
        """Apply the outstanding batch; without one, record a batch of published manifests and apply that.

        Args:
            published: The manifests, including other processes'. Those in earlier batches are only reported.
        """
        head, batch = self._outstanding()
        progress, unnamed = self._sorted_by_state(published)
        if batch is not None:
            taken = self._applied_again(head, batch)
        elif (batch := self._recorded(head, unnamed, progress)) is not None:
            taken = self._applier.applied(head, batch)
        else:
            return progress
        if isinstance(taken, Refused):
            progress.refused = taken
            return progress
        progress.applied = taken
        in_it = {Published(each.key, each.generation) for each in batch.manifests}
        self._note_visible([each for each in unnamed if each in in_it], progress)
        return progress

    def take_now(self, commit: Commit) -> None:
        """Commit the published files of a commit; return once the table has them.

        Raises:
            TryAgainError: The table does not have them yet.
            StuckError: The manifest needs an operator.
        """
        published = Published(commit.key, commit.generation)
        while needs_table(commit):
            with self._lock:
                progress = self.commit([published])
            if published in progress.visible:
                return
            if published in progress.stuck:
                raise progress.stuck[published]
            if published in progress.superseded or (progress.applied is None and progress.refused is None):
                raise TryAgainError(f"manifest {published.key.id}: rebuilt again in the meantime")

    def settled(self) -> TableHead:
        """Apply the outstanding batch, if there is one; return the head."""
        for _ in range(_PATIENCE):
            head, batch = self._outstanding()
            if batch is None:
                return head
            self._applied_again(head, batch)
        raise TableConflict("other processes keep committing")

    def merge(self, merge: Merge) -> Applied | Refused | None:
        """Have the table take the files of a recorded merge.

        Returns:
            The result of its batch; None if a batch since its base replaced files, so that it never gets one.
        """
        for _ in range(_PATIENCE):
            head = self.settled()
            # guard: a merge is never applied once other files were replaced
            if any(self._replaces_files(number) for number in range(merge.base + 1, head.fence + 1)):
                return None
            batch = self.batches.create(head.fence + 1, (), merge=merge.id)
            taken = self._applier.applied(head, batch)
            if batch.merge == merge.id:
                return taken
        raise TableConflict("other processes keep committing")

    def unmerge(self, uris: Sequence[str]) -> Applied | Refused:
        """Have the table replace merged files with their parts.

        Raises:
            OperatorError: Also if the parts of one of them were removed.
        """
        for _ in range(_PATIENCE):
            head = self.settled()
            for each in merged_files(self.state, uris).values():
                # guard: a merged file is not split if its parts may be deleted
                if is_released(self.state, each.date, each.uri):
                    raise OperatorError(f"{each.uri}: its parts were removed; expected a merged file whose parts exist")
            batch = self.batches.create(head.fence + 1, (), unmerged=uris)
            taken = self._applier.applied(head, batch)
            if batch.unmerged == list(uris):
                return taken
        raise TableConflict("other processes keep committing")

    def release(self, files: Sequence[MergedFile]) -> list[MergedFile]:
        """Ensure that no later batch needs the parts of merged files, which are recorded as released.

        Returns:
            The files whose parts may be removed: those in the table when the batch takes effect. Every later batch that
            removes some of their rows rewrites the others.
        """
        for _ in range(_PATIENCE):
            head = self.settled()
            live = {each.file.uri for each in self.live(head, skips_damaged=True) if each.merged is not None}
            there = [each for each in files if each.uri in live]
            if not there:
                return []
            uris = [each.uri for each in there]
            batch = self.batches.create(head.fence + 1, (), released=uris)
            taken = self._applier.applied(head, batch)
            if batch.released == uris:
                return there if isinstance(taken, Applied) else []
        raise TableConflict("other processes keep committing")

    def _replaces_files(self, number: int) -> bool:
        batch = self.batches.batch(number)
        return batch is None or batch.replaces_files

    @property
    def _applier(self) -> Applier:
        return Applier(self.batches, self.catalog, self.changes)

    def _applied_again(self, head: TableHead, batch: TableBatch) -> Applied | Refused:
        """Apply a batch from an earlier call; it may be the last one that a rebuilt table lacks."""
        # Only a merge can be the last batch and have missing parts: it inherits those of a merged file.
        # guard: the last batch of a lost table gets its rows back from any process
        is_known = self.named.replays or not batch.merge
        changes = self.changes if is_known else self.changes.made_again()
        return Applier(self.batches, self.catalog, changes).applied_again(head, batch)

    def look(self, published: Iterable[Published]) -> Progress:
        """Report on published manifests that another process commits; change nothing."""
        head, _ = self._outstanding()
        progress, unnamed = self._sorted_by_state(published)
        self._wanted(head, unnamed, progress)
        return progress

    def _sorted_by_state(self, published: Iterable[Published]) -> tuple[Progress, list[Published]]:
        """The manifests in the table's batches, and those in none."""
        progress, unnamed, named = Progress(), list[Published](), list[Published]()
        for each in published:
            found = {PublishedState.VISIBLE: named, PublishedState.SUPERSEDED: progress.superseded}
            found.get(self.named.state_of(each), unnamed).append(each)
        self._note_visible(named, progress)
        return progress, unnamed

    def _note_visible(self, named: Sequence[Published], progress: Progress) -> None:
        """Note which manifests in the table are visible: a rebuilt one waits for its later batch."""
        ledger = self.state.ledger
        for each, is_superseded in map_ordered(lambda one: (one, ledger.is_superseded(one.key, one.generation)), named):
            (progress.superseded if is_superseded else progress.visible).append(each)

    def _outstanding(self) -> tuple[TableHead, TableBatch | None]:
        """The head, and the recorded batch that is missing from the table, if any.

        Raises:
            OperatorError: Also if the table lacks more than one, and this is not `table repair`.
        """
        head = self._head()
        for _ in range(_PATIENCE):
            batch = self.batches.batch(head.fence + 1)
            if batch is None or not self._lacks_several(head.fence):
                return head, batch
            # Since the head was read, another process may have had the table take one, and recorded the next one.
            now = self._head()
            if now.fence <= head.fence:  # guard: an outdated head is not a lost table
                raise self._behind(now.fence)
            head = now
        raise TableConflict("other processes keep committing")

    def _lacks_several(self, fence: int) -> bool:
        # guard: only a re-creation of a lost table applies several batches
        return not self.named.replays and self.batches.has(fence + 2)

    def _behind(self, fence: int) -> OperatorError:
        return OperatorError(
            f"the table's last batch is {fence}, but batch {fence + 2} is on record at "
            f"{self.state.layout.table_batch(fence + 2)}: the table was dropped or restored, and its rebuild is "
            "unfinished; expected a running `compactor table repair` to finish; if none is running: `compactor "
            "stop`, then `compactor table repair`"
        )

    def _head(self) -> TableHead:
        """Read the head, and the batches up to it. Create the table if there never was one."""
        owner, head = self.state.layout.table_owner, self.catalog.head()
        if head is None:
            self.named.read_to(0)
            # guard: manifests that wait for a lost table create no new one
            if self._lacks_several(0) and (head := self.catalog.head()) is None:
                raise self._behind(0)
            head = head or self.catalog.create(owner, self.latest())
        head.check_owner(owner)
        self.named.read_to(head.fence, head.refused)
        return head

    def _recorded(self, head: TableHead, unnamed: Sequence[Published], progress: Progress) -> TableBatch | None:
        """Record the next batch; None if it would be empty."""
        chosen, replaced = self._wanted(head, unnamed, progress)
        if not chosen:
            return None
        try:
            left = self._left(replaced, chosen, head.fence)
        except StuckError as error:  # everything that is not rebuilt continues
            rebuilt = [each for each in chosen if each.generation > 1]
            progress.stuck.update({Published(each.key, each.generation): error for each in rebuilt})
            chosen, left = [each for each in chosen if each.generation == 1], None
            if not chosen:
                return None
        batch = self.batches.create(head.fence + 1, chosen, merge=left.id if left is not None else "")
        if left is not None and batch.merge != left.id:
            self.remainders.discard(left.files)
        return batch

    def _left(self, replaced: "_Replaced", chosen: Sequence[BatchedManifest], base: int) -> Merge | None:
        """Write what a batch leaves of merged files whose parts may be missing; None if it does not affect them."""
        going = self._replaced([Published(each.key, each.generation) for each in chosen])
        files = [each for each in replaced.merged_files_with(going) if is_released(self.state, each.date, each.uri)]
        # guard: a rebuild rewrites the remaining rows of a merged file
        return self.remainders.write(files, going, base) if files else None

    def _wanted(
        self, head: TableHead, unnamed: Sequence[Published], progress: Progress
    ) -> tuple[list[BatchedManifest], "_Replaced"]:
        """Choose the next batch's manifests; note the state of the others."""
        # Manifests of finished batches are done: check this after reading which batches are finished.
        chosen = list[BatchedManifest]()
        first, going = self._replacing(self.named.chosen(unnamed, self.max_manifests), progress)
        is_rebuilt = any(each.generation > 1 for each in first)
        # A damaged record delays only the manifests whose rows may be in that file.
        replaced = _Replaced(list(self.live(head, skips_damaged=True)) if is_rebuilt else (), going)
        for each, found in map_ordered(partial(self._checked, replaced), first):
            if found is PublishedState.UNNAMED:
                chosen.append(each.batched)
            elif isinstance(found, StuckError):
                progress.stuck[each] = found
            else:
                (progress.visible if found is PublishedState.VISIBLE else progress.superseded).append(each)
        return chosen, replaced

    def _replacing(self, published: Sequence[Published], progress: Progress) -> tuple[list[Published], set[str]]:
        """The manifests with readable earlier outcomes, and the files that they replace; others are stuck."""
        readable, going = list[Published](), set[str]()
        for each in published:
            try:
                going |= self._replaced([each])
            except RecordUnreadable as error:
                progress.stuck[each] = error
            else:
                readable.append(each)
        return readable, going

    def live(self, head: TableHead, *, skips_damaged: bool = False) -> Iterator[LiveFile]:
        """Yield the table's files, each with its merge; see `looked_up`."""
        files = self.catalog.live_files(head.snapshot_id) if head.snapshot_id is not None else ()
        return looked_up(self.state, files, skips_damaged=skips_damaged)

    def _replaced(self, published: Sequence[Published]) -> set[str]:
        rebuilt = (each for each in published if each.generation > 1)
        return {uri for each in rebuilt for uri in self.changes.replaced(each.key, each.generation)}

    def _checked(self, replaced: "_Replaced", published: Published) -> tuple[Published, PublishedState | StuckError]:
        # guard: a batch omits done manifests
        if not self.named.replays and self.state.ledger.is_done(published.key, published.generation):
            return published, PublishedState.VISIBLE
        if self.state.ledger.is_superseded(published.key, published.generation):
            return published, PublishedState.SUPERSEDED
        return published, self._held_back(published) or self._hindrance(replaced, published) or PublishedState.UNNAMED

    def _held_back(self, published: Published) -> StuckError | None:
        try:
            held = self.batches.refused.held(published.key, published.generation)
        except StuckError as error:
            return error
        if held is None:
            return None
        return TableHeldBack(f"manifest {published.key.id}: the table's catalog refuses it: {held.reason}")

    def _hindrance(self, replaced: "_Replaced", published: Published) -> StuckError | None:
        """Why the files that a rebuild replaces cannot be removed from the table; None if they can."""
        if published.generation == 1 or not self.state.ledger.is_done(published.key):
            return None
        try:
            moved = self._moved(replaced, published)
        except RecordUnreadable as error:
            return error
        # guard: a rebuild waits for a person if another program may have moved the rows that it replaces
        if moved is not None:
            return StuckError(
                f"manifest {published.key.id}: {moved} has its rows and is not in the table, so another program may "
                "have rewritten them to another file; expected the files of its earlier generation in the table: "
                "drop the table in its catalog, but not its files, then `compactor table repair` recreates it"
            )
        own, store = self.changes.replaced(published.key, published.generation), self.state.store
        files = [each for each in replaced.merged_files_with(own) if not is_released(self.state, each.date, each.uri)]
        # guard: a merged file is not split while a part of it is missing
        if (uri := next((uri for uri in replaced.others_in(files) if store.stat(uri) is None), None)) is not None:
            return StuckError(
                f"manifest {published.key.id}: its rows are in a merged file with those of {uri}, which is missing; "
                "expected that file, which replaces the merged one: `compactor rebuild` its manifest, too"
            )
        return None

    def _moved(self, replaced: "_Replaced", published: Published) -> str | None:
        """An existing file with rows of a manifest that the table lost; None if there is none.

        Only the last generation in the table has rows there. One from before the table, or one superseded before its
        batch, has no rows that another program could have moved.
        """

        def absent(generation: int) -> Iterator[str]:
            uris = self.changes.files_of(published.key, generation)
            return (uri for uri in uris if uri not in replaced.live and self.state.store.stat(uri) is not None)

        if all(next(absent(generation), None) is None for generation in range(1, published.generation)):
            return None
        last = self.named.last_before(published)
        return None if last is None else next(absent(last.generation), None)


class _Replaced:
    """The table files affected by a batch with rebuilt manifests."""

    def __init__(self, live: Sequence[LiveFile], removed: Collection[str]) -> None:
        self.live = frozenset(uri for each in live for uri in each.uris)
        self._merged = [each.merged for each in live if each.merged is not None]
        self._removed = removed

    def merged_files_with(self, uris: Collection[str]) -> Iterator[MergedFile]:
        """The merged files with rows from any of these files."""
        return (each for each in self._merged if any(part.uri in uris for part in each.parts))

    def others_in(self, files: Iterable[MergedFile]) -> Iterator[str]:
        """The parts of merged files that return when these are split up."""
        return (part.uri for each in files for part in each.parts if part.uri not in self._removed)
