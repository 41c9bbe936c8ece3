"""A store, claims, metrics and a clock in memory."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from compactor.adapters.local.machine import SystemClock
from compactor.core.distributions import Distribution
from compactor.core.errors import ObjectChanged, ObjectNotFound
from compactor.core.layout import canonical
from compactor.core.ports import NO_DIMENSIONS, Claim, Clock, ObjectInfo, delete_by_name, sort_key, start_within


class ManualClock:
    """A clock that moves only when set."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._now

    def set(self, moment: datetime) -> None:
        with self._lock:
            self._now = moment

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class MemoryMetrics:
    """Keeps all measurements in order."""

    emitted: list[dict[str, float | Distribution]] = field(default_factory=list)
    emitted_about: list[tuple[dict[str, str], dict[str, float | Distribution]]] = field(default_factory=list)

    def emit(self, values: Mapping[str, float | Distribution], about: Mapping[str, str] = NO_DIMENSIONS) -> None:
        if about:
            self.emitted_about.append((dict(about), dict(values)))
        else:
            self.emitted.append(dict(values))

    def flush(self, timeout_seconds: float) -> bool:  # noqa: ARG002 - nothing is ever queued
        return True


class _Object(NamedTuple):
    data: bytes
    info: ObjectInfo


class MemoryStore:
    """Objects in a dictionary, with modification times from a clock, by default the system's. Thread-safe."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._objects: dict[str, _Object] = {}
        self._writes = 0
        self._lock = threading.RLock()

    def stat(self, uri: str) -> ObjectInfo | None:
        found = self._objects.get(canonical(uri))
        return replace(found.info, uri=uri) if found else None

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        found = self._objects.get(canonical(uri))
        if found is None:
            raise ObjectNotFound(f"{uri}: no such object")
        if etag is not None and found.info.etag != etag:
            raise ObjectChanged(f"{uri}: expected version {etag}, found {found.info.etag}")
        return found.data

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        return self.read(uri, etag=etag)[start : start + length]

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        start, base = start_within(prefix, start_after), canonical(prefix)
        if start is None:
            return
        with self._lock:
            names = [uri.removeprefix(base) for uri in self._objects if uri.startswith(base)]
        for name in sorted(names, key=sort_key):
            found = self._objects.get(base + name)
            if found and (not start or sort_key(name) > sort_key(start)):
                yield replace(found.info, uri=prefix + name)

    def create(self, uri: str, data: bytes) -> bool:
        with self._lock:
            found = self._objects.get(canonical(uri))
            if found is None:
                self.put(uri, data)
            return found is None or found.data == data

    def put(self, uri: str, data: bytes) -> None:
        with self._lock:
            self._writes += 1
            info = ObjectInfo(uri, len(data), f"{self._writes:x}", self._clock.now())
            self._objects[canonical(uri)] = _Object(bytes(data), info)

    def upload(self, uri: str, path: Path) -> None:
        self.put(uri, path.read_bytes())

    @contextmanager
    def writer(self, uri: str, *, only_new: bool = False) -> Iterator["MemoryWriter"]:
        writer = MemoryWriter()
        yield writer
        with self._lock:
            if writer.is_aborted:
                return
            if only_new and canonical(uri) in self._objects:
                raise ObjectChanged(f"{uri}: another object exists; expected none")
            self.put(uri, bytes(writer.data))

    def new_writer(self, uri: str) -> AbstractContextManager["MemoryWriter"]:
        return self.writer(uri, only_new=True)

    def copy(self, source: str, target: str) -> None:
        with self._lock:
            self.put(target, self.read(source))

    def delete(self, uris: Iterable[str]) -> None:
        for uri in uris:
            with self._lock:
                self._objects.pop(canonical(uri), None)

    def delete_version(self, uri: str, etag: str) -> bool:
        return delete_by_name(self, uri, etag)


@dataclass
class MemoryWriter:
    """An object being written."""

    data: bytearray = field(default_factory=bytearray)
    is_aborted: bool = False

    def write(self, data: bytes) -> None:
        self.data += data

    def abort(self) -> None:
        self.is_aborted = True


@dataclass(frozen=True, slots=True)
class MemoryClaims:
    """Claims in a dictionary, which never expire. Thread-safe."""

    _claims: dict[str, Claim] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        fresh = Claim(holder, now + timedelta(seconds=lease_seconds))
        with self._lock:
            return {key: self._claims.setdefault(key, fresh) for key in keys}

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        taken = Claim(to_holder, now + timedelta(seconds=lease_seconds))
        with self._lock:
            held = {key: self._claims[key] for key in keys if key in self._claims}
            self._claims.update({key: taken for key, claim in held.items() if claim.holder == from_holder})
            return {key for key in held if self._claims[key].holder == to_holder}

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        with self._lock:
            return {key: self._claims[key] for key in keys if key in self._claims}
