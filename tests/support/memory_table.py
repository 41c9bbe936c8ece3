"""A catalog with one table in memory. It refuses what a real one refuses, and fails on demand."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from functools import partial

from compactor.core.errors import OperatorError, StoreUnavailable, TableCommitUnknown, TableConflict, TableRefused
from compactor.schema.schema import SchemaVersion
from compactor.table.catalog import TableChange, TableFile, TableHead
from compactor.table.upkeep import MetadataFile, TableFolder, TableHistory, TableRef, TableSnapshot

_MANIFEST_BYTES = 1000
_TARGET_BYTES = 100 * _MANIFEST_BYTES


class Answer(Enum):
    """How the catalog responds to a change."""

    WELL = "well"
    LOST = "lost"  # the change is made, but the response is lost, or is a 503
    UNAVAILABLE = "unavailable"  # the response is a 503, and nothing is changed
    LATE = "late"  # no response; the change is made by the next call of `land`, if nothing has changed by then


@dataclass(frozen=True, slots=True)
class _Table:
    """The state that a commit replaces in one step."""

    head: TableHead
    files: dict[int, tuple[TableFile, ...]]  # of each unexpired snapshot
    batches: dict[int, int] = field(default_factory=dict)  # the snapshot that took each batch
    metadata: dict[int, "_Metadata"] = field(default_factory=dict)  # likewise of each snapshot


@dataclass(frozen=True, slots=True)
class _Metadata:
    """A snapshot's metadata."""

    parent_id: int | None
    made_at: datetime
    listed_in: str
    manifests: tuple[str, ...]


