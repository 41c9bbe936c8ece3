"""Removes files that the table no longer needs: merged files, and commit files that were merged.

A merge takes effect with the first batch after its base that replaces files, or never. So the recorded batches show
whether the table may still get a merged file, without any clock or other process.

Before a commit file is deleted, a record states that only the merged file has its rows, and then a table batch confirms
it. Batches are numbered, so no other batch can need the file by then. Later batches that remove rows of the merged file
rewrite the rest. Anything left by a kill is recorded, and the next call finishes it.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cache

from compactor.core.documents.changes import Release
from compactor.core.documents.table_records import MergedFile, MergedPart
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
from compactor.ledger.visible import Visible
from compactor.table.catalog import TableHead
from compactor.table.committer import Committer
from compactor.table.upkeep import SAFE_AGE

RELEASED_AT_ONCE = 100  # merged files per batch


def remove_leftovers(committer: Committer) -> tuple[int, int]:
    """Remove merged files that no snapshot has and no later batch can add. Safe at any time, and safe to repeat.

    A merged file with the only copy of a valid commit's rows stays: the table may have been lost, and lack it.

    Returns:
        The number of removed files, and their total size.

    Raises:
        TryAgainError: The catalog or the store does not respond. Some files may be removed.
        OperatorError: The catalog or the store refuses.
    """
    state, catalog = committer.state, committer.catalog
    found = list(state.store.list(state.layout.merged_folder))
    head = catalog.head() if found else None
    if head is None:
        return 0, 0  # a rebuilt table may get the files
    batch, fence = cache(committer.batches.batch), head.fence

    def has_ended(uri: str) -> bool:
        """Whether the table can no longer get a file that it does not have."""
        base = state.layout.merge_of(uri).partition("-")[0]
        later = map(batch, range(int(base) + 1, fence + 1)) if base.isdecimal() else ()
        return any(each is not None and each.replaces_files for each in later)

    # guard: merged files stay as long as the table may get them
    may_go = [info for info in found if has_ended(info.uri)]
    current = catalog.live_files(head.snapshot_id) if may_go and head.snapshot_id is not None else ()
    live = {file.uri for file in current}
    if all(info.uri in live for info in may_go):
        return 0, 0  # earlier snapshots need not be read
    # After the head: a file that the table does not have by now, it never gets.
    named = catalog.files_below(state.layout.merged_folder)
    unneeded = [info for info in may_go if info.uri not in named]
    merged = merged_files(state, (info.uri for info in unneeded), skips_damaged=True)
    stay = _only_copies(state, merged.values(), live)  # guard: a merged file with the only copy of rows stays
    stay |= {info.uri for info in unneeded if info.uri not in merged and _is_damaged(state, info.uri)}
    gone = [info for info in unneeded if info.uri not in stay]
    state.store.delete(info.uri for info in gone)
    for info in gone:
        if info.uri in merged:
            forget_release(state, merged[info.uri])
    return len(gone), sum(info.size_bytes for info in gone)


def _is_damaged(state: State, uri: str) -> bool:
    """Whether a merge's record is damaged, so that the origin of its file's rows is unknown."""
    try:
        find_merge(state, state.layout.merge_of(uri))
    except RecordUnreadable:
        return True
    return False


def _only_copies(state: State, files: Iterable[MergedFile], live: AbstractSet[str]) -> set[str]:
    """The files with the only copy of a valid commit's rows, as after the table was lost and did not get them back."""
    released = [each for each in files if is_released(state, each.date, each.uri)]
    if not released:
        return set()
    held = {part.uri for each in merged_files(state, live, skips_damaged=True).values() for part in each.parts}
    visible = Visible(state)
    return {
        each.uri
        for each in released
        if any(part.uri not in held and _is_needed(state, part, visible) for part in each.parts)
    }


