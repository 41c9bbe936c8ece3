"""Finds what holds a value, before anything is erased: rows, rejected lines, files to search. Writes nothing."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from compactor.core.documents.records import Accepted, Commit
from compactor.core.errors import CompactorError, ObjectNotFound, StagingError, StuckError
from compactor.core.layout import ManifestKey, is_delivery, redriven_owner
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Detail, Scope, account_of, folded
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ops.forget.candidates import (
    Candidate,
    candidates_of,
    copy_candidates,
    letter_candidates,
    names_partition,
    names_value,
)
from compactor.ops.forget.forget_report import NotForgotten
from compactor.ops.forget.reject_search import rejects_found
from compactor.ops.forget.row_search import RowSearch
from compactor.ops.rebuild.scan import Damaged
from compactor.telemetry.error_text import described

_IN_FOLDERS = "of its files were in the partition of a value, whose name its records keep"
_IN_NAMES = "of its input files have a value in their names, which its records keep"


@dataclass(frozen=True, slots=True)
class Held:
    """A manifest whose files hold a value."""

    accepted: Accepted
    commit: Commit  # the valid one
    rows: int
    rejected_lines: int


@dataclass(slots=True)
class ForgetScan:
    """What was found.

    Attributes:
        searched: How many committed manifests were searched.
        held: Manifests whose rows or rejects hold a value.
        undone: Rebuilds that are decided and not published: they come first, then their manifests are searched.
        candidates: Input files that may hold a value.
        refused: What could not be searched.
        unsearched: The ids of manifests that could not be searched to their end.
    """

    searched: int = 0
    held: list[Held] = field(default_factory=list)
    undone: list[Damaged] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    refused: list[NotForgotten] = field(default_factory=list)
    unsearched: set[str] = field(default_factory=set)

    def add(self, found: "ForgetScan") -> None:
        """Take in what was found of further manifests."""
        self.searched += found.searched
        self.held += found.held
        self.undone += found.undone
        self.candidates += found.candidates
        self.refused += found.refused
        self.unsearched |= found.unsearched


@dataclass(frozen=True, kw_only=True)
class ForgetScanner:
    """Searches all manifests on record, those of closed dates included."""

    state: State
    search: RowSearch

    def scan(self) -> ForgetScan:
        """Search everything."""
        layout = self.state.layout
        scan = self.scan_some(self.state.ledger.manifests())
        if waiting := sum(is_delivery(info.uri) for info in self.state.store.list(layout.manifests_folder)):
            scan.refused.append(
                NotForgotten("", f"{waiting:,} delivered manifests are not done yet; run it again then")
            )
        if pending := sum(1 for _ in self.state.store.list(layout.pending_folder)):
            scan.refused.append(NotForgotten("", f"{pending:,} parts wait for the sealer; run it again then"))
        for folder, copies in groupby(
            self._copies(), key=lambda uri: redriven_owner(uri, layout.redriven_folder) or ""
        ):
            scan.candidates += self._of_redrive(folder, list(copies))
        return scan

    def _copies(self) -> Iterator[str]:
        return (info.uri for info in self.state.store.list(self.state.layout.redriven_folder))

    def _of_redrive(self, manifest_id: str, copies: Sequence[str]) -> Iterator[Candidate]:
        account = account_of(self.state, manifest_id, Detail.ACCEPTED)
        return copy_candidates(copies, manifest_id, account.accepted, account.outcome if account.is_done else None)

    def scan_some(self, keys: Iterable[ManifestKey]) -> ForgetScan:
        """Search some manifests."""
        scan, expired = ForgetScan(), Visible(self.state)
        scope = Scope(keys=keys, details=Detail.ACCEPTED)
        for found in folded(self.state, scope, partial(self._searched, expired)):
            scan.add(found)
        for uri, fault in expired.faults.items():
            scan.refused.append(NotForgotten("", f"{uri}: {fault}"))
        return scan

    def _searched(self, expired: Visible, account: Account) -> ForgetScan:
        found = ForgetScan()
        try:
            self._search(account.checked(), expired, found)
        except (ObjectNotFound, StagingError, StuckError) as exc:
            found.refused.append(NotForgotten(account.id, str(exc)))
            found.unsearched.add(account.id)
        except CompactorError:
            raise
        except Exception as exc:  # noqa: BLE001 - readers of damaged bytes raise errors of any type
            found.refused.append(NotForgotten(account.id, f"its files cannot be read: {described(exc)}"))
            found.unsearched.add(account.id)
        return found

    def _search(self, account: Account, expired: Visible, found: ForgetScan) -> None:
        accepted, outcome = account.accepted, account.commit
        if account.letter is not None:
            found.candidates += letter_candidates(accepted)
        elif outcome is None or (not account.is_done and not outcome.is_rebuilt):
            found.refused.append(NotForgotten(account.id, "it is not done yet; run it again then"))
        elif accepted is None:
            why = "the record of its acceptance is gone; expected it to be kept"
            found.refused.append(NotForgotten(account.id, why))
        elif not account.is_done:
            found.undone.append(Damaged(accepted, outcome, ""))
        else:
            self._search_commit(accepted, outcome, expired, found)

    def _search_commit(self, accepted: Accepted, commit: Commit, expired: Visible, found: ForgetScan) -> None:
        found.searched += 1
        store, wanted = self.state.store, self.search.wanted
        has_rows = expired.taken("rows", commit.key, commit.generation) is None
        has_rejects = expired.taken("rejects", commit.key, commit.generation) is None
        rows = sum(self.search.count(commit, file) for file in commit.outputs) if has_rows else 0
        rejects = commit.rejects if has_rejects else ()
        lines = sum(1 for file in rejects for _ in rejects_found(store, file.final, wanted))
        if rows or lines:
            found.held.append(Held(accepted, commit, rows, lines))
        may_be_any = bool(rows or lines or commit.erased or not has_rows)
        layout = self.state.layout
        found.candidates += candidates_of(
            commit, wanted, layout, may_be_any=may_be_any, may_be_rejected=not has_rejects
        )
        if named := sum(names_value(file, wanted) for file in commit.files):
            found.refused.append(NotForgotten(commit.manifest_id, f"{named:,} {_IN_NAMES}"))
        if folders := sum(names_partition(commit, file, wanted) for file in commit.outputs):
            found.refused.append(NotForgotten(commit.manifest_id, f"{folders:,} {_IN_FOLDERS}"))
