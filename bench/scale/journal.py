"""A history of closed dates on S3, whose manifests have each an entry in the journal of claims."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.scale.history import HistoryStore, manifest_id
from bench.scale.s3 import BUCKET, BucketStore, settings_on_s3
from compactor.adapters.claims import JournalClaims
from compactor.adapters.local.store import LocalStore
from compactor.core.documents.records import ClaimsEntry
from compactor.core.layout import Layout, index_folder
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.sources.file_search import Naming
from compactor.sources.folders.history import StoredSummarisedFiles, known_at

_MOMENT = datetime(2025, 12, 1, tzinfo=UTC)
_FILES = 8


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
        keys = [f"{BUCKET}gone/{date}-{holder}-{part}.ndjson#e" for part in range(_FILES)]
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
    """Write the indexes that earlier calls of `compact` leave, without runs that are merged.

    No reader opens these: a bucket lists from a name on. A disk lists whole folders, which would count as a cost.
    """
    layout = settings_on_s3().layout()
    store = store_on_s3(root, dates, manifests)
    JournalClaims(store, layout.claims_folder).claim(["another"], "m", now=_MOMENT, lease_seconds=0)
    log, memory = ClosedDates(store, layout), StoredSummarisedFiles(store, layout)
    for place, date in enumerate(dates, start=1):
        names = [manifest_id(date, each) for each in range(manifests)]
        memory.add([Naming(each, f"{BUCKET}gone/{each}.ndjson", "e", "compacted", date, 9, "d") for each in names])
        memory.reach(known_at(log, place))
    for index in (index_folder(layout.claims_folder), layout.closed_names):
        _delete_merged(Path(root, index.removeprefix(BUCKET)))


def _delete_merged(index: Path) -> None:
    for level in index.iterdir():
        above = index / str(int(level.name) + 1)
        merged_to = max((each.name for each in above.iterdir()), default="") if above.is_dir() else ""
        for run in level.iterdir():
            if run.name <= merged_to:
                run.unlink()


def store_on_s3(root: Path, dates: Sequence[str], manifests: int, *, page: int = 1_000) -> JournalStore:
    """The store of such a state, which counts its calls."""
    return JournalStore(BucketStore(LocalStore(), root), settings_on_s3().layout(), dates, manifests, page=page)
