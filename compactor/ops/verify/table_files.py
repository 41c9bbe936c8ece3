"""Compares the files listed in the table with those in the ledger, while the ledger is read.

The table is read first. Differences are looked up again in both at the end, because a job may commit or rebuild
meanwhile. The names of individually compared files are in memory.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, NamedTuple

from compactor.core.documents.changes import Commit, StagedFile
from compactor.core.errors import CompactorError, ObjectNotFound, RecordUnreadable, StagingError
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.text.formatting import count, rows_and_bytes, shown_seconds
from compactor.engines.parquet_files import parquet_facts
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.change_log import is_released
from compactor.ledger.state import State
from compactor.ledger.table.batches import RefusedBatches
from compactor.ledger.visible import Visible
from compactor.ops.verify.report import Discrepancy, VerifiedTable, VerifyResult
from compactor.table.catalog import TableFile, TableHead
from compactor.table.merging.same_rows import first_difference
from compactor.table.named import needs_table
from compactor.table.standing import ListedTable, held_words, waiting_words
from compactor.table.unmerged import LiveFile, committed_files, looked_up
from compactor.telemetry.error_text import described

How = Literal["missing", "surplus", "doubled", "differing"]
"""How a file differs: the table lacks it, has it although no commit names it, has it twice, or says other figures."""


class _Named(NamedTuple):
    """The ledger's entry for a file: the valid commit of its manifest, and the file in that commit."""

    commit: Commit | None = None
    file: StagedFile | None = None
    is_needed: bool = False  # whether the table has to have the file
    is_allowed: bool = False  # whether the table may have it


def differing(table: ListedTable, commit: Commit, file: StagedFile, live: TableFile) -> Iterator[Discrepancy]:
    """Differences between a file in the table and in its commit."""
    expected = f"{rows_and_bytes(file.rows, file.size_bytes)}, {commit.date}"
    found = f"{rows_and_bytes(live.records, live.size_bytes)}, {live.date or 'no date'}"
    if found != expected:
        yield Discrepancy(commit.manifest_id, file.final, expected, f"in table {table.name}: {found}")
    # A file in the partition of its date alone may hold any other values.
    # guard: a file in the wrong partition of the table is a discrepancy
    if live.values and (file.holds_others or live.values != tuple(file.partition)):
        expected = "the partition that its commit names"
        yield Discrepancy(commit.manifest_id, file.final, expected, f"in table {table.name}: another one")


def _named(state: State, visible: Visible, item: tuple[str, ManifestKey | None]) -> tuple[str, _Named]:
    uri, key = item
    if key is None or not key.id:
        return uri, _Named()
    [found] = accounts(state, Scope(keys=[key]))
    commit = found.commit
    if commit is None:  # reported as a separate discrepancy
        return uri, _Named(is_allowed=found.fault is not None)
    file = next((each for each in commit.outputs if each.final == uri), None)
    # Until a rebuild is done, the table has the files of the previous generation, or those of this one.
    is_allowed = commit.generation > 1 and not found.is_done
    is_needed = file is not None and found.is_done and visible.deletion("rows", commit.key, commit.generation) is None
    return uri, _Named(commit, file, is_needed, is_allowed)


def _why_missing(state: State, commit: Commit) -> str:
    with suppress(RecordUnreadable):
        held = RefusedBatches(state).held(commit.key, commit.generation)
        if held is not None:
            return held_words(held.reason)
    return "the table does not have the file"


def unlisted(state: State, table: ListedTable, commit: Commit) -> bool | Discrepancy:
    """Whether a commit that was not done when it was read still waits for the table; a discrepancy if it is held back.

    It does not wait once it is done or was rebuilt.
    """
    expected = f"its files in table {table.name}"
    try:
        held = RefusedBatches(state).held(commit.key, commit.generation)
    except RecordUnreadable as exc:
        return Discrepancy(commit.manifest_id, state.layout.held(commit.key, commit.generation), expected, str(exc))
    if state.ledger.is_superseded(commit.key, commit.generation):
        return False
    if held is not None:
        return Discrepancy(commit.manifest_id, table.name, expected, held_words(held.reason))
    return not state.ledger.is_done(commit.key, commit.generation)


