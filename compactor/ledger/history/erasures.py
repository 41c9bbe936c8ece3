"""The records of erasures on request: who asked, what was found to go, and what went."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from compactor.core.documents.erasures import ErasedManifest, Erasure, ErasureDone
from compactor.core.documents.records import Commit
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.layout import ManifestKey, base_name
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State

_DONE = "-done"


@dataclass(frozen=True, slots=True)
class Erasures:
    """Reads and writes the records of one state."""

    state: State

    def begin(self, erasure: Erasure) -> None:
        """Record that an erasure began, before it changes anything."""
        self.state.store.create(self.state.layout.erasure(erasure.id), erasure.to_json())

    def end(self, erasure: Erasure, *, deleted_inputs: int, left: int) -> None:
        """Record what an erasure did, in place of what another call has recorded that believed this one dead.

        Where that cannot be told now, a later call records it.
        """
        if (done := self._done(erasure, deleted_inputs=deleted_inputs, left=left)) is not None:
            self.state.store.put(self.state.layout.erasure_done(erasure.id), done)

    def end_dead(self) -> None:
        """Record what those erasures did that have no such record, because their calls died.

        One that may still take something, or of which that cannot be told now, is left to a later call.
        """
        for erasure in self._unfinished():
            if "found" not in erasure.model_fields_set:  # by a release that did not note it
                continue
            if (done := self._done(erasure, deleted_inputs=0, left=0, died=True)) is not None:
                self.state.store.create(self.state.layout.erasure_done(erasure.id), done)

    def _unfinished(self) -> Iterator[Erasure]:
        layout = self.state.layout
        names = {base_name(info.uri).removesuffix(".json") for info in self.state.store.list(layout.erasures_folder)}
        for name in sorted(names):
            if name.endswith(_DONE) or f"{name}{_DONE}" in names:
                continue
            try:
                yield self.state.ledger.record(layout.erasure(name), Erasure)
            except StuckError:
                continue  # a later call with the right release, or with an earlier version of it, reads it

    def _done(self, erasure: Erasure, *, deleted_inputs: int, left: int, died: bool = False) -> bytes | None:
        """The record of what an erasure has taken of what it found; None if that cannot be told.

        A manifest that failed later, or is not published yet, counts.
        """
        went = list(map_ordered(partial(self._went, erasure.id), erasure.found))
        if None in went:
            return None
        done = ErasureDone(
            id=erasure.id,
            manifests=[each for each, is_gone in zip(erasure.found, went, strict=True) if is_gone],
            deleted_inputs=deleted_inputs,
            left=left,
            finished_at=self.state.clock.now(),
            died=died,
        )
        return done.to_json()

    def _went(self, erasure_id: str, found: ErasedManifest) -> bool | None:
        """Whether an erasure has taken what it found of a manifest: the outcome tells, once there is one to read."""
        try:
            outcome = self.state.ledger.outcome_of(ManifestKey(found.date, found.manifest_id), found.generation)
        except (ObjectNotFound, StuckError):
            return None
        erased = outcome.erased if isinstance(outcome, Commit) else None
        return erased is not None and erasure_id in erased.erasures
