"""What stands in for Spark and for the world's mishaps in tests: an engine, a stream, and a store with faults."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.errors import AccessError, StoreUnavailable
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.engines.engine import EngineRules, Staged, StagedOutput, StageRequest
from compactor.engines.rows_place import RowsPlace, writing
from compactor.engines.spark.input_files import InspectTask, inspect_files
from compactor.engines.task_results import ManifestResults, TaskFile
from compactor.ndjson.codecs import decode
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import Limits, RejectLimits
from compactor.ndjson.rawjson import texts
from compactor.schema.column_types import ColumnType, value_of
from compactor.schema.field_ids import METADATA_IDS
from compactor.schema.schema import RESCUED_COLUMN, SchemaVersion, metadata_names
from tests.support.memory_store import MemoryWriter
from tests.support.parquet_ids import MAP_WITH_IDS, with_field_id

T = TypeVar("T")

LIMITS = Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 30)
_PIECES = 4


class PlainEngine:
    """Stages manifests in this process, one row after the other."""

    name = "plain"

    def __init__(
        self,
        store: ObjectStore,
        *,
        metadata_columns: Sequence[str] = (),
        rows_per_file: int = 1000,
        reject_limits: RejectLimits = LIMITS.rejects,
        task_bytes: int | None = None,  # decoded; then a manifest leaves its further files to the next one
        formats: Formats = Formats(),  # noqa: B008 - it is frozen
    ) -> None:
        self._store = store
        self._formats = formats
        self._limits = replace(LIMITS, rejects=reject_limits, task_bytes=task_bytes, task_ratio=0)
        self._metadata_columns = metadata_columns
        self._rows_per_file = rows_per_file

    def is_healthy(self) -> bool:
        return True

    def stage(self, request: StageRequest) -> Staged:
        task = InspectTask(
            manifest_id=request.manifest.manifest_id,
            files=tuple(enumerate(request.manifest.files)),
            staging=request.staging,
            rules=EngineRules(self._limits, "skip", (), 1 << 27, "snappy", self._formats),
            refused={},
            task_number=0,
            key_limits=request.key_limits,
        )
        inspected = inspect_files(self._store, task)
        request.on_inspected()
        results = ManifestResults([inspected])
        schema = request.columns_for(results.new_keys, rescued_from=results.further_from)
        rows = [
            (file.report.origin_uri, texts(line))
            for file in results.files
            if file.readable_uri is not None
            for line in self._plain(file, file.readable_uri).split(b"\n")
            if line.strip(b" \t\r")
        ]
        outputs: list[StagedOutput] = []
        for start in range(0, len(rows), self._rows_per_file):
            place = RowsPlace.final(request.place, "snappy") if request.place else RowsPlace(f"{request.staging}out/")
            uri = place.uri(f"{len(outputs):05d}")
            table = self._table(request, schema, rows[start : start + self._rows_per_file])
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            self._write(place, uri, sink.getvalue().to_pybytes())
            outputs.append(StagedOutput(uri, schema))
        misfits = sum(len(_misfits(values, schema)) for _, values in rows)
        return results.staged(schema, outputs, rescued_values=misfits, refused_keys=results.refused_keys(schema))

    def _write(self, place: RowsPlace, uri: str, data: bytes) -> None:
        """Put a whole file into staging; in place, write it piece by piece, so that others may meet half of it."""
        if not place.in_place:
            place.put(self._store, uri, data)
            return
        step = len(data) // _PIECES + 1
        with writing(uri), place.writer(self._store, uri) as writer:
            for start in range(0, len(data), step):
                writer.write(data[start : start + step])

    def _plain(self, file: TaskFile, uri: str) -> bytes:
        """The lines to read: of the file itself, or of its repaired copy, which is not compressed."""
        if uri != file.report.uri:
            return self._store.read(uri)
        return b"".join(decode(file.report.codec, [self._store.read(uri, etag=file.report.etag or None)]))

    def _table(
        self, request: StageRequest, schema: SchemaVersion, rows: Sequence[tuple[str, Mapping[str, str | None]]]
    ) -> pa.Table:
        metadata = {
            "_source_file": pa.array([uri for uri, _ in rows], pa.string()),
            "_processed_at": pa.array([request.processed_at] * len(rows), pa.timestamp("us", "UTC")),
            "_manifest_id": pa.array([request.manifest.manifest_id] * len(rows), pa.string()),
            "file_date": pa.array([date.fromisoformat(request.manifest.date)] * len(rows), pa.date32()),
        }
        columns = {name: metadata[name] for name in metadata_names(self._metadata_columns)}
        for column in schema.columns:
            if column.key is not None:
                kind = column.column_type
                found = (values.get(column.key) for _, values in rows)
                typed = [None if text is None else value_of(text, kind) for text in found]
                columns[column.name] = pa.array(typed, arrow_type(kind))
            else:
                rescued = [_rescued(values, schema) for _, values in rows]
                columns[RESCUED_COLUMN] = pa.array(rescued, MAP_WITH_IDS)
        ids = {**METADATA_IDS, **{column.name: column.field_id for column in schema.columns}}
        fields = [with_field_id(pa.field(name, found.type), ids[name]) for name, found in columns.items()]
        return pa.table(list(columns.values()), schema=pa.schema(fields))


def _misfits(values: Mapping[str, str | None], schema: SchemaVersion) -> list[tuple[str, str]]:
    typed = {column.key: column.column_type for column in schema.columns if column.is_typed}
    return [
        (key, value)
        for key, value in values.items()
        if key in typed and value is not None and value_of(value, typed[key]) is None
    ]


def _rescued(values: Mapping[str, str | None], schema: SchemaVersion) -> list[tuple[str, str]] | None:
    known = schema.keys
    overflow = [(key, value) for key, value in values.items() if key not in known and value is not None]
    return [*overflow, *_misfits(values, schema)] or None


class FailingEngine(PlainEngine):
    """Raises for manifests, and stages those that it does not fail for.

    Args:
        store: Where inputs are.
        error: What it raises.
        times: How often it fails for each manifest; None to fail for every manifest, always.

    Attributes:
        tries: How often it has raised.
    """

    def __init__(self, store: ObjectStore, error: BaseException, times: Mapping[str, int] | None = None) -> None:
        super().__init__(store)
        self.tries = 0
        self._error = error
        self._times = None if times is None else Counter(times)

    def stage(self, request: StageRequest) -> Staged:
        manifest_id = request.manifest.manifest_id
        if self._times is not None:
            if self._times[manifest_id] <= 0:
                return super().stage(request)
            self._times[manifest_id] -= 1
        self.tries += 1
        raise self._error


class ListSource:
    """A stream over a listing, from a thread of its own: each name once a start, hidden ones never.

    Args:
        store: Where the watched prefix is.
        folder: The watched prefix; it ends with `/`.
        batch_size: Names in a micro-batch.
        repeat: How often each name comes within its micro-batch.
        hidden: Names that the stream does not see.
        fail_starts: So many starts fail.
        on_wait: Called at each check whether the stream has ended.
    """

    def __init__(
        self,
        store: ObjectStore,
        folder: str,
        *,
        batch_size: int = 8,
        repeat: int = 1,
        hidden: Iterable[str] = (),
        fail_starts: int = 0,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self.starts = 0
        self.batches: list[list[str]] = []
        self._store, self._folder = store, folder
        self._batch_size, self._repeat = batch_size, repeat
        self._hidden = frozenset(hidden)
        self._fail_starts = fail_starts
        self._on_wait = on_wait
        self._new_names = threading.Event()
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._idle = threading.Event()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        self.starts += 1
        if self.starts <= self._fail_starts:
            raise RuntimeError("the stream cannot start")
        for event in (self._stopped, self._ended, self._idle):
            event.clear()
        self._error = None
        self._thread = threading.Thread(target=self._deliver, args=(on_batch, once), daemon=True)
        self._thread.start()

    def poke(self) -> None:
        """Say that there may be new names."""
        self._idle.clear()
        self._new_names.set()

    def _deliver(self, on_batch: Callable[[Sequence[str]], None], once: bool) -> None:
        seen: set[str] = set()
        try:
            while not self._stopped.is_set():
                uris = [
                    info.uri for info in self._store.list(self._folder) if self._sees(info) and info.uri not in seen
                ]
                batch = uris[: self._batch_size]
                seen.update(batch)
                if batch:
                    self.batches.append(batch)
                    on_batch(batch * self._repeat)
                elif once:
                    return
                else:
                    self._idle.set()
                    self._new_names.wait()
                    self._new_names.clear()
        except Exception as exc:  # noqa: BLE001 - it ends the stream, and `wait` raises it
            self._error = exc
        finally:
            self._ended.set()

    def _sees(self, info: ObjectInfo) -> bool:
        name = info.uri.removeprefix(self._folder)
        return not name.startswith(("_", ".")) and "/" not in name and info.size_bytes > 0 and name not in self._hidden

    def wait(self, timeout_seconds: float) -> bool:
        self._on_wait()
        ended = self._ended.wait(min(timeout_seconds, 0.01))
        if ended and self._error is not None:
            raise self._error
        return ended

    def is_idle(self) -> bool:
        return self._idle.is_set()

    def stop(self) -> None:
        self._stopped.set()
        self._new_names.set()
        if self._thread is not None:
            self._thread.join()


class FaultyStore:
    """A store with faults that are named beforehand.

    Args:
        store: What does the work.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.calls: Counter[str] = Counter()
        self._store = store
        self._refusals: dict[tuple[str, int], bool] = {}
        self._denied: set[str] = set()
        self._lock = threading.Lock()

    def unavailable_at(self, call: int, method: str = "any") -> None:
        """The nth call of a method, or of all of them, is not carried out."""
        self._refusals[method, call] = False

    def deny(self, uri: str) -> None:
        """Refuse to read or write this object."""
        self._denied.add(uri)

    def lose_answer_at(self, call: int, method: str = "any") -> None:
        """Carry out the nth call of a method, or of all of them, and lose the answer."""
        self._refusals[method, call] = True

    def stat(self, uri: str) -> ObjectInfo | None:
        return self._call("stat", uri, lambda: self._store.stat(uri))

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        return self._call("read", uri, lambda: self._store.read(uri, etag=etag))

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        return self._call("read_range", uri, lambda: self._store.read_range(uri, start, length, etag=etag))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        return self._call("list", prefix, lambda: iter([*self._store.list(prefix, start_after=start_after)]))

    def create(self, uri: str, data: bytes) -> bool:
        return self._call("create", uri, lambda: self._store.create(uri, data))

    def put(self, uri: str, data: bytes) -> None:
        self._call("put", uri, lambda: self._store.put(uri, data))

    def upload(self, uri: str, path: Path) -> None:
        self._call("upload", uri, lambda: self._store.upload(uri, path))

    @contextmanager
    def writer(self, uri: str) -> Iterator[MemoryWriter]:
        """The call is the one that makes the object."""

        def write(data: bytes) -> None:
            with self._store.writer(uri) as writer:
                writer.write(data)

        collected = MemoryWriter()
        yield collected
        if not collected.is_aborted:
            self._call("writer", uri, lambda: write(bytes(collected.data)))

    @contextmanager
    def new_writer(self, uri: str) -> Iterator[MemoryWriter]:
        """As `writer`."""

        def write(data: bytes) -> None:
            with self._store.new_writer(uri) as writer:
                writer.write(data)

        collected = MemoryWriter()
        yield collected
        if not collected.is_aborted:
            self._call("new_writer", uri, lambda: write(bytes(collected.data)))

    def copy(self, source: str, target: str) -> None:
        self._call("copy", source, lambda: self._store.copy(source, target))

    def delete(self, uris: Iterable[str]) -> None:
        self._call("delete", "", lambda: self._store.delete(uris))

    def delete_version(self, uri: str, etag: str) -> bool:
        return self._call("delete", "", lambda: self._store.delete_version(uri, etag))

    def _call(self, method: str, uri: str, work: Callable[[], T]) -> T:
        if uri in self._denied:
            raise AccessError(f"{uri}: access denied")
        with self._lock:
            self.calls.update([method, "any"])
            lost = self._refusals.get((method, self.calls[method]), self._refusals.get(("any", self.calls["any"])))
        result = work() if lost is not False else None
        if lost is not None:
            raise StoreUnavailable(f"{uri}: the answer to {method} did not come")
        return result  # type: ignore[return-value] # the work was done


def arrow_type(column_type: ColumnType) -> pa.DataType:
    """How Parquet holds values of a type, as pyarrow shows it."""
    if column_type.kind == "decimal":
        return pa.decimal128(column_type.precision, column_type.scale)
    kinds = {
        "string": pa.string(),
        "long": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
    }
    return kinds[column_type.kind]
