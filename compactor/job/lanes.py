"""Decides which manifest is worked on next, and beside which others: in one stream, and among several of one job.

The slots of a job are divided among its streams by weights, so that a flood in one starves none.

Start-time fair queueing: each stream has a clock that runs by the bytes of what it begins, divided by its weight, and
the stream whose clock is behind begins next. The clock of a stream without work does not stand still: it is set to that
of the others when work comes, so that nothing is saved up, and until then the others have its share.
"""

import heapq
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from compactor.core.rules.attempts import Lane
from compactor.core.rules.shares import Share
from compactor.job.results import Delivery

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items by share, which take turns: first those of different sizes, then those of different sources.

    Every operation costs the same, however many wait.
    """

    def __init__(self) -> None:
        self._classes: OrderedDict[int, OrderedDict[str, deque[T]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        """Go through all items, in no order."""
        for sources in self._classes.values():
            for items in sources.values():
                yield from items

    def push(self, item: T, share: Share) -> None:
        """Add an item behind the others of its share."""
        sources = self._classes.setdefault(share.size_class, OrderedDict())
        sources.setdefault(share.source, deque()).append(item)
        self._count += 1

    def pop(self, *, newest: bool = False) -> T:
        """Take the first item of the share whose turn it is; with `newest`, the last one.

        Raises:
            IndexError: It is empty.
        """
        if not self._count:
            raise IndexError
        size_class, sources = next(iter(self._classes.items()))
        source, items = next(iter(sources.items()))
        item = items.pop() if newest else items.popleft()
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

    def clear(self) -> None:
        self._classes.clear()
        self._count = 0


_ALONE = (Lane.ISOLATED, Lane.UNDECIDED)
_REPEATED = (Lane.PASSING, Lane.RETRY)

OTHERS_FIRST = 4
"""So many manifests for each slot go before one that may kill the driver, or that needs it for itself."""

FRESH_BEFORE_RETRY = 8
"""So many first attempts that wait go before a manifest that failed for a reason of its own, as far as is known.

