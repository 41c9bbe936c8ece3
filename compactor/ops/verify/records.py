"""Verifies the ledger's records of a manifest: whether one is missing, wrong or damaged."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from compactor.core.documents.closed_dates import ManifestSums, added
from compactor.core.documents.document import Document
from compactor.core.documents.records import (
    Accepted,
    Attempt,
    AttemptFailure,
    AttemptsFolded,
    Commit,
    DeadLetter,
    Done,
    Redrive,
)
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import ManifestKey, base_name, done_generation, done_name, redrive_number
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.reading import Listed
from compactor.ledger.accounts.settling import Settling, open_file
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ledger.history.unsummarised import Found, Unsummarised
from compactor.ledger.ledger import is_done, newest_generation
from compactor.ledger.state import State
from compactor.ops.verify.doubled import doubled_versions
from compactor.ops.verify.planned.unwritten import has_draft
from compactor.ops.verify.report import DeadLetterManifest, Discrepancy, VerifyResult, sums_of


def superseded_sums(state: State, found: Unsummarised) -> ManifestSums:
    """What the summaries have of manifests that were rebuilt since.

    Raises:
        RecordUnreadable: One of the earlier commits is damaged or gone.
    """
    total = ManifestSums()
    for sums in map_ordered(partial(_earlier_sums, state), found.superseded):
        total = added(total, sums)
    return total


def _earlier_sums(state: State, summarised: Found) -> ManifestSums:
    try:
        return sums_of(state.ledger.outcome_of(*summarised))
    except ObjectNotFound as exc:
        uri = state.layout.outcome(*summarised)
        raise RecordUnreadable(f"{uri}: it is gone; expected the commit that a summary has") from exc


def summarised_report(state: State, found: Unsummarised, superseded: ManifestSums) -> VerifyResult:
    """The sums of the summaries, less what was rebuilt since, and what of them still waits for a person.

    Args:
        state: Has the records.
        found: What is on record.
        superseded: What `superseded_sums` says.
    """
    totals, rebuilt = found.totals, {key.id for key, _ in found.superseded}
    report = VerifyResult(closed_dates=len(totals.dates))
    report.add_sums(totals.sums)
    report.add_sums(added(ManifestSums(), superseded, sign=-1))
    report.output_files_summed = report.output_files
    letters = [
        DeadLetterManifest(each.manifest_id, each.reason, each.message, redriven=False) for each in totals.letters
    ]
    settling = Settling(state, found=found)
    report.dead_letter_manifests += checked_letters(settling, letters)
    files = [open_file(each) for each in totals.quarantined if each.manifest_id not in rebuilt]
    checked = settling.files(files)
    report.quarantined_files += [replace(each, redriven=bool(each.redriven)) for each in checked]
    doubled = map_ordered(lambda each: doubled_versions(state, *each.keys), totals.doubled)
    report.discrepancies += [each for each in doubled if each is not None]
    return report


def faults_of_summaries(state: State) -> list[Discrepancy]:
    """Summaries of closed dates that are damaged or gone: no other date can be closed until they are made again."""
    dates = ClosedDates(state.store, state.layout)

    def fault(place: int) -> Discrepancy | None:
        try:
            dates.check(place)
        except RecordUnreadable as exc:
            return Discrepancy("", state.layout.summary(place), "a whole summary of a closed date", str(exc))
        return None

    return [each for each in map_ordered(fault, dates.places_to_check()) if each is not None]


def checked_letters(settling: Settling, letters: Sequence[DeadLetterManifest]) -> list[DeadLetterManifest]:
    """Dead letters, with what settled each."""
    fates = settling.letters([each.manifest_id for each in letters])
    found = [(each, fates[each.manifest_id]) for each in letters]
    return [replace(each, redriven=bool(fate.redriven), settled_by=fate.settled_by) for each, fate in found]


_ATTEMPT = re.compile(r"attempt-\d+\.json")
_FAILURE = re.compile(r"attempt-\d+-failed\.json")
_FOLDED = re.compile(r"attempts-to-\d+\.json")

T = TypeVar("T")
Record = TypeVar("Record", bound=Document)


@dataclass(slots=True)
class RecordFindings:
    """What the records of a manifest say."""

    outcome: Commit | DeadLetter | None = None  # None if there is none, or none that can be read
    is_done: bool = False  # whether all files that the outcome names must be published
    discrepancies: list[Discrepancy] = field(default_factory=list)  # what is wrong with the records


def verify_records(state: State, listed: Listed) -> RecordFindings:
    """Verify all records of a manifest. Safe beside a running job."""
    key = listed.key
    names: Collection[str] = state.ledger.records(key) if listed.records is None else listed.records
    while True:
        found = _verified(state, key, names)
        if not found.discrepancies:
            return found
        known, names = names, state.ledger.records(key)
        if names == known:  # else a job added a record meanwhile
            return found


def _verified(state: State, key: ManifestKey, names: Collection[str]) -> RecordFindings:
    manifest_id = key.id
    found = RecordFindings(is_done=is_done(None, names))
    faults = found.discrepancies
    accepted = _record(state, manifest_id, state.layout.accepted(manifest_id), Accepted, faults)
    folder = state.layout.ledger_records(key)
    for name in sorted(names):
        kind = _kind(name)
        if kind is not None:
            _record(state, manifest_id, folder + name, kind, faults)
    generation = max([newest_generation(names) or 1, *(done_generation(name) or 1 for name in names)])
    uri = state.layout.outcome(key, generation)
    if base_name(uri) in names:
        found.outcome = _read(manifest_id, uri, lambda: state.ledger.outcome_of(key, generation), faults)
        found.is_done = done_name(generation) in names
        faults += _superseded_faults(state, key, generation, names)
    elif found.is_done:
        faults.append(Discrepancy(manifest_id, uri, "the outcome of a manifest that is done", "no such record"))
    if found.outcome is not None:
        faults += _outcome_faults(state, key, found.outcome, accepted, names)
    if not found.is_done and not _is_open(state, key, accepted, generation):
        missing = state.layout.done(key, generation) if found.outcome else uri
        expected = "a record, or a manifest that is open or waiting"
        faults.append(Discrepancy(manifest_id, missing, expected, "neither"))
    return found


def _superseded_faults(
    state: State, key: ManifestKey, generation: int, names: Collection[str]
) -> Iterator[Discrepancy]:
    """What is wrong with the outcomes that a rebuild superseded: they stay on record."""
    faults: list[Discrepancy] = []
    for earlier in range(1, generation):
        uri = state.layout.outcome(key, earlier)
        if base_name(uri) not in names:
            faults.append(Discrepancy(key.id, uri, "the outcome that a rebuild superseded", "no such record"))
        else:
            _read(key.id, uri, partial(state.ledger.outcome_of, key, earlier), faults)
    yield from faults


def _outcome_faults(
    state: State, key: ManifestKey, outcome: Commit | DeadLetter, accepted: Accepted | None, names: Collection[str]
) -> Iterator[Discrepancy]:
    uri = state.layout.outcome(key, outcome.generation)
    if outcome.key != key:
        found = f"that of manifest {outcome.manifest_id} of {outcome.date}"
        yield Discrepancy(key.id, uri, f"the outcome of manifest {key.id} of {key.date}", found)
    if not isinstance(outcome, Commit):
        return
    attempt = state.layout.attempt(key, outcome.attempt)
    if base_name(attempt) not in names:
        yield Discrepancy(key.id, attempt, "the attempt that was committed", "no such record")
    if accepted is not None and accepted.manifest is not None:
        named, reported = [file.uri for file in accepted.manifest.files], [file.uri for file in outcome.files]
        if named != reported:
            found = f"{len(reported)} files, {len(set(reported) - set(named))} of other names"
            yield Discrepancy(key.id, uri, f"the {len(named)} files of the manifest", found)


def _is_open(state: State, key: ManifestKey, accepted: Accepted | None, generation: int = 1) -> bool:
    """Whether a job will finish the manifest."""
    if generation > 1:
        return any(of == generation for _, of, _ in state.ledger.open_rebuilds(key.id))
    if state.store.stat(state.layout.archived_manifest(key)) is not None:
        return False  # only a manifest that is done is archived
    waiting = accepted.source_uri if accepted else state.layout.manifest(key.id)
    return any(state.store.stat(uri) is not None for uri in (state.layout.open_marker(key.id), waiting))


def lost_of_archived(state: State, folder: str) -> Iterator[Discrepancy]:
    """Archived manifests without any record, in the archive or in one date's folder of it."""
    owners = (state.layout.archived_key(info.uri) for info in state.store.list(folder))
    return filter(None, map_ordered(partial(_lost, state), filter(None, owners)))