def _is_needed(state: State, part: MergedPart, visible: Visible) -> bool:
    """Whether a commit file is missing although its manifest still needs its rows."""
    [found] = accounts(state, Scope(keys=[part.key]))
    if found.fault is not None:  # `verify` reports it; until the fault is fixed, the rows stay
        return True
    is_valid = found.commit is not None and found.commit.generation == part.generation
    is_valid = is_valid and not visible.has_expired_rows(part.key, part.generation)
    return is_valid and state.store.stat(part.uri) is None


def removable_originals(committer: Committer) -> tuple[int, int]:
    """How many commit files `remove_originals` would remove, and their total size. Changes nothing."""
    head = committer.catalog.head()
    return _sum(committer.state, _due(committer, head, _merged(committer, head)) if head is not None else [])


def remove_originals(committer: Committer) -> tuple[int, int]:
    """Remove commit files whose rows merged files have. Safe while jobs, merges and rebuilds run, and after a kill.

    Returns:
        The number of removed files, and their total size.

    Raises:
        TryAgainError: The catalog or the store does not respond, or the table keeps changing. Completed work stays;
            another call does the rest.
        OperatorError: An operator must act.
    """
    state = committer.state
    if committer.catalog.head() is None:
        return 0, 0
    head = committer.settled()
    live = _merged(committer, head)
    due, removed, removed_bytes = _due(committer, head, live), 0, 0
    _drop_ended(state, {each.uri for each in live})
    for start in range(0, len(due), RELEASED_AT_ONCE):
        some = due[start : start + RELEASED_AT_ONCE]
        for each in some:
            release(state, each)  # guard: the new place of rows is recorded before merged originals are deleted
        # guard: merged originals are deleted only after a batch that allows it
        for each in committer.release(some):
            files, size_bytes = _sum(state, [each])
            state.store.delete(part.uri for part in each.parts)
            finish_release(state, each)
            removed, removed_bytes = removed + files, removed_bytes + size_bytes
    return removed, removed_bytes


def _merged(committer: Committer, head: TableHead) -> list[MergedFile]:
    """The merged files of the table."""
    return [each.merged for each in committer.live(head) if each.merged is not None and not each.differs]


def _due(committer: Committer, head: TableHead, live: Sequence[MergedFile]) -> list[MergedFile]:
    """The merged files whose parts may be deleted: no snapshot has the parts, and all their manifests are done."""
    state, layout = committer.state, committer.state.layout
    begun = {each.file.uri for each in unfinished(state, Release)}
    now = state.clock.now()
    written = {info.uri: info.modified_at for info in state.store.list(layout.merged_folder)}
    some = [
        each
        for each in live
        if each.uri in written
        and written[each.uri] < now - SAFE_AGE  # guard: files that were merged stay for a day
        and (each.uri in begun or not is_released(state, each.date, each.uri))
    ]
    if not some or head.snapshot_id is None:
        return []
    needed = committer.catalog.files_below(folder(layout.output))
    free = [each for each in some if needed.isdisjoint(part.uri for part in each.parts)]
    return [each for each, is_over in map_ordered(lambda one: (one, _are_over(state, one.parts)), free) if is_over]


def _are_over(state: State, parts: Sequence[MergedPart]) -> bool:
    """Whether the manifests of some files are all done, with the generation of these files."""
    found = accounts(state, Scope(keys=dict.fromkeys(part.key for part in parts)))
    over = {(each.key, each.commit.generation) for each in found if each.commit is not None and each.is_done}
    # guard: files that were merged stay until their manifests are done
    return over >= {(part.key, part.generation) for part in parts}


def _drop_ended(state: State, live: set[str]) -> None:
    """End the open releases of deleted merged files: another merged file has their rows."""
    for each in list(unfinished(state, Release)):
        if each.file.uri not in live and state.store.stat(each.file.uri) is None:
            end_change(state, each)


def _sum(state: State, files: Sequence[MergedFile]) -> tuple[int, int]:
    """How many parts of merged files exist, and their total size."""
    uris = (part.uri for each in files for part in each.parts)
    there = [info.size_bytes for info in map_ordered(state.store.stat, uris) if info is not None]
    return len(there), sum(there)