_TO_UNDO = "`compactor table merge --undo` restores its parts"
_TO_REBUILD = "`compactor rebuild` rebuilds the rows of its manifests"


def merged_faults(state: State, table: str, live: LiveFile, *, deep: bool) -> Iterator[Discrepancy]:
    """The faults of a table file if it is a merged one.

    Args:
        state: Source of the files and the merge records.
        table: The name of the table.
        live: The file.
        deep: Whether to compare its rows with those of the merged files' originals.
    """
    merged = live.merged
    if merged is None:
        return
    expected = rows_and_bytes(merged.rows, merged.size_bytes)
    if live.differs:
        found = f"in table {table}: {rows_and_bytes(live.file.records, live.file.size_bytes)}"
        yield Discrepancy("", merged.uri, expected, found)
    may_be_gone = is_released(state, merged.date, merged.uri)
    try:
        facts = parquet_facts(state.store, merged.uri)
        if (facts.rows, facts.size_bytes) != (merged.rows, merged.size_bytes):
            yield Discrepancy("", merged.uri, expected, rows_and_bytes(facts.rows, facts.size_bytes))
        elif deep and (difference := first_difference(state.store, merged, may_lack_parts=may_be_gone)):
            yield Discrepancy("", merged.uri, "the rows of the files that were merged", difference)
    except (StagingError, ObjectNotFound) as exc:
        yield Discrepancy("", merged.uri, f"a whole merged file; {_TO_REBUILD if may_be_gone else _TO_UNDO}", str(exc))


