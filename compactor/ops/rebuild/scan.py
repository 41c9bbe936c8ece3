"""Finds the manifests to rebuild, before anything is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import Accepted, Commit, Taking
from compactor.core.errors import StuckError
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Detail, Scope, folded
from compactor.ledger.state import State
from compactor.ledger.table.batches import RefusedBatches
from compactor.ops.rebuild.damage import Damage, input_fault
from compactor.ops.rebuild.rebuild_report import NotRebuilt

FORCED = "asked for, although the files add up"
ERASED = "lines of it were erased on request, and its input has or had them"
HELD_BACK = "the catalog of the table refuses its files"


@dataclass(frozen=True, slots=True)
class RebuildScope:
    """What to rebuild: these manifests, those of a date, or all."""

    manifest_ids: tuple[str, ...] = ()
    date: str | None = None
    force: bool = False  # also manifests whose files add up


@dataclass(frozen=True, slots=True)
class Damaged:
    """A manifest to rebuild."""

    accepted: Accepted
    commit: Commit  # the valid one
    why: str  # what is wrong with its files; empty for a rebuild that is decided and not published
    inputs: Mapping[str, ManifestFile] = field(default_factory=dict)  # other versions to read, by URI
    replaced: frozenset[str] = frozenset()  # those of them whose lines are others
    check: Callable[[], None] = lambda: None  # called before the decision; an `InputError` refuses it
    erasure: str = ""  # the erasure for which rows go; what stages the others again does not read the input


@dataclass(slots=True)
class RebuildScan:
    """The manifests to rebuild, and those that cannot be rebuilt."""

    damaged: list[Damaged] = field(default_factory=list)
    refused: list[NotRebuilt] = field(default_factory=list)
    intact: list[Commit] = field(default_factory=list)
    expired: list[Commit] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class RebuildScanner:
    """Finds manifests to rebuild. Writes nothing."""

    state: State
    damage: Damage

    def scan(self, scope: RebuildScope) -> RebuildScan:
        """Check the files of the manifests of a scope, and the input of those that have to be rebuilt."""
        scan, ids = RebuildScan(), scope.manifest_ids
        # Of each of all manifests the records are read when it is its turn: what is decided meanwhile is not damaged.
        keys = None if ids else self.state.ledger.manifests(scope.date)
        asked = Scope(manifest_ids=ids, keys=keys, details=Detail.ACCEPTED)
        for found in folded(self.state, asked, partial(self._checked, scope)):
            if isinstance(found, NotRebuilt):
                scan.refused.append(found)
            elif isinstance(found, Commit) and self._expired(found) is not None:
                scan.expired.append(found)
            elif isinstance(found, Commit):
                scan.intact.append(found)
            elif found is not None:
                self._add(scan, found)
        return scan

    def _is_held(self, commit: Commit) -> bool:
        """Whether the catalog of the table refuses a commit, so that the job cannot finish it."""
        return RefusedBatches(self.state).is_held(commit.key, commit.generation)

    def _expired(self, commit: Commit) -> Taking | None:
        """The record that the rows of a commit expired by."""
        return self.damage.files.visible.taken("rows", commit.key, commit.generation)

    def _add(self, scan: RebuildScan, found: Damaged) -> None:
        fault = ""
        if found.why:
            fault = input_fault(self.state, found.commit) if found.commit.erased is None else ERASED
        if fault:
            why = f"{found.why}. The rows cannot be made again: {fault}"
            scan.refused.append(NotRebuilt(found.commit.manifest_id, why))
        else:
            scan.damaged.append(found)

    def _checked(self, scope: RebuildScope, account: Account) -> Damaged | NotRebuilt | Commit | None:
        """What is found about a manifest: the commit of one that is intact, None for one that is no concern."""
        if not account.key.date:
            place = self.state.layout.state
            return NotRebuilt(account.id, f"{place} has no record of it; expected the id of a manifest")
        try:
            found = self._found(account.checked(), scope)
        except StuckError as exc:
            return NotRebuilt(account.id, str(exc))
        if isinstance(found, str):
            return NotRebuilt(account.id, found) if scope.manifest_ids else None
        commit, why = found
        if why is None:
            return commit
        if account.accepted is None or account.accepted.manifest is None:
            return NotRebuilt(account.id, f"{why}. The record of its acceptance is gone; expected it to be kept")
        return Damaged(account.accepted, commit, why)

    def _found(self, account: Account, scope: RebuildScope) -> tuple[Commit, str | None] | str:
        """The commit of a manifest with what is wrong with its files, None if nothing is; or why it has no commit."""
        commit = account.commit
        if account.letter is not None:
            reason = account.letter.reason
            return f"it is a dead letter ({reason}) and has no rows; expected `compactor redrive manifests`"
        if commit is None:
            return "it has no outcome yet; expected a commit"
        if not account.is_done:
            why = self.damage.of_staged(commit)
            if not why and scope.manifest_ids and self._is_held(commit):
                why = HELD_BACK
            if not why and not commit.is_rebuilt:
                return "it is committed and not published yet; expected the job to finish it first"
            return commit, why
        if (expired := self._expired(commit)) is not None:
            why = f"its rows {expired.words}; expected rows that no rule took"
            return why if scope.manifest_ids else (commit, None)
        return commit, self.damage.of_published(commit) or (FORCED if scope.force else None)
