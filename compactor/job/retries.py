"""Manifests whose next attempt is due later. Can be lost: it is derived from the records."""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.rules.backoff import pause_seconds
from compactor.job.results import FINISHED, Delivery, Ending, Result, Results

LONGEST_UNRECORDED_PAUSE_SECONDS = 60.0
"""The longest pause after an unrecorded failure: of the publication, or of a store that accepts no record."""

STUCK_PAUSE_SECONDS = 300.0
"""The pause before rereading an object that needs an operator."""


ELSEWHERE_PAUSE_SECONDS = 15.0
"""The pause before rechecking a manifest that another run has."""


@dataclass(slots=True)
class Retries:
    """The manifests that this run retries later.

    Attributes:
        first_pause_seconds: The longest pause after the first unrecorded failure.
    """

    first_pause_seconds: float
    monotonic: Callable[[], float] = time.monotonic
    _due: dict[str, tuple[float, Delivery]] = field(default_factory=dict)
    _unreceived: dict[str, tuple[float, str]] = field(default_factory=dict)
    _failures: Counter[str] = field(default_factory=Counter)

    def __contains__(self, manifest_id: str) -> bool:
        return manifest_id in self._due

    def __len__(self) -> int:
        return len(self._due)

    def add(self, results: Results, now: datetime) -> None:
        """Note which manifests to retry."""
        for each in results.all:
            self._failures[each.manifest_id] += each.ending is Ending.FAILED
            if each.delivery is not None or each.ending is Ending.GONE:
                self._unreceived.pop(each.uri, None)
            if each.ending in {Ending.FAILED, Ending.NOT_DUE} and each.delivery is not None:
                self._due[each.manifest_id] = self.monotonic() + self._pause(each, now), each.delivery
            elif each.ending is Ending.ELSEWHERE:
                self._unreceived[each.uri] = self.monotonic() + ELSEWHERE_PAUSE_SECONDS, each.manifest_id
            elif each.error is not None and each.delivery is None and each.uri:
                is_stuck = each.ending is Ending.STUCK
                pause = STUCK_PAUSE_SECONDS if is_stuck else self._unrecorded_pause(each.manifest_id)
                self._unreceived[each.uri] = self.monotonic() + pause, each.manifest_id
            elif each.ending in FINISHED:
                self._due.pop(each.manifest_id, None)
                del self._failures[each.manifest_id]

    def take_due(self) -> list[Delivery]:
        return [self._due.pop(manifest_id)[1] for manifest_id in self._due_of(self._due)]

    def take_due_uris(self) -> list[str]:
        """Return and drop the objects to take in now."""
        due = self._due_of(self._unreceived)
        for uri in due:
            del self._unreceived[uri]
        return due

    def _due_of(self, pending: Mapping[str, tuple[float, object]]) -> list[str]:
        now = self.monotonic()
        return [name for name, (moment, _) in pending.items() if moment <= now]

    def has_due_within(self, seconds: float, *, tries: int) -> bool:
        """Whether a manifest with fewer failures than `tries` in this run is due within some seconds."""
        limit = self.monotonic() + seconds
        due = [(manifest_id, moment) for manifest_id, (moment, _) in self._due.items()]
        due += [(manifest_id, moment) for moment, manifest_id in self._unreceived.values()]
        return any(moment <= limit and self._failures[manifest_id] < tries for manifest_id, moment in due)

    def _pause(self, postponed: Result, now: datetime) -> float:
        if postponed.due_at is not None:
            return max(0.0, (postponed.due_at - now).total_seconds())
        return self._unrecorded_pause(postponed.manifest_id)

    def _unrecorded_pause(self, manifest_id: str) -> float:
        return random_pause_seconds(
            max(self._failures[manifest_id], 1),
            first_seconds=self.first_pause_seconds,
            longest_seconds=LONGEST_UNRECORDED_PAUSE_SECONDS,
        )


def random_pause_seconds(failures: int, *, first_seconds: float, longest_seconds: float) -> float:
    """A random pause, for a caller that need not agree with others; see `pause_seconds`."""
    chance = random.random()  # noqa: S311 - it spreads pauses, nothing else
    return pause_seconds(failures, first_seconds=first_seconds, longest_seconds=longest_seconds, chance=chance)
