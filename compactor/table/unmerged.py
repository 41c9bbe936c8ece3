"""Maps a table's files to the commits' files with the same rows.

The ledger names only files of commits. The table agrees with it if it has the files of all valid commits, each once,
directly or merged.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compactor.core.documents.table_records import MergedFile
from compactor.ledger.change_log import merged_files
from compactor.ledger.state import State
from compactor.table.catalog import TableFile


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file in the table.

    Attributes:
        file: As listed in the table.
        merged: As listed in its merge; None for a file of a commit, or from another program.
    """

    file: TableFile
    merged: MergedFile | None

    @property
    def uris(self) -> tuple[str, ...]:
        """The commits' files with its rows."""
        return (self.file.uri,) if self.merged is None else tuple(part.uri for part in self.merged.parts)

    @property
    def committed(self) -> Iterator[TableFile]:
        """The commits' files with its rows, with its date and partition in the table."""
        if self.merged is None:
            yield self.file
            return
        for part in self.merged.parts:
            yield TableFile(part.uri, part.size_bytes, part.rows, self.file.date, values=self.file.values)

    @property
    def differs(self) -> bool:
        """Whether it is a merged file whose rows or length differ from the record."""
        merged = self.merged
        return merged is not None and (merged.rows, merged.size_bytes) != (self.file.records, self.file.size_bytes)


def looked_up(state: State, files: Iterable[TableFile], *, skips_damaged: bool = False) -> Iterator[LiveFile]:
    """A table's files. Merged files come last, and only these are held in memory.

    Args:
        state: Source of the merges.
        files: The files.
        skips_damaged: Whether a merged file with an unreadable record counts as another program's.
    """
    named = list[TableFile]()
    for file in files:
        if state.layout.merge_of(file.uri):
            named.append(file)
        else:
            yield LiveFile(file, None)
    merged = merged_files(state, (file.uri for file in named), skips_damaged=skips_damaged)
    yield from (LiveFile(file, merged.get(file.uri)) for file in named)


def committed_files(state: State, files: Iterable[TableFile]) -> Iterator[TableFile]:
    """The commits' files with the rows of a table's files."""
    for each in looked_up(state, files):
        yield from each.committed
