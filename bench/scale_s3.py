"""A state on S3 for the benchmark of closed dates: the same objects under other names, with a journal of claims."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench.scale_history import HistoryStore, manifest_id
from compactor.adapters.journal_claims import JournalClaims
from compactor.adapters.local.store import LocalStore
from compactor.core.layout import Layout
from compactor.core.ports import ObjectInfo, ObjectStore, ObjectWriter
from compactor.core.records import ClaimsEntry
from compactor.ledger.closed_dates import ClosedDates
from compactor.manifests.file_search import Naming
from compactor.manifests.history_search import known_at
from compactor.manifests.summarised_runs import StoredSummarisedFiles
from compactor.settings.settings import Settings, parse_settings

_BUCKET = "s3://bench/"
_MOMENT = datetime(2025, 12, 1, tzinfo=UTC)
_FILES = 8


def settings_on_s3() -> Settings:
    """The settings of `settings_at`, for a bucket."""
    return parse_settings(
        {
            "paths": {place: f"{_BUCKET}{place}" for place in ("manifests", "output", "state")},
            "input": {"allowed_prefixes": [f"{_BUCKET}raw"]},
            "builder": {"claims": "@journal"},
            "metrics": {"sink": "none"},
        }
    )


class BucketStore:
    """A `compactor.core.ports.ObjectStore`: a bucket whose objects are the files below a folder."""

    def __init__(self, store: ObjectStore, root: Path) -> None:
        self._store, self._root = store, f"{root}/"

    def stat(self, uri: str) -> ObjectInfo | None:
        info = self._store.stat(self._at(uri))
        return None if info is None else self._named(info)

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        return self._store.read(self._at(uri), etag=etag)

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        return self._store.read_range(self._at(uri), start, length, etag=etag)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        after = None if start_after is None else self._at(start_after)
        return map(self._named, self._store.list(self._at(prefix), start_after=after))

    def create(self, uri: str, data: bytes) -> bool:
        return self._store.create(self._at(uri), data)

    def put(self, uri: str, data: bytes) -> None:
        self._store.put(self._at(uri), data)

    def upload(self, uri: str, path: Path) -> None:
        self._store.upload(self._at(uri), path)

    def writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        return self._store.writer(self._at(uri))

    def copy(self, source: str, target: str) -> None:
        self._store.copy(self._at(source), self._at(target))

    def delete(self, uris: Iterable[str]) -> None:
        self._store.delete(map(self._at, uris))

    def _at(self, uri: str) -> str:
        return uri.replace(_BUCKET, self._root, 1)

    def _named(self, info: ObjectInfo) -> ObjectInfo:
        return replace(info, uri=info.uri.replace(self._root, _BUCKET, 1), stamp="")


class JournalStore(HistoryStore):
    """A history whose manifests have each an entry in the journal of claims."""

    def __init__(
        self, store: ObjectStore, layout: Layout, dates: Sequence[str], manifests: int, *, page: int = 1_000
    ) -> None:
        super().__init__(store, layout, dates, manifests, page=page)
        self._claims, self._entries = layout.claims_folder, len(dates) * manifests

    def _made(self, uri: str) -> bytes | None:
        number = self._number(uri)
        if number is None or number > self._entries:
            return super()._made(uri)
        date, place = self._dates[(number - 1) // self._manifests], (number - 1) % self._manifests
        holder = manifest_id(date, place)
        keys = [f"{_BUCKET}gone/{date}-{holder}-{part}.ndjson#e" for part in range(_FILES)]
        return ClaimsEntry(keys=keys, holder=holder, lease_until=_MOMENT).model_dump_json().encode()

    def _listed(self, prefix: str, after: str) -> Iterator[ObjectInfo]:
        if prefix != self._claims:
            yield from super()._listed(prefix, after)
            return
        for number in range((self._number(after) or 0) + 1, self._entries + 1):
            yield ObjectInfo(f"{self._claims}{number:012d}.json", 100, "made", _MOMENT)

    def _number(self, uri: str) -> int | None:
        name = uri.removeprefix(self._claims).removesuffix(".json")
        return int(name) if uri.startswith(self._claims) and name.isdecimal() else None


def index_on_s3(root: Path, dates: Sequence[str], manifests: int) -> None:
    """Write the indexes that earlier calls of `compact` leave."""
    layout = settings_on_s3().layout()
    store = store_on_s3(root, dates, manifests)
    JournalClaims(store, layout.claims_folder).claim(["another"], "m", now=_MOMENT, lease_seconds=0)
    log, memory = ClosedDates(store, layout), StoredSummarisedFiles(store, layout)
    for place, date in enumerate(dates, start=1):
        names = [manifest_id(date, each) for each in range(manifests)]
        memory.add([Naming(each, f"{_BUCKET}gone/{each}.ndjson", "e", "compacted", date, 9, "d") for each in names])
        memory.reach(known_at(log, place))


def store_on_s3(root: Path, dates: Sequence[str], manifests: int, *, page: int = 1_000) -> JournalStore:
    """The store of such a state, which counts its calls."""
    return JournalStore(BucketStore(LocalStore(), root), settings_on_s3().layout(), dates, manifests, page=page)
