"""Protocols for all external dependencies of the use-cases.

Every store, claim table and clock passes its contract suite in `tests/contract`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from compactor.core.distributions import Distribution
from compactor.core.errors import ObjectNotFound
from compactor.core.layout import canonical


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object as a store lists it.

    Attributes:
        uri: Spelled like the prefix or URI of the request.
        etag: An opaque version without quotes, which changes whenever the content is replaced.
        modified_at: Time of the last write, UTC.
        stamp: On a local disk, changes with each write, even one that keeps length and time; else empty.
        target: The target of a listed symbolic link, spelled like the prefix if it is below it; else empty.
    """

    uri: str
    size_bytes: int
    etag: str
    modified_at: datetime
    stamp: str = ""
    target: str = ""


class ObjectWriter(Protocol):
    """An object that one thread is writing. Each method may raise the errors of `ObjectStore`."""

    def write(self, data: bytes) -> None:
        """Append any number of bytes."""

    def abort(self) -> None:
        """Discard the written bytes; the block then creates no object."""


class ObjectStore(Protocol):
    """Objects under URIs: `s3://bucket/key`, `file:///path` or a plain absolute path.

    URIs are literal: no globbing and no URL decoding. Every method raises `StoreUnavailable` for transient failures
    that outlast the client's retries, and `AccessError` if an operator must act.
    """

    def stat(self, uri: str) -> ObjectInfo | None:
        """Describe the object at this URI; None if there is none."""

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        """Read the whole object.

        Raises:
            ObjectNotFound: There is no such object.
            ObjectChanged: `etag` was given and the object has a different one.
        """

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """Read up to `length` bytes from `start`; fewer at the end of the object, none after it.

        Raises:
            ObjectNotFound: There is no such object.
            ObjectChanged: `etag` was given and the object has a different one.
        """

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        """List all objects under a folder, at any depth, in the order of their URIs' UTF-8 bytes.

        Args:
            prefix: A folder that ends with `/`. It need not exist.
            start_after: Only objects whose URI sorts after this one.
        """

    def create(self, uri: str, data: bytes) -> bool:
        """Write an object atomically and durably, unless there is one.

        Returns:
            True if this call wrote the object, even if the response was lost and a retry found the same bytes; False if
            another object was there. That one is not changed.
        """

    def put(self, uri: str, data: bytes) -> None:
        """Write or replace an object, atomically and durably."""

    def upload(self, uri: str, path: Path) -> None:
        """Write or replace an object with the content of a local file of any size."""

    def writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        """Write or replace an object of any size in bounded memory.

        The object appears atomically and durably at the end of the block. A block that raises writes nothing, nor does
        one in which a `write` failed: if the caller caught that error, the end of the block raises. If several writers
        write the same object, the last one to end wins.
        """

    def new_writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        """Write an object of any size unless there is one; otherwise as `writer`.

        If the response to the last request was lost but the object of this block is there, the block succeeds.

        Raises:
            ObjectChanged: At the end of the block, a different object was there. It is not changed.
        """

    def copy(self, source: str, target: str) -> None:
        """Write or replace `target` with the content of `source`, of any size, atomically.

        Raises:
            ObjectNotFound: There is no `source`.
        """

    def delete(self, uris: Iterable[str]) -> None:
        """Delete objects; missing ones are ignored."""

    def delete_version(self, uri: str, etag: str) -> bool:
        """Delete an object unless it is another version than this one; return whether it is gone.

        On a local disk the check and the deletion are one step, whatever becomes of the folders on the way. S3 deletes
        by name: a version that replaces this one in between is deleted, too.
        """


def delete_by_name(store: ObjectStore, uri: str, etag: str) -> bool:
    """Do what `delete_version` does where a store can delete only by name: check first, then delete."""
    found = store.stat(uri)
    is_this = found is not None and found.etag == etag
    if is_this:
        store.delete([uri])
    return is_this or found is None


_COPIED_AT_ONCE_BYTES = 16 * 1024 * 1024


def copy_through(store: ObjectStore, source: str, writer: AbstractContextManager[ObjectWriter]) -> None:
    """Copy an object where a store cannot: its bytes pass through this process.

    Raises:
        ObjectNotFound: There is no `source`.
    """
    found = store.stat(source)
    if found is None:
        raise ObjectNotFound(f"{source}: no such object")
    with writer as target:
        for start in range(0, found.size_bytes, _COPIED_AT_ONCE_BYTES):
            target.write(store.read_range(source, start, _COPIED_AT_ONCE_BYTES, etag=found.etag))


def sort_key(name: str) -> bytes:
    """The UTF-8 bytes of a name. Python decodes local names that are not UTF-8 with surrogates."""
    return name.encode("utf-8", "surrogateescape")


def start_within(prefix: str, start_after: str | None) -> str | None:
    """The part of a URI below a folder; empty to list everything; None if nothing in the folder sorts after the URI."""
    if start_after is None:
        return ""
    start, base = canonical(start_after), canonical(prefix)
    if start.startswith(base):
        return start.removeprefix(base)
    return "" if sort_key(start) < sort_key(base) else None


@dataclass(frozen=True, slots=True)
class Claim:
    """Which manifest holds a file.

    Attributes:
        holder: The id of the manifest.
        lease_until: Until then the id must not be revoked, even if its manifest is not written yet. UTC.
    """

    holder: str
    lease_until: datetime


class ClaimTable(Protocol):
    """Which manifest each file version belongs to. A conditional write decides on each key's only holder."""

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        """Claim every free key. Keys that the holder already has stay unchanged.

        Returns:
            The claim of every key after the call; compare `holder` to see which were won.
        """

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        """Replace a holder whose id was revoked.

        Returns:
            The keys that `to_holder` now holds. Keys that `from_holder` no longer held stay unchanged.
        """

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        """The claims of the keys that are held."""


class Clock(Protocol):
    """The time, settable in tests."""

    def now(self) -> datetime:
        """The current time in UTC, with its zone."""


@dataclass(frozen=True, slots=True)
class ProcessName:
    """A process, as others on the same machine identify it.

    Attributes:
        host: The machine, its boot id, and its process table (containers have their own).
        process_id: The number in that table.
    """

    host: str
    process_id: int


class Processes(Protocol):
    """The processes of this machine."""

    def this(self) -> ProcessName: ...

    def is_gone(self, process: ProcessName) -> bool:
        """Whether a process has certainly ended; False if this machine cannot know."""


FLUSH_SECONDS = 10.0
"""How long a run or function call waits at its end for its last metrics to be sent."""


NO_DIMENSIONS: Mapping[str, str] = {}


class MetricsSink(Protocol):
    """Receives metrics. Never raises; only `flush` blocks."""

    def emit(self, values: Mapping[str, float | Distribution], about: Mapping[str, str] = NO_DIMENSIONS) -> None:
        """Record one or more values of metrics.

        Args:
            values: By name, from `compactor.telemetry.metrics.CATALOGUE`.
            about: Additional dimensions. The sums of the stream, the shard and the job then exclude these values.
        """

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until all emitted values have left this process.

        Returns:
            False if the timeout passed first.
        """
