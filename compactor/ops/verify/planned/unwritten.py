"""Finds planned manifests that are gone, or were changed, before a job began with them."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import chain

from compactor.core.documents.records import Accepted
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import digest
from compactor.core.map_ordered import map_ordered
from compactor.core.text.safe_text import quoted
from compactor.ledger.landing.chains import LogChains
from compactor.ledger.landing.given import names_landed
from compactor.ledger.state import State
from compactor.ops.verify.report import Discrepancy
from compactor.sources.landing.drafts import id_of_draft, is_begun, read_draft
from compactor.sources.landing.handed_over import is_handed_over

REWRITE_SECONDS = 3600.0
"""How long a planned manifest may be absent: a planner may die before it writes it, and the next plan does that."""


def unwritten(state: State) -> list[Discrepancy]:
    """One discrepancy for each planned manifest that does not wait as it was planned; the next plan writes it again."""
    folders = LogChains(state).drafts_folders()
    drafts = ((place, info.uri) for place, folder in folders for info in state.store.list(folder))
    return list(chain.from_iterable(map_ordered(lambda each: _faults(state, *each), drafts)))


def has_draft(state: State, manifest_id: str) -> bool:
    """Whether the draft of a manifest is there: it stays until a job has begun with it, and `unwritten` tells of it."""
    drafts = (f"{folder}{manifest_id}.json" for _, folder in LogChains(state).drafts_folders())
    return any(state.store.stat(draft) is not None for draft in drafts)


def _faults(state: State, place: str, draft: str) -> list[Discrepancy]:
    try:
        return list(_fault(state, place, draft))
    except RecordUnreadable as exc:
        return [Discrepancy(id_of_draft(draft), draft, "records of the manifest that can be read", str(exc))]


def _fault(state: State, place: str, draft: str) -> Iterator[Discrepancy]:
    manifest_id = id_of_draft(draft)
    accepted = state.ledger.accepted(manifest_id)
    if accepted is None:  # its planner died: the next plan goes on with the draft
        yield from _unreadable(state, manifest_id, draft)
        return
    if accepted.manifest is None or not names_landed(state, accepted.manifest):
        faults = list(_unreadable(state, manifest_id, draft))
        yield from faults
        if not faults and not is_handed_over(state, accepted):
            expected = (
                f"the manifest that was planned; `compactor plan {quoted(place)}` writes it as a redrive of this id"
            )
            yield Discrepancy(manifest_id, accepted.source_uri, expected, "another one, which has the id for good")
        return
    found = _found(state, accepted)
    if found and not is_begun(state, manifest_id):  # asked last: a job that has begun may have removed it since
        expected = f"the manifest as it was planned, until a job begins with it; `compactor plan {quoted(place)}`"
        yield Discrepancy(manifest_id, accepted.source_uri, f"{expected} writes it again", found)


def _unreadable(state: State, manifest_id: str, draft: str) -> Iterator[Discrepancy]:
    try:
        read_draft(state, draft)
    except ObjectNotFound:  # settled meanwhile
        return
    except RecordUnreadable as exc:
        found = str(exc).removeprefix(f"{draft}: ")
        yield Discrepancy(manifest_id, draft, "a draft that can be read, for the next plan to go on with", found)


def _found(state: State, accepted: Accepted) -> str:
    """What is in place of a manifest; empty if it is there, or may not have been written yet."""
    try:
        data = state.store.read(accepted.source_uri)
    except ObjectNotFound:
        is_late = state.clock.now() - accepted.accepted_at > timedelta(seconds=REWRITE_SECONDS)
        return "nothing" if is_late else ""
    return "" if digest(data) == accepted.digest else "another one, which a job refuses"
