"""Compares the files that the table lists with those that the ledger names, while the ledger is verified.

The table is read first, and what differs is looked up once more in both at the end: what a job commits or rebuilds
meanwhile is no discrepancy. Holds the names of the files that are compared one by one in memory.
"""

from dataclasses import dataclass, field
from functools import partial

from compactor.core.documents.records import Commit, DeadLetter
from compactor.core.errors import CompactorError
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.text.formatting import shown_seconds
from compactor.ledger.state import State
from compactor.ledger.table.merges import Merges
from compactor.ops.verify.report import Discrepancy, VerifyReport
from compactor.ops.verify.table.doubts import differing, still_differing
from compactor.ops.verify.table.held import unlisted
from compactor.ops.verify.table.merged import merged_faults
from compactor.ops.verify.table.scope import TableScope
from compactor.ops.verify.verified_table import VerifiedTable
from compactor.table.catalog import TableFile
from compactor.table.listed import ListedTable, waiting_words
from compactor.table.named import needs_table
from compactor.table.unmerged import LiveFile, looked_up
from compactor.telemetry.error_text import described


@dataclass(slots=True, kw_only=True)
class TableFiles:
    """One comparison of the table with the ledger. One thread may use it.

    Attributes:
        state: Has the ledger.
        table: The table.
        scope: The files to compare.
        deep: Whether the rows of merged files are compared with those of the files that were merged.
        summed_files: How many files the table has of the dates that only count in sums.
        summed_rows: How many rows these have.
    """

    state: State
    table: ListedTable
    scope: TableScope
    deep: bool = False
    found: VerifiedTable = field(init=False)
    summed_files: int = field(default=0, init=False)
    summed_rows: int = field(default=0, init=False)
    _live: dict[str, TableFile] = field(default_factory=dict, init=False)
    _missing: dict[str, ManifestKey] = field(default_factory=dict, init=False)
    _faults: list[Discrepancy] = field(default_factory=list, init=False)
    _open: list[Commit] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Read the table, before anything is read of the ledger."""
        self.found = VerifiedTable(self.table.name)
        try:
            self._read()
        except CompactorError as exc:
            self.found.error = described(exc)

    def note(self, key: ManifestKey, outcome: Commit | DeadLetter, *, is_done: bool) -> None:
        """Compare the files of one manifest with the table."""
        if not isinstance(outcome, Commit) or outcome.key != key:
            return  # an outcome in the wrong place is a discrepancy by itself
        if not is_done and needs_table(outcome):
            self._open.append(outcome)
        for file in outcome.outputs:
            live = self._live.pop(file.final, None)
            if live is not None:
                self._faults += differing(self.table, outcome, file, live)
            elif is_done:
                self._missing[file.final] = key

    def add_to(self, report: VerifyReport) -> None:
        """Add the table and its discrepancies, after all manifests were noted."""
        found = report.table = self.found
        if not found.error:
            try:
                self._look_again()
            except CompactorError as exc:
                found.error = described(exc)
        waiting = self._waiting()
        if (first := min(waiting, key=lambda each: each.decided_at, default=None)) is not None:
            found.waiting_seconds = (self.state.clock.now() - first.decided_at).total_seconds()
            if found.waiting_seconds > self.table.late_seconds:
                expected = f"no manifest waits for it for longer than {shown_seconds(self.table.late_seconds)}"
                words = waiting_words(found.waiting, found.waiting_seconds)
                self._fault(first.manifest_id, self.table.name, expected, words)
        report.discrepancies += [each for each in self._faults if each not in report.discrepancies]

    def _read(self) -> None:
        catalog = self.table.catalog()
        head = catalog.head()
        if head is None:
            return
        self.found.last_batch, self.found.snapshot_id = head.fence, head.snapshot_id
        owner = self.state.layout.table_owner
        if head.owner != owner:
            self._fault("", self.table.name, f"a table of {owner}", f"a table of {head.owner}")
        merges = Merges(self.state.store, self.state.layout)
        listed = catalog.live_files(head.snapshot_id) if head.snapshot_id is not None else ()
        merged = list[LiveFile]()
        for each in looked_up(merges, listed):
            committed = [file for file in each.committed if self.scope.has(self.state.layout, file)]
            if committed:
                self.found.files += 1
                self.found.rows += each.file.records
                merged += [each] if each.merged is not None else []
            for file in committed:
                self._note_live(file)
        check = partial(merged_faults, self.state, self.table.name, deep=self.deep)
        for faults in map_ordered(check, merged):
            self._faults += faults

    def _note_live(self, file: TableFile) -> None:
        if self.scope.is_summed(self.state.layout, file):
            self.summed_files += 1
            self.summed_rows += file.records
        elif file.uri in self._live:
            self._fault("", file.uri, f"once in table {self.table.name}", "more than once")
        else:
            self._live[file.uri] = file

    def _waiting(self) -> list[Commit]:
        """Count what waits for the table and what is held back from it, which is a discrepancy at any age."""
        open_now = list(map_ordered(partial(unlisted, self.state, self.table), self._open))
        faults = [each.fault for each in open_now if each.fault is not None]
        self._faults += faults
        waiting = [each.commit for each in open_now if each.waits]
        self.found.waiting, self.found.held = len(waiting), len(faults)
        return waiting

    def _look_again(self) -> None:
        """Add what of the files that seem to be missing or surplus still is."""
        owner_of = self.state.layout.output_owner
        doubtful = {uri: owner_of(uri) for uri in self._live} | self._missing
        self._faults += still_differing(self.state, self.table, doubtful)

    def _fault(self, manifest_id: str, where: str, expected: str, found: str) -> None:
        self._faults.append(Discrepancy(manifest_id, where, expected, found))
