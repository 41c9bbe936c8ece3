"""Many builders and sealers at once on one queue, any of whom may die at any step."""

import random
import threading
from collections import Counter

from compactor.core.crash_points import PlanCrashPoint
from tests.support.harness import DiedError

SURE_DEATHS = 3
"""So many die at each step, whatever the chance."""


class Queue:
    """A queue as SQS is one: at least once, in any order, a message that is not acknowledged comes again."""

    def __init__(self, bodies: list[str], chance: random.Random) -> None:
        self._waiting = {f"m{number}": body for number, body in enumerate(bodies)}
        self._visible = list(self._waiting)
        chance.shuffle(self._visible)
        self._lock = threading.Lock()

    def receive(self, most: int) -> dict[str, str]:
        with self._lock:
            ids, self._visible = self._visible[:most], self._visible[most:]
            return {message_id: self._waiting[message_id] for message_id in ids}

    def delete(self, message_ids: set[str]) -> None:
        with self._lock:
            for message_id in message_ids:
                self._waiting.pop(message_id, None)

    def show_again(self) -> int:
        """Let the visibility of all that is not acknowledged time out."""
        with self._lock:
            self._visible = list(self._waiting)
            return len(self._visible)


class Storm:
    """Builders and two sealers in threads. A subclass says what they do, and calls `die_sometimes` at each step.

    Args:
        builders: How many builders.
        chance: When who dies.
        share: Which share of the steps is the last one of a thread.
    """

    def __init__(self, builders: int, chance: random.Random, share: float) -> None:
        self.deaths: Counter[PlanCrashPoint] = Counter()
        self._builders, self._chance, self._share = builders, chance, share
        self._lock = threading.Lock()

    def rage(self) -> None:
        """Work until the queue shows no message, or all threads have died."""
        threads = [threading.Thread(target=self.build) for _ in range(self._builders)]
        threads += [threading.Thread(target=self.seal) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def die_sometimes(self, step: PlanCrashPoint, _manifest_id: str) -> None:
        with self._lock:
            if self.deaths[step] < SURE_DEATHS or self._chance.random() < self._share:
                self.deaths[step] += 1
                raise DiedError

    def build(self) -> None:
        """What each builder does."""
        raise NotImplementedError

    def seal(self) -> None:
        """What each sealer does."""
        raise NotImplementedError
