"""What the use-cases need from the outside world, as protocols.

Stores, claims and clocks have a contract suite each in `tests/contract`, which every implementation passes, the
in-memory one included.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from compactor.core.distributions import Distribution


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object as a store lists it.

    Attributes:
        uri: Where it is, spelled as the prefix or URI it was asked for with.
        size_bytes: Its length.
        etag: An opaque version: it differs whenever the content was replaced. Without quotes.
        modified_at: Time of the last write, UTC.
    """

    uri: str
    size_bytes: int
    etag: str
    modified_at: datetime


class ObjectWriter(Protocol):
    """An object that is being written. Its errors are those of `ObjectStore`, and each of its methods may raise them.

    A context manager. When its block ends, the object comes into being, or is replaced, atomically and durably. A block
    that ends by an exception leaves nothing behind, and neither does one whose `write` failed, even if the caller went
    on from that: its end raises. For one thread.
    """

    def __enter__(self) -> Self: ...

    def write(self, data: bytes) -> None:
        """Add bytes to the end; none or any number of them."""

    def abort(self) -> None:
        """Discard what was written: the end of the block then leaves nothing behind."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ObjectStore(Protocol):
    """Objects under URIs: `s3://bucket/key`, `file:///path` or a plain absolute path.

    URIs are literal: no globbing and no URL decoding. Every method raises `StoreUnavailable` for passing trouble that
    outlasted the client's retries, and `AccessError` where a person must act.
    """

    def stat(self, uri: str) -> ObjectInfo | None:
        """What is at this URI now, or None."""

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        """The whole object.

        Raises:
            ObjectNotFound: There is none.
            ObjectChanged: `etag` was given and the object has another one.
        """

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """Up to `length` bytes from `start`; fewer at the end, none behind it.

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
            True if the object now holds `data` by this call (also where the answer of the first try was lost and a
            repeat found the very same bytes); False if another object was there, which is left as it is.
        """

    def put(self, uri: str, data: bytes) -> None:
        """Write or replace an object, atomically and durably."""

    def upload(self, uri: str, path: Path) -> None:
        """Write or replace an object with the content of a local file of any size."""

    def writer(self, uri: str) -> ObjectWriter:
        """Write or replace an object of any size as its bytes come, in bounded memory; whole or not at all.

        Nobody sees any of it before the end of the writer's block. Of several writers of the same object, the last one
        to end wins.
        """

    def copy(self, source: str, target: str) -> None:
        """Write or replace `target` with the content of `source`, of any size; whole or not at all.

        Raises:
            ObjectNotFound: There is no `source`.
        """

    def delete(self, uris: Iterable[str]) -> None:
        """Delete objects; those that are not there are no error."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who holds a file.

    Attributes:
        holder: The id of the manifest the file was claimed for.
        lease_until: Until then nobody else may ask that the manifest be given up for not being written. UTC.
    """

    holder: str
    lease_until: datetime


class ClaimTable(Protocol):
    """Which manifest each file version belongs to. One holder a key, decided by a conditional write."""

    @property
    def lifetime_days(self) -> float | None:
        """How long a claim is sure to be remembered; None for ever."""

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        """Claim every key that is free.

        A key that this holder holds already stays as it is.

        Returns:
            For every key, its claim after the call: compare `holder` to see who won.
        """

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        """Replace a holder whose manifest can never take effect.

        Returns:
            The keys that `to_holder` holds now. A key that was not held by `from_holder` any more was not changed.
        """

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        """The claims of those keys that are held."""


class Clock(Protocol):
    """Time, so that tests can set it."""

    def now(self) -> datetime:
        """The time now, in UTC, with its zone."""


@dataclass(frozen=True, slots=True)
class ProcessName:
    """A process that can be found again from the same machine.

    Attributes:
        host: The machine, its boot, and its table of processes: containers have tables of their own.
        process_id: Its number there.
    """

    host: str
    process_id: int


class Processes(Protocol):
    """The processes of this machine."""

    def this(self) -> ProcessName:
        """The process that asks."""

    def is_gone(self, process: ProcessName) -> bool:
        """Whether a process is known to have ended; False also where this machine cannot tell."""


FLUSH_SECONDS = 10.0
"""How long the end of a run, or of a function's call, waits for its last measurements to be sent."""


class MetricsSink(Protocol):
    """Where measurements go. Never raises, and never keeps its caller waiting but in `flush`."""

    def emit(self, values: Mapping[str, float | Distribution]) -> None:
        """Record one value, or many, for each of these names of `compactor.telemetry.metrics.CATALOGUE`."""

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until everything that was emitted has left this process; for the end of a run or of a function's call.

        Returns:
            False if some of it had not when the time was over.
        """
