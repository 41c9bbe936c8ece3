"""The merges of a table, as they are on record: which files of commits each merged file has the rows of."""

from collections.abc import Iterable
from dataclasses import dataclass

from compactor.core.documents.table_records import MergedFile, TableMerge
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import Layout
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore


@dataclass(frozen=True, slots=True)
class Merges:
    """Reads and writes the merges of one state."""

    store: ObjectStore
    layout: Layout

    def create(self, merge: TableMerge) -> None:
        """Record a merge, whose id no other one has."""
        self.store.create(self.layout.table_merge(merge.id), merge.to_json())

    def merge(self, merge_id: str) -> TableMerge | None:
        """A merge; None if none of this id is on record. It never changes."""
        uri = self.layout.table_merge(merge_id)
        return TableMerge.find(self.store, uri, "a merge")

    def files(self, uris: Iterable[str], *, skips_damaged: bool = False) -> dict[str, MergedFile]:
        """Those of these files that are merged files on record, by their names.

        Args:
            uris: The files.
            skips_damaged: Whether a record that cannot be read counts as none.
        """
        merged = {uri: merge_id for uri in uris if (merge_id := self.layout.merge_of(uri))}
        found, read = dict[str, MergedFile](), self._readable if skips_damaged else self.merge
        for merge in map_ordered(read, dict.fromkeys(merged.values())):
            found.update({each.uri: each for each in merge.files if each.uri in merged} if merge else {})
        return found

    def _readable(self, merge_id: str) -> TableMerge | None:
        try:
            return self.merge(merge_id)
        except RecordUnreadable:
            return None
