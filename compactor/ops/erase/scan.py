"""Finds data that contains a value before anything is erased: rows, rejected lines, files to search. Read-only."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby

from compactor.core.documents.changes import Commit, DeadLetter, ErasedManifest, SearchedPlace
from compactor.core.documents.manifest_parsing import check_length, uris_in
from compactor.core.documents.records import Accepted
from compactor.core.errors import CompactorError, ManifestError, ObjectNotFound, StagingError, StuckError
from compactor.core.layout import Layout, ManifestKey, canonical, folder, is_delivery, is_within, redriven_owner
from compactor.core.results import only
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Detail, Scope, account_of, folded
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ops.erase.inputs import (
    NOT_COMPACTED,
    Candidate,
    candidates_of,
    copy_candidates,
    named_partitions,
    names_value,
)
from compactor.ops.erase.search import RowSearch, rejects_found
from compactor.ops.rebuild.damaged import Damaged, NotChanged
from compactor.telemetry.error_text import described

_IN_FOLDERS = "of its files were in a value's partition; the records keep its name"
_IN_NAMES = "of its input files have a value in their names; the records keep it"
_IN_LETTER = "its message, which the ledger keeps, or original has a value: after any redrive, delete {} and its reason"
_NOT_READ = "no file that its original names was searched ({}): search them, then delete {} yourself"


class NotSearched(NotChanged):
    """A manifest that could not be searched completely."""


@dataclass(frozen=True, slots=True)
class Held:
    """A manifest whose files contain a value."""

    accepted: Accepted
    commit: Commit  # the valid commit
    rows: int
    rejected_lines: int

    @property
    def erased(self) -> ErasedManifest:
        """What will be erased from it."""
        key, generation = self.commit.key, self.commit.generation + 1
        return ErasedManifest(
            manifest_id=key.id,
            date=key.date,
            generation=generation,
            rows=self.rows,
            rejected_lines=self.rejected_lines,
        )


@dataclass(frozen=True, slots=True)
class _Searched:
    """A manifest whose records were searched; or, if committed, how many of its files of rows and of rejects were."""

    files: tuple[int, int] | None = None
    kept: int = 0  # objects of a dead letter: the reason and, if it was kept, the original


@dataclass(frozen=True, slots=True)
class EraseScan:
    """The findings."""

    parts: tuple[object, ...] = ()

    @property
    def searched(self) -> int:
        """Number of committed manifests that were searched."""
        return sum(each.files is not None for each in only(_Searched, self.parts))

    def places(self, layout: Layout, inputs: Iterable[str]) -> Iterator[SearchedPlace]:
        """Every place that was searched, given those of input."""
        found = [each.files for each in only(_Searched, self.parts)]
        rows, rejects = (sum(files[at] for files in found if files) for at in (0, 1))
        uris = {each.uri for each in self.candidates}
        yield SearchedPlace(what="rows", place=folder(layout.output), objects=rows)
        yield SearchedPlace(what="rejects", place=layout.rejects_folder, objects=rejects)
        yield SearchedPlace(what="names", place=layout.ledger_folder, objects=found.count(None))
        letters = sum(each.kept for each in only(_Searched, self.parts))
        yield SearchedPlace(what="letters", place=layout.failed_folder, objects=letters)
        for place in (*map(folder, inputs), layout.redriven_folder):
            yield SearchedPlace(what="input", place=place, objects=sum(is_within(uri, place) for uri in uris))

    @property
    def held(self) -> tuple[Held, ...]:
        """Manifests whose rows or rejects contain a value."""
        return only(Held, self.parts)

    @property
    def undone(self) -> tuple[Damaged, ...]:
        """Rebuilds that are decided but not published: they are finished first, then their manifests searched."""
        return only(Damaged, self.parts)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Input files that may contain a value."""
        return only(Candidate, self.parts)

    @property
    def refused(self) -> tuple[NotChanged, ...]:
        return only(NotChanged, self.parts)

    @property
    def unsearched(self) -> set[str]:
        """The ids of manifests that could not be searched completely."""
        return {each.manifest_id for each in only(NotSearched, self.parts)}


