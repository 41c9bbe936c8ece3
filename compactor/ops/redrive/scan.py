"""Finds what can be redriven, so that it can be counted before anything is written. Writes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from compactor.core.documents.records import Commit, DeadLetter, Redrive
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.history.expired_log import ExpiredParts
from compactor.ledger.history.redrive_log import RedriveLog, taken_from
from compactor.ledger.history.unsummarised import Unsummarised, members_with_rejects, unsummarised_if_readable
from compactor.ledger.state import State
from compactor.ops.redrive.redrive_report import Refused
from compactor.ops.redrive.selection import NOTHING_QUARANTINED, Scope, files_left, left_of, nothing_because
from compactor.ops.redrive.settling.dead_letters import letter_fates
from compactor.ops.redrive.settling.kept_letters import kept_letters, letter_id
from compactor.ops.redrive.settling.quarantined_file import QuarantinedFile, quarantined_files, settled_among_all


@dataclass(frozen=True, slots=True)
class Source:
    """A manifest that can be redriven, or a part of it."""

    key: ManifestKey
    root: ManifestKey  # of its lineage
    things: int  # how much can be redriven: one dead letter, or this many files or lines
    files: tuple[QuarantinedFile, ...] = ()  # those files, for the kind `files`


@dataclass(slots=True)
class ScanResult:
    """What can be redriven."""

    scope: Scope
    # Manifests that have something to redrive, or an earlier redrive whose manifest was never written
    sources: list[Source] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)  # manifests that the scope names and that cannot be redriven

    @property
    def things(self) -> int:
        """The number of manifests, files or lines, by the kind of the scope."""
        return sum(source.things for source in self.sources)


def find_redrivable(state: State, scope: Scope) -> ScanResult:
    """Find what can be redriven, among dead letters or in the ledger, without what is settled."""
    scan = ScanResult(scope)
    for found in map_ordered(partial(_found, state, scope), _named(state, scope)):
        if isinstance(found, Source):
            scan.sources.append(found)
        elif found is not None:
            scan.refused.append(found)
    if any(source.files for source in scan.sources):
        _leave_out_settled(state, scan)
    if scope.kind == "manifests":
        _leave_out_taken(state, scan)
    return scan


def _leave_out_taken(state: State, scan: ScanResult) -> None:
    """Leave out dead letters of which later manifests took over all files."""
    fates = letter_fates(state, [source.key.id for source in scan.sources])
    taken = {each: fate.settled_by for each, fate in fates.items() if fate.settled_by}
    scan.sources = [source for source in scan.sources if source.key.id not in taken]
    if scan.scope.manifest_ids:
        why = "its files were taken over by later manifests, the last one by {}"
        scan.refused += [Refused(each, "", why.format(by)) for each, by in taken.items()]


def _leave_out_settled(state: State, scan: ScanResult) -> None:
    """Leave out quarantined files of which a later version has rows."""
    files = settled_among_all(state, [file for source in scan.sources for file in source.files])
    done: dict[str, set[str]] = {}
    for file in filter(lambda file: file.settled_by, files):
        done.setdefault(file.manifest_id, set()).add(file.uri)
    scan.scope = replace(scan.scope, settled=done)
    # A source without files stays: an earlier redrive of it may have to be written.
    scan.sources = [replace(each, things=each.things - len(done.get(each.key.id, ()))) for each in scan.sources]
    for source in scan.sources:
        if source.files and not source.things and scan.scope.manifest_ids:
            scan.refused.append(Refused(source.key.id, "", NOTHING_QUARANTINED))


def _named(state: State, scope: Scope) -> Iterator[tuple[str | None, str]]:
    """The manifests that a scope may cover: date, if it is known, and id."""
    if scope.manifest_ids:
        yield from ((None, manifest_id) for manifest_id in dict.fromkeys(scope.manifest_ids))
        return
    found = unsummarised_if_readable(state) if scope.date is None else None
    if scope.kind == "manifests":
        yield from ((None, letter_id(info)) for info in kept_letters(state, found).waiting)
    else:
        yield from state.ledger.manifests(scope.date) if found is None else _with_things(state, scope, found)


def _with_things(state: State, scope: Scope, found: Unsummarised) -> list[ManifestKey]:
    """The manifests that may have quarantined files or rejected lines: those that summaries name, and all others."""
    if scope.kind == "files":
        keys = {ManifestKey(each.date, each.manifest_id) for each in found.totals.quarantined}
    else:
        keys = set(members_with_rejects(state, found.totals))
    return sorted({*keys, *found.keys}, key=lambda key: f"{key.date}/{key.id}/")


def _found(state: State, scope: Scope, named: tuple[str | None, str]) -> Source | Refused | None:
    """The source; or, if it cannot be redriven, the reason, which matters only for a manifest that was named."""
    date, manifest_id = named
    try:
        found = _source(state, scope, date, manifest_id)
    except StuckError as exc:
        return Refused(manifest_id, "", str(exc))
    if isinstance(found, Source):
        return found
    return Refused(manifest_id, "", found) if scope.manifest_ids else None


def _source(state: State, scope: Scope, date: str | None, manifest_id: str) -> Source | str:
    """What a manifest has of a scope, or why there is nothing."""
    found = _outcome(state, date, manifest_id)
    if isinstance(found, str):
        return found
    if scope.date not in {None, found.date}:
        return f"its date is {found.date}, not {scope.date}"
    log = RedriveLog(state=state)
    root = log.root_of(manifest_id) if left_of(scope, found, []) else None
    if root is None:
        return nothing_because(scope, found)
    entries = log.entries(root)
    redrives = taken_from(manifest_id, entries)
    things, is_written = left_of(scope, found, redrives).total(), all(each.fate != "unwritten" for each in entries)
    if not things and is_written:
        return nothing_because(scope, found)
    if scope.kind == "rejects" and is_written:
        expired = ExpiredParts(state).of("rejects", found.key, found.generation)
    else:
        expired = None
    why = "" if expired is None else f"its rejects {expired.words}; expected rejects that no rule took"
    if not why and not state.ledger.is_done(found.key, found.generation):
        why = "it is decided but not done; expected the job to finish it first"
    return why or Source(found.key, root, things, _files(scope, found, redrives))


def _files(scope: Scope, outcome: Commit | DeadLetter, redrives: Sequence[Redrive]) -> tuple[QuarantinedFile, ...]:
    """The quarantined files that a scope covers, before anything is read of their later versions."""
    if scope.kind != "files" or isinstance(outcome, DeadLetter):
        return ()
    left = {report.uri for report in files_left(scope, outcome, redrives)}
    return tuple(each for each in quarantined_files(outcome) if each.uri in left)


def _outcome(state: State, date: str | None, manifest_id: str) -> Commit | DeadLetter | str:
    """The outcome of a manifest, or why there is none."""
    if date is None:
        accepted = state.ledger.accepted(manifest_id)
        if accepted is None:
            return f"{state.layout.state} has no record of it; expected the id of a manifest"
        if accepted.kind == "revoked":
            return "its id was revoked by its planner, and its files were planned again"
        date = accepted.date
    try:
        return state.ledger.outcome(ManifestKey(date, manifest_id))
    except ObjectNotFound:
        return "it has no outcome yet; expected a commit or a dead letter"
