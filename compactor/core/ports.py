"""Protocols for everything that the use-cases need from outside.

Stores, claims and clocks each have a contract suite in `tests/contract`, which every implementation passes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from compactor.core.distributions import Distribution


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object as a store lists it.

    Attributes:
        uri: Where it is, spelled like the prefix or URI of the request.
        size_bytes: Its length.
        etag: An opaque version: it differs whenever the content was replaced. Without quotes.
        modified_at: Time of the last write, UTC.
        stamp: On a local disk, changes with each write, also with one that keeps length and time; else empty.
        target: The file that a listed symbolic link leads to, spelled like the prefix if it is below; else empty.
    """

    uri: str
    size_bytes: int
    etag: str
    modified_at: datetime
    stamp: str = ""
    target: str = ""


class ObjectWriter(Protocol):
    """An object that is being written, by one thread. Each method may raise the errors of `ObjectStore`."""

    def write(self, data: bytes) -> None:
        """Add any number of bytes to the end."""

    def abort(self) -> None:
        """Discard what was written: the end of the block then leaves nothing behind."""


class ObjectStore(Protocol):
    """Objects under URIs: `s3://bucket/key`, `file:///path` or a plain absolute path.

    URIs are literal: no globbing and no URL decoding. Every method raises `StoreUnavailable` for passing trouble that
    outlasts the client's retries, and `AccessError` if a person must act.
    """

    def stat(self, uri: str) -> ObjectInfo | None:
        """Return the object that is at this URI now, or None."""

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        """The whole object.

        Raises:
            ObjectNotFound: There is none.
            ObjectChanged: `etag` was given and the object has another one.
        """

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """Return up to `length` bytes from `start`; fewer at the end of the object, none behind it.

        Raises:
            ObjectNotFound: There is no such object.
            ObjectChanged: `etag` was given and the object has another one.
        """

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        """All objects under a folder, at any depth, in the order of their URIs' UTF-8 bytes.

        Args:
            prefix: A folder; it ends with `/`. A folder that does not exist has no objects.
            start_after: Only objects whose URI sorts behind this one.
        """

    def create(self, uri: str, data: bytes) -> bool:
        """Write a new object, atomically and durably, only if there is none.

        Returns:
            True if this call wrote the object, also if its answer was lost and a retry found the same bytes; False if
            another object was there, which stays as it is.
        """

    def put(self, uri: str, data: bytes) -> None:
        """Write or replace an object, atomically and durably."""

    def upload(self, uri: str, path: Path) -> None:
        """Write or replace an object with the content of a local file of any size."""

    def writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        """Write or replace an object of any size in bounded memory; whole or not at all.

        When the block ends, the object is created or replaced, atomically and durably, and not visible before. A block
        that ends by an exception leaves nothing behind. A block in which a `write` failed leaves nothing behind either:
        if the caller caught that error, the end of the block raises. If several writers write the same object, the last
        one to end wins.
        """

    def new_writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        """Write a new object of any size, only if there is none; else as `writer`.

        If the answer to the last request was lost, and the object of this very block is there, the block ends well.

        Raises:
            ObjectChanged: At the end of the block, another object was there, which stays as it is.
        """

    def copy(self, source: str, target: str) -> None:
        """Write or replace `target` with the content of `source`, of any size; whole or not at all.

        Raises:
            ObjectNotFound: There is no `source`.
        """

    def delete(self, uris: Iterable[str]) -> None:
        """Delete objects; a missing object is no error."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Which manifest holds a file.

    Attributes:
        holder: The id of the manifest that the file was claimed for.
        lease_until: Until then the id must not be revoked, although its manifest is not written yet. UTC.
    """

    holder: str
    lease_until: datetime


class ClaimTable(Protocol):
    """Which manifest each file version belongs to. One holder per key, decided by a conditional write."""

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        """Claim every key that is free.

        A key that the holder holds already stays as it is.

        Returns:
            The claim of every key after the call; compare `holder` to see which were won.
        """

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        """Replace a holder whose id was revoked.

        Returns:
            The keys that `to_holder` holds now. A key that `from_holder` no longer held is not changed.
        """

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        """The claims of those keys that are held."""


class Clock(Protocol):
    """The time, so that tests can set it."""

    def now(self) -> datetime:
        """The time now, in UTC, with its zone."""


@dataclass(frozen=True, slots=True)
class ProcessName:
    """A process, as other processes of the same machine can find it.

    Attributes:
        host: The machine, its boot, and its process table: containers have their own.
        process_id: Its number there.
    """

    host: str
    process_id: int


class Processes(Protocol):
    """The processes of this machine."""

    def this(self) -> ProcessName:
        """The current process."""

    def is_gone(self, process: ProcessName) -> bool:
        """Return whether a process has certainly ended; False if this machine cannot tell."""


FLUSH_SECONDS = 10.0
"""How long the end of a run, or of a function's call, waits until its last measurements are sent."""


NO_DIMENSIONS: Mapping[str, str] = {}


class MetricsSink(Protocol):
    """Where measurements go. Never raises, and only `flush` makes its caller wait."""

    def emit(self, values: Mapping[str, float | Distribution], about: Mapping[str, str] = NO_DIMENSIONS) -> None:
        """Record one or many values for each name, which is one of `compactor.telemetry.metrics.CATALOGUE`.

        Args:
            values: By name.
            about: Further dimensions of these values. They are then in no sum of the stream, the shard or the job.
        """

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until everything that was emitted has left this process; for the end of a run or of a function's call.

        Returns:
            False if the timeout passed first.
        """