@dataclass(slots=True, kw_only=True)
class TableFiles:
    """One comparison of table files with the ledger, for one thread: of all, or of some dates or manifests."""

    state: State
    table: ListedTable
    dates: Collection[str] | None = None  # None for all
    keys: Collection[ManifestKey] | None = None  # None for all
    summed_dates: Collection[str] = ()  # dates whose files are only added up
    fresh: Collection[ManifestKey] = ()  # manifests of these dates whose files are still compared one by one
    reads_merged: bool = True  # whether to read the footers of merged files
    deep: bool = False  # whether to compare the rows of merged files with those of their originals
    head: TableHead | None = field(default=None, init=False)  # None if there was no table when it was read
    merged: list[LiveFile] = field(default_factory=list, init=False)  # the compared files that are merged
    uris: defaultdict[How, set[str]] = field(default_factory=lambda: defaultdict(set), init=False)  # what differs
    failure: CompactorError | None = field(default=None, init=False)  # why the table could not be compared
    summed: tuple[int, int] = field(default=(0, 0), init=False)  # files and rows that were only added up
    _read: VerifiedTable = field(init=False)
    _live: dict[str, TableFile] = field(default_factory=dict, init=False)
    _missing: dict[str, ManifestKey] = field(default_factory=dict, init=False)
    _faults: list[Discrepancy] = field(default_factory=list, init=False)
    _open: list[Commit] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Read the table, before anything in the ledger is read."""
        self._read = VerifiedTable(self.table.name)
        try:
            self._read_table()
        except CompactorError as exc:
            self.failure = exc

    def note(self, account: Account) -> None:
        """Compare the files of one manifest with the table."""
        commit = account.commit
        if commit is None or commit.key != account.key:
            return  # reported as a separate discrepancy
        if not account.is_done and needs_table(commit):
            self._open.append(commit)
        for file in commit.outputs:
            live = self._live.pop(file.final, None)
            if live is not None:
                self._note_differing(commit, file, live)
            elif account.is_done:
                self._missing[file.final] = account.key

    def result(self) -> VerifyResult:
        """The table and its discrepancies. Call it once, after all manifests were noted."""
        if self.failure is None:
            try:
                self._check_again()
            except CompactorError as exc:
                self.failure = exc
        found = replace(self._read, error=described(self.failure) if self.failure is not None else "")
        now = list(map_ordered(partial(unlisted, self.state, self.table), self._open))
        held = [each for each in now if isinstance(each, Discrepancy)]  # a discrepancy at any age
        self._faults += held
        waits = (commit for commit, is_waiting in zip(self._open, now, strict=True) if is_waiting is True)
        waiting = sorted(waits, key=lambda each: each.decided_at)
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
        self.head = head = catalog.head()
        if head is None:
            return
        owner = self.state.layout.table_owner
        if head.owner != owner:
            self._fault("", self.table.name, f"a table of {owner}", f"a table of {head.owner}")
        listed = catalog.live_files(head.snapshot_id) if head.snapshot_id is not None else ()
        files = rows = 0
        for each in looked_up(self.state, listed):
            committed = [file for file in each.committed if self._is_in_scope(file)]
            if committed:
                files += 1
                rows += each.file.records
                self.merged += [each] if each.merged is not None else []
            for file in committed:
                self._note_live(file)
        self._read = VerifiedTable(self.table.name, files, rows, head.fence, head.snapshot_id)
        check = partial(merged_faults, self.state, self.table.name, deep=self.deep)
        for faults in map_ordered(lambda each: list(check(each)), self.merged if self.reads_merged else ()):
            self._faults += faults

    def _is_in_scope(self, file: TableFile) -> bool:
        owner = self.state.layout.output_owner(file.uri)
        if self.keys is not None:
            return owner in self.keys
        return self.dates is None or file.date in self.dates or (owner is not None and owner.date in self.dates)

    def _note_live(self, file: TableFile) -> None:
        owner = self.state.layout.output_owner(file.uri)
        if owner and owner.id and owner.date in self.summed_dates and owner not in self.fresh:
            self.summed = (self.summed[0] + 1, self.summed[1] + file.records)
        elif file.uri in self._live:
            self.uris["doubled"].add(file.uri)
            self._fault("", file.uri, f"once in table {self.table.name}", "more than once")
        else:
            self._live[file.uri] = file

    def _check_again(self) -> None:
        """Check again for files that seem to be missing or surplus.

        The ledger is read first: manifests that are done by then are in the table that is read afterwards.
        """
        doubtful = {uri: self.state.layout.output_owner(uri) for uri in self._live} | self._missing
        if not doubtful:
            return
        named = dict(map_ordered(partial(_named, self.state, Visible(self.state)), doubtful.items()))
        catalog, name = self.table.catalog(), self.table.name
        head = catalog.head()
        if head is None:
            self.uris["missing"] = {uri for uri, each in named.items() if each.is_needed}
            if needed := len(self.uris["missing"]):
                self._fault("", name, f"a table with {count(needed, 'file')}", "no such table")
            return
        listed = catalog.live_files(head.snapshot_id) if head.snapshot_id is not None else ()
        live = {file.uri: file for file in committed_files(self.state, listed) if file.uri in named}
        for uri, (commit, file, is_needed, is_allowed) in named.items():
            if commit is not None and file is not None:
                if uri in live:
                    self._note_differing(commit, file, live[uri])
                elif is_needed and not self.state.ledger.is_superseded(commit.key, commit.generation):
                    self.uris["missing"].add(uri)
                    expected = f"{count(file.rows, 'row')} in table {name}"
                    self._fault(commit.manifest_id, uri, expected, _why_missing(self.state, commit))
            elif uri in live and not is_allowed:
                self.uris["surplus"].add(uri)
                found = f"{count(live[uri].records, 'row')} in table {name}"
                manifest_id = commit.manifest_id if commit is not None else ""
                self._fault(manifest_id, uri, "no such file in the table: no commit names it", found)

    def _note_differing(self, commit: Commit, file: StagedFile, live: TableFile) -> None:
        if found := list(differing(self.table, commit, file, live)):
            self.uris["differing"].add(file.final)
            self._faults += found

    def _fault(self, manifest_id: str, where: str, expected: str, found: str) -> None:
        self._faults.append(Discrepancy(manifest_id, where, expected, found))
