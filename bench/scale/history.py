"""A store with the records of many finished manifests, which it makes up as they are asked for. It counts calls."""

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path

from bench.scale.ledger import ANY, finished, renamed, text_of
from compactor.core.layout import Layout, ManifestKey, folder
from compactor.core.ports import ObjectInfo, ObjectStore, ObjectWriter

LETTER_EVERY = 500
"""One manifest of so many is a dead letter, which was redriven before its date was closed."""

PAGE = 1_000
"""The objects that one call lists."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SIZE_BYTES = 100
_MOMENT = datetime(2025, 12, 1, tzinfo=UTC)


def manifest_id(date: str, number: int) -> str:
    """The id of one of the finished manifests of a date."""
    return f"{date}-{number:08d}"


class HistoryStore:
    """A `compactor.core.ports.ObjectStore`.

    Args:
        store: Has all other objects, and takes what is written.
        layout: Where the records are.
        dates: The dates of the manifests, in order.
        manifests: How many each date has.
        page: How many objects a call lists.
    """

    def __init__(
        self, store: ObjectStore, layout: Layout, dates: Sequence[str], manifests: int, *, page: int = PAGE
    ) -> None:
        self.calls: Counter[str] = Counter()
        self._store, self._layout, self._dates, self._manifests, self._page = store, layout, dates, manifests, page
        self._known = frozenset(dates)
        texts = [(uri, text_of(document)) for uri, document in finished(layout, ANY, "/gone")]
        reason = {"kind": "dead_letter", "manifest_id": ANY.id, "date": ANY.date, "reason": "invalid", "message": "-"}
        reason |= {"source_uri": layout.manifest(ANY.id), "run_id": "earlier", "decided_at": _MOMENT.isoformat()}
        letter = json.dumps(reason).encode()
        self._texts = {
            **dict(texts),
            layout.failed_manifest(ANY.id): b"{}",
            layout.failure_reason(ANY.id): letter,
        }
        records = (layout.ledger_folder, layout.accepted_folder, layout.archive_folder, layout.failed_folder)
        self._roots = sorted((*records, folder(layout.output)))

    def stat(self, uri: str) -> ObjectInfo | None:
        self.calls["stat"] += 1
        made = self._made(uri)
        return self._store.stat(uri) if made is None else _info(uri, len(made))

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        self.calls["read"] += 1
        made = self._made(uri)
        return made if made is not None else self._store.read(uri, etag=etag)

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        self.calls["read_range"] += 1
        made = self._made(uri)
        return (
            made[start : start + length] if made is not None else self._store.read_range(uri, start, length, etag=etag)
        )

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        made = self._listed(prefix, start_after or "")
        own = self._store.list(prefix, start_after=start_after)
        self.calls["list"] += 1
        for number, info in enumerate(merge(own, made, key=lambda each: each.uri.encode()), start=1):
            yield info
            self.calls["list"] += number % self._page == 0

    def create(self, uri: str, data: bytes) -> bool:
        self.calls["create"] += 1
        return self._made(uri) is None and self._store.create(uri, data)

    def put(self, uri: str, data: bytes) -> None:
        self.calls["put"] += 1
        self._store.put(uri, data)

    def upload(self, uri: str, path: Path) -> None:
        self.calls["upload"] += 1
        self._store.upload(uri, path)

    def writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        self.calls["writer"] += 1
        return self._store.writer(uri)

    def new_writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        self.calls["new_writer"] += 1
        return self._store.new_writer(uri)

    def copy(self, source: str, target: str) -> None:
        self.calls["copy"] += 1
        self._store.copy(source, target)

    def delete(self, uris: Iterable[str]) -> None:
        named = [*uris]
        self.calls["delete"] += -(-len(named) // PAGE)
        self._store.delete(named)

    def delete_version(self, uri: str, etag: str) -> bool:
        self.calls["delete"] += 1
        return self._store.delete_version(uri, etag)

    def _made(self, uri: str) -> bytes | None:
        """What is at a place, if it is of a finished manifest."""
        key = self._key(uri)
        if key is None:
            return None
        names = {key.id: ANY.id, key.date: ANY.date}
        text = self._texts.get(renamed(uri.encode(), names).decode())
        return None if text is None else renamed(text, {ANY.id: key.id, ANY.date: key.date})

    def _key(self, uri: str) -> ManifestKey | None:
        name = next((each for each in reversed(uri.split("/")) if each[:10] in self._known and each[10:11] == "-"), "")
        date, number = name[:10], name[11:19]
        if not number.isdecimal() or int(number) >= self._manifests:
            return None
        is_letter = int(number) % LETTER_EVERY == 0
        is_of_letter = uri.startswith(self._layout.failed_folder)
        return ManifestKey(date, manifest_id(date, int(number))) if is_letter or not is_of_letter else None

    def _listed(self, prefix: str, after: str) -> Iterator[ObjectInfo]:
        for root in self._roots:
            if not (root.startswith(prefix) or prefix.startswith(root)):
                continue
            for date in self._near(prefix.removeprefix(root), after.removeprefix(root)):
                yield from (_info(uri) for uri in self._of_date(root, date, prefix, after) if uri.startswith(prefix))

    def _near(self, prefix: str, after: str) -> Sequence[str]:
        """The dates that a listing may be about, by the names behind a root."""
        named, last = _DATE.search(prefix), _DATE.search(after)
        if named is not None:
            return [named[0]] if named[0] in self._known else []
        return self._dates if last is None else self._dates[bisect_left(self._dates, last[0]) :]

    def _of_date(self, root: str, date: str, prefix: str, after: str) -> Iterator[str]:
        """The objects of a date below one folder, in order, from near those that are asked for on."""
        pattern = sorted(uri for uri in self._texts if uri.startswith(root))
        first = renamed(pattern[0].encode(), {ANY.id: manifest_id(date, 0), ANY.date: date}).decode()
        last = renamed(pattern[-1].encode(), {ANY.id: manifest_id(date, 10**8 - 1), ANY.date: date}).decode()
        if last < max(prefix, after) or (first > prefix and not first.startswith(prefix)):
            return
        step = LETTER_EVERY if root == self._layout.failed_folder else 1
        key = self._key(prefix)
        numbers = range(0, self._manifests, step) if key is None else [int(key.id[-8:])]
        for number in numbers:
            names = {ANY.id: manifest_id(date, number), ANY.date: date}
            yield from (uri for each in pattern if (uri := renamed(each.encode(), names).decode()) > after)


def _info(uri: str, size_bytes: int = _SIZE_BYTES) -> ObjectInfo:
    return ObjectInfo(uri, size_bytes, "made", _MOMENT)
