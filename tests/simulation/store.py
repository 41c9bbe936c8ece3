"""The world's store, and what one process sees of it: delays, lost answers, refusals, denials and its own death."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from compactor.core.errors import AccessError, StoreUnavailable
from compactor.core.ports import Claim, ObjectInfo
from tests.simulation.faults import SHAKEN_CALLS, Fault, Faults
from tests.simulation.scheduler import Death, Process, Scheduler
from tests.support.memory_store import MemoryClaims, MemoryStore, MemoryWriter

T = TypeVar("T")

MEAN_LATENCY_SECONDS = 0.02


class WorldStore(MemoryStore):
    """All objects, with their names in order, so that a listing costs as much as it returns.

    Args:
        clock: Dates the objects.
        on_change: Called before each change with the URI and the new content, which is None if it is deleted.
    """

    def __init__(self, clock: Any, on_change: Callable[[str, bytes | None], None]) -> None:
        super().__init__(clock)
        self._names: list[str] = []
        self._on_change = on_change

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        names = self._names
        first = bisect_left(names, prefix)
        if start_after is not None:
            first = max(first, bisect_right(names, start_after))
        last = bisect_left(names, prefix + "\U0010ffff")
        return iter([self._objects[name].info for name in names[first:last]])

    def put(self, uri: str, data: bytes) -> None:
        self._on_change(uri, data)
        if uri not in self._objects:
            insort(self._names, uri)
        super().put(uri, data)

    def delete(self, uris: Iterable[str]) -> None:
        for uri in uris:
            if uri in self._objects:
                self._on_change(uri, None)
                del self._names[bisect_left(self._names, uri)]
                del self._objects[uri]


@dataclass(slots=True)
class Line:
    """The line between one process and the services that it calls. Everything that goes wrong goes wrong here.

    Attributes:
        later: Has something happen after some seconds, whatever becomes of the process.
        note: Called with what happens, for the trace.
    """

    scheduler: Scheduler
    process: Process
    faults: Faults
    later: Callable[[float, Callable[[], object]], None]
    note: Callable[[str, str], None]
    is_seldom: bool = False  # see `Faults.draw`
    shaken: int = 0  # so many calls ago it stood still, from SHAKEN_CALLS down

    def call(self, what: str, effect: Callable[[], T], *, writes: bool = False) -> T:
        """Make one call."""
        chance, scheduler = self.scheduler.order_chance, self.scheduler
        scheduler.pause(chance.expovariate(1.0) * MEAN_LATENCY_SECONDS)
        fault = self.faults.draw(writes=writes, is_shaken=self.shaken > 0, is_seldom=self.is_seldom)
        self.shaken = max(0, self.shaken - 1)
        self.note(what, fault.kind)
        if fault.kind:
            return self._failing(what, fault, effect)
        return effect()

    def _failing(self, what: str, fault: Fault, effect: Callable[[], T]) -> T:
        scheduler = self.scheduler
        if fault.kind == "slow":
            scheduler.pause(fault.seconds)
            result = effect()
            scheduler.pause(fault.seconds)
            return result
        if fault.kind == "pause":
            self.process.paused_until = scheduler.now + fault.seconds
            self.shaken = SHAKEN_CALLS
            result = effect()
            scheduler.pause(0.0)
            return result
        if fault.kind in {"late", "death late"}:
            self.later(fault.seconds, lambda: _landed(effect))
        elif fault.kind in {"lost", "death after"}:
            effect()
        if fault.kind.startswith("death"):
            scheduler.kill(self.process)
            raise Death
        scheduler.pause(fault.seconds if fault.kind == "lost" else 0.1)
        raise StoreUnavailable(f"{what}: no answer")


def _landed(effect: Callable[[], object]) -> None:
    """A late request: no one hears of its error."""
    with suppress(Exception):
        effect()


@dataclass(slots=True)
class ProcessStore:
    """The store as one process sees it.

    Attributes:
        is_denied: Returns whether an object may not be read now.
    """

    store: WorldStore
    line: Line
    is_denied: Callable[[str], bool]

    def stat(self, uri: str) -> ObjectInfo | None:
        return self.line.call(f"stat {uri}", lambda: self.store.stat(uri))

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        return self.line.call(f"read {uri}", lambda: self._readable(uri).read(uri, etag=etag))

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        return self.line.call(
            f"read_range {uri}", lambda: self._readable(uri).read_range(uri, start, length, etag=etag)
        )

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        return self.line.call(f"list {prefix}", lambda: self.store.list(prefix, start_after=start_after))

    def create(self, uri: str, data: bytes) -> bool:
        return self.line.call(f"create {uri}", lambda: self.store.create(uri, data), writes=True)

    def put(self, uri: str, data: bytes) -> None:
        is_heartbeat = "/state/runs/" in uri  # most calls of a driver
        self.line.call(f"put {uri}", lambda: self.store.put(uri, data), writes=not is_heartbeat)

    def upload(self, uri: str, path: Path) -> None:
        data = path.read_bytes()
        self.line.call(f"upload {uri}", lambda: self.store.put(uri, data), writes=True)

    @contextmanager
    def writer(self, uri: str) -> Iterator[MemoryWriter]:
        collected = MemoryWriter()
        yield collected
        if not collected.is_aborted:
            self.put(uri, bytes(collected.data))

    @contextmanager
    def new_writer(self, uri: str) -> Iterator[MemoryWriter]:
        raise NotImplementedError(uri)  # for a table, which no simulation has
        yield MemoryWriter()

    def copy(self, source: str, target: str) -> None:
        self.line.call(f"copy {source} {target}", lambda: self.store.copy(source, target), writes=True)

    def delete(self, uris: Iterable[str]) -> None:
        doomed = [*uris]
        if doomed:
            self.line.call(f"delete {' '.join(doomed)}", lambda: self.store.delete(doomed), writes=True)

    def delete_version(self, uri: str, etag: str) -> bool:
        return self.line.call(f"delete {uri}", lambda: self.store.delete_version(uri, etag), writes=True)

    def _readable(self, uri: str) -> WorldStore:
        if self.is_denied(uri):
            raise AccessError(f"{uri}: access denied")
        return self.store


@dataclass(slots=True)
class ProcessClaims:
    """The table of claims as one process sees it."""

    claims: MemoryClaims
    line: Line

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        def effect() -> dict[str, Claim]:
            return self.claims.claim(keys, holder, now=now, lease_seconds=lease_seconds)

        return self.line.call(f"claim {len(keys)} for {holder}", effect, writes=True)

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        def effect() -> set[str]:
            return self.claims.take_over(
                keys, from_holder=from_holder, to_holder=to_holder, now=now, lease_seconds=lease_seconds
            )

        return self.line.call(f"take over {len(keys)} from {from_holder} to {to_holder}", effect, writes=True)

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        return self.line.call(f"get {len(keys)} claims", lambda: self.claims.get_many(keys))