What fails for good then costs the others at most a ninth of their turns, where half of the slots would go to it else.
"""


@dataclass(slots=True)
class WorkQueue:
    """Manifests that wait and manifests in flight. Each id is in flight once.

    First attempts are taken share by share. Repeated ones get at most half of the slots while first attempts wait,
    and what failed for a reason of its own one turn after `FRESH_BEFORE_RETRY` first attempts. An isolated manifest
    runs when nothing else does; before it, `OTHERS_FIRST` others for each slot begin. Suspects begin after as many
    others ended, so that a process that dies of them has got others through; with each death that they were in
    flight at, half as many of them run at once, and at last each of them alone.

    After a death the queue is cautious: it begins with one manifest, and with one more for each that ended. While
    suspects wait, the newest go first, because those that came with a killer are likely to be killers, too.

    Attributes:
        slots: How many manifests are worked on at once.
        in_flight: By id.
        first_attempts: How many of those that wait are first attempts.
        files: How many files those that wait have.
    """

    slots: int
    in_flight: dict[str, Delivery] = field(default_factory=dict)
    files: int = 0
    _fresh: FairQueue[Delivery] = field(default_factory=FairQueue)
    _again: dict[Lane, deque[Delivery]] = field(
        default_factory=lambda: {lane: deque() for lane in (*_REPEATED, *_ALONE)}
    )
    _suspects: list[tuple[int, int, Delivery]] = field(default_factory=list)
    _later: dict[str, deque[Delivery]] = field(default_factory=dict)  # more deliveries of what waits or is in flight
    _known: set[tuple[str, str]] = field(default_factory=set)
    _added: int = 0
    _lanes: Counter[Lane] = field(default_factory=Counter)
    _begun_since_isolated: int = 0
    _done_since_suspect: int = 0
    _last: Lane = Lane.RETRY
    _fresh_since_retry: int = FRESH_BEFORE_RETRY
    _wary: int = 0  # how many wait that were in flight at deaths
    _trusted: int = 1_000_000

    def __len__(self) -> int:
        """How many deliveries wait."""
        return len(self._known) - len(self.in_flight)

    @property
    def first_attempts(self) -> int:
        return len(self._fresh)

    @property
    def uris(self) -> frozenset[str]:
        """The objects that those that wait or are in flight were delivered in."""
        return frozenset(uri for _, uri in self._known)

    def add(self, work: Delivery) -> bool:
        """Add a manifest that waits; return False if the same delivery of it waits or is in flight already."""
        if work.place in self._known:  # guard: a URI that comes twice in a batch is worked on once
            return False
        self._known.add(work.place)
        self.files += work.files
        if work.manifest_id in self._later:  # guard: a manifest that comes under two names in a batch is worked on once
            self._later[work.manifest_id].append(work)
        else:
            self._later[work.manifest_id] = deque()
            self._push(work)
        return True

    def be_cautious(self) -> None:
        """Begin again with one manifest at a time: a driver died."""
        self._trusted = 0

    def note_commit(self) -> None:
        """Note that a manifest got through: what no attempt could decide needs not run alone any more."""
        self._again[Lane.RETRY].extend(self._again[Lane.UNDECIDED])
        self._again[Lane.UNDECIDED].clear()

    def next(self, others: int = 0) -> Delivery | None:
        """Take the manifest to begin now; None if none may begin yet.

        Args:
            others: How many manifests are in flight beside those of this queue.
        """
        width = min(self.slots, 1 + self._trusted)
        if len(self.in_flight) >= width or any(self._lanes[lane] for lane in _ALONE):
            return None
        lane = self._chosen(others)
        if lane is None:
            return None
        chosen = replace(self._pop(lane), alone=lane in _ALONE or (width == 1 and not others))
        self.files -= chosen.files
        if lane is Lane.SUSPECT and not self._lanes[lane]:
            self._done_since_suspect = 0
        self._wary -= chosen.deaths > 0
        self._begun_since_isolated = 0 if lane in _ALONE else self._begun_since_isolated + 1
        if lane is Lane.RETRY:
            self._fresh_since_retry = 0
        self._fresh_since_retry += lane is Lane.FRESH
        self.in_flight[chosen.manifest_id] = chosen
        self._lanes[chosen.lane] += 1
        self._last = lane
        return chosen

    def done(self, work: Delivery) -> None:
        """Note that the work on a manifest ended, whatever came of it."""
        begun = self.in_flight.pop(work.manifest_id)
        self._lanes[begun.lane] -= 1
        self._known.discard(work.place)
        self._trusted += 1
        self._done_since_suspect += begun.lane is not Lane.SUSPECT
        later = self._later[work.manifest_id]
        if later:
            self._push(later.popleft())
        else:
            del self._later[work.manifest_id]

    def drop_waiting(self) -> list[Delivery]:
        """Forget and return everything that waits."""
        dropped = [*self._fresh, *(work for _, _, work in self._suspects)]
        for works in (*self._again.values(), *self._later.values()):
            dropped += works
            works.clear()
        self._fresh.clear()
        self._suspects.clear()
        self._wary = 0
        self._known = {work.place for work in self.in_flight.values()}
        self._later = {manifest_id: deque() for manifest_id in self.in_flight}
        self.files = 0
        return dropped

    def _push(self, work: Delivery) -> None:
        self._added += 1
        self._wary += work.deaths > 0
        if work.lane is Lane.FRESH:
            self._fresh.push(work, work.share)
        elif work.lane is Lane.SUSPECT and self._suspects_beside(work.deaths):
            heapq.heappush(self._suspects, (work.deaths, self._added, work))
        else:
            self._again[Lane.ISOLATED if work.lane is Lane.SUSPECT else work.lane].append(work)

    def _pop(self, lane: Lane) -> Delivery:
        if lane is Lane.FRESH:
            return self._fresh.pop(newest=self._wary > 0 or self._trusted < self.slots)
        if lane is Lane.SUSPECT:
            return heapq.heappop(self._suspects)[2]
        return replace(self._again[lane].popleft(), lane=lane)

    def _suspects_beside(self, deaths: int) -> int:
        """How many suspects may be in flight at once, if one of them was in flight at so many deaths."""
        return self.slots >> deaths

    def needs_all(self) -> bool:
        """Return whether an isolated manifest is next, which waits until nothing else is in flight."""
        return self._isolated() is not None

    def _isolated(self) -> Lane | None:
        """The lane of the isolated manifest that is next; None if others go first."""
        alone = next((lane for lane in _ALONE if self._again[lane]), None)
        others = bool(self._fresh or self._suspects or self._has_repeated())
        return alone if not others or self._begun_since_isolated >= self.slots * OTHERS_FIRST else None

    def _chosen(self, others: int) -> Lane | None:
        """The lane whose turn it is."""
        alone = self._isolated()
        if alone is not None:
            return None if self.in_flight or others else alone  # the others wait until everything in flight has ended
        suspect = Lane.SUSPECT if self._may_begin_suspect() else None
        retry = self._retry()
        again = retry or suspect if self._last in {Lane.FRESH, Lane.SUSPECT} else suspect or retry
        if not self._fresh:
            return again
        return again if again is not None and self._has_room_for_again() else Lane.FRESH

    def _has_repeated(self) -> bool:
        return any(self._again[lane] for lane in _REPEATED)

    def _retry(self) -> Lane | None:
        """Passing trouble and lasting trouble take turns, but first attempts that wait go before the latter."""
        may_retry = not self._fresh or self._fresh_since_retry >= FRESH_BEFORE_RETRY
        waiting = [lane for lane in _REPEATED if self._again[lane] and (may_retry or lane is not Lane.RETRY)]
        return min(waiting, key=lambda lane: lane is self._last, default=None)

    def _may_begin_suspect(self) -> bool:
        if not self._suspects:
            return False
        in_flight = self._lanes[Lane.SUSPECT]
        if in_flight:
            most = max(work.deaths for work in self.in_flight.values() if work.lane is Lane.SUSPECT)
            return in_flight < self._suspects_beside(max(most, self._suspects[0][0]))
        is_beside_others = bool(self._fresh or self._has_repeated() or self.in_flight)
        return not is_beside_others or self._done_since_suspect >= self.slots * OTHERS_FIRST

    def _has_room_for_again(self) -> bool:
        """Whether a repeated attempt may begin although a first attempt waits."""
        if self.slots == 1:
            return self._last is Lane.FRESH
        repeated = len(self.in_flight) - self._lanes[Lane.FRESH]
        return repeated < self.slots // 2


LEAST_BYTES = 16 * 1024 * 1024
"""What a manifest costs at least: a small one takes its time, too, however few bytes it has."""


class Beginner(Protocol):
    """The waiting manifests of one stream."""

    def begin_one(self, others: int) -> Delivery | None:
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

    def ended(self, stream: str, begun: Delivery) -> None:
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

    def _note(self, share: _Share, begun: Delivery) -> None:
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

    def ended(self, begun: Delivery) -> None:
        """Note that a manifest ended."""
        self.shared.ended(self.stream, begun)

    def deal(self) -> None:
        """Let streams begin manifests as long as there are slots."""
        self.shared.deal()
