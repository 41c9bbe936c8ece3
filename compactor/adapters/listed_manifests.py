"""Finds new manifests by listing the watched prefix, without Spark."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from compactor.core.layout import is_delivery, is_seen_by_stream
from compactor.core.ports import ObjectStore
from compactor.core.rules.shares import in_turns


@dataclass
class ListedManifests:
    """A `compactor.job.service.ManifestSource` that lists the prefix in a thread, and delivers each object once.

    If many manifest names differ only in numbers, the others still get at least every second turn.

    The watched folder ends with `/`. After a listing without new manifests it pauses for `poll_seconds`.
    """

    store: ObjectStore
    folder: str
    batch_size: int = 8
    poll_seconds: float = 2

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._idle = threading.Event()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        for event in (self._stopped, self._ended, self._idle):
            event.clear()
        self._error = None
        self._thread = threading.Thread(target=partial(self._run, on_batch, once=once), name="manifests", daemon=True)
        self._thread.start()

    def wait(self, timeout_seconds: float) -> bool:
        ended = self._ended.wait(timeout_seconds)
        if ended and self._error is not None:
            raise self._error
        return ended

    def is_idle(self) -> bool:
        return self._idle.is_set()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        try:
            for batch in self._batches(once=once):
                if self._stopped.is_set():
                    return
                on_batch(batch)
        except Exception as exc:  # noqa: BLE001 - the error ends the stream, and `wait` raises it
            self._error = exc
        finally:
            self._ended.set()

    def _batches(self, *, once: bool) -> Iterator[Sequence[str]]:
        seen: frozenset[str] = frozenset()
        while not self._stopped.is_set():
            listed = frozenset(self._names())
            # Only names still listed are remembered: a finished manifest leaves the prefix.
            fresh, seen = in_turns(sorted(listed - seen)), listed
            if fresh:
                self._idle.clear()
                for start in range(0, len(fresh), self.batch_size):
                    yield fresh[start : start + self.batch_size]
            elif once:
                return
            else:
                self._idle.set()
                self._stopped.wait(self.poll_seconds)

    def _names(self) -> Iterator[str]:
        for info in self.store.list(self.folder):
            if is_delivery(info.uri) and is_seen_by_stream(info.uri.removeprefix(self.folder), info.size_bytes):
                yield info.uri
