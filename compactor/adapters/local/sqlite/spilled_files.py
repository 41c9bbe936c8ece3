"""Sorts files by date on the local disk, in an unnamed SQLite file that ends with the process."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from threading import Lock
from typing import Any

from compactor.core.errors import ScratchFull, StoreUnavailable
from compactor.sources.file_search import Naming
from compactor.sources.spill import SpilledFile

CACHE_KIB = 32 * 1024
_PRIMARY_CODE = 0xFF  # the low byte is the primary result code [SQLite, result codes]


class UnnamedDatabase:
    """This process's database, usable by any thread."""

    def __init__(self, tables: str) -> None:
        self._lock = Lock()
        self._rows = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._rows.executescript(
            f"PRAGMA cache_size = -{CACHE_KIB}; PRAGMA temp_store = FILE; PRAGMA journal_mode = OFF; {tables}"
        )

    def query(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self.used() as rows:
            return rows.execute(query, values).fetchall()

    @contextmanager
    def used(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time.

        Raises:
            ScratchFull: The disk is full.
            StoreUnavailable: Any other failure.
        """
        try:
            with self._lock:
                yield self._rows
        except sqlite3.DatabaseError as exc:
            code = getattr(exc, "sqlite_errorcode", 0) & _PRIMARY_CODE
            error = ScratchFull if code == sqlite3.SQLITE_FULL else StoreUnavailable
            raise error(
                f"temporary folder: {exc}; expected about 1 kB per file there, or set TMPDIR to a different one"
            ) from exc

    def close(self) -> None:
        with self._lock:
            self._rows.close()


_AT_ONCE = 1_000

_TABLES = """
CREATE TABLE added (date, uri, size_bytes, etag, modified_us, rule, stamp, hash INTEGER);
CREATE TABLE files (date, uri, size_bytes, etag, modified_us, rule, stamp, hash INTEGER);
CREATE TABLE namings (hash INTEGER, uri, manifest_id, etag, state);
CREATE INDEX namings_by_hash ON namings (hash);
"""
_SORT = (
    "DROP INDEX IF EXISTS files_by_hash",
    "DELETE FROM files",
    "INSERT INTO files SELECT * FROM added ORDER BY date, uri",
    "DELETE FROM added",
    "CREATE INDEX files_by_hash ON files (hash)",
)
_REPEATED = "SELECT hash FROM files INDEXED BY files_by_hash GROUP BY hash HAVING count(*) > 1"
# No RETURNING: Python uses the system's SQLite, which may be that of RHEL 8 [3.26].
_VERSIONS = "SELECT uri, rowid, date, size_bytes FROM files WHERE hash = ? ORDER BY uri, modified_us DESC, rowid"
_DROP = "DELETE FROM files WHERE rowid = ?"
_FILE = "date, uri, size_bytes, etag, modified_us, rule, stamp"
_GET = f"SELECT {_FILE} FROM files WHERE hash = ? AND uri = ?"  # noqa: S608 - names of this module
_PAGE = f"SELECT rowid, {_FILE} FROM files WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ?"  # noqa: S608 - as above


@dataclass(slots=True)
class _Day:
    """One date's rows: their number and size, and the first and last of them."""

    files: int = 0
    size_bytes: int = 0
    first: int = 1
    last: int = 0


class SqliteSpill:
    """A `compactor.sources.spill.FileSpill`. Any thread may use it."""

    def __init__(self) -> None:
        self._added: dict[str, _Day] = {}
        self._days: dict[str, _Day] = {}
        self._database = UnnamedDatabase(_TABLES)

    def add(self, files: Iterable[SpilledFile]) -> None:
        each = iter(files)
        while some := list(islice(each, _AT_ONCE)):  # no lock is held while waiting for the next ones
            with self._database.used() as rows:
                rows.execute("BEGIN")
                rows.executemany("INSERT INTO added VALUES (?, ?, ?, ?, ?, ?, ?, ?)", map(self._counted, some))
                rows.execute("COMMIT")

    def _counted(self, file: SpilledFile) -> tuple[Any, ...]:
        day = self._added.setdefault(file.date, _Day())
        day.files += 1
        day.size_bytes += file.size_bytes
        return (*file, _hash(file.uri))

    def sort(self) -> int:
        dropped: list[tuple[str, int]] = []
        with self._database.used() as rows:
            for step in _SORT:
                rows.execute(step)
            for (repeated,) in rows.execute(_REPEATED).fetchall():
                dropped += _drop_older(rows, repeated)
        self._days, self._added = dict(sorted(self._added.items())), {}
        first = 1
        for day in self._days.values():  # the rows of an empty table are numbered from 1, in insertion order
            day.first, first = first, first + day.files
            day.last = first - 1
        for date, size_bytes in dropped:
            self._days[date].files -= 1
            self._days[date].size_bytes -= size_bytes
        return len(dropped)

    def dates(self) -> list[tuple[str, int, int]]:
        return [(date, day.files, day.size_bytes) for date, day in self._days.items() if day.files]

    def pages(self, files: int, date: str | None = None) -> Iterator[list[SpilledFile]]:
        last = max((each.last for each in self._days.values()), default=0)
        day = _Day(first=1, last=last) if date is None else self._days.get(date, _Day())
        after = day.first - 1
        while page := self._database.query(_PAGE, (after, day.last, files)):
            after = page[-1][0]
            yield [SpilledFile(*row[1:]) for row in page]

    def get(self, uri: str) -> SpilledFile | None:
        found = self._database.query(_GET, (_hash(uri), uri))
        return SpilledFile(*found[0]) if found else None

    def __contains__(self, uri: object) -> bool:
        return isinstance(uri, str) and bool(
            self._database.query("SELECT 1 FROM files WHERE hash = ? AND uri = ? LIMIT 1", (_hash(uri), uri))
        )

    def note(self, namings: Iterable[Naming]) -> None:
        with self._database.used() as rows:
            rows.executemany(
                "INSERT INTO namings VALUES (?, ?, ?, ?, ?)",
                ((_hash(each.uri), each.uri, each.manifest_id, each.etag, each.state) for each in namings),
            )

    def noted(self, uris: Sequence[str]) -> Iterator[Naming]:
        with self._database.used() as rows:
            if not rows.execute("SELECT 1 FROM namings LIMIT 1").fetchone():
                return
        for uri in uris:
            for manifest_id, etag, state in self._database.query(
                "SELECT manifest_id, etag, state FROM namings WHERE hash = ? AND uri = ?", (_hash(uri), uri)
            ):
                yield Naming(manifest_id, uri, etag, state)

    def close(self) -> None:
        self._database.close()


def _drop_older(rows: sqlite3.Connection, hashed: int) -> Iterator[tuple[str, int]]:
    """Delete all but the newest file at each URI with a hash. Yield the dates and sizes of the deleted ones."""
    last = None
    for uri, row, date, size_bytes in rows.execute(_VERSIONS, (hashed,)).fetchall():
        if uri == last:
            rows.execute(_DROP, (row,))
            yield date, size_bytes
        last = uri


def _hash(uri: str) -> int:
    return int.from_bytes(blake2b(uri.encode("utf-8", "surrogateescape"), digest_size=8).digest(), signed=True)
