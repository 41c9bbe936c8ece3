"""Compares the files that the table lists with those that the ledger names, while the ledger is verified.

The table is read first, and what differs is looked up once more in both at the end: what a job commits or rebuilds
meanwhile is no discrepancy. Holds the names of the files that are compared one by one in memory.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from compactor.core.documents.records import Commit, StagedFile
from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import CompactorError, ObjectNotFound, RecordUnreadable, StagingError
from compactor.core.layout import Layout, ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.text.formatting import count, shown_seconds
from compactor.engines.parquet_files import parquet_facts
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.change_log import is_released
from compactor.ledger.state import State
from compactor.ledger.table.batches import RefusedBatches
from compactor.ledger.visible import Visible
from compactor.ops.verify.report import Discrepancy, VerifiedTable, VerifyResult
from compactor.table.catalog import TableFile
from compactor.table.merging.same_rows import first_difference
from compactor.table.named import needs_table
from compactor.table.standing import ListedTable, held_words, waiting_words
from compactor.table.unmerged import LiveFile, committed_files, looked_up
from compactor.telemetry.error_text import described

Doubtful = Mapping[str, ManifestKey | None]
"""Files by URI, with the manifest that each is named after; None without one."""


class _Named(NamedTuple):
    """What the ledger says of a file.

    Attributes:
        commit: The valid commit of its manifest; None if there is none.
        file: The file in that commit; None if it does not have it.
        is_needed: Whether the table has to have the file.
        is_allowed: Whether the table may have it.
    """

    commit: Commit | None
    file: StagedFile | None
    is_needed: bool
    is_allowed: bool


def differing(table: ListedTable, commit: Commit, file: StagedFile, live: TableFile) -> Iterator[Discrepancy]:
    """What the table says of a file otherwise than its commit."""
    expected = f"{file.rows} rows, {file.size_bytes} bytes, {commit.date}"
    found = f"{live.records} rows, {live.size_bytes} bytes, {live.date or 'no date'}"
    if found != expected:
        yield Discrepancy(commit.manifest_id, file.final, expected, f"in table {table.name}: {found}")
    # In the partition of its date alone, readers look for any value in it.
    # guard: a file in another partition of the table is a discrepancy
    if live.values and (file.holds_others or live.values != tuple(file.partition)):
        expected = "the partition that its commit names"
        yield Discrepancy(commit.manifest_id, file.final, expected, f"in table {table.name}: another one")


def still_differing(state: State, table: ListedTable, doubtful: Doubtful) -> Iterator[Discrepancy]:
    """Each of these files that the table has otherwise than the ledger.

    The ledger is read first: what it has as done by then is in the table that is read afterwards.

    Raises:
        CompactorError: The catalog cannot be read.
    """
    if not doubtful:
        return
    expired = Visible(state)
    named = dict(map_ordered(partial(_named, state, expired), doubtful.items()))
    catalog = table.catalog()
    head = catalog.head()
    if head is None:
        needed = sum(each.is_needed for each in named.values())
        if needed:
            yield Discrepancy("", table.name, f"a table with {count(needed, 'file')}", "no such table")
        return
    listed = catalog.live_files(head.snapshot_id) if head.snapshot_id is not None else ()
    live = {file.uri: file for file in committed_files(state, listed) if file.uri in named}
    for uri, each in named.items():
        manifest_id = each.commit.manifest_id if each.commit else ""
        if uri not in live:
            if each.is_needed and each.commit and each.file and not is_superseded(state, each.commit):
                expected = f"{each.file.rows} rows in table {table.name}"
                yield Discrepancy(manifest_id, uri, expected, _why_missing(state, each.commit))
        elif each.commit is not None and each.file is not None:
            yield from differing(table, each.commit, each.file, live[uri])
        elif not each.is_allowed:
            found = f"{live[uri].records} rows in table {table.name}"
            yield Discrepancy(manifest_id, uri, "no such file in the table: no commit names it", found)


def _named(state: State, expired: Visible, item: tuple[str, ManifestKey | None]) -> tuple[str, _Named]:
    uri, key = item
    if key is None or not key.id:
        return uri, _Named(None, None, is_needed=False, is_allowed=False)
    [found] = accounts(state, Scope(keys=[key]))
    commit = found.commit
    if commit is None:  # a fault is a discrepancy by itself
        return uri, _Named(None, None, is_needed=False, is_allowed=found.fault is not None)
    file = next((each for each in commit.outputs if each.final == uri), None)
    # Until a rebuild is done, the table has the files of the generation before, or those of this one.
    is_allowed = commit.generation > 1 and not found.is_done
    is_needed = file is not None and found.is_done and expired.taken("rows", commit.key, commit.generation) is None
    return uri, _Named(commit, file, is_needed, is_allowed)


def _why_missing(state: State, commit: Commit) -> str:
    with suppress(RecordUnreadable):
        held = RefusedBatches(state).held(commit.key, commit.generation)
        if held is not None:
            return held_words(held.reason)
    return "the table does not have the file"


def is_superseded(state: State, commit: Commit) -> bool:
    """Whether a manifest was rebuilt since its commit was read."""
    return state.ledger.is_superseded(commit.key, commit.generation)


class Unlisted(NamedTuple):
    """A commit whose files the table ought to get, as it is now.

    Attributes:
        commit: The commit.
        waits: Whether it waits for the table; not if it is done, or was rebuilt, meanwhile.
        fault: That it is held back; None if it is not.
    """

    commit: Commit
    waits: bool
    fault: Discrepancy | None = None


def unlisted(state: State, table: ListedTable, commit: Commit) -> Unlisted:
    """Whether a commit that was not done when it was read waits for the table now, or is held back from it."""
    expected = f"its files in table {table.name}"
    try:
        held = RefusedBatches(state).held(commit.key, commit.generation)
    except RecordUnreadable as exc:
        where = state.layout.held(commit.key, commit.generation)
        return Unlisted(commit, waits=False, fault=Discrepancy(commit.manifest_id, where, expected, str(exc)))
    if is_superseded(state, commit):
        return Unlisted(commit, waits=False)
    if held is None:
        return Unlisted(commit, waits=not state.ledger.is_done(commit.key, commit.generation))
    fault = Discrepancy(commit.manifest_id, table.name, expected, held_words(held.reason))
    return Unlisted(commit, waits=False, fault=fault)


_TO_UNDO = "`compactor table merge --undo` brings back its parts"
_TO_REBUILD = "`compactor rebuild` makes the rows of its manifests again"


def merged_faults(state: State, table: str, live: LiveFile, *, deep: bool) -> list[Discrepancy]:
    """What is wrong with a file of a table if it is a merged one.

    Args:
        state: Has the files, and tells which parts may be gone.
        table: The name of the table.
        live: The file.
        deep: Whether its rows are compared with those of the files that were merged.
    """
    return list(_faults(state, table, live, live.merged, deep=deep)) if live.merged is not None else []


def _faults(state: State, table: str, live: LiveFile, merged: MergedFile, *, deep: bool) -> Iterator[Discrepancy]:
    expected = f"{merged.rows} rows, {merged.size_bytes} bytes"
    if live.differs:
        found = f"in table {table}: {live.file.records} rows, {live.file.size_bytes} bytes"
        yield Discrepancy("", merged.uri, expected, found)
    may_be_gone = is_released(state, merged.date, merged.uri)
    try:
        facts = parquet_facts(state.store, merged.uri)
        if (facts.rows, facts.size_bytes) != (merged.rows, merged.size_bytes):
            yield Discrepancy("", merged.uri, expected, f"{facts.rows} rows, {facts.size_bytes} bytes")
        elif deep and (difference := first_difference(state.store, merged, may_lack_parts=may_be_gone)):
            yield Discrepancy("", merged.uri, "the rows of the files that were merged", difference)
    except (StagingError, ObjectNotFound) as exc:
        yield Discrepancy("", merged.uri, f"a whole merged file; {_TO_REBUILD if may_be_gone else _TO_UNDO}", str(exc))


@dataclass(frozen=True, slots=True)
class TableScope:
    """Files of the table: all, or those of some dates or manifests.

    Attributes:
        dates: The dates; None for all.
        keys: The manifests; None for all.
        summed_dates: Of these dates, only the sums over the files count.
        fresh: Manifests of these dates whose files count one by one.
    """

    dates: Collection[str] | None = None
    keys: Collection[ManifestKey] | None = None
    summed_dates: Collection[str] = ()
    fresh: Collection[ManifestKey] = ()

    def has(self, layout: Layout, file: TableFile) -> bool:
        """Whether a file counts, by its name or by the date that the table gives it."""
        owner = layout.output_owner(file.uri)
        if self.keys is not None:
            return owner in self.keys
        return self.dates is None or file.date in self.dates or (owner is not None and owner.date in self.dates)

    def is_summed(self, layout: Layout, file: TableFile) -> bool:
        """Whether a file only counts in the sums. One that no manifest is named in never does."""
        owner = layout.output_owner(file.uri)
        return bool(owner and owner.id and owner.date in self.summed_dates and owner not in self.fresh)


@dataclass(slots=True, kw_only=True)
class TableFiles:
    """One comparison of the table with the ledger. One thread may use it.

    Attributes:
        state: Has the ledger.
        table: The table.
        scope: The files to compare.
        deep: Whether the rows of merged files are compared with those of the files that were merged.
        summed: How many files and rows the table has of the dates that only count in sums.
    """

    state: State
    table: ListedTable
    scope: TableScope
    deep: bool = False
    summed: tuple[int, int] = field(default=(0, 0), init=False)
    _read: VerifiedTable = field(init=False)
    _live: dict[str, TableFile] = field(default_factory=dict, init=False)
    _missing: dict[str, ManifestKey] = field(default_factory=dict, init=False)
    _faults: list[Discrepancy] = field(default_factory=list, init=False)
    _open: list[Commit] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Read the table, before anything is read of the ledger."""
        self._read = VerifiedTable(self.table.name)
        try:
            self._read_table()
        except CompactorError as exc:
            self._read = replace(self._read, error=described(exc))

    def note(self, account: Account) -> None:
        """Compare the files of one manifest with the table."""
        commit = account.commit
        if commit is None or commit.key != account.key:
            return  # an outcome in the wrong place is a discrepancy by itself
        if not account.is_done and needs_table(commit):
            self._open.append(commit)
        for file in commit.outputs:
            live = self._live.pop(file.final, None)
            if live is not None:
                self._faults += differing(self.table, commit, file, live)
            elif account.is_done:
                self._missing[file.final] = account.key

    def result(self) -> VerifyResult:
        """The table and its discrepancies, after all manifests were noted."""
        found = self._read
        if not found.error:
            try:
                self._look_again()
            except CompactorError as exc:
                found = replace(found, error=described(exc))
        open_now = list(map_ordered(partial(unlisted, self.state, self.table), self._open))
        held = [each.fault for each in open_now if each.fault is not None]  # a discrepancy at any age
        self._faults += held
        waiting = sorted((each.commit for each in open_now if each.waits), key=lambda each: each.decided_at)
        found = replace(found, waiting=len(waiting), held=len(held))
        if waiting:
            seconds = (self.state.clock.now() - waiting[0].decided_at).total_seconds()
            found = replace(found, waiting_seconds=seconds)
            if seconds > self.table.late_seconds:
                expected = f"no manifest waits for it for longer than {shown_seconds(self.table.late_seconds)}"
                self._fault(waiting[0].manifest_id, self.table.name, expected, waiting_words(len(waiting), seconds))
        return VerifyResult(table=found, discrepancies=self._faults)

    def _read_table(self) -> None:
        catalog = self.table.catalog()
        head = catalog.head()
        if head is None:
            return
        owner = self.state.layout.table_owner
        if head.owner != owner:
            self._fault("", self.table.name, f"a table of {owner}", f"a table of {head.owner}")
        listed = catalog.live_files(head.snapshot_id) if head.snapshot_id is not None else ()
        files = rows = 0
        merged = list[LiveFile]()
        for each in looked_up(self.state, listed):
            committed = [file for file in each.committed if self.scope.has(self.state.layout, file)]
            if committed:
                files += 1
                rows += each.file.records
                merged += [each] if each.merged is not None else []
            for file in committed:
                self._note_live(file)
        self._read = VerifiedTable(self.table.name, files, rows, head.fence, head.snapshot_id)
        check = partial(merged_faults, self.state, self.table.name, deep=self.deep)
        for faults in map_ordered(check, merged):
            self._faults += faults

    def _note_live(self, file: TableFile) -> None:
        if self.scope.is_summed(self.state.layout, file):
            self.summed = (self.summed[0] + 1, self.summed[1] + file.records)
        elif file.uri in self._live:
            self._fault("", file.uri, f"once in table {self.table.name}", "more than once")
        else:
            self._live[file.uri] = file

    def _look_again(self) -> None:
        """Add what of the files that seem to be missing or surplus still is."""
        owner_of = self.state.layout.output_owner
        doubtful = {uri: owner_of(uri) for uri in self._live} | self._missing
        self._faults += still_differing(self.state, self.table, doubtful)

    def _fault(self, manifest_id: str, where: str, expected: str, found: str) -> None:
        self._faults.append(Discrepancy(manifest_id, where, expected, found))