@dataclass(slots=True)
class MemoryTable:
    """One table. Thread-safe.

    Attributes:
        answers: Called for each change; returns the response.
        exists: Whether a file to be added exists, as a real catalog's client sees from its footer.
        on_change: Called with the live files after each change to the table.
        now: The time for snapshots and metadata files.
        written: The metadata files, with each one's time.
    """

    answers: Callable[[], Answer] = lambda: Answer.WELL
    is_down: bool = False
    exists: Callable[[str], bool] = lambda _: True
    on_change: Callable[[tuple[TableFile, ...]], None] = lambda _: None
    now: Callable[[], datetime] = lambda: datetime(2026, 1, 1, tzinfo=UTC)
    tags: set[int] = field(default_factory=set)
    written: dict[str, datetime] = field(default_factory=dict)
    commits: int = 0
    _table: _Table | None = None
    _made: int = 0
    _names: int = 0
    _late: list[Callable[[], int]] = field(default_factory=list)
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
            raise TableRefused(f"{missing[0]} does not exist; expected the files of the change")
        return self._answered(partial(self._change, head, change, self._written(head)))

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

    def files_below(self, folder: str) -> frozenset[str]:
        self._check_up()
        kept = self._table.files.values() if self._table else ()
        return frozenset(file.uri for files in kept for file in files if file.uri.startswith(folder))

    def history(self) -> tuple[TableHead, TableHistory] | None:
        self._check_up()
        if (table := self._table) is None:
            return None
        current = table.head.snapshot_id
        made = tuple(TableSnapshot(each, it.parent_id, it.made_at) for each, it in table.metadata.items())
        refs = (*map(TableRef, () if current is None else (current,)), *(TableRef(each, False) for each in self.tags))
        manifests = () if current is None else table.metadata[current].manifests
        lengths = (_MANIFEST_BYTES,) * len(manifests)
        return table.head, TableHistory(made, refs, lengths, _TARGET_BYTES)

    def expire(self, head: TableHead, snapshot_ids: Collection[int]) -> None:
        self._check_up()
        self._answered(partial(self._expire, head, set(snapshot_ids)))

    def merge_manifests(self, head: TableHead) -> int:
        self._check_up()
        return self._answered(partial(self._merge, head, self._written(head, is_merged=True)))

    def folder(self, without: Collection[int] = ()) -> TableFolder | None:
        self._check_up()
        with self._lock:
            if (table := self._table) is None:
                return None
            files = tuple(MetadataFile(name, _MANIFEST_BYTES, at) for name, at in self.written.items())
            kept = [it for each, it in table.metadata.items() if each not in without]
            named = {name for each in kept for name in (each.listed_in, *each.manifests)}
            current = None if table.head.snapshot_id is None else table.metadata[table.head.snapshot_id].made_at
            return TableFolder(files, frozenset(named), current)

    def remove(self, names: Iterable[str]) -> int:
        self._check_up()
        return sum(self.written.pop(name, None) is not None for name in names)

    def land(self) -> bool:
        """Make the first of the late changes; return whether it was made."""
        if not self._late:
            return False
        try:
            self._late.pop(0)()
        except (TableConflict, OperatorError):
            return False
        return True

    def rewrite(self, rename: Callable[[TableFile], TableFile] = lambda file: file) -> None:
        """Commit a snapshot like another program that compacts files; by default with the same files."""
        with self._lock:
            table = self._existing()
            self._replace(table.head, tuple(rename(file) for file in self._live(table)))

    def forget(self) -> None:
        """Remove all snapshots but the current one, like another program that expires them."""
        with self._lock:
            table = self._existing()
            self._forget({number for number in table.files if number != table.head.snapshot_id})

    def drop(self) -> None:
        """Lose the table."""
        self._table = None

    def _written(self, head: TableHead, *, is_merged: bool = False) -> _Metadata:
        """Write a change's metadata files, as a client does before it sends the change."""
        with self._lock:
            table = self._table
            known = table.metadata.get(head.snapshot_id or 0) if table else None
            self._names += 1
            number = self._names
            name = f"{number:08x}-0000-0000-0000-000000000000"
            added = f"{name}-m0.avro"
            manifests = (added,) if known is None or is_merged else (added, *known.manifests)
            made = _Metadata(head.snapshot_id, self.now(), f"snap-{number}-0-{name}.avro", manifests)
            self.written |= dict.fromkeys((made.listed_in, added), made.made_at)
            return made

    def _answered(self, change: Callable[[], int]) -> int:
        """Make a change, and respond as requested."""
        answer = self.answers()
        if answer is Answer.UNAVAILABLE:
            raise TableCommitUnknown("the catalog answered 503")
        if answer is Answer.LATE:
            self._late.append(change)
            raise TableCommitUnknown("the catalog did not respond")
        made = change()
        if answer is Answer.LOST:
            raise TableCommitUnknown("the catalog's response was lost")
        return made

    def _change(self, head: TableHead, change: TableChange, metadata: _Metadata) -> int:
        with self._lock:
            table, now = self._at(head)
            removed = set(change.removed)
            files = tuple(file for file in self._live(table) if file.uri not in removed) + change.added
            version = change.schema.version if change.schema else now.schema_version
            refused = change.batch if change.is_refused else now.refused
            batches = {**table.batches, change.batch: self.commits + 1}
            head = replace(now, fence=change.batch, schema_version=version, refused=refused)
            return self._replace(head, files, batches, metadata)

    def _expire(self, head: TableHead, gone: set[int]) -> int:
        with self._lock:
            self._at(head)
            self._forget(gone)
            return head.snapshot_id or 0

    def _merge(self, head: TableHead, metadata: _Metadata) -> int:
        with self._lock:
            table, now = self._at(head)
            return self._replace(now, self._live(table), metadata=metadata)

    def _forget(self, gone: Collection[int]) -> None:
        table = self._existing()
        files = {number: files for number, files in table.files.items() if number not in gone}
        kept = {
            number: replace(it, parent_id=None) if it.parent_id in gone else it
            for number, it in table.metadata.items()
            if number not in gone
        }
        self._table = _Table(table.head, files, table.batches, kept)

    def _at(self, head: TableHead) -> tuple[_Table, TableHead]:
        """The table and its current head, if its snapshot is the given head's."""
        table = self._table
        now = table.head if table else None
        if table is None or now is None or (now.table_id, now.snapshot_id) != (head.table_id, head.snapshot_id):
            raise TableConflict("the table has moved on from the snapshot that the change was made for")
        return table, now

    def _replace(
        self,
        head: TableHead,
        files: tuple[TableFile, ...],
        batches: Mapping[int, int] | None = None,
        metadata: _Metadata | None = None,
    ) -> int:
        table = self._existing()
        made = metadata or self._written(table.head)
        if lost := {made.listed_in, *made.manifests} - self.written.keys():
            raise AssertionError(f"a snapshot names removed files: {sorted(lost)}")
        self.commits += 1
        live = {**table.files, self.commits: files}
        head = replace(head, snapshot_id=self.commits)
        self._table = _Table(head, live, dict(batches or table.batches), {**table.metadata, self.commits: made})
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
            raise StoreUnavailable("the catalog does not respond")
