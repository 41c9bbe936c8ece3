"""Divides the slots of one job among several streams, by weights, so that a flood in one starves none.

Start-time fair queueing: each stream has a clock that runs by the bytes of what it begins, divided by its weight, and
the stream whose clock is behind begins next. The clock of a stream without work does not stand still: it is set to that
of the others when work comes, so that nothing is saved up, and until then the others have its share.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from compactor.job.delivery.work_queue import OTHERS_FIRST

LEAST_BYTES = 16 * 1024 * 1024
"""What a manifest costs at least: a small one takes its time, too, however few bytes it has."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A manifest that a stream has begun.

    Attributes:
        manifest_id: Its id.
        input_bytes: What it costs.
        alone: Whether nothing else may be in flight until it ends.
    """

    manifest_id: str
    input_bytes: int
    alone: bool


class Beginner(Protocol):
    """The waiting manifests of one stream."""

    def begin_one(self, others: int) -> Begun | None:
        """Begin the manifest whose turn it is; None if none may begin.

        Args:
            others: How many manifests of other streams are in flight.
        """

    def needs_all(self) -> bool:
        """Return whether a manifest waits until nothing else is in flight in the whole job."""


@dataclass(slots=True)
class _Share:
    """One stream: its weight, its clock in bytes, and what it has in flight."""

    weight: int
    clock: float = 0.0
    in_flight: int = 0
    beginner: Beginner | None = None


@dataclass(slots=True)
class SharedSlots:
    """The slots of a job. Thread-safe; `deal` calls the beginners, so its caller holds no lock of theirs.

    Attributes:
        slots: How many manifests are in flight at once, of all streams together.
        weights: The weight of each stream.
        in_flight: The ids of all manifests in flight.
    """

    slots: int
    weights: Mapping[str, int]
    in_flight: set[str] = field(default_factory=set, init=False)
    _shares: dict[str, _Share] = field(init=False)
    _clock: float = 0.0
    _alone: bool = False
    _begun_since_alone: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._shares = {name: _Share(weight) for name, weight in self.weights.items()}

    def of(self, stream: str) -> "StreamSlots":
        """The slots as one stream sees them."""
        return StreamSlots(self, stream)

    def join(self, stream: str, beginner: Beginner) -> None:
        """Let a stream take part, in place of what it took part with before."""
        with self._lock:
            self._shares[stream].beginner = beginner

    def ended(self, stream: str, begun: Begun) -> None:
        """Note that a manifest ended."""
        with self._lock:
            self._shares[stream].in_flight -= 1
            self.in_flight.discard(begun.manifest_id)
            self._alone = self._alone and not begun.alone

    def deal(self) -> None:
        """Let streams begin manifests as long as there are slots, the one whose clock is behind first."""
        with self._lock:
            while self._slots_taken < self.slots and not self._alone and self._begin_one():
                pass

    @property
    def _slots_taken(self) -> int:
        return sum(each.in_flight for each in self._shares.values())

    def _begin_one(self) -> bool:
        in_order = sorted(self._shares.values(), key=lambda each: max(each.clock, self._clock))
        joined = [(each, each.beginner) for each in in_order if each.beginner is not None]
        is_owed = self._begun_since_alone >= self.slots * OTHERS_FIRST
        needing = [each for each in joined if is_owed and each[1].needs_all()]
        if needing and self._slots_taken:
            return False  # everything in flight ends first
        for share, beginner in [*needing, *joined]:
            begun = beginner.begin_one(self._slots_taken - share.in_flight)
            if begun is not None:
                self._note(share, begun)
                return True
        return False

    def _note(self, share: _Share, begun: Begun) -> None:
        start = max(share.clock, self._clock)
        share.clock = start + max(begun.input_bytes, LEAST_BYTES) / share.weight
        share.in_flight += 1
        self.in_flight.add(begun.manifest_id)
        self._clock, self._alone = start, begun.alone
        self._begun_since_alone = 0 if begun.alone else self._begun_since_alone + 1


@dataclass(frozen=True, slots=True)
class StreamSlots:
    """The slots of a job for one of its streams."""

    shared: SharedSlots
    stream: str

    def join(self, beginner: Beginner) -> None:
        """Take part with these waiting manifests; see `SharedSlots`."""
        self.shared.join(self.stream, beginner)

    def ended(self, begun: Begun) -> None:
        """Note that a manifest ended."""
        self.shared.ended(self.stream, begun)

    def deal(self) -> None:
        """Let streams begin manifests as long as there are slots."""
        self.shared.deal()
