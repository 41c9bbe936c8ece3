"""Decides which manifest is worked on next, and beside which others. A data structure, no I/O and no threads."""

import heapq
from collections import Counter, deque
from dataclasses import dataclass, field, replace

from compactor.core.rules.attempts import Lane
from compactor.core.rules.shares import NO_SHARE, Share
from compactor.job.delivery.fair_queue import FairQueue
from compactor.job.steps.intake import Delivery

_ALONE = (Lane.ISOLATED, Lane.UNDECIDED)
_REPEATED = (Lane.PASSING, Lane.RETRY)

OTHERS_FIRST = 4
"""So many manifests for each slot go before one that may kill the driver, or that needs it for itself."""

FRESH_BEFORE_RETRY = 8
"""So many first attempts that wait go before a manifest that failed for a reason of its own, as far as is known.

What fails for good then costs the others at most a ninth of their turns, where half of the slots would go to it else.
"""


@dataclass(frozen=True, slots=True)
class Work:
    """One manifest to work on.

    Attributes:
        lane: What may run beside it.
        batch: The number of the batch that it belongs to.
        deaths: How many of its attempts ended with their driver.
        share: Which other manifests it takes turns with.
        alone: Whether nothing else is in flight until it ends; known when it begins.
    """

    delivery: Delivery
    lane: Lane
    batch: int
    deaths: int = 0
    share: Share = NO_SHARE
    alone: bool = False

    @property
    def manifest_id(self) -> str:
        return self.delivery.accepted.manifest_id

    @property
    def place(self) -> tuple[str, str]:
        """The manifest and the object that it was delivered in."""
        return self.manifest_id, self.delivery.uri

    @property
    def files(self) -> int:
        manifest = self.delivery.accepted.manifest
        return len(manifest.files) if manifest else 0

    @property
    def input_bytes(self) -> int:
        manifest = self.delivery.accepted.manifest
        return sum(file.weight_bytes for file in manifest.files) if manifest else 0


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
    in_flight: dict[str, Work] = field(default_factory=dict)
    files: int = 0
    _fresh: FairQueue[Work] = field(default_factory=FairQueue)
    _again: dict[Lane, deque[Work]] = field(default_factory=lambda: {lane: deque() for lane in (*_REPEATED, *_ALONE)})
    _suspects: list[tuple[int, int, Work]] = field(default_factory=list)
    _later: dict[str, deque[Work]] = field(default_factory=dict)  # further deliveries of what waits or is in flight
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

    def add(self, work: Work) -> bool:
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

    def next(self, others: int = 0) -> Work | None:
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

    def done(self, work: Work) -> None:
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

    def drop_waiting(self) -> list[Work]:
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

    def _push(self, work: Work) -> None:
        self._added += 1
        self._wary += work.deaths > 0
        if work.lane is Lane.FRESH:
            self._fresh.push(work, work.share)
        elif work.lane is Lane.SUSPECT and self._suspects_beside(work.deaths):
            heapq.heappush(self._suspects, (work.deaths, self._added, work))
        else:
            self._again[Lane.ISOLATED if work.lane is Lane.SUSPECT else work.lane].append(work)

    def _pop(self, lane: Lane) -> Work:
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
