"""What the tests of `rebuild` share: a store that dies at any change, and that watches what readers see meanwhile."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.engines.engine import Engine
from compactor.ops.rebuild.rebuilder import RebuildReport
from compactor.wiring import operating, rebuilding
from tests.support.harness import DiedError, Harness, rows_of
from tests.support.memory_store import MemoryWriter

NEVER = -1


class WatchedStore:
    """Carries out changes one by one, and dies before one of them.

    Args:
        store: What does the work.
        die_at: The change, from 0, that it dies at; `NEVER` for none.
        on_change: Called after each change.
    """

    def __init__(self, store: ObjectStore, die_at: int = NEVER, on_change: Callable[[], None] = lambda: None) -> None:
        self.changes = 0
        self._store = store
        self._die_at = die_at
        self._on_change = on_change
        self._lock = threading.RLock()

    @property
    def has_died(self) -> bool:
        return self._die_at != NEVER and self.changes > self._die_at

    def stat(self, uri: str) -> ObjectInfo | None:
        return self._store.stat(uri)

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        return self._store.read(uri, etag=etag)

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        return self._store.read_range(uri, start, length, etag=etag)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        return self._store.list(prefix, start_after=start_after)

    def create(self, uri: str, data: bytes) -> bool:
        with self._change():
            return self._store.create(uri, data)

    def put(self, uri: str, data: bytes) -> None:
        with self._change():
            self._store.put(uri, data)

    def upload(self, uri: str, path: Path) -> None:
        with self._change():
            self._store.upload(uri, path)

    @contextmanager
    def writer(self, uri: str) -> Iterator[MemoryWriter]:
        collected = MemoryWriter()
        yield collected
        if not collected.is_aborted:
            self.put(uri, bytes(collected.data))

    @contextmanager
    def new_writer(self, uri: str) -> Iterator[MemoryWriter]:
        collected = MemoryWriter()
        yield collected
        if not collected.is_aborted:
            with self._change(), self._store.new_writer(uri) as writer:
                writer.write(bytes(collected.data))

    def copy(self, source: str, target: str) -> None:
        with self._change():
            self._store.copy(source, target)

    def delete(self, uris: Iterable[str]) -> None:
        for uri in uris:
            with self._change():
                self._store.delete([uri])

    def delete_version(self, uri: str, etag: str) -> bool:
        with self._change():
            return self._store.delete_version(uri, etag)

    @contextmanager
    def _change(self) -> Iterator[None]:
        with self._lock:
            self.changes += 1
            if self.has_died:
                raise DiedError
            yield
            self._on_change()


def visible_files(harness: Harness) -> dict[str, Counter[str]]:
    """By file, the rows that readers find in it, without their nulls; a file that is no Parquet has none."""
    return {
        info.uri: _rows_in(harness.store.read(info.uri)).copy()
        for info in harness.store.list(harness.layout.output + "/")
    }


@lru_cache(maxsize=500)
def _rows_in(data: bytes) -> Counter[str]:
    """What is looked at after each change is mostly the same as before."""
    rows = Counter[str]()
    with suppress(ValueError):
        rows.update(str([each for each in sorted(row.items()) if each[1] is not None]) for row in rows_of(data))
    return rows


def visible_rows(harness: Harness) -> Counter[str]:
    """The rows that readers see."""
    return sum(visible_files(harness).values(), Counter())


def most_read(states: Sequence[Mapping[str, Counter[str]]]) -> Counter[str]:
    """How often a query may find each row that lists the files in the first state and reads each in any of them."""
    rows: Counter[str] = Counter()
    for uri in states[0]:
        of_file: Counter[str] = Counter()
        for state in states:
            of_file |= state.get(uri, Counter())
        rows += of_file
    return rows


def rebuild(
    harness: Harness,
    *manifest_ids: str,
    engine: Engine | None = None,
    store: ObjectStore | None = None,
    on_crash_point: OnCrashPoint = ignore_crash_point,
    force: bool = False,
    dry_run: bool = False,
) -> RebuildReport:
    """What a fresh process rebuilds."""
    app = harness.app(store=store, on_crash_point=on_crash_point)
    scan = operating.rebuild_scanner(app).scan(manifest_ids, force=force)
    return rebuilding.rebuilder(app, lambda rules: engine or harness.engine(store, rules)).rebuild(
        scan, dry_run=dry_run
    )
