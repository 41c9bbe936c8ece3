"""Compares the output's table with the ledger, and rebuilds a lost table from the ledger alone."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from compactor.core.documents.changes import Commit
from compactor.core.documents.table_records import HeldManifest
from compactor.core.errors import OperatorError, StuckError, TableHeldBack
from compactor.core.results import as_document
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.state import State
from compactor.ledger.table.progress import note_working
from compactor.ops.verify.table_files import TableFiles
from compactor.table.committer import Committer, Progress
from compactor.table.named import UNTOLD, Published, needs_table
from compactor.table.standing import ListedTable
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event


@dataclass(frozen=True, slots=True)
class StuckManifest:
    """A manifest that `repair` could not add to the table."""

    manifest_id: str
    date: str  # its date, as YYYY-MM-DD
    generation: int  # 1, or the number of its rebuild plus 1
    why: str  # what needs fixing


@as_document(shows=("needs_operator",))
@dataclass(frozen=True, slots=True)
class TableReport:
    """The table, and each file that differs from the ledger."""

    table: str  # its name
    recorded_batch: int = 0  # the last batch on record
    held: tuple[HeldManifest, ...] = ()  # manifests missing from the table because the catalog refuses them
    missing: tuple[str, ...] = ()  # missing files of finished manifests
    exists: bool = False  # whether it exists
    snapshot_id: int | None = None  # its current snapshot; null without one
    last_batch: int = 0  # its last batch
    schema_version: int = 0  # the schema version with its columns
    files: int = 0  # number of its files
    rows: int = 0  # number of their rows
    merged: int = 0  # number of files with the rows of several commit files
    surplus: tuple[str, ...] = ()  # files that belong to no valid commit
    doubled: tuple[str, ...] = ()  # files listed more than once
    differing: tuple[str, ...] = ()  # files whose rows or length differ from the records
    applied: int = 0  # batches on record that `repair` applied
    adopted: int = 0  # manifests that `repair` added: they were in no batch, or held back
    stuck: tuple[StuckManifest, ...] = ()  # manifests that `repair` could not add, except those held back

    @property
    def differs(self) -> bool:
        """Whether the table's files differ from the ledger's."""
        return not self.exists or bool(self.missing or self.surplus or self.doubled or self.differing)

    @property
    def needs_operator(self) -> bool:
        """Whether the table differs, or manifests are held back or stuck: the exit code is 3."""
        return self.differs or bool(self.held or self.stuck)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKeeper:
    """Compares the table with the ledger, and rebuilds it. Safe while jobs run, except for rebuilding a lost table.

    Attributes:
        committer: Commits batches, also those that a lost table had.
        living: Returns the ids of the runs that are alive.
    """

    state: State
    committer: Committer
    table: ListedTable
    living: Callable[[], Collection[str]] = tuple

    def compare(self) -> TableReport:
        """Compare the live files with those of all finished manifests. Holds all file names in memory."""
        batches = self.committer.batches
        recorded = batches.recorded()
        held = tuple(each for each in batches.refused.all_held() if batches.refused.is_due(each))
        compared = TableFiles(state=self.state, table=self.table, reads_merged=False)
        for account in self.state.meter.each("manifest", accounts(self.state, Scope())):
            compared.note(account)
        found = compared.result().table
        if compared.failure is not None:
            raise compared.failure
        uris = compared.uris
        uris["differing"] |= {each.file.uri for each in compared.merged if each.differs}
        different: Any = {how: tuple(sorted(those)) for how, those in uris.items()}
        if (head := compared.head) is None or found is None:
            return TableReport(self.table.name, recorded, held, **different)
        return TableReport(
            self.table.name,
            recorded,
            held,
            exists=True,
            snapshot_id=head.snapshot_id,
            last_batch=head.fence,
            schema_version=head.schema_version,
            files=found.files,
            rows=found.rows,
            merged=len(compared.merged),
            **different,
        )

    def repair(self) -> TableReport:
        """Apply all recorded batches that the table lacks, then add manifests that are done or were held back.

        Raises:
            TryAgainError: The catalog or the store does not respond; another call continues.
            OperatorError: An operator must act.
        """
        self._check_alone()
        with self.state.meter.work("manifest"):
            applied, adopted, stuck = self._applied()
        report = replace(self.compare(), applied=applied, adopted=adopted, stuck=tuple(_stuck_manifests(stuck)))
        if applied or adopted:
            note_working(self.state)
        return report

    def _applied(self) -> tuple[int, int, dict[Published, StuckError]]:
        """Commit what the table lacks; returns the number of batches, that of manifests, and the rest."""
        applied = adopted = 0
        stuck = dict[Published, StuckError]()
        released = self._released()
        while (progress := self._committed(())).applied or progress.refused:
            if progress.applied is not None:
                applied += 1
                self.state.meter.add("manifest", progress.applied.manifests)
        left_out = chain(self._done(), released)
        while left := list(islice(left_out, self.committer.max_manifests)):
            while left:
                progress = self._committed(left)
                stuck |= progress.stuck
                gone = {*progress.visible, *progress.superseded, *progress.stuck}
                if progress.applied is not None:
                    self.state.meter.add("manifest", progress.applied.manifests)
                    adopted += progress.applied.manifests
                elif progress.refused is None and gone.isdisjoint(left):
                    break  # the rest cannot be committed
                left = [each for each in left if each not in gone]
        return applied, adopted, stuck

    def _committed(self, published: Iterable[Published]) -> Progress:
        """Commit the next batch; log the reason if the table skips it for the first time."""
        progress = self.committer.commit(published)
        if (refused := progress.refused) is not None and str(refused.error) != UNTOLD:
            log_event("table.refused", batch=refused.number, manifests=refused.manifests, error=refused.error)
        return progress

    def _check_alone(self) -> None:
        """Refuse to rebuild a lost table while a job runs: the job remembers batches of the lost table."""
        # The records before the table, which may take batches meanwhile. A complete table may lack only the last one.
        batches = self.committer.batches
        recorded, finished, head = batches.recorded(), batches.finished(), self.committer.catalog.head()
        fence, taken = (0, recorded) if head is None else (head.fence, max(finished, recorded - 1))
        if taken > fence and (alive := sorted(self.living())):
            raise OperatorError(
                f"table {self.table.name}: it was dropped or restored, and {', '.join(alive)} may still commit to it "
                "-> expected no job while the table is recreated: run `compactor stop`, and start the job afterwards"
            )

    def _released(self) -> list[Published]:
        """Release held-back manifests; return those that are not done, which a job would commit only later."""
        released = list[Published]()
        for held in list(self.committer.batches.refused.all_held()):
            is_done = self.state.ledger.is_done(held.key, held.generation)
            if is_done or self.committer.batches.refused.is_due(held):
                self.committer.batches.refused.release(held)
                released += [] if is_done else [Published(held.key, held.generation)]
        return released

    def _is_expired(self, commit: Commit) -> bool:
        return self.committer.changes.is_expired(commit.key, commit.generation)

    def _done(self) -> Iterator[Published]:
        """The done manifests with rows to list. `verify` reports unreadable ones."""
        for found in accounts(self.state, Scope(keys=self.state.ledger.manifests())):
            commit = found.commit if found.fault is None and found.is_done else None
            if commit is not None and needs_table(commit) and not self._is_expired(commit):
                yield Published(commit.key, commit.generation)


def _stuck_manifests(stuck: Mapping[Published, StuckError]) -> Iterator[StuckManifest]:
    """Log which manifests are stuck; yield those not already reported as held back."""
    for each, error in stuck.items():
        log_event("manifest.stuck", manifest_id=each.key.id, error=error)
        if not isinstance(error, TableHeldBack):
            yield StuckManifest(each.key.id, each.key.date, each.generation, described(error))
