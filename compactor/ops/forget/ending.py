"""Puts on record what an erasure did, also for one whose call died: outcomes tell what it took of what it found."""

from functools import partial

from compactor.core.documents.changes import Change, ErasedManifest, Why
from compactor.core.documents.records import Commit
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.change_log import ChangeLog
from compactor.ledger.state import State


def end(state: State, begun: Change, *, deleted_inputs: int, left: int) -> None:
    """Record what an erasure did, in place of what another call has recorded that believed this one dead.

    Where that cannot be told now, a later call records it.
    """
    log, change = ChangeLog(state), _ended(state, begun, deleted_inputs=deleted_inputs, left=left)
    if change is not None:
        if log.decide(change) != change:
            log.revise(change)
        log.finish(begun)


def end_dead(state: State) -> None:
    """Record what those erasures did that are not finished, because their calls died.

    One that may still take something, or of which that cannot be told now, is left to a later call.
    """
    log = ChangeLog(state)
    for begun in log.unfinished([Why.ERASED], skips_damaged=True):
        if (change := _ended(state, begun, died=True)) is not None:
            log.decide(change)
            log.finish(begun)


def _ended(state: State, begun: Change, *, deleted_inputs: int = 0, left: int = 0, died: bool = False) -> Change | None:
    """An erasure with what it has taken of what it found; None if that cannot be told.

    A manifest that failed later, or is not published yet, counts.
    """
    if begun.erasure is None:
        return None
    found = begun.erasure.manifests
    went = list(map_ordered(partial(_went, state, begun.id), found))
    if None in went:
        return None
    ended = {
        "manifests": [each for each, is_gone in zip(found, went, strict=True) if is_gone],
        "deleted_inputs": deleted_inputs,
        "left": left,
        "died": died,
    }
    erasure = begun.erasure.model_copy(update=ended)
    return begun.model_copy(update={"erasure": erasure, "decided_at": state.clock.now()})


def _went(state: State, erasure_id: str, found: ErasedManifest) -> bool | None:
    """Whether an erasure has taken what it found of a manifest: the outcome tells, once there is one to read."""
    try:
        outcome = state.ledger.outcome_of(ManifestKey(found.date, found.manifest_id), found.generation)
    except (ObjectNotFound, StuckError):
        return None
    erased = outcome.erased if isinstance(outcome, Commit) else None
    return erased is not None and erasure_id in erased.erasures
