"""Finds and counts what can be redriven. Writes nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from compactor.core.documents import manifest
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.records import NEEDS_OPERATOR
from compactor.core.layout import ManifestKey
from compactor.core.results import only
from compactor.ledger.accounts.account import (
    Account,
    AccountState,
    DeadLetterManifest,
    Kind,
    QuarantinedFile,
    letter_of,
)
from compactor.ledger.accounts.reading import Scope, folded
from compactor.ledger.accounts.settling import Settling
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ndjson import inspection

REASONS: dict[Kind, frozenset[str]] = {
    "manifests": frozenset(manifest.REASONS),
    "files": frozenset(str(status) for status in NEEDS_OPERATOR),
    "rejects": frozenset(inspection.REASONS),
}
"""The reasons of dead letters, quarantined files and rejected lines."""

CURABLE = frozenset({"line_too_long", "parsers_disagree"})
"""Reasons that depend on the settings; all other reasons follow from the bytes of a line."""

THINGS: dict[Kind, str] = {"manifests": "manifest", "files": "file", "rejects": "line"}
"""The unit of each kind."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that cannot be redriven."""

    manifest_id: str  # its manifest
    uri: str  # the file; empty for the whole manifest
    why: str  # the reason, in words


@dataclass(frozen=True, slots=True)
class Source:
    """A manifest that can be redriven, or a part of it."""

    key: ManifestKey
    root: ManifestKey  # of its lineage
    things: int  # how much can be redriven: one dead letter, or this many files or lines
    files: tuple[QuarantinedFile, ...] = ()  # those files, for the kind `files`
    letter: DeadLetterManifest | None = None  # that dead letter, for the kind `manifests`


@dataclass(frozen=True, slots=True)
class Redrivable:
    """What can be redriven."""

    scope: Scope
    # Manifests with something to redrive, or with an earlier redrive whose manifest was never written
    sources: tuple[Source, ...]
    refused: tuple[Refused, ...] = ()  # manifests in the scope that cannot be redriven

    @property
    def kind(self) -> Kind:
        return self.scope.kind or "manifests"

    @property
    def things(self) -> int:
        """The number of manifests, files or lines, by the kind of the scope."""
        return sum(source.things for source in self.sources)


def find_redrivable(state: State, scope: Scope) -> Redrivable:
    """Find dead letters, quarantined files or rejected lines that can be redriven and that nothing settled."""
    found = list(state.meter.each("manifest", folded(state, scope, partial(_found, state, scope, Visible(state)))))
    sources, refused = only(Source, found), only(Refused, found)
    if scope.kind != "rejects":
        unsettled = _open_files if scope.kind == "files" else _open_letters
        left = list(unsettled(Settling(state), sources))
        sources, refused = only(Source, left), refused + (only(Refused, left) if scope.manifest_ids else ())
    return Redrivable(scope, sources, refused)


def _open_letters(settling: Settling, sources: Sequence[Source]) -> Iterable[Source | Refused]:
    letters = settling.letters([source.letter for source in sources if source.letter is not None])
    settled_by = {each.manifest_id: each.fate for each in letters}
    for source in sources:
        fate = settled_by.get(source.key.id)
        yield Refused(source.key.id, "", fate) if fate else source


def _open_files(settling: Settling, sources: Sequence[Source]) -> Iterable[Source | Refused]:
    checked = iter(settling.files([file for source in sources for file in source.files]))
    for source in sources:
        files = tuple(file for file in [next(checked) for _ in source.files] if not file.is_settled)
        # A source without files stays: an earlier redrive of it may have to be written.
        yield replace(source, things=len(files), files=files)
        if source.files and not files:
            yield Refused(source.key.id, "", _nothing_quarantined())


def _found(state: State, scope: Scope, visible: Visible, account: Account) -> Source | Refused | None:
    """The source. If it cannot be redriven, the reason, which is reported only for explicitly named manifests."""
    why = _why_not(state, scope, account, visible)
    if not why and account.root is not None:
        files = account.open_files if scope.kind == "files" else ()
        asked = tuple(each for each in files if scope.reason in {None, each.status})
        letter = letter_of(account.letter) if account.letter is not None else None
        return Source(account.key, account.root, _left(account, scope), asked, letter)
    is_reported = scope.manifest_ids or account.fault is not None
    return Refused(account.id, "", why) if is_reported else None


def _left(account: Account, scope: Scope) -> int:
    return account.left(scope.kind or "manifests", scope.reason).total()


def _why_not(state: State, scope: Scope, account: Account, visible: Visible) -> str:
    """Why nothing of a manifest can be redriven; empty if something can, or was and is not written yet."""
    found = account.outcome
    if account.fault is not None:
        return str(account.fault)
    if found is None:
        return _why_undecided(state, account)
    if scope.date not in {None, found.date}:
        return f"its date is {found.date}, not {scope.date}"
    if account.root is None or not (account.is_interrupted or _left(account, scope)):
        return _nothing_because(scope, found)
    is_asked = scope.kind == "rejects" and not account.is_interrupted
    if is_asked and (gone := visible.deletion("rejects", found.key, found.generation)) is not None:
        return f"its rejects {gone.words}; expected rejects that no rule took"
    return "" if account.is_done else "it is decided but not done; expected the job to finish it first"


def _why_undecided(state: State, account: Account) -> str:
    if not account.key.date:
        return f"{state.layout.state} has no record of it; expected the id of a manifest"
    if account.state is AccountState.REVOKED:
        return "its id was revoked by its planner, and its files were planned again"
    return "it has no outcome yet; expected a commit or a dead letter"


def _nothing_because(scope: Scope, outcome: Commit | DeadLetter) -> str:
    asked = f" for {scope.reason}" if scope.reason else ""
    if scope.kind == "manifests":
        if isinstance(outcome, DeadLetter):
            return f"it was redriven before, or its reason is not {scope.reason or outcome.reason}"
        return "it is not a dead letter: it was committed"
    if isinstance(outcome, DeadLetter):
        return f"it is a dead letter ({outcome.reason}); expected `redrive manifests`"
    if scope.kind == "files":
        return _nothing_quarantined(asked)
    return f"no lines were rejected{asked}, or all of them were redriven before"


def _nothing_quarantined(asked: str = "") -> str:
    return f"no files were quarantined{asked}, or each was redriven before, or a later version was compacted"
