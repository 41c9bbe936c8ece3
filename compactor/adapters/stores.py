"""Routes each URI to its store: S3 or the local disk."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any, Self

from compactor.adapters.local.store import LocalStore
from compactor.core.layout import is_s3, is_within
from compactor.core.logs.names import is_log
from compactor.core.ports import ObjectInfo, ObjectStore, ObjectWriter, copy_through
from compactor.settings.sections import Aws


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """How to connect to the stores and to AWS. Driver, executors and functions exchange this value, not a store.

    Attributes:
        region: None to take it from the environment.
        endpoint_url: A non-AWS endpoint; None for AWS.
        attempts: The maximum number of attempts per request; None for the job's default.
        confined: Local folders that symbolic links in them must not escape.
        state: The local state folder, in which files with input lines are private.
    """

    region: str | None = None
    endpoint_url: str | None = None
    timeout_seconds: float = 60
    attempts: int | None = None
    confined: tuple[str, ...] = ()
    state: str = ""

    @classmethod
    def of(cls, aws: Aws, allowed_prefixes: Sequence[str] = (), state: str = "") -> Self:
        """The values in the settings, where empty text stands for None."""
        confined = tuple(each for each in allowed_prefixes if not (is_s3(each) or is_log(each)))
        region, endpoint_url = aws.region or None, aws.endpoint_url or None
        return cls(region, endpoint_url, aws.timeout_seconds, confined=confined, state="" if is_s3(state) else state)

    def client(self, service: str, **more: Any) -> Any:
        """A new boto3 client, safe to share between threads, but not between processes."""
        # boto3 takes a third of a second to import; runs on local folders need not wait for it.
        from compactor.adapters.aws.clients import aws_client  # noqa: PLC0415

        return aws_client(
            service,
            self.region,
            self.endpoint_url,
            attempts=self.attempts,
            timeout_seconds=self.timeout_seconds,
            **more,
        )

    def open(self) -> ObjectStore:
        """This process's store for these values; always the same object."""
        # A forked process gets its own store: AWS clients must not be shared between processes.
        return _open(self, os.getpid())


@lru_cache(maxsize=8)
def _open(spec: StoreSpec, _process_id: int) -> ObjectStore:
    return RoutedStore(spec)


class RoutedStore:
    """Passes each call to the store for its URI. Connects to AWS at the first `s3://` URI."""

    def __init__(self, spec: StoreSpec) -> None:
        self._spec = spec
        self._local: ObjectStore | None = None
        self._s3: ObjectStore | None = None
        self._lock = threading.Lock()

    def stat(self, uri: str) -> ObjectInfo | None:
        return self._store(uri).stat(uri)

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        return self._store(uri).read(uri, etag=etag)

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        return self._store(uri).read_range(uri, start, length, etag=etag)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        return self._store(prefix).list(prefix, start_after=start_after)

    def create(self, uri: str, data: bytes) -> bool:
        return self._store(uri).create(uri, data)

    def put(self, uri: str, data: bytes) -> None:
        self._store(uri).put(uri, data)

    def upload(self, uri: str, path: Path) -> None:
        self._store(uri).upload(uri, path)

    def writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        return self._store(uri).writer(uri)

    def new_writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        return self._store(uri).new_writer(uri)

    def copy(self, source: str, target: str) -> None:
        if is_s3(source) == is_s3(target):
            self._store(source).copy(source, target)
        else:
            copy_through(self, source, self.writer(target))

    def delete(self, uris: Iterable[str]) -> None:
        for in_s3, of_store in groupby(uris, is_s3):
            self._store("s3://" if in_s3 else "/").delete(of_store)

    def delete_version(self, uri: str, etag: str) -> bool:
        return self._store(uri).delete_version(uri, etag)

    def _store(self, uri: str) -> ObjectStore:
        if not is_s3(uri):
            if self._local is None:  # it refuses some locales, which do not matter for S3
                self._local = LocalStore(confined=self._spec.confined, state=self._spec.state)
            return self._local
        with self._lock:
            if self._s3 is None:
                from compactor.adapters.aws.s3.store import S3Store  # noqa: PLC0415 - boto3 is slow to load

                self._s3 = S3Store(self._spec.client("s3"))
            return self._s3


OnRead = Callable[[int], None]
"""Called from several threads with the number of newly read bytes."""


class WatchedReads(RoutedStore):
    """A `RoutedStore` that counts the input bytes read in some prefixes. Repeated reads count once."""

    def __init__(self, spec: StoreSpec, prefixes: Sequence[str], on_read: OnRead) -> None:
        super().__init__(spec)
        self._prefixes = prefixes
        self._on_read = on_read
        self._ends: dict[str, int] = {}
        self._ends_lock = Lock()

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        data = super().read_range(uri, start, length, etag=etag)
        if any(is_within(uri, each) for each in self._prefixes):
            self.note(uri, start + len(data))
        return data

    def note(self, uri: str, end: int) -> None:
        """Record that this or another process read a file up to byte `end`."""
        with self._ends_lock:
            fresh = end - self._ends.get(uri, 0)
            if fresh <= 0:
                return
            self._ends[uri] = end
        self._on_read(fresh)
