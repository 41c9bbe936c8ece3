"""Decides which manifest is worked on next, and beside which others. A data structure, no I/O and no threads."""

from collections import deque
from dataclasses import dataclass, field

from compactor.core.attempts import Lane
from compactor.job.intake import Delivery


@dataclass(frozen=True, slots=True)
class Work:
    """One manifest to work on.

    Attributes:
        lane: What may run beside it.
        batch: The number of the batch that it belongs to.
    """

    delivery: Delivery
    lane: Lane
    batch: int

    @property
    def manifest_id(self) -> str:
        return self.delivery.accepted.manifest_id

    @property
    def place(self) -> tuple[str, str]:
        """The manifest and the object that it was delivered in."""
        return self.manifest_id, self.delivery.uri


@dataclass(slots=True)
class WorkQueue:
    """Manifests that wait and manifests in flight. Each id is in flight once.

    First attempts are taken in order. Repeated ones get at most half of the slots while first attempts wait, one
    suspect is in flight at a time, and an isolated manifest runs when nothing else does. Before a suspect, as many
    others end as there are slots, so that a process that dies of it has got others through; before an isolated
    manifest, as many begin.

    Attributes:
        slots: How many manifests are worked on at once.
        waiting: In the order in which they came.
        in_flight: By id.
    """

    slots: int
    waiting: deque[Work] = field(default_factory=deque)
    in_flight: dict[str, Work] = field(default_factory=dict)
    _known: set[tuple[str, str]] = field(default_factory=set)
    _begun_since_isolated: int = 0
    _done_since_suspect: int = 0
    _last: Lane = Lane.RETRY

    def add(self, work: Work) -> bool:
        """Add a manifest that waits; return False if the same delivery of it waits or is in flight already."""
        if work.place in self._known:
            return False
        self._known.add(work.place)
        self.waiting.append(work)
        return True

    def next(self) -> Work | None:
        """Take the manifest to begin now; None if none may begin yet."""
        if len(self.in_flight) >= self.slots or Lane.ISOLATED in self._lanes_in_flight():
            return None
        startable: dict[Lane, Work] = {}
        seen = set(self.in_flight)
        for work in self.waiting:
            if work.manifest_id not in seen:  # of several deliveries of one manifest, the first goes first
                seen.add(work.manifest_id)
                startable.setdefault(work.lane, work)
        chosen = self._chosen(startable)
        if chosen is not None:
            self.waiting.remove(chosen)
            self.in_flight[chosen.manifest_id] = chosen
            self._last = chosen.lane
            if chosen.lane is Lane.SUSPECT:
                self._done_since_suspect = 0
            self._begun_since_isolated = 0 if chosen.lane is Lane.ISOLATED else self._begun_since_isolated + 1
        return chosen

    def done(self, work: Work) -> None:
        """Note that the work on a manifest ended, whatever came of it."""
        del self.in_flight[work.manifest_id]
        self._known.discard(work.place)
        self._done_since_suspect += work.lane is not Lane.SUSPECT

    def drop_waiting(self) -> list[Work]:
        """Forget and return everything that waits."""
        dropped = list(self.waiting)
        self.waiting.clear()
        self._known = {work.place for work in self.in_flight.values()}
        return dropped

    def _chosen(self, startable: dict[Lane, Work]) -> Work | None:
        isolated = startable.pop(Lane.ISOLATED, None)
        if isolated is not None and (not startable or self._begun_since_isolated >= self.slots):
            return None if self.in_flight else isolated  # the others wait until everything in flight has ended
        lanes = self._lanes_in_flight()
        is_beside_others = any(lane is not Lane.SUSPECT for lane in (*lanes, *startable))
        if Lane.SUSPECT in lanes or (is_beside_others and self._done_since_suspect < self.slots):
            startable.pop(Lane.SUSPECT, None)
        fresh = startable.pop(Lane.FRESH, None)
        again = startable.get(Lane.RETRY) or startable.get(Lane.SUSPECT)
        if self._last is Lane.RETRY:
            again = startable.get(Lane.SUSPECT) or again
        if fresh is None:
            return again
        return again if again is not None and self._has_room_for_again() else fresh

    def _has_room_for_again(self) -> bool:
        """Whether a repeated attempt may begin although a first attempt waits."""
        if self.slots == 1:
            return self._last is Lane.FRESH
        repeated = sum(lane is not Lane.FRESH for lane in self._lanes_in_flight())
        return repeated < self.slots // 2

    def _lanes_in_flight(self) -> list[Lane]:
        return [work.lane for work in self.in_flight.values()]
