"""Row files that were written in place, and their status in the ledger: only those of a commit have readers.

An attempt writes to its own folder, and only the outcome of its generation may name its files. Outcomes never change.
So once that outcome is recorded, a file it does not name can never be part of a commit: it is an orphan, however long
its writer was delayed. File age does not matter.
"""

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import ManifestKey, canonical
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State

_REMEMBERED = 64  # outcomes: files of one manifest are listed together, and judged by several threads


class Fate(Enum):
    """The status of an in-place file in the ledger."""

    NAMED = "a commit names it"
    ORPHANED = "the outcome of its manifest does not name it"
    UNDECIDED = "its manifest is not decided"
    UNKNOWN = "no recorded manifest wrote it"
    UNREADABLE = "the records of its manifest cannot be read"


class InPlaceFiles:
    """Finds the status of in-place files. List first, then query: a later decision names no older file.

    Each outcome is read once.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._named = lru_cache(_REMEMBERED)(self._read)

    def fate(self, uri: str) -> Fate:
        """The status of one file."""
        found = self._state.layout.in_place_attempt(uri)
        if found is None:
            return Fate.UNKNOWN
        key, generation = found
        try:
            # guard: a file in place is judged by the outcome of its own generation
            named = self._named(key, generation)
        except ObjectNotFound:  # not remembered: it may appear later
            return self._without_outcome(key)
        except RecordUnreadable:
            return Fate.UNREADABLE
        # guard: a file in place that a commit lists is not an orphan
        return Fate.NAMED if canonical(uri) in named else Fate.ORPHANED

    def orphans_of(self, outcome: Commit | DeadLetter) -> Iterator[ObjectInfo]:
        """The orphans left by attempts at a manifest, given one of its outcomes."""
        named = _named_by(outcome)
        listed = self._state.store.list(self._state.layout.in_place_of(outcome.key))
        others = (info for info in listed if canonical(info.uri) not in named)
        return (info for info in others if self.fate(info.uri) is Fate.ORPHANED)

    def _read(self, key: ManifestKey, generation: int) -> frozenset[str]:
        return _named_by(self._state.ledger.outcome_of(key, generation))

    def _without_outcome(self, key: ManifestKey) -> Fate:
        try:
            accepted = self._state.ledger.accepted(key.id)
        except RecordUnreadable:
            return Fate.UNREADABLE
        return Fate.UNKNOWN if accepted is None or accepted.key != key else Fate.UNDECIDED


def _named_by(outcome: Commit | DeadLetter) -> frozenset[str]:
    files = outcome.outputs if isinstance(outcome, Commit) else ()
    return frozenset(canonical(file.final) for file in files)
