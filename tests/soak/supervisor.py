"""Starts the job again and again, and ends each of its lives as it was decided beforehand."""

import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Self

from tests.soak.processes import Process, kill, of_session

_LOOK_SECONDS = 0.2
_SHARE_MAX = 5.0
_YOUNG = 0.5
_SHORT_SECONDS = 12.0
_SAMPLE_SECONDS = 1.0
_LAUNCH_SECONDS = 3.0  # for Spark's launcher to start the JVM of the job
END_SECONDS = 90.0
"""Time for a job to end by itself after SIGTERM, or after one of its halves was killed."""


class Ending(StrEnum):
    """How a life of the job ends."""

    KILL_ALL = "kill -9 of all processes"
    KILL_JVM = "kill -9 of the JVM alone"
    KILL_PARENT = "kill -9 of the Python parent alone"
    TERMINATE = "SIGTERM"


@dataclass(frozen=True, slots=True)
class Life:
    """How long the job may run, and how it ends then.

    Attributes:
        seconds: How long since its start; None for a life that lasts until the job is at work, and then some.
        share: Of the time that it took to come to work, how long it may work then: what starts slowly works slowly.
    """

    seconds: float | None
    share: float
    ending: Ending


def lives(seed: int | str, endings: Mapping[Ending, int], young: tuple[float, float]) -> Iterator[Life]:
    """Lives without end.

    Args:
        seed: The same one gives the same lives.
        endings: How often each comes, in relation to the others.
        young: Bounds, in seconds, of every other life: many end before the job is at work.
    """
    chance = random.Random(f"{seed}:lives")
    while True:
        seconds = chance.uniform(*young) if chance.random() < _YOUNG else None
        (ending,) = chance.choices(list(endings), list(endings.values()))
        yield Life(seconds, chance.uniform(0.0, _SHARE_MAX), ending)


@dataclass(slots=True)
class Chronicle:
    """What happened to the job.

    Attributes:
        kills: By ending.
        exits: Lives that ended by themselves, by exit code.
        starts: How often the job was started.
        hung: Times that it did not end within `END_SECONDS` when it should have.
        orphans: Processes that were still there so long after their parent was killed.
        memory: Moments, as seconds since the start, with the resident bytes of all of the job's processes.
    """

    kills: Counter[Ending] = field(default_factory=Counter)
    exits: Counter[int] = field(default_factory=Counter)
    starts: int = 0
    hung: int = 0
    orphans: int = 0
    memory: list[tuple[float, int]] = field(default_factory=list)

    def peak_bytes(self, part: slice) -> int:
        """The most memory within a part of the samples."""
        return max((resident for _, resident in self.memory[part]), default=0)


class Supervisor:
    """Keeps a job running.

    Args:
        command: Starts it.
        environment: Of its processes.
        log: Where its output goes.
        on_life: Told before each life.
        is_at_work: Whether the job got to work since then.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        on_life: Callable[[], None],
        is_at_work: Callable[[], bool],
    ) -> None:
        self.chronicle = Chronicle()
        self._command = list(command)
        self._environment = dict(environment)
        self._log = log
        self._on_life = on_life
        self._is_at_work = is_at_work
        self._began = time.monotonic()
        self._session = 0
        self._staying: subprocess.Popen[bytes] | None = None
        self._orphaned: dict[int, float] = {}
        self._stopping = threading.Event()
        self._sampler = threading.Thread(target=self._sample, name="memory")

    def __enter__(self) -> Self:
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_stay()
        self._stopping.set()
        self._sampler.join()
        self._end_orphans(0.0)

    def run(self, until: float, all_lives: Iterator[Life], *, kills_per_minute: float) -> None:
        """Live after life, until a moment of the monotonic clock.

        Args:
            until: When it is over.
            all_lives: How each goes.
            kills_per_minute: While there were fewer, the next life is a short one, however slowly the job starts.
        """
        self._end_stay()
        began, before = time.monotonic(), self.chronicle.kills.total()
        while (left := until - time.monotonic()) > 0:
            self._on_life()
            minutes = (time.monotonic() - began) / 60
            is_late = self.chronicle.kills.total() - before < minutes * kills_per_minute
            self._live(_short(next(all_lives)) if is_late else next(all_lives), left)
            self._end_orphans(END_SECONDS)

    def stay(self, until: float) -> None:
        """Leave the job alone until a moment of the monotonic clock; start it only where it is not running.

        It runs on afterwards, until lives begin or all is over.
        """
        while (left := until - time.monotonic()) > 0:
            if self._staying is None:
                self._on_life()
                self._staying = self._start(self._command)
                self.chronicle.starts += 1
            try:
                self.chronicle.exits[self._staying.wait(left)] += 1
                kill(of_session(self._staying.pid))
                self._staying = None
            except subprocess.TimeoutExpired:
                return

    def _end_stay(self) -> None:
        process, self._staying = self._staying, None
        if process is not None:
            self._end(process, Ending.TERMINATE)
            kill(of_session(process.pid))
            process.wait()

    def run_to_its_end(self, command: Sequence[str], patience_seconds: float) -> int | None:
        """Run a last job without disturbance: its exit code, or None if it had to be ended."""
        process = self._start(command)
        try:
            return process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            kill(of_session(process.pid))
            process.wait()

    def _live(self, life: Life, left_seconds: float) -> None:
        began = time.monotonic()
        process = self._start(self._command)
        self.chronicle.starts += 1
        seconds = life.seconds
        if seconds is None:
            while process.poll() is None and time.monotonic() < began + left_seconds and not self._is_at_work():
                time.sleep(_LOOK_SECONDS)
            seconds = (time.monotonic() - began) * (1.0 + life.share)
        try:
            process.wait(max(0.0, began + min(seconds, left_seconds) - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._end(process, life.ending)
        else:
            self.chronicle.exits[process.returncode] += 1
        finally:
            if process.poll() is None:
                kill(of_session(process.pid))
                process.wait()
            if list(of_session(process.pid)):
                self._orphaned[process.pid] = time.monotonic()

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as output:
            process = subprocess.Popen(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._session = process.pid
        return process

    def _end(self, process: subprocess.Popen[bytes], ending: Ending) -> None:
        if ending is Ending.KILL_JVM and not (jvm := _jvm(process.pid)):
            ending = Ending.KILL_ALL  # it has none yet
        self.chronicle.kills[ending] += 1
        if ending is Ending.KILL_ALL:
            kill(of_session(process.pid))
        elif ending is Ending.KILL_JVM:
            kill(iter(jvm))
            time.sleep(_LAUNCH_SECONDS)
            kill(iter(_jvm(process.pid)))  # the first one was that of Spark's launcher
        elif ending is Ending.KILL_PARENT:
            process.kill()
        else:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.chronicle.hung += 1

    def _end_orphans(self, patience_seconds: float) -> None:
        """End what outlived its parent for too long."""
        for session, since in list(self._orphaned.items()):
            if not list(of_session(session)):
                del self._orphaned[session]
            elif time.monotonic() - since >= patience_seconds:
                left = kill(of_session(session))
                self.chronicle.orphans += left if patience_seconds else 0

    def _sample(self) -> None:
        while not self._stopping.wait(_SAMPLE_SECONDS):
            resident = sum(each.resident_bytes for each in of_session(self._session))
            self.chronicle.memory.append((time.monotonic() - self._began, resident))


def _short(life: Life) -> Life:
    return replace(life, seconds=_SHORT_SECONDS if life.seconds is None else min(life.seconds, _SHORT_SECONDS))


def _jvm(session: int) -> list[Process]:
    return [process for process in of_session(session) if process.name == "java"]
