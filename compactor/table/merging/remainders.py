"""Writes what rebuilt manifests leave of merged files whose parts may be missing."""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compactor.core.documents.changes import Merge
from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import ObjectNotFound, StagingError, StuckError
from compactor.ledger.change_log import forget_release, merge_of, release
from compactor.ledger.state import State
from compactor.telemetry.error_text import described

if TYPE_CHECKING:
    from compactor.table.merging.writing import MergedFiles


@dataclass(frozen=True, slots=True)
class Remainders:
    """Writes remainders, as merges."""

    state: State
    files: "Callable[[], MergedFiles]"

    def write(self, files: Sequence[MergedFile], without: Collection[str], base: int) -> Merge | None:
        """Write merged files without some of their parts, and record that as a merge; None if nothing remains.

        Raises:
            StuckError: One of them is unreadable.
        """
        merge_id, made = f"{base:08d}-{secrets.token_hex(4)}", list[MergedFile]()
        try:
            for file in files:
                if any(part.uri not in without for part in file.parts):
                    made.append(self._written(self.state.layout.merged_file(merge_id, len(made) + 1), file, without))
        except (StagingError, ObjectNotFound) as error:
            self.discard(made)
            raise StuckError(
                f"its rows are in an unreadable merged file: {described(error)}; expected a complete file; "
                "`compactor rebuild` recreates the rows of all its manifests, and a job commits them together"
            ) from error
        if not made:
            return None
        for each in made:
            release(self.state, each)
        return self.state.ledger.decide(merge_of(self.state, merge_id, base, made))

    def discard(self, files: Iterable[MergedFile]) -> None:
        """Delete files that will never be in a batch."""
        for each in files:
            self.state.store.delete([each.uri])
            forget_release(self.state, each)

    def _written(self, uri: str, file: MergedFile, without: Collection[str]) -> MergedFile:
        first, ranges, parts = 0, list[range](), []
        for part in file.parts:
            if part.uri not in without:
                ranges.append(range(first, first + part.rows))
                parts.append(part)
            first += part.rows
        rows, size_bytes = self.files().write_part(uri, file.uri, ranges)
        return file.model_copy(update={"uri": uri, "rows": rows, "size_bytes": size_bytes, "parts": parts})
