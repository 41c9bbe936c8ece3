"""Which merged files have rows of parts that may be gone, as it is on record."""

from collections.abc import Iterator
from dataclasses import dataclass

from compactor.core.documents.table_records import MergedFile, ReleasedParts
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class Releases:
    """Reads and writes the records of one state."""

    state: State

    def begin(self, file: MergedFile) -> None:
        """Record that the parts of a merged file may be gone from now on, and are to be removed."""
        layout, store = self.state.layout, self.state.store
        record = ReleasedParts(file=file, run_id=self.state.ledger.run_id, created_at=self.state.clock.now())
        data = record.to_json()
        store.create(layout.releasing(file.uri), data)
        store.create(layout.released(file.date, file.uri), data)

    def has(self, date: str, uri: str) -> bool:
        """Whether the parts of a merged file of a date may be gone."""
        return self.state.store.stat(self.state.layout.released(date, uri)) is not None

    def finish(self, file: MergedFile) -> None:
        """Record that no part is left to be removed."""
        self.state.store.delete([self.state.layout.releasing(file.uri)])

    def forget(self, file: MergedFile) -> None:
        """Forget a merged file that is gone itself: nothing is found in it any more."""
        layout = self.state.layout
        self.state.store.delete([layout.releasing(file.uri), layout.released(file.date, file.uri)])

    def unfinished(self) -> Iterator[MergedFile]:
        """The merged files whose parts are to be removed.

        Raises:
            RecordUnreadable: One of the records cannot be read.
        """
        return self._below(self.state.layout.releasing_folder)

    def of_date(self, date: str) -> Iterator[MergedFile]:
        """The merged files of a date whose parts may be gone.

        Raises:
            RecordUnreadable: One of the records cannot be read.
        """
        return self._below(self.state.layout.released_of(date))

    def _below(self, folder: str) -> Iterator[MergedFile]:
        uris = (info.uri for info in self.state.store.list(folder))
        return (found.file for found in map_ordered(self._read, uris) if found is not None)

    def _read(self, uri: str) -> ReleasedParts | None:
        return ReleasedParts.find(self.state.store, uri, "a merged file with its parts")
