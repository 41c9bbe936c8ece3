"""Looks files up once more that seemed to be missing in the table or surplus there, in both as they are now."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from compactor.core.documents.records import Commit, StagedFile
from compactor.core.errors import RecordUnreadable, StuckError
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.text.formatting import count
from compactor.ledger.history.expired_log import ExpiredParts
from compactor.ledger.state import State
from compactor.ledger.table.merges import Merges
from compactor.ledger.table.refused_batches import refused_batches
from compactor.ops.verify.report import Discrepancy
from compactor.table.catalog import TableFile
from compactor.table.listed import ListedTable, held_words
from compactor.table.unmerged import committed_files

Doubtful = Mapping[str, ManifestKey | None]
"""Files by URI, with the manifest that each is named after; None without one."""


class _Named(NamedTuple):
    """What the ledger says of a file.

    Attributes:
        commit: The valid commit of its manifest; None if there is none.
        file: The file in that commit; None if it does not have it.
        is_needed: Whether the table has to have the file.
        is_allowed: Whether the table may have it.
    """

    commit: Commit | None
    file: StagedFile | None
    is_needed: bool
    is_allowed: bool


def differing(table: ListedTable, commit: Commit, file: StagedFile, live: TableFile) -> Iterator[Discrepancy]:
    """What the table says of a file otherwise than its commit."""
    expected = f"{file.rows} rows, {file.size_bytes} bytes, {commit.date}"
    found = f"{live.records} rows, {live.size_bytes} bytes, {live.date or 'no date'}"
    if found != expected:
        yield Discrepancy(commit.manifest_id, file.final, expected, f"in table {table.name}: {found}")
    # In the partition of its date alone, readers look for any value in it.
    # guard: a file in another partition of the table is a discrepancy
    if live.values and (file.holds_others or live.values != tuple(file.partition)):
        expected = "the partition that its commit names"
        yield Discrepancy(commit.manifest_id, file.final, expected, f"in table {table.name}: another one")


def still_differing(state: State, table: ListedTable, doubtful: Doubtful) -> Iterator[Discrepancy]:
    """Each of these files that the table has otherwise than the ledger.

    The ledger is read first: what it has as done by then is in the table that is read afterwards.

    Raises:
        CompactorError: The catalog cannot be read.
    """
    if not doubtful:
        return
    expired = ExpiredParts(state)
    named = dict(map_ordered(partial(_named, state, expired), doubtful.items()))
    catalog = table.catalog()
    head = catalog.head()
    if head is None:
        needed = sum(each.is_needed for each in named.values())
        if needed:
            yield Discrepancy("", table.name, f"a table with {count(needed, 'file')}", "no such table")
        return
    listed = catalog.live_files(head.snapshot_id) if head.snapshot_id is not None else ()
    merges = Merges(state.store, state.layout)
    live = {file.uri: file for file in committed_files(merges, listed) if file.uri in named}
    for uri, each in named.items():
        manifest_id = each.commit.manifest_id if each.commit else ""
        if uri not in live:
            if each.is_needed and each.commit and each.file and not is_superseded(state, each.commit):
                expected = f"{each.file.rows} rows in table {table.name}"
                yield Discrepancy(manifest_id, uri, expected, _why_missing(state, each.commit))
        elif each.commit is not None and each.file is not None:
            yield from differing(table, each.commit, each.file, live[uri])
        elif not each.is_allowed:
            found = f"{live[uri].records} rows in table {table.name}"
            yield Discrepancy(manifest_id, uri, "no such file in the table: no commit names it", found)


def _named(state: State, expired: ExpiredParts, item: tuple[str, ManifestKey | None]) -> tuple[str, _Named]:
    uri, key = item
    if key is None or not key.id:
        return uri, _Named(None, None, is_needed=False, is_allowed=False)
    try:
        found = state.ledger.state(key)
    except StuckError:  # the record itself is a discrepancy
        return uri, _Named(None, None, is_needed=False, is_allowed=True)
    commit = found.outcome
    if not isinstance(commit, Commit):
        return uri, _Named(None, None, is_needed=False, is_allowed=False)
    file = next((each for each in commit.outputs if each.final == uri), None)
    # Until a rebuild is done, the table has the files of the generation before, or those of this one.
    is_allowed = commit.generation > 1 and not found.is_done
    is_needed = file is not None and found.is_done and expired.of("rows", commit.key, commit.generation) is None
    return uri, _Named(commit, file, is_needed, is_allowed)


def _why_missing(state: State, commit: Commit) -> str:
    with suppress(RecordUnreadable):
        held = refused_batches(state).held(commit.key, commit.generation)
        if held is not None:
            return held_words(held.reason)
    return "the table does not have the file"


def is_superseded(state: State, commit: Commit) -> bool:
    """Whether a manifest was rebuilt since its commit was read."""
    return state.ledger.is_superseded(commit.key, commit.generation)
