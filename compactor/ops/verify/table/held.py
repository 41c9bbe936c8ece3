"""Tells what is held back from the table from what waits for it. Asks the records alone: the catalog may be down."""

from typing import NamedTuple

from compactor.core.documents.records import Commit
from compactor.core.errors import RecordUnreadable
from compactor.ledger.state import State
from compactor.ledger.table.refused_batches import refused_batches
from compactor.ops.verify.report import Discrepancy
from compactor.ops.verify.table.doubts import is_superseded
from compactor.table.listed import ListedTable, held_words


class Unlisted(NamedTuple):
    """A commit whose files the table ought to get, as it is now.

    Attributes:
        commit: The commit.
        waits: Whether it waits for the table; not if it is done, or was rebuilt, meanwhile.
        fault: That it is held back; None if it is not.
    """

    commit: Commit
    waits: bool
    fault: Discrepancy | None = None


def unlisted(state: State, table: ListedTable, commit: Commit) -> Unlisted:
    """Whether a commit that was not done when it was read waits for the table now, or is held back from it."""
    expected = f"its files in table {table.name}"
    try:
        held = refused_batches(state).held(commit.key, commit.generation)
    except RecordUnreadable as exc:
        where = state.layout.held(commit.key, commit.generation)
        return Unlisted(commit, waits=False, fault=Discrepancy(commit.manifest_id, where, expected, str(exc)))
    if is_superseded(state, commit):
        return Unlisted(commit, waits=False)
    if held is None:
        return Unlisted(commit, waits=not state.ledger.is_done(commit.key, commit.generation))
    fault = Discrepancy(commit.manifest_id, table.name, expected, held_words(held.reason))
    return Unlisted(commit, waits=False, fault=fault)
