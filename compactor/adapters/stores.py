"""Which store holds a URI: S3, or the local disk."""

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from compactor.adapters.local.store import LocalStore
from compactor.core.errors import ObjectNotFound
from compactor.core.layout import is_s3
from compactor.core.ports import ObjectInfo, ObjectStore, ObjectWriter

_DELETE_BATCH = 1000
_CHUNK_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """How to reach the stores: what driver, executors and functions pass on instead of a store.

    Attributes:
        region: Of AWS; None to take it from the surroundings.
        endpoint_url: A server other than AWS; None for AWS itself.
        timeout_seconds: How long to wait for the answer to one request to AWS.
        attempts: How often a request to AWS is sent at most; None for as often as the job may send it.
    """

    region: str | None = None
    endpoint_url: str | None = None
    timeout_seconds: float = 60
    attempts: int | None = None

    def open(self) -> ObjectStore:
        """The store of this process for these settings; always the same one."""
        # A forked process gets its own, for clients of AWS must not be shared between processes.
        return _open(self, os.getpid())


@lru_cache(maxsize=8)
def _open(spec: StoreSpec, _process_id: int) -> ObjectStore:
    return RoutedStore(spec)


class RoutedStore:
    """Passes every call on to the store that its URI belongs to. AWS is not touched before the first `s3://`."""

    def __init__(self, spec: StoreSpec) -> None:
        self._spec = spec
        self._local: ObjectStore = LocalStore()
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

    def writer(self, uri: str) -> ObjectWriter:
        return self._store(uri).writer(uri)

    def copy(self, source: str, target: str) -> None:
        if is_s3(source) == is_s3(target):
            self._store(source).copy(source, target)
            return
        with tempfile.TemporaryDirectory(prefix="compactor-") as folder:
            path = Path(folder) / "copy"
            self._download(source, path)
            self.upload(target, path)

    def delete(self, uris: Iterable[str]) -> None:
        remaining = iter(uris)
        while batch := list(islice(remaining, _DELETE_BATCH)):
            for in_s3 in (True, False):
                if of_store := [uri for uri in batch if is_s3(uri) is in_s3]:
                    self._store(of_store[0]).delete(of_store)

    def _download(self, uri: str, path: Path) -> None:
        """Write one version of an object to a local file, a piece at a time."""
        found = self.stat(uri)
        if found is None:
            raise ObjectNotFound(f"{uri}: there is no such object")
        with path.open("wb") as file:
            for start in range(0, found.size_bytes, _CHUNK_BYTES):
                file.write(self.read_range(uri, start, _CHUNK_BYTES, etag=found.etag))

    def _store(self, uri: str) -> ObjectStore:
        if not is_s3(uri):
            return self._local
        with self._lock:
            if self._s3 is None:
                # boto3 takes a third of a second to load, which runs on plain folders need not wait for.
                from compactor.adapters.aws import S3Store, s3_client  # noqa: PLC0415

                spec = self._spec
                attempts: dict[str, Any] = {} if spec.attempts is None else {"attempts": spec.attempts}
                self._s3 = S3Store(
                    s3_client(spec.region, spec.endpoint_url, timeout_seconds=spec.timeout_seconds, **attempts)
                )
            return self._s3
