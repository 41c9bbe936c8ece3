"""A SQLite file without a name, for what does not fit in memory. It is removed as soon as it is open."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from compactor.core.errors import ScratchFull, StoreUnavailable

CACHE_KIB = 32 * 1024
_PRIMARY_CODE = 0xFF  # the low byte is the primary result code [SQLite, result codes]


class UnnamedDatabase:
    """A database of this process, which any thread may use.

    Args:
        tables: The statements that make its tables.
    """

    def __init__(self, tables: str) -> None:
        self._lock = Lock()
        self._rows = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._rows.executescript(
            f"PRAGMA cache_size = -{CACHE_KIB}; PRAGMA temp_store = FILE; PRAGMA journal_mode = OFF; {tables}"
        )

    def query(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""
        with self.used() as rows:
            return rows.execute(query, values).fetchall()

    @contextmanager
    def used(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time.

        Raises:
            ScratchFull: The disk is full.
            StoreUnavailable: It fails otherwise.
        """
        try:
            with self._lock:
                yield self._rows
        except sqlite3.DatabaseError as exc:
            code = getattr(exc, "sqlite_errorcode", 0) & _PRIMARY_CODE
            error = ScratchFull if code == sqlite3.SQLITE_FULL else StoreUnavailable
            raise error(f"temporary folder: {exc}; expected about 1 kB a file there, or set TMPDIR to another") from exc

    def close(self) -> None:
        """Give the space back."""
        with self._lock:
            self._rows.close()