@dataclass(frozen=True, kw_only=True)
class EraseScanner:
    """Searches all manifests on record, including those of closed dates."""

    state: State
    search: RowSearch
    prefixes: Sequence[str]  # where input may be

    def scan(self) -> EraseScan:
        """Search everything."""
        return EraseScan((*self.scan_some(self.state.ledger.manifests()).parts, *self._unfinished(), *self._copies()))

    def _unfinished(self) -> Iterator[NotChanged]:
        layout, store = self.state.layout, self.state.store
        if waiting := sum(is_delivery(info.uri) for info in store.list(layout.manifests_folder)):
            yield NotChanged("", f"{waiting:,} delivered manifests are not done yet; run it again then")
        if pending := sum(1 for _ in store.list(layout.pending_folder)):
            yield NotChanged("", f"{pending:,} parts wait for the sealer; run it again then")

    def _copies(self) -> Iterator[Candidate]:
        """The copies of redriven lines."""
        place = self.state.layout.redriven_folder
        copies = (info.uri for info in self.state.store.list(place))
        for manifest_id, uris in groupby(copies, key=lambda uri: redriven_owner(uri, place) or ""):
            account = account_of(self.state, manifest_id, Detail.ACCEPTED)
            outcome = account.outcome if account.is_done else None
            yield from copy_candidates(list(uris), manifest_id, account.accepted, outcome)

    def scan_some(self, keys: Iterable[ManifestKey]) -> EraseScan:
        """Search some manifests."""
        visible = Visible(self.state)
        scope = Scope(keys=keys, details=Detail.ACCEPTED)
        searched = folded(self.state, scope, partial(self._searched, visible))
        found = list(chain.from_iterable(self.state.meter.each("manifest", searched)))
        faults = (NotChanged("", f"{uri}: {fault}") for uri, fault in visible.faults.items())
        return EraseScan((*found, *faults))

    def _searched(self, visible: Visible, account: Account) -> list[object]:
        try:
            return list(self._search(account.checked(), visible))
        except (ObjectNotFound, StagingError, StuckError) as exc:
            return [NotSearched(account.id, str(exc))]
        except CompactorError:
            raise
        except Exception as exc:  # noqa: BLE001 - readers of damaged bytes raise errors of any type
            return [NotSearched(account.id, f"its files cannot be read: {described(exc)}")]

    def _search(self, account: Account, visible: Visible) -> Iterator[object]:
        accepted, commit = account.accepted, account.commit
        if account.letter is not None:
            yield from self._search_letter(account, account.letter)
            return
        yield _Searched()
        yield from self._in_names(account)
        if commit is None or (not account.is_done and not commit.is_rebuilt):
            yield NotChanged(account.id, "it is not done yet; run it again then")
        elif accepted is None:
            yield NotChanged(account.id, "the record of its acceptance is gone; expected it to be kept")
        elif not account.is_done:
            yield Damaged(accepted, commit, "")
        else:
            yield from self._search_commit(accepted, commit, visible)

    def _search_letter(self, account: Account, letter: DeadLetter) -> Iterator[object]:
        """Search the message and the original of a dead letter as bytes, and find the files that it names."""
        layout, store, original = self.state.layout, self.state.store, b""
        manifest = account.accepted.manifest if account.accepted is not None else None
        place = layout.failed_manifest(account.id)
        kept = store.stat(place)
        yield _Searched(kept=1 if kept is None else 2)
        try:
            if kept is not None:
                check_length(place, kept.size_bytes)
                original = store.read(place)
            named = uris_in(original, place, self.prefixes, self.state.rules)
            for uri in named if manifest is None else (file.uri for file in manifest.files):
                yield Candidate(uri, account.id, kept_because=NOT_COMPACTED)
        except ManifestError as exc:
            if exc.reason != "empty":  # the message may quote a value
                yield NotSearched(account.id, _NOT_READ.format(exc.reason, place))
        texts = (letter.message, letter.source_uri, original.decode(errors="surrogateescape"))
        if self.search.wanted.in_names(texts):
            yield NotChanged(account.id, _IN_LETTER.format(place))
        else:
            yield from self._in_names(account)

    def _in_names(self, account: Account) -> Iterator[NotChanged]:
        """The number of input files with a value in their paths below the prefixes; the manifest's id counts, too."""
        wanted, accepted, commit = self.search.wanted, account.accepted, account.commit
        files = commit.files if commit is not None else ()
        listed = accepted.manifest.files if accepted is not None and accepted.manifest is not None else ()
        uris = list(dict.fromkeys(each.origin_uri for each in (*files, *listed)))
        named = {uris[at] for at in wanted.in_names([self._below_prefix(uri) for uri in uris])} | {
            each.origin_uri for each in files if names_value(each, wanted)
        }
        if many := len(named) + bool(wanted.in_names([account.id])):
            yield NotChanged(account.id, f"{many:,} {_IN_NAMES}")

    def _below_prefix(self, uri: str) -> str:
        """The part of a file's path that its producer chose: what the settings name is no finding in each file."""
        places = (folder(canonical(each)) for each in self.prefixes if is_within(uri, each))
        return canonical(uri)[len(max(places, key=len, default="")) :]

    def _search_commit(self, accepted: Accepted, commit: Commit, visible: Visible) -> Iterator[object]:
        store, wanted = self.state.store, self.search.wanted
        has_rows = visible.deletion("rows", commit.key, commit.generation) is None
        has_rejects = visible.deletion("rejects", commit.key, commit.generation) is None
        rows = sum(self.search.count(commit, file) for file in commit.outputs) if has_rows else 0
        rejects = commit.rejects if has_rejects else ()
        lines = sum(1 for file in rejects for _ in rejects_found(store, file.final, wanted))
        yield _Searched((len(commit.outputs) if has_rows else 0, len(rejects)))
        if rows or lines:
            yield Held(accepted, commit, rows, lines)
        may_be_any = bool(rows or lines or commit.erased or not has_rows)
        layout = self.state.layout
        yield from candidates_of(commit, wanted, layout, may_be_any=may_be_any, may_be_rejected=not has_rejects)
        # Also those of earlier generations, whose records stay
        numbers = range(1, commit.generation if commit.partition_by else 1)
        commits = [commit, *(self.state.ledger.outcome_of(commit.key, number) for number in numbers)]
        if folders := {name for each in commits if isinstance(each, Commit) for name in named_partitions(each, wanted)}:
            yield NotChanged(commit.manifest_id, f"{len(folders):,} {_IN_FOLDERS}")
