"""The records of dismissals: each is created once, beside those of other inputs of its manifest."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from compactor.core.documents.records import Dismissal
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class Dismissals:
    """Reads and writes these records."""

    state: State

    def put(self, dismissal: Dismissal) -> bool:
        """Put a dismissal on record; returns False if there was one in the same way before, which stays."""
        name = hashlib.sha256(f"{dismissal.how} {dismissal.uri}".encode()).hexdigest()[:32]
        uri = f"{self.state.layout.dismissals(dismissal.manifest_id)}{name}.json"
        return self.state.store.create(uri, dismissal.to_json())

    def of(self, manifest_id: str) -> Iterator[Dismissal]:
        """The dismissals of a manifest; several of an input that was given up in several ways.

        Raises:
            RecordUnreadable: A record is damaged.
        """
        infos = self.state.store.list(self.state.layout.dismissals(manifest_id))
        return map_ordered(self._read, (info.uri for info in infos))

    def _read(self, uri: str) -> Dismissal:
        return Dismissal.read(self.state.store.read(uri), uri, "the dismissal of an input")
