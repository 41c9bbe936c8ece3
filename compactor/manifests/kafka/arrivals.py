"""Tells since when records of topics wait to be planned. Decisions, no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.manifests.kafka.cutting import Uncut


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The first unplanned record of a partition: it came between two times."""

    head: int
    not_before: datetime | None
    not_after: datetime


@dataclass(slots=True)
class Arrivals:
    """Since when the oldest unplanned record of each partition of a topic waits.

    A producer may write any timestamp. So a timestamp counts only as far as it can be true: a record that was not there
    when the partition was seen before came after that time, and one that is there came before now. Else old records
    that are copied into a topic would be planned one by one, and those of a clock that is ahead never.
    """

    _topic_id: str = field(default="", init=False)
    _waiting: dict[int, _Waiting] = field(default_factory=dict, init=False)
    _held: dict[int, tuple[int, datetime]] = field(default_factory=dict, init=False)
    _ends: dict[int, tuple[int, datetime]] = field(default_factory=dict, init=False)

    def see(self, topic_id: str, partitions: Sequence[Uncut], now: datetime) -> dict[int, datetime]:
        """Note what partitions have now; returns for each with unplanned records when the first of these came."""
        if topic_id != self._topic_id:
            self._topic_id, self._waiting, self._held, self._ends = topic_id, {}, {}, {}
        found = dict[int, datetime]()
        self._held = {each.partition: self._held_since(each, now) for each in partitions if each.is_held}
        for each in partitions:
            if each.has_new:
                found[each.partition] = self._came(each, now)
            else:
                self._waiting.pop(each.partition, None)
            self._ends[each.partition] = each.bounds.end, now
        return found

    @property
    def held(self) -> dict[int, datetime]:
        """Since when partitions were seen in which open transactions keep all unplanned records from being planned."""
        return {partition: since for partition, (_, since) in self._held.items()}

    def _held_since(self, uncut: Uncut, now: datetime) -> tuple[int, datetime]:
        end, since = self._held.get(uncut.partition, (None, now))
        return uncut.bounds.end, since if end == uncut.bounds.end else now

    def _came(self, uncut: Uncut, now: datetime) -> datetime:
        known = self._waiting.get(uncut.partition)
        if known is None or known.head != uncut.head:
            end, seen_at = self._ends.get(uncut.partition, (None, None))
            was_there = end is not None and end > uncut.head
            before = known.not_before if known is not None and was_there else None
            known = _Waiting(
                uncut.head,
                not_before=before if was_there else seen_at,
                not_after=seen_at if was_there and seen_at is not None else now,
            )
            self._waiting[uncut.partition] = known
        told = uncut.sample.first_at if uncut.sample is not None else None
        came = min(told or known.not_after, known.not_after)
        return came if known.not_before is None else max(came, known.not_before)
