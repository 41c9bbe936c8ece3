"""Runs what plans the topics of a job beside its work, in a thread for each cluster."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from compactor.core.kafka.ranges import Topic
from compactor.core.rules.backoff import pause_seconds
from compactor.telemetry.logs import log_event

STOP_SECONDS = 2.0
"""How long a stop waits for a plan under way. What it leaves then, the next plan finishes."""

CHECK_SECONDS = 0.2

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 600.0
"""Pauses after turns of a loop that failed as none should; they double."""


class Loop(Protocol):
    """Plans the topics of one cluster. Its brokers may not answer for long, which holds up no other cluster."""

    def step(self, *, is_stopping: Callable[[], bool]) -> float:
        """Plan the topics whose turn it is; returns the seconds until the next turn. Meant never to raise."""

    def plan_all(self, *, is_stopping: Callable[[], bool]) -> Mapping[Topic, Exception]:
        """Plan all that is there; returns the topics that failed. Meant never to raise."""


class TopicPlanning:
    """Plans the topics of a job: again and again until it is stopped, or once.

    An error that a loop was not expected to raise ends no thread: it is told, and the loop has its turn again.

    Args:
        loops: One for each cluster; none if the job plans no topics.
    """

    def __init__(self, loops: Sequence[Loop] = ()) -> None:
        self._loops = loops
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to plan, and go on until `stop`."""
        self._stopping.clear()
        self._begin(self._repeat)

    def stop(self) -> None:
        """End after the plans under way; those that wait for brokers are left alone. Safe to call twice."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(STOP_SECONDS)
        self._threads = []

    def plan_all(self, is_stopping: Callable[[], bool]) -> list[Exception]:
        """Plan once all that is there, or until a stop; returns why topics failed."""
        failed: list[Exception] = []
        self._begin(lambda loop: failed.extend(self._failures(loop, is_stopping)))
        for thread in self._threads:
            while thread.is_alive() and not is_stopping():
                thread.join(CHECK_SECONDS)
        self._threads = []
        return list(failed)

    def _failures(self, loop: Loop, is_stopping: Callable[[], bool]) -> list[Exception]:
        try:
            return list(loop.plan_all(is_stopping=is_stopping).values())
        except Exception as exc:  # noqa: BLE001 - the caller raises it at the end of the run
            return [exc]

    def _begin(self, work: Callable[[Loop], object]) -> None:
        # A thread that waits for brokers keeps no process from ending: planning may die anywhere.
        self._threads = [
            threading.Thread(target=work, args=(loop,), name="topics", daemon=True) for loop in self._loops
        ]
        for thread in self._threads:
            thread.start()

    def _repeat(self, loop: Loop) -> None:
        pause, failures = 0.0, 0
        while not self._stopping.wait(pause):
            try:
                pause, failures = loop.step(is_stopping=self._stopping.is_set), 0
            except Exception as exc:  # noqa: BLE001 - without this thread, nothing would be planned any more
                failures += 1
                pause = pause_seconds(
                    failures, first_seconds=FIRST_PAUSE_SECONDS, longest_seconds=LONGEST_PAUSE_SECONDS, chance=1.0
                )
                log_event("planning.failed", failures=failures, pause_seconds=pause, error=exc)
