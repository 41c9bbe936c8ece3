"""Decides which manifest starts next, and alongside which others: within one stream, and among a job's streams.

A job's slots are divided among its streams by weight, so that a flood in one starves none.

Start-time fair queueing: each stream's clock advances by the bytes it starts, divided by its weight, and the stream
with the slowest clock starts next. When work arrives for an idle stream, its clock is set to that of the others, so
that nothing is saved up. Until then the others get its share.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from compactor.core.rules.attempts import Lane
from compactor.core.rules.shares import Share
from compactor.job.results import Delivery

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items that take turns by share: first by size class, then by source.

    Every operation costs the same, however many items wait.
    """

    def __init__(self) -> None:
        self._classes: OrderedDict[int, OrderedDict[str, deque[T]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def push(self, item: T, share: Share) -> None:
        sources = self._classes.setdefault(share.size_class, OrderedDict())
        sources.setdefault(share.source, deque()).append(item)
        self._count += 1

    def pop(self, but: Collection[str] = ()) -> T | None:
        """Take the first item of the share whose turn it is, except of some sources; None if there is none."""
        # At most the excluded ones are passed over in each class.
        shares = ((size, source) for size, sources in self._classes.items() for source in sources if source not in but)
        found = next(shares, None)
        return None if found is None else self._taken(*found)

    def _taken(self, size_class: int, source: str) -> T:
        sources = self._classes[size_class]
        items = sources[source]
        item = items.popleft()
        self._count -= 1
        if items:
            sources.move_to_end(source)
        else:
            del sources[source]
        if sources:
            self._classes.move_to_end(size_class)
        else:
            del self._classes[size_class]
        return item


OTHERS_FIRST = 4
"""This many manifests per slot start before one that may kill the driver, or that needs the driver for itself."""

FRESH_BEFORE_AGAIN = 8
"""This many waiting first attempts start before a repeated one.

Permanent failures then cost the others at most a ninth of their turns; otherwise they would take half of the slots.
"""


@dataclass(slots=True)
class WorkQueue:
    """Waiting manifests and manifests in flight. Each id is in flight once.

    First attempts are taken share by share. While they wait, repeated ones get at most half of the slots, and one turn
    after `FRESH_BEFORE_AGAIN` first attempts; every second turn while more than `OTHERS_FIRST` per slot wait. A
    manifest that must run alone runs when nothing else does; before it, `OTHERS_FIRST` others per slot start.

    After a death the queue is cautious: it starts with one manifest, and adds one more for each that ended. As many
    first attempts start before the first repeated one as before one that must run alone.

    Attributes:
        slots: How many manifests are in flight at once.
        files: How many files the waiting manifests contain.
    """

    slots: int
    in_flight: dict[str, Delivery] = field(default_factory=dict)
    files: int = 0
    _fresh: FairQueue[Delivery] = field(default_factory=FairQueue)
    _again: deque[Delivery] = field(default_factory=deque)
    _alone: deque[Delivery] = field(default_factory=deque)
    _later: dict[str, deque[Delivery]] = field(default_factory=dict)  # more deliveries of waiting or running manifests
    _known: set[tuple[str, str]] = field(default_factory=set)
    _begun_since_alone: int = 0
    _fresh_until_again: int = 0
    _trusted: int = 1_000_000

    def __len__(self) -> int:
        return len(self._known) - len(self.in_flight)

    @property
    def first_attempts(self) -> int:
        """How many waiting manifests are first attempts."""
        return len(self._fresh)

    @property
    def uris(self) -> frozenset[str]:
        """The objects with the waiting manifests and those in flight."""
        return frozenset(uri for _, uri in self._known)

    def add(self, work: Delivery) -> bool:
        """Add a waiting manifest; return False if the same delivery already waits or is in flight."""
        if work.place in self._known:  # guard: a URI listed twice in a batch is processed once
            return False
        self._known.add(work.place)
        self.files += work.files
        if work.manifest_id in self._later:  # guard: a manifest under two names in a batch is processed once
            self._later[work.manifest_id].append(work)
        else:
            self._later[work.manifest_id] = deque()
            self._push(work)
        return True

    def be_cautious(self) -> None:
        """Restart with one manifest at a time, after a driver died."""
        self._trusted, self._fresh_until_again = 0, self.slots * OTHERS_FIRST

    def note_commit(self) -> None:
        """Note a commit: manifests with undecided failures need no longer run alone."""
        self._again.extend(each for each in self._alone if each.lane is Lane.UNDECIDED)
        self._alone = deque(each for each in self._alone if each.lane is not Lane.UNDECIDED)

    def next_spare(self) -> Delivery | None:
        """Take a first attempt to start in the spare slot: of a source that has none in flight; None if there is none.

        So the slots are never all held by one source, whatever its manifests cost.
        """
        if self.slots == 1 or self._trusted < self.slots or any(each.alone for each in self.in_flight.values()):
            return None
        # guard: the spare slot is for a source that has none in flight
        begun = self._fresh.pop({each.share.source for each in self.in_flight.values()})
        return None if begun is None else self._begun(replace(begun, alone=False))

    def next(self, others: int = 0) -> Delivery | None:
        """Take the manifest to start now, with `others` in flight in other queues; None if none may start yet."""
        width = min(self.slots, 1 + self._trusted)
        if len(self.in_flight) >= width or any(each.lane is Lane.ALONE for each in self.in_flight.values()):
            return None
        if self.needs_all():
            if self.in_flight or others:  # everything in flight ends first
                return None
            begun, self._begun_since_alone = replace(self._alone.popleft(), lane=Lane.ALONE), 0
        elif self._again and self._may_begin_again():
            begun = replace(self._again.popleft(), lane=Lane.AGAIN)
            # So many share one cause: they get every second turn, or their number would grow without limit.
            self._fresh_until_again = 1 if len(self._again) > self.slots * OTHERS_FIRST else FRESH_BEFORE_AGAIN
        elif (fresh := self._fresh.pop()) is not None:
            begun = fresh
            self._fresh_until_again -= 1
        else:
            return None
        self._begun_since_alone += begun.lane is not Lane.ALONE
        return self._begun(replace(begun, alone=begun.lane is Lane.ALONE or (width == 1 and not others)))

    def _begun(self, begun: Delivery) -> Delivery:
        self.files -= begun.files
        self.in_flight[begun.manifest_id] = begun
        return begun

    def done(self, work: Delivery) -> None:
        """Note that the work on a manifest ended, with any result."""
        del self.in_flight[work.manifest_id]
        self._known.discard(work.place)
        self._trusted += 1
        later = self._later[work.manifest_id]
        if later:
            self._push(later.popleft())
        else:
            del self._later[work.manifest_id]

    def drop_waiting(self) -> None:
        self._fresh, self._again, self._alone, self.files = FairQueue(), deque(), deque(), 0
        self._known = {work.place for work in self.in_flight.values()}
        self._later = {manifest_id: deque() for manifest_id in self.in_flight}

    def needs_all(self) -> bool:
        """Whether the next manifest waits until nothing else is in flight."""
        others = bool(self._fresh or self._again)
        return bool(self._alone) and (not others or self._begun_since_alone >= self.slots * OTHERS_FIRST)

    def _push(self, work: Delivery) -> None:
        if work.lane is Lane.FRESH:
            self._fresh.push(work, work.share)
        else:
            (self._again if work.lane is Lane.AGAIN else self._alone).append(work)

    def _may_begin_again(self) -> bool:
        """Whether a repeated attempt may start although a first attempt may wait."""
        repeated = sum(each.lane is Lane.AGAIN for each in self.in_flight.values())
        return not self._fresh or (self._fresh_until_again <= 0 and repeated < max(1, self.slots // 2))


LEAST_BYTES = 16 * 1024 * 1024
"""The minimum cost of a manifest: even a small one takes some time."""


class Beginner(Protocol):
    """One stream's waiting manifests."""

    def begin_one(self, others: int) -> Delivery | None:
        """Start the next manifest, given the number in flight in other streams; None if none may start."""

    def begin_spare(self) -> Delivery | None:
        """Start a manifest in the spare slot, because all slots are taken; see `WorkQueue.next_spare`."""

    def needs_all(self) -> bool:
        """Whether a manifest waits until nothing else is in flight in the whole job."""


@dataclass(slots=True, eq=False)
class StreamSlots:
    """A job's slots from one stream's view: its weight, its clock in bytes, its manifests in flight."""

    job: "SharedSlots"
    weight: int
    clock: float = 0.0
    in_flight: int = 0
    beginner: Beginner | None = None

    def join(self, beginner: Beginner) -> None:
        """Take part with these waiting manifests, replacing earlier ones."""
        with self.job.lock:
            self.beginner = beginner

    def ended(self, begun: Delivery) -> None:
        with self.job.lock:
            self.in_flight -= 1
            self.job.in_flight.discard(begun.manifest_id)
            self.job.is_alone = self.job.is_alone and not begun.alone


class SharedSlots:
    """A job's slots. Thread-safe. `deal` calls the beginners, so its caller must hold none of their locks.

    Args:
        slots: How many manifests are in flight at once, in all streams together.
        weights: The weight of each stream.

    Attributes:
        in_flight: The ids of all manifests in flight.
        is_alone: Whether one of them must run alone.
    """

    def __init__(self, slots: int, weights: Mapping[str, int]) -> None:
        self.slots = slots
        self.streams = {name: StreamSlots(self, weight) for name, weight in weights.items()}
        self.in_flight: set[str] = set()
        self.is_alone = False
        self.lock = threading.RLock()
        self._clock = 0.0
        self._begun_since_alone = 0

    def deal(self) -> None:
        """Let streams start manifests while there are slots, the one with the slowest clock first."""
        with self.lock:
            while self._slots_in_use < self.slots and not self.is_alone and self._begin_one():
                pass
            if self._slots_in_use == self.slots and not self.is_alone:  # guard: no source holds all slots
                self._begin_spare()

    @property
    def _slots_in_use(self) -> int:
        return sum(each.in_flight for each in self.streams.values())

    def _begin_one(self) -> bool:
        in_order = sorted(self.streams.values(), key=lambda each: max(each.clock, self._clock))
        joined = [(each, each.beginner) for each in in_order if each.beginner is not None]
        is_owed = self._begun_since_alone >= self.slots * OTHERS_FIRST
        needing = [each for each in joined if is_owed and each[1].needs_all()]
        if needing and self._slots_in_use:
            return False  # everything in flight ends first
        for stream, beginner in [*needing, *joined]:
            begun = beginner.begin_one(self._slots_in_use - stream.in_flight)
            if begun is not None:
                self._note(stream, begun)
                return True
        return False

    def _begin_spare(self) -> None:
        for stream in sorted(self.streams.values(), key=lambda each: max(each.clock, self._clock)):
            begun = stream.beginner.begin_spare() if stream.beginner is not None else None
            if begun is not None:
                self._note(stream, begun)
                return

    def _note(self, stream: StreamSlots, begun: Delivery) -> None:
        start = max(stream.clock, self._clock)
        stream.clock = start + max(begun.input_bytes, LEAST_BYTES) / stream.weight
        stream.in_flight += 1
        self.in_flight.add(begun.manifest_id)
        self._clock, self.is_alone = start, begun.alone
        self._begun_since_alone = 0 if begun.alone else self._begun_since_alone + 1
