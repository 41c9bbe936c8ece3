"""Decides which files that were written in place in the output may be deleted."""

from compactor.ledger.state import State
from compactor.ledger.table.orphans import Fate, InPlaceFiles


class InPlaceOrphans:
    """Judges files in place; see `compactor.ledger.table.orphans`."""

    def __init__(self, state: State) -> None:
        self._files = InPlaceFiles(state)

    def why_keep(self, uri: str) -> str | None:
        """Return why a file has to stay; empty if it is an orphan, None if a commit names it."""
        fate = self._files.fate(uri)
        if fate is Fate.NAMED:
            return None
        return "" if fate is Fate.ORPHANED else fate.value
