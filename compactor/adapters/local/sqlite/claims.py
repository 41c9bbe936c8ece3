"""Claims in a SQLite file, for any number of processes and threads on one machine."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock

from compactor.adapters.local.durable import make_folders
from compactor.core.errors import AccessError, StoreUnavailable
from compactor.core.layout import canonical
from compactor.core.ports import Claim

_WAIT_SECONDS = 60.0  # time-out for the lock, which other processes hold for milliseconds
_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
_PRIMARY_CODE = 0xFF  # the low byte is the primary result code [SQLite, result codes]

_TABLE = """
CREATE TABLE IF NOT EXISTS claims (
    key TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    lease_until TEXT NOT NULL
) WITHOUT ROWID
"""
_FIND = "SELECT holder, lease_until FROM claims WHERE key = ?"
_INSERT = "INSERT INTO claims (key, holder, lease_until) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_TAKE_OVER = "UPDATE claims SET holder = ?, lease_until = ? WHERE key = ? AND holder = ?"


class SqliteClaims:
    """Claims as rows of one table. Each call opens the file, so threads and forked processes may share it.

    Args:
        path: The file's path or `file://` URI. The file and its folders are created when first needed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(canonical(os.fspath(path)))
        self._locks: dict[int, Lock] = {}  # by process: a forked process must not wait for its parent's thread

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        lease_until = _end(now, lease_seconds)
        with self._transaction() as rows:
            rows.executemany(_INSERT, [(key, holder, lease_until) for key in keys])
            return _found(rows, keys)

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        lease_until = _end(now, lease_seconds)
        with self._transaction() as rows:
            rows.executemany(_TAKE_OVER, [(to_holder, lease_until, key, from_holder) for key in keys])
            return {key for key, claim in _found(rows, keys).items() if claim.holder == to_holder}

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        if not self._path.exists():
            return {}
        with self._transaction() as rows:
            return _found(rows, keys)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection with an exclusive transaction, committed if the block ends without an error."""
        try:
            make_folders(str(self._path.parent))
            # SQLite's own lock sleeps between tries, so threads that wait for it mostly sleep.
            with (
                self._locks.setdefault(os.getpid(), Lock()),
                closing(sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None)) as connection,
            ):
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_TABLE)
                yield connection
                connection.execute("COMMIT")
        except sqlite3.DatabaseError as exc:
            code = getattr(exc, "sqlite_errorcode", 0) & _PRIMARY_CODE
            error = StoreUnavailable if code in _PASSING else AccessError
            raise error(f"claims in {self._path}: {exc}") from exc
        except OSError as exc:
            raise AccessError(f"claims in {self._path}: {exc.strerror}; expected a writable file") from exc


def _end(now: datetime, lease_seconds: float) -> str:
    return (now + timedelta(seconds=lease_seconds)).isoformat()


def _found(rows: sqlite3.Connection, keys: Sequence[str]) -> dict[str, Claim]:
    found = ((key, rows.execute(_FIND, (key,)).fetchone()) for key in keys)
    return {key: Claim(row[0], datetime.fromisoformat(row[1])) for key, row in found if row}
