"""Finds what can be redriven, so that it can be counted before anything is written. Writes nothing."""

from dataclasses import dataclass, field, replace
from functools import partial

from compactor.core.layout import ManifestKey
from compactor.ledger.accounts.account import Account, AccountState, Kind, QuarantinedFile
from compactor.ledger.accounts.reading import Scope, folded
from compactor.ledger.accounts.settling import Settling
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ops.redrive.redrive_report import Refused
from compactor.ops.redrive.selection import NOTHING_QUARANTINED, nothing_because


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
    def kind(self) -> Kind:
        return self.scope.kind or "manifests"

    @property
    def things(self) -> int:
        """The number of manifests, files or lines, by the kind of the scope."""
        return sum(source.things for source in self.sources)


def find_redrivable(state: State, scope: Scope) -> ScanResult:
    """Find what can be redriven, among dead letters or in the ledger, without what is settled."""
    scan, expired, settling = ScanResult(scope), Visible(state), Settling(state)
    for found in folded(state, scope, partial(_found, state, scan, expired)):
        if isinstance(found, Source):
            scan.sources.append(found)
        elif found is not None:
            scan.refused.append(found)
    if scan.kind == "files":
        _leave_out_settled(settling, scan)
    if scan.kind == "manifests":
        _leave_out_taken(settling, scan)
    return scan


def _leave_out_taken(settling: Settling, scan: ScanResult) -> None:
    """Leave out dead letters of which later manifests took over all files."""
    fates = settling.letters([source.key.id for source in scan.sources])
    taken = {each: fate.settled_by for each, fate in fates.items() if fate.settled_by}
    scan.sources = [source for source in scan.sources if source.key.id not in taken]
    if scan.scope.manifest_ids:
        why = "its files were taken over by later manifests, the last one by {}"
        scan.refused += [Refused(each, "", why.format(by)) for each, by in taken.items()]


def _leave_out_settled(settling: Settling, scan: ScanResult) -> None:
    """Leave out quarantined files of which a later version has rows, or that were given up."""
    checked = iter(settling.files([file for source in scan.sources for file in source.files]))
    for at, source in enumerate(scan.sources):
        files = tuple(file for file in [next(checked) for _ in source.files] if not file.is_settled)
        # A source without files stays: an earlier redrive of it may have to be written.
        scan.sources[at] = replace(source, things=len(files), files=files)
        if source.files and not files and scan.scope.manifest_ids:
            scan.refused.append(Refused(source.key.id, "", NOTHING_QUARANTINED))


def _found(state: State, scan: ScanResult, expired: Visible, account: Account) -> Source | Refused | None:
    """The source; or, if it cannot be redriven, the reason, which matters only for a manifest that was named."""
    scope, why = scan.scope, _why_not(state, scan, account, expired)
    if not why and account.root is not None:
        files = account.open_files if scope.kind == "files" else ()
        asked = tuple(each for each in files if scope.reason in {None, each.status})
        return Source(account.key, account.root, account.left(scan.kind, scope.reason).total(), asked)
    is_told = scope.manifest_ids or account.fault is not None
    return Refused(account.id, "", why) if is_told else None


def _why_not(state: State, scan: ScanResult, account: Account, expired: Visible) -> str:
    """Why nothing of a manifest can be redriven; empty if something can, or was and is not written yet."""
    scope, found = scan.scope, account.outcome
    if account.fault is not None:
        return str(account.fault)
    if found is None:
        return _why_undecided(state, account)
    if scope.date not in {None, found.date}:
        return f"its date is {found.date}, not {scope.date}"
    if account.root is None or not (account.is_interrupted or account.left(scan.kind, scope.reason)):
        return nothing_because(scope, found)
    is_asked = scope.kind == "rejects" and not account.is_interrupted
    if is_asked and (gone := expired.taken("rejects", found.key, found.generation)) is not None:
        return f"its rejects {gone.words}; expected rejects that no rule took"
    return "" if account.is_done else "it is decided but not done; expected the job to finish it first"


def _why_undecided(state: State, account: Account) -> str:
    if not account.key.date:
        return f"{state.layout.state} has no record of it; expected the id of a manifest"
    if account.state is AccountState.REVOKED:
        return "its id was revoked by its planner, and its files were planned again"
    return "it has no outcome yet; expected a commit or a dead letter"
