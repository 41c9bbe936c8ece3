"""Finds new manifests by listing the watched prefix, without Spark: now and then, or when a queue tells of new ones."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from compactor.core.errors import CompactorError
from compactor.core.layout import is_delivery, is_seen_by_stream
from compactor.core.ports import ObjectStore
from compactor.core.rules.shares import in_turns
from compactor.telemetry.logs import log_event

UNTOLD_SECONDS = 300.0
"""How long to wait for the queue before listing anyway: S3 may lose an event, or send it late."""


class Bell(Protocol):
    """Rings when there may be new manifests, even if there are none."""

    def wait(self) -> bool:
        """Wait some seconds for it to ring; return whether it did.

        Raises:
            CompactorError: It is out of order.
        """


@dataclass
class ListedManifests:
    """A `compactor.job.service.ManifestSource` that lists the prefix in a thread, and delivers each object once.

    If many manifest names differ only in numbers, the others still get at least every second turn.

    The watched folder ends with `/`. After a listing without new manifests it pauses for `poll_seconds`, or with a
    `bell` until that rings, but for no longer than `UNTOLD_SECONDS`.
    """

    store: ObjectStore
    folder: str
    batch_size: int = 8
    poll_seconds: float = 2
    bell: Bell | None = None

    def __post_init__(self) -> None:
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._idle = threading.Event()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        for event in (self._ended, self._idle):
            event.clear()
        self._stopped = threading.Event()  # an earlier listener keeps its own
        self._error = None
        self._thread = threading.Thread(target=partial(self._run, on_batch, once=once), name="manifests", daemon=True)
        self._thread.start()
        if self.bell is not None and not once:
            threading.Thread(
                target=self._listen, args=(self.bell, self._stopped), name="manifest queue", daemon=True
            ).start()

    def wait(self, timeout_seconds: float) -> bool:
        ended = self._ended.wait(timeout_seconds)
        if ended and self._error is not None:
            raise self._error
        return ended

    def is_idle(self) -> bool:
        return self._idle.is_set()

    def stop(self) -> None:
        self._stopped.set()
        self._woken.set()
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
            self._woken.clear()  # before the listing, which then finds what it rang for
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
                if self._stopped.is_set():  # perhaps before the clearing
                    return
                self._woken.wait(self.poll_seconds if self.bell is None else UNTOLD_SECONDS)

    def _listen(self, bell: Bell, stopped: threading.Event) -> None:
        """Wake the listing whenever the bell rings. If it is out of order, list as often as without one."""
        is_broken = False
        while not stopped.is_set():
            try:
                has_rung, is_broken = bell.wait(), False
            except CompactorError as exc:
                if not is_broken:
                    log_event("manifests.queue_failed", error=exc)
                has_rung = is_broken = True
                stopped.wait(self.poll_seconds)
            if has_rung:
                self._woken.set()

    def _names(self) -> Iterator[str]:
        for info in self.store.list(self.folder):
            if is_delivery(info.uri) and is_seen_by_stream(info.uri.removeprefix(self.folder), info.size_bytes):
                yield info.uri
