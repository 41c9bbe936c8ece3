"""Verifies landed objects: no gaps in chains, each object in its manifest with all of its lines, and each draft.

Records that retention removed before they were landed are gaps. Manifests name gaps, too, and jobs quarantine them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import chain

from compactor.core.documents.changes import Commit
from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import Accepted, FileStatus
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import ManifestKey, digest
from compactor.core.map_ordered import map_ordered
from compactor.core.text.safe_text import quoted
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.landing.chains import LogChains, PartitionPlace
from compactor.ledger.landing.given import names_landed
from compactor.ledger.state import State
from compactor.ops.verify.grouping import GroupedOnDisk
from compactor.ops.verify.report import Discrepancy
from compactor.sources.landing.drafts import id_of_draft, is_begun, read_draft
from compactor.sources.landing.handed_over import is_handed_over

_Named = Mapping[tuple[str, str], int | None]  # URI and version of its files, with their lines once compacted

REWRITE_SECONDS = 3600.0
"""How long a planned manifest may be missing: if a planner dies before writing it, the next plan writes it."""


@dataclass(frozen=True, slots=True)
class _Landed:
    """A required file of a manifest: a landed object, or a gap, which has no lines."""

    drafts_folder: str  # of its log
    uri: str
    etag: str
    lines: int | None = None


def faults_of_landed(state: State) -> Iterator[Discrepancy]:
    """Faults in the chains. Reads each link, and once each manifest in a link and its outcome.

    Raises:
        RecordUnreadable: A record of a chain is damaged.
    """
    chains = LogChains(state)
    with GroupedOnDisk(_Landed) as landed:
        for place in chains.places():
            yield from _faults_of_chain(chains, place, landed)
        for found in map_ordered(partial(_faults_of_manifest, state), landed.groups()):
            yield from found


def _faults_of_chain(chains: LogChains, place: PartitionPlace, landed: GroupedOnDisk[_Landed]) -> Iterator[Discrepancy]:
    """Faults among the links of a partition; adds what they give to manifests to `landed`."""
    try:
        expected, is_closed = int(chains.origin(place).after), False
    except ObjectNotFound:
        yield Discrepancy("", str(place), "a record of where its chain begins", "none")
        return
    drafts_folder = chains.drafts_folder(place.log, place.log_id)
    for link in chains.chain(place).links():
        behind = f"behind position {link.after}"
        if is_closed:
            yield Discrepancy(link.manifest_id, str(place), "no records behind its end", f"some {behind}")
        if link.first != expected:  # guard: a gap in a chain is found
            yield Discrepancy(link.manifest_id, str(place), f"records behind position {expected}", f"some {behind}")
        expected, is_closed = link.end, link.closes
        if link.gap:
            landed.add(link.manifest_id, drafts_folder, str(place.gap(link)), place.log_id)
        if link.uri:
            landed.add(link.manifest_id, drafts_folder, link.uri, link.etag, link.lines)


def _faults_of_manifest(state: State, group: tuple[str, list[_Landed]]) -> list[Discrepancy]:
    """Landed data missing from a manifest, although a job could have taken it in by now."""
    manifest_id, landed = group
    found = _taken_in(state, manifest_id, landed)
    if found is None:
        folders = {each.drafts_folder for each in landed}
        waiting = {folder for folder in folders if _waits(state, manifest_id, folder)}
        landed = [each for each in landed if each.drafts_folder not in waiting]
        found = _taken_in(state, manifest_id, landed) if landed else None  # a job may have taken it in meanwhile
    return [fault for each in landed if (fault := _fault_of_object(manifest_id, each, found))]


def _taken_in(state: State, manifest_id: str, landed: Sequence[_Landed]) -> _Named | None:
    """The files of a manifest, or of redrives in its place; None if no job took any of them in."""
    try:
        accepted = state.ledger.accepted(manifest_id)
    except RecordUnreadable:  # reported as a separate discrepancy
        return None
    if accepted is None:
        return None
    made = [(accepted.key, accepted.manifest)] if accepted.manifest is not None else []
    found = _named(state, made) if made else None
    if found is not None and all((each.uri, each.etag) in found for each in landed):
        return found
    try:
        redrives = list(_in_its_place(state, accepted))
    except RecordUnreadable:
        return found
    return _named(state, [*made, *redrives]) if redrives else found


def _in_its_place(state: State, root: Accepted) -> Iterator[tuple[ManifestKey, Manifest]]:
    """The manifests that redrives made from a dead letter, directly or not, without refused ones."""
    for entry in RedriveLog(state=state).entries(root.key):
        if entry.redrive.kind not in {"manifests", "planned"} or entry.fate == "unwritten":
            continue
        manifest = entry.redrive.manifest
        accepted = state.ledger.accepted(manifest.manifest_id)
        if accepted is None:  # it waits
            yield manifest.key, manifest
        elif accepted.manifest is not None:
            yield accepted.key, accepted.manifest


def _named(state: State, manifests: Sequence[tuple[ManifestKey, Manifest]]) -> _Named:
    found = dict[tuple[str, str], int | None]()
    for key, manifest in manifests:
        lines = dict[str, int]()
        try:
            outcome = state.ledger.outcome(key)
        except ObjectNotFound:  # not decided yet
            outcome = None
        if isinstance(outcome, Commit):
            lines = {file.uri: file.lines for file in outcome.files if file.status is FileStatus.COMPACTED}
        found |= {(file.uri, file.etag or ""): lines.get(file.uri) for file in manifest.files}
    return found


def _waits(state: State, manifest_id: str, drafts_folder: str) -> bool:
    draft = f"{drafts_folder}{manifest_id}.json"
    return any(state.store.stat(uri) is not None for uri in (draft, state.layout.manifest(manifest_id)))


def _fault_of_object(manifest_id: str, landed: _Landed, found: _Named | None) -> Discrepancy | None:
    uri, etag = landed.uri, landed.etag
    if found is None:
        return Discrepancy(manifest_id, uri, f"manifest {manifest_id} with it", "no such manifest")
    if (uri, etag) not in found:
        return Discrepancy(manifest_id, uri, f"version {etag!r} in its manifest", "no such file")
    # guard: a landed object has as many lines as were landed
    if (lines := found[uri, etag]) not in {None, landed.lines}:
        return Discrepancy(manifest_id, uri, f"{landed.lines} landed lines", f"{lines} lines")
    return None


def unwritten(state: State) -> list[Discrepancy]:
    """A discrepancy for each planned manifest that does not wait as planned. The next plan writes it again."""
    folders = LogChains(state).drafts_folders()
    drafts = ((place, info.uri) for place, folder in folders for info in state.store.list(folder))
    return list(chain.from_iterable(map_ordered(lambda each: _faults_of_draft(state, *each), drafts)))


def has_draft(state: State, manifest_id: str) -> bool:
    """Whether a manifest has a draft, which `unwritten` checks. It stays until a job starts the manifest."""
    drafts = (f"{folder}{manifest_id}.json" for _, folder in LogChains(state).drafts_folders())
    return any(state.store.stat(draft) is not None for draft in drafts)


def _faults_of_draft(state: State, place: str, draft: str) -> list[Discrepancy]:
    try:
        return list(_not_as_planned(state, place, draft))
    except RecordUnreadable as exc:
        return [Discrepancy(id_of_draft(draft), draft, "records of the manifest that can be read", str(exc))]


def _not_as_planned(state: State, place: str, draft: str) -> Iterator[Discrepancy]:
    manifest_id = id_of_draft(draft)
    accepted = state.ledger.accepted(manifest_id)
    if accepted is None:  # its planner died: the next plan continues with the draft
        yield from _unreadable(state, manifest_id, draft)
        return
    if accepted.manifest is None or not names_landed(state, accepted.manifest):
        faults = list(_unreadable(state, manifest_id, draft))
        yield from faults
        if not faults and not is_handed_over(state, accepted):
            expected = (
                f"the manifest that was planned; `compactor plan {quoted(place)}` writes it as a redrive of this id"
            )
            yield Discrepancy(manifest_id, accepted.source_uri, expected, "a different one, bound to the id")
        return
    found = _found_in_place(state, accepted)
    if found and not is_begun(state, manifest_id):  # checked last: a job that started it may have removed it
        expected = f"the manifest as it was planned, until a job begins with it; `compactor plan {quoted(place)}`"
        yield Discrepancy(manifest_id, accepted.source_uri, f"{expected} writes it again", found)


def _unreadable(state: State, manifest_id: str, draft: str) -> Iterator[Discrepancy]:
    try:
        read_draft(state, draft)
    except ObjectNotFound:  # settled meanwhile
        return
    except RecordUnreadable as exc:
        found = str(exc).removeprefix(f"{draft}: ")
        yield Discrepancy(manifest_id, draft, "a readable draft for the next plan", found)


def _found_in_place(state: State, accepted: Accepted) -> str:
    """What is found instead of a manifest; empty if it exists, or may not have been written yet."""
    try:
        data = state.store.read(accepted.source_uri)
    except ObjectNotFound:
        is_late = state.clock.now() - accepted.accepted_at > timedelta(seconds=REWRITE_SECONDS)
        return "nothing" if is_late else ""
    return "" if digest(data) == accepted.digest else "a different one, which a job refuses"
