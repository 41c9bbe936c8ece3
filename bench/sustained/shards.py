"""The job as one or several processes: some are killed, and their number changes, as a control plane changes it."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from subprocess import Popen

_CALM_SECONDS = 30.0
"""No kill comes before, so that the first manifests show an undisturbed job."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What the job goes through while it is fed.

    Attributes:
        kills: How often a process of it is killed by SIGKILL, and started again at once.
        shards: How many processes it has in the middle third of the feeding; before and after that, one.
        seed: Decides when which process is killed.
    """

    kills: int = 0
    shards: int = 1
    seed: int = 7

    def kills_at(self, seconds: float) -> Iterator[float]:
        """The moments of the kills, in seconds since the feeding began."""
        chance = random.Random(f"{self.seed}:kills")
        return iter(sorted(chance.uniform(min(_CALM_SECONDS, seconds), seconds) for _ in range(self.kills)))

    def wanted(self, at: float, seconds: float) -> int:
        """How many processes there should be at a moment of a feeding."""
        return self.shards if seconds / 3 <= at < 2 * seconds / 3 else 1


@dataclass
class Shards:
    """The processes of the job, by the number of their shard.

    Attributes:
        start: Starts the process of a shard, given its number and `K/N`, which is empty for a job of one process.
        trouble: What they go through.
        seconds: How long the feeding lasts.
    """

    start: Callable[[int, str], Popen[str]]
    trouble: Trouble
    seconds: float
    killed: int = field(default=0, init=False)
    resized: int = field(default=0, init=False)
    _running: dict[int, Popen[str]] = field(default_factory=dict, init=False)
    _ending: list[Popen[str]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._kills = self.trouble.kills_at(self.seconds)
        self._next_kill = next(self._kills, None)
        self._chance = random.Random(f"{self.trouble.seed}:shards")

    def grow(self) -> None:
        """Start the first process."""
        self._start(1)

    def turn(self, at: float) -> None:
        """Kill and resize, as is due at this many seconds since the feeding began."""
        wanted = self.trouble.wanted(at, self.seconds)
        if wanted != len(self._running):
            self.resized += 1
        for number in range(len(self._running) + 1, wanted + 1):
            self._start(number)
        for number in range(wanted + 1, len(self._running) + 1):
            leaving = self._running.pop(number)
            leaving.send_signal(signal.SIGTERM)
            self._ending.append(leaving)
        if self._next_kill is not None and at >= self._next_kill:
            self._next_kill = next(self._kills, None)
            number = self._chance.choice(sorted(self._running))
            os.killpg(self._running[number].pid, signal.SIGKILL)
            self._running[number].wait()
            self.killed += 1
            self._start(number)

    def stop(self) -> None:
        """Ask all to end after the manifests in flight."""
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        self._ending += self._running.values()
        self._running.clear()

    @property
    def has_ended(self) -> bool:
        """Whether none is left."""
        return not self._running and all(process.poll() is not None for process in self._ending)

    def fault(self) -> str:
        """What is wrong with them, in words; empty if nothing is."""
        ended = [
            f"shard {number} ended with {process.returncode}"
            for number, process in self._running.items()
            if process.poll() is not None
        ]
        failed = [f"a stopped shard ended with {process.returncode}" for process in self._ending if process.poll()]
        return next(iter([*ended, *failed]), "")

    def _start(self, number: int) -> None:
        of = f"{number}/{self.trouble.shards}" if self.trouble.shards > 1 else ""
        self._running[number] = self.start(number, of)
