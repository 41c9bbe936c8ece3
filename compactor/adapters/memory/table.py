"""A catalog with one table in memory. It refuses what a real one refuses, and answers as badly as it is told to."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from compactor.core.errors import OperatorError, StoreUnavailable, TableCommitUnknown, TableConflict, TableRefused
from compactor.schema.schema import SchemaVersion
from compactor.table.catalog import TableChange, TableFile, TableHead


class Answer(Enum):
    """How the catalog answers a change."""

    WELL = "well"
    LOST = "lost"  # the change is made, and the answer is lost, or is a 503
    UNAVAILABLE = "unavailable"  # the answer is a 503, and nothing is changed
    LATE = "late"  # no answer; the change is made by the next call of `land`, if nothing has changed by then


@dataclass(frozen=True, slots=True)
class _Table:
    """All that a commit replaces in one step."""

    head: TableHead
    files: dict[int, tuple[TableFile, ...]]  # of each snapshot that is not expired
    batches: dict[int, int] = field(default_factory=dict)  # the snapshot that took each batch


@dataclass(slots=True)
class MemoryTable:
    """One table. Thread-safe.

    Attributes:
        answers: Called for each change, tells how it is answered.
        is_down: Whether no call is answered.
        exists: Tells whether there is a file to be added, whose footer a real catalog's client reads.
        on_change: Called with the live files after each change of the table.
    """

    answers: Callable[[], Answer] = lambda: Answer.WELL
    is_down: bool = False
    exists: Callable[[str], bool] = lambda _: True
    on_change: Callable[[tuple[TableFile, ...]], None] = lambda _: None
    commits: int = 0
    _table: _Table | None = None
    _made: int = 0
    _late: list[tuple[TableHead, TableChange]] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def head(self) -> TableHead | None:
        self._check_up()
        return self._table.head if self._table else None

    def create(self, owner: str, schema: SchemaVersion) -> TableHead:
        self._check_up()
        with self._lock:
            if self._table is None:
                self._made += 1
                self._table = _Table(TableHead(owner, f"table-{self._made}", None, 0, schema.version), {})
            return self._table.head

    def commit(self, head: TableHead, change: TableChange) -> int:
        self._check_up()
        if missing := [file.uri for file in change.added if not self.exists(file.uri)]:
            raise TableRefused(f"{missing[0]} is not there; expected the files of the change")
        answer = self.answers()
        if answer is Answer.UNAVAILABLE:
            raise TableCommitUnknown("the catalog answered 503")
        if answer is Answer.LATE:
            self._late.append((head, change))
            raise TableCommitUnknown("the catalog did not answer")
        snapshot_id = self._change(head, change)
        if answer is Answer.LOST:
            raise TableCommitUnknown("the answer of the catalog was lost")
        return snapshot_id

    def snapshot_of(self, batch: int) -> int | None:
        self._check_up()
        found = self._table.batches.get(batch) if self._table else None
        return found if self._table and found in self._table.files else None

    def live_files(self, snapshot_id: int | None = None) -> Iterator[TableFile]:
        self._check_up()
        table = self._table
        wanted = table.head.snapshot_id if table and snapshot_id is None else snapshot_id
        if table is None or (wanted is not None and wanted not in table.files):
            raise OperatorError(f"the table has no snapshot {wanted}")
        return iter(table.files[wanted] if wanted is not None else ())

    def land(self) -> bool:
        """Make the first of the changes that are late; return whether it was made."""
        if not self._late:
            return False
        head, change = self._late.pop(0)
        try:
            self._change(head, change)
        except (TableConflict, OperatorError):
            return False
        return True

    def rewrite(self, rename: Callable[[TableFile], TableFile] = lambda file: file) -> None:
        """Commit a snapshot as another program does that compacts files: by default with the same files."""
        with self._lock:
            table = self._existing()
            self._replace(table.head, tuple(rename(file) for file in self._live(table)))

    def expire(self) -> None:
        """Forget all snapshots but the current one."""
        with self._lock:
            table = self._existing()
            kept = {number: files for number, files in table.files.items() if number == table.head.snapshot_id}
            self._table = _Table(table.head, kept, table.batches)

    def drop(self) -> None:
        """Lose the table."""
        self._table = None

    def _change(self, head: TableHead, change: TableChange) -> int:
        with self._lock:
            table = self._table
            now = table.head if table else None
            if table is None or now is None or (now.table_id, now.snapshot_id) != (head.table_id, head.snapshot_id):
                raise TableConflict("the table is no longer at the snapshot that the change was made for")
            removed = set(change.removed)
            files = tuple(file for file in self._live(table) if file.uri not in removed) + change.added
            version = change.schema.version if change.schema else now.schema_version
            refused = change.batch if change.is_refused else now.refused
            batches = {**table.batches, change.batch: self.commits + 1}
            head = replace(now, fence=change.batch, schema_version=version, refused=refused)
            return self._replace(head, files, batches)

    def _replace(self, head: TableHead, files: tuple[TableFile, ...], batches: Mapping[int, int] | None = None) -> int:
        table = self._existing()
        self.commits += 1
        live = {**table.files, self.commits: files}
        self._table = _Table(replace(head, snapshot_id=self.commits), live, dict(batches or table.batches))
        self.on_change(files)
        return self.commits

    def _existing(self) -> _Table:
        if self._table is None:
            raise OperatorError("there is no table")
        return self._table

    def _live(self, table: _Table) -> tuple[TableFile, ...]:
        return table.files[table.head.snapshot_id] if table.head.snapshot_id is not None else ()

    def _check_up(self) -> None:
        if self.is_down:
            raise StoreUnavailable("the catalog does not answer")
