"""Keeps the listing of sources in a SQLite file without a name, which ends with the process."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from compactor.adapters.local.sqlite.unnamed_database import UnnamedDatabase
from compactor.core.layout import canonical
from compactor.core.ports import ObjectInfo
from compactor.manifests.sources.listed_files import PAGE_FILES, ListedInfo

_AT_ONCE = 1_000
_EPOCH = datetime.fromtimestamp(0, UTC)
_TABLES = """
CREATE TABLE listed (
    number INTEGER PRIMARY KEY, key TEXT UNIQUE, uri, size_bytes, etag, modified_us, stamp, date, rule
);
"""
_ADD = """
INSERT INTO listed (key, uri, size_bytes, etag, modified_us, stamp, date, rule) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET uri = excluded.uri, size_bytes = excluded.size_bytes, etag = excluded.etag,
    modified_us = excluded.modified_us, stamp = excluded.stamp, date = excluded.date, rule = excluded.rule
"""
_INFO = "uri, size_bytes, etag, modified_us, stamp"
_PAGE = f"SELECT number, date, rule, {_INFO} FROM listed WHERE number > ? ORDER BY number LIMIT ?"  # noqa: S608
_GET = f"SELECT {_INFO} FROM listed WHERE key = ?"  # noqa: S608 - names of this module


class SqliteListedFiles:
    """A `compactor.manifests.sources.listed_files.ListedFiles`."""

    def __init__(self) -> None:
        self._database = UnnamedDatabase(_TABLES)

    def add(self, files: Iterable[ListedInfo]) -> None:
        each = iter(files)
        while some := list(islice(each, _AT_ONCE)):  # no lock is held while the next ones are awaited
            with self._database.used() as rows:
                rows.execute("BEGIN")
                rows.executemany(_ADD, map(_row, some))
                rows.execute("COMMIT")

    def get(self, uri: str) -> ObjectInfo | None:
        found = self._database.query(_GET, (uri,))
        return _info(*found[0]) if found else None

    def pages(self) -> Iterator[list[ListedInfo]]:
        after = 0
        while page := self._database.query(_PAGE, (after, PAGE_FILES)):
            after = page[-1][0]
            yield [ListedInfo(_info(*info), date, rule) for _, date, rule, *info in page]

    def close(self) -> None:
        self._database.close()


def _row(file: ListedInfo) -> tuple[Any, ...]:
    info = file.info
    modified_us = (info.modified_at - _EPOCH) // timedelta(microseconds=1)
    return canonical(info.uri), info.uri, info.size_bytes, info.etag, modified_us, info.stamp, file.date, file.rule


def _info(uri: str, size_bytes: int, etag: str, modified_us: int, stamp: str) -> ObjectInfo:
    return ObjectInfo(uri, size_bytes, etag, _EPOCH + timedelta(microseconds=modified_us), stamp)
