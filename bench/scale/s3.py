"""A state on S3 for the benchmark of closed dates: the same objects under other names."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from compactor.core.ports import ObjectInfo, ObjectStore, ObjectWriter
from compactor.settings.settings import Settings, parse_settings

BUCKET = "s3://bench/"


def settings_on_s3(source: str = f"{BUCKET}raw") -> Settings:
    """The settings of `settings_at`, for a bucket; the input may be elsewhere."""
    return parse_settings(
        {
            "paths": {place: f"{BUCKET}{place}" for place in ("manifests", "output", "state")},
            "input": {"allowed_prefixes": [source]},
            "builder": {"claims": "@journal"},
            "metrics": {"sink": "none"},
        }
    )


class BucketStore:
    """A `compactor.core.ports.ObjectStore`: a bucket, whose objects are the files of a folder, and local files."""

    def __init__(self, store: ObjectStore, root: Path) -> None:
        self._store, self._root = store, f"{root}/"

    def stat(self, uri: str) -> ObjectInfo | None:
        info = self._store.stat(self._at(uri))
        return self._named(info) if info is not None and uri.startswith(BUCKET) else info

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        return self._store.read(self._at(uri), etag=etag)

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        return self._store.read_range(self._at(uri), start, length, etag=etag)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        after = None if start_after is None else self._at(start_after)
        listed = self._store.list(self._at(prefix), start_after=after)
        return map(self._named, listed) if prefix.startswith(BUCKET) else listed

    def create(self, uri: str, data: bytes) -> bool:
        return self._store.create(self._at(uri), data)

    def put(self, uri: str, data: bytes) -> None:
        self._store.put(self._at(uri), data)

    def upload(self, uri: str, path: Path) -> None:
        self._store.upload(self._at(uri), path)

    def writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        return self._store.writer(self._at(uri))

    def new_writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        return self._store.new_writer(self._at(uri))

    def copy(self, source: str, target: str) -> None:
        self._store.copy(self._at(source), self._at(target))

    def delete(self, uris: Iterable[str]) -> None:
        self._store.delete(map(self._at, uris))

    def delete_version(self, uri: str, etag: str) -> bool:
        return self._store.delete_version(self._at(uri), etag)

    def _at(self, uri: str) -> str:
        return uri.replace(BUCKET, self._root, 1)

    def _named(self, info: ObjectInfo) -> ObjectInfo:
        return replace(info, uri=info.uri.replace(self._root, BUCKET, 1), stamp="")
