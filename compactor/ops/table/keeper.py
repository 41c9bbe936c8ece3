"""Compares the output table with the ledger, and makes a lost table again from the ledger alone."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple

from compactor.core.documents.changes import Commit
from compactor.core.documents.table_records import HeldManifest
from compactor.core.errors import OperatorError, StuckError, TableHeldBack
from compactor.core.layout import ManifestKey
from compactor.core.results import as_document
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.state import State
from compactor.ledger.table.progress import note_working
from compactor.table.catalog import TableFile
from compactor.table.committer import Committer, Progress
from compactor.table.named import UNTOLD, Placed, needs_table
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event


@dataclass(frozen=True, slots=True)
class StuckManifest:
    """A manifest that `rebuild` could not add to the table."""

    manifest_id: str
    date: str  # its date, as YYYY-MM-DD
    generation: int  # 1, or which rebuild of it
    why: str  # what a person must fix


@as_document(shows=("needs_operator",))
@dataclass(frozen=True, slots=True)
class TableReport:
    """The table, and each file in which it differs from the ledger."""

    table: str  # its name
    recorded_batch: int = 0  # the last batch on record
    held: tuple[HeldManifest, ...] = ()  # manifests that the table lacks because the catalog refuses them
    missing: tuple[str, ...] = ()  # files of manifests that are done and that it lacks
    exists: bool = False  # whether there is one
    snapshot_id: int | None = None  # its current snapshot; null without one
    last_batch: int = 0  # the last batch that it took
    schema_version: int = 0  # the schema version whose columns it has
    files: int = 0  # how many files it has
    rows: int = 0  # how many rows these have
    merged: int = 0  # how many files have the rows of several files of commits
    surplus: tuple[str, ...] = ()  # files of no valid commit
    doubled: tuple[str, ...] = ()  # files that it lists more than once
    differing: tuple[str, ...] = ()  # files whose rows or length differ from the records
    applied: int = 0  # batches on record that `rebuild` applied
    adopted: int = 0  # manifests that `rebuild` added: they were in no batch, or held back
    stuck: tuple[StuckManifest, ...] = ()  # manifests that `rebuild` could not add, except those held back

    @property
    def differs(self) -> bool:
        """Whether the table has other files than the ledger."""
        return not self.exists or bool(self.missing or self.surplus or self.doubled or self.differing)

    @property
    def needs_operator(self) -> bool:
        """Whether the table differs, or manifests are held back or stuck: the exit code is 3."""
        return self.differs or bool(self.held or self.stuck)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKeeper:
    """Compares the table with the ledger, and makes it again. Safe beside jobs, except for making a lost table again.

    Attributes:
        committer: Commits batches, also those that a lost table had.
        living: Returns the ids of the runs that are alive.
    """

    state: State
    committer: Committer
    name: str
    living: Callable[[], Collection[str]] = tuple

    def compare(self) -> TableReport:
        """Compare the live files with those of all manifests that are done. Holds all file names in memory."""
        catalog, batches = self.committer.catalog, self.committer.batches
        recorded = batches.recorded()
        # The ledger before the table: what is done meanwhile is in the table, and not expected yet.
        expected, open_files = self._expected()
        held = tuple(each for each in batches.refused.all_held() if batches.refused.is_due(each))
        head = catalog.head()
        if head is None:
            return TableReport(self.name, recorded, held, tuple(sorted(expected.keys() - open_files)))
        found = list(self.committer.live(head))
        live = [file for each in found for file in each.committed]
        times = Counter(file.uri for file in live)
        missing = expected.keys() - open_files - times.keys()
        differing = {file.uri for file in live if file.uri in expected and not expected[file.uri].is_as(file)}
        still = self._still(missing | differing, expected)
        differing = (differing & still) | {each.file.uri for each in found if each.differs}
        return TableReport(
            self.name,
            recorded,
            held,
            tuple(sorted(missing & still)),
            exists=True,
            snapshot_id=head.snapshot_id,
            last_batch=head.fence,
            schema_version=head.schema_version,
            files=len(found),
            rows=sum(each.file.records for each in found),
            merged=sum(each.merged is not None for each in found),
            surplus=tuple(sorted(self._surplus(times.keys() - expected.keys() - open_files))),
            doubled=tuple(sorted(uri for uri, many in times.items() if many > 1)),
            differing=tuple(sorted(differing)),
        )

    def _expected(self) -> tuple[dict[str, "_Expected"], set[str]]:
        """The files of the valid commits, and those of open manifests, which the table may have or not."""
        expected, open_files = dict[str, _Expected](), set[str]()
        meter, keys = self.state.meter, self.state.ledger.manifests()
        for found, commit in meter.each("manifest", self._committed_accounts(keys)):
            key = commit.key
            for file in () if self._is_retired(commit) else commit.outputs:
                expected[file.final] = _Expected(key, commit.generation, file.rows, file.size_bytes)
                if not found.is_done:
                    open_files.add(file.final)
            if commit.generation > 1 and not found.is_done:
                open_files.update(self.committer.changes.replaced(key, commit.generation))
        return expected, open_files

    def rebuild(self) -> TableReport:
        """Apply all recorded batches that the table lacks, then add manifests that are done or were held back.

        Raises:
            TryAgainError: The catalog or the store does not answer now; another call goes on.
            OperatorError: A person must act.
        """
        self._check_alone()
        with self.state.meter.work("manifest"):
            applied, adopted, stuck = self._applied()
        report = replace(self.compare(), applied=applied, adopted=adopted, stuck=tuple(_told(stuck)))
        if applied or adopted:
            note_working(self.state)
        return report

    def _applied(self) -> tuple[int, int, dict[Placed, StuckError]]:
        """Commit what the table lacks; returns the number of batches, that of manifests, and the rest."""
        applied = adopted = 0
        stuck = dict[Placed, StuckError]()
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

    def _committed(self, placed: Iterable[Placed]) -> Progress:
        """Commit the next batch; log why, if the table newly passes over it."""
        progress = self.committer.commit(placed)
        if (refused := progress.refused) is not None and str(refused.error) != UNTOLD:
            log_event("table.refused", batch=refused.number, manifests=refused.manifests, error=refused.error)
        return progress

    def _check_alone(self) -> None:
        """Refuse to make a lost table again beside a job: it remembers batches that the lost table had."""
        # The records before the table, which may take batches meanwhile. A whole table may lack only the last one.
        batches = self.committer.batches
        recorded, finished, head = batches.recorded(), batches.finished(), self.committer.catalog.head()
        fence, taken = (0, recorded) if head is None else (head.fence, max(finished, recorded - 1))
        if taken > fence and (alive := sorted(self.living())):
            raise OperatorError(
                f"table {self.name}: it was dropped or restored, and {', '.join(alive)} may still commit to it -> "
                "expected no job while the table is made again: `compactor stop`, then start the job again afterwards"
            )

    def _released(self) -> list[Placed]:
        """Release what is held back; return the manifests that are not done, which a job would commit only later."""
        released = list[Placed]()
        for held in list(self.committer.batches.refused.all_held()):
            is_done = self.state.ledger.is_done(held.key, held.generation)
            if is_done or self.committer.batches.refused.is_due(held):
                self.committer.batches.refused.release(held)
                released += [] if is_done else [Placed(held.key, held.generation)]
        return released

    def _is_retired(self, commit: Commit) -> bool:
        return self.committer.changes.is_retired(commit.key, commit.generation)

    def _still(self, uris: set[str], expected: Mapping[str, "_Expected"]) -> set[str]:
        """The files whose commit is still valid: not rebuilt since the ledger was read."""
        found = self._committed_accounts(dict.fromkeys(expected[uri].key for uri in uris))
        now = {(each.key, each.generation) for _, each in found if not self._is_retired(each)}
        return {uri for uri in uris if (expected[uri].key, expected[uri].generation) in now}

    def _surplus(self, uris: set[str]) -> set[str]:
        """The files that belong to no manifest, not even one that was decided since the ledger was read."""
        owners = filter(None, map(self.state.layout.output_owner, uris))
        found = self._committed_accounts(dict.fromkeys(key for key in owners if key.id))
        return uris - {file.final for _, commit in found for file in commit.outputs}

    def _done(self) -> Iterator[Placed]:
        for found, commit in self._committed_accounts(self.state.ledger.manifests()):
            if found.is_done and needs_table(commit) and not self._is_retired(commit):
                yield Placed(commit.key, commit.generation)

    def _committed_accounts(self, keys: Iterable[ManifestKey]) -> Iterator[tuple[Account, Commit]]:
        """The committed ones among some manifests. `verify` reports those that cannot be read."""
        for each in accounts(self.state, Scope(keys=keys)):
            if each.fault is None and each.commit is not None:
                yield each, each.commit


class _Expected(NamedTuple):
    """A file of a valid commit."""

    key: ManifestKey
    generation: int
    rows: int
    size_bytes: int

    def is_as(self, file: TableFile) -> bool:
        """Whether the table has it with the same rows and length."""
        return (file.records, file.size_bytes) == (self.rows, self.size_bytes)


def _told(stuck: Mapping[Placed, StuckError]) -> Iterator[StuckManifest]:
    """Log which manifests are stuck; yield those that the report does not already have as held back."""
    for each, error in stuck.items():
        log_event("manifest.stuck", manifest_id=each.key.id, error=error)
        if not isinstance(error, TableHeldBack):
            yield StuckManifest(each.key.id, each.key.date, each.generation, described(error))