def _lost(state: State, key: ManifestKey) -> Discrepancy | None:
    if state.ledger.record_names(key):
        return None
    return Discrepancy(key.id, state.layout.ledger_records(key), "the records of an accepted manifest", "no records")


def lost_of_accepted(state: State) -> Iterator[Discrepancy | None]:
    """Accepted manifests that are not archived and have no other record; None for each that is open."""
    listed = state.store.list(state.layout.accepted_folder)
    ids = (base_name(info.uri).removesuffix(".json") for info in listed if info.uri.endswith(".json"))
    for found in map_ordered(partial(_lost_of_accepted, state), ids):
        yield from found


def _lost_of_accepted(state: State, manifest_id: str) -> list[Discrepancy | None]:
    uri = state.layout.accepted(manifest_id)
    faults: list[Discrepancy] = []
    accepted = _record(state, manifest_id, uri, Accepted, faults)
    if accepted is None:
        # Its other records, if any, have reported this already. Their date is unknown here.
        begun = any(found.id == manifest_id for found in state.ledger.manifests())
        return [] if begun else [*faults]
    if accepted.kind in {"revoked", "part"} or state.ledger.record_names(accepted.key):
        return []
    if state.store.stat(state.layout.archived_manifest(accepted.key)) is not None:
        return []
    if _is_open(state, accepted.key, accepted) or has_draft(state, manifest_id):
        return [None]
    lost = _lost(state, accepted.key)  # unless a job finished it meanwhile
    return [lost] if lost else []


def _record(state: State, manifest_id: str, uri: str, kind: type[Record], faults: list[Discrepancy]) -> Record | None:
    return _read(manifest_id, uri, lambda: state.ledger.record(uri, kind), faults)


def _kind(name: str) -> type[Document] | None:
    if _ATTEMPT.fullmatch(name):
        return Attempt
    if _FAILURE.fullmatch(name):
        return AttemptFailure
    if _FOLDED.fullmatch(name):
        return AttemptsFolded
    if redrive_number(name) is not None:
        return Redrive
    return Done if done_generation(name) is not None else None


def _read(manifest_id: str, uri: str, read: Callable[[], T], faults: list[Discrepancy]) -> T | None:
    try:
        return read()
    except ObjectNotFound:
        faults.append(Discrepancy(manifest_id, uri, "a record", "no such record"))
    except RecordUnreadable as exc:
        faults.append(Discrepancy(manifest_id, uri, "a record that can be read", str(exc).removeprefix(f"{uri}: ")))
    return None
