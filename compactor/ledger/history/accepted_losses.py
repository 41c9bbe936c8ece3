"""The records of accepted losses: each is created once, beside those of other inputs of its manifest."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from compactor.core.documents.accepted_losses import AcceptedLoss
from compactor.core.documents.records import read_record
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class AcceptedLosses:
    """Reads and writes these records."""

    state: State

    def accept(self, loss: AcceptedLoss) -> bool:
        """Put a loss on record; returns False if it was accepted before."""
        name = hashlib.sha256(loss.uri.encode()).hexdigest()[:32]
        uri = f"{self.state.layout.accepted_losses(loss.manifest_id)}{name}.json"
        return self.state.store.create(uri, loss.model_dump_json().encode())

    def of(self, manifest_id: str) -> Mapping[str, AcceptedLoss]:
        """The accepted losses of a manifest, by the URI of the input.

        Raises:
            RecordUnreadable: A record is damaged.
        """
        infos = self.state.store.list(self.state.layout.accepted_losses(manifest_id))
        return {each.uri: each for each in map_ordered(self._read, (info.uri for info in infos))}

    def _read(self, uri: str) -> AcceptedLoss:
        data = self.state.store.read(uri)
        return read_record(
            AcceptedLoss.model_validate_json, data, uri, kind="AcceptedLoss", expected="the acceptance of a loss"
        )
