"""Reads input again for a short while if the store refuses it: only a refusal that lasts is held against a file."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

from compactor.core.errors import AccessError, CredentialsRefused, LinkRefused, StoreUnavailable
from compactor.core.ports import ObjectInfo, ObjectStore

PAUSES_SECONDS = (0.2, 0.4, 0.8)
"""The pauses between the tries of one call."""

MOST_PAUSED_SECONDS = 8.0
"""The most that all pauses of one task may take together: then each refusal is final, so that many delay no others."""

T = TypeVar("T")


@dataclass(slots=True)
class PatientReads:
    """The calls that read input. Safe to share between threads.

    Attributes:
        store: Holds the input.
    """

    store: ObjectStore
    _paused_seconds: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def stat(self, uri: str) -> ObjectInfo | None:
        """See `ObjectStore.stat`."""
        return self._patiently(lambda: self.store.stat(uri))

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """See `ObjectStore.read_range`."""
        return self._patiently(lambda: self.store.read_range(uri, start, length, etag=etag))

    def _patiently(self, call: Callable[[], T]) -> T:
        for pause_seconds in PAUSES_SECONDS:
            try:
                return _of_this_object(call)
            except LinkRefused:
                raise
            except AccessError:
                if not self._may_pause(pause_seconds):
                    raise
            time.sleep(pause_seconds)
        return _of_this_object(call)

    def _may_pause(self, seconds: float) -> bool:
        with self._lock:
            self._paused_seconds += seconds
            return self._paused_seconds <= MOST_PAUSED_SECONDS


def _of_this_object(call: Callable[[], T]) -> T:
    try:
        return call()
    except CredentialsRefused as exc:  # no object can be to blame
        raise StoreUnavailable(str(exc)) from exc
