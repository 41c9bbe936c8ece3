"""Starts, watches and ends the processes of the whole job."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from bench.measure import end_family, family, used_bytes

_SAMPLE_SECONDS = 2.0
_ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def started(
    module: Sequence[str], log: Path, *, stdin: object = subprocess.DEVNULL, stdout: object = None
) -> Iterator["subprocess.Popen[str]"]:
    """Run a Python module until the context ends; then end it with all of its processes.

    Args:
        module: Its name and arguments.
        log: The file for what it prints.
        stdin: As in `subprocess.Popen`.
        stdout: As in `subprocess.Popen`; None for the log.
    """
    with log.open("a") as said:
        # It has its own session: Ctrl-C reaches only the benchmark, which then ends everything in order.
        child = subprocess.Popen(
            [sys.executable, "-m", *module],
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
            stdin=stdin,  # type: ignore[call-overload]
            stdout=said if stdout is None else stdout,
            stderr=said,
            text=True,
            start_new_session=True,
        )
        try:
            yield child
        finally:
            end_family(child)


class Watch:
    """Samples processor time and memory of the processes of the job until the context ends.

    Memory that processes share counts once (PSS) where the system reports it.

    Args:
        roots: The id of each process that is started here, by the name of its part in the job.
    """

    def __init__(self, roots: Mapping[str, int]) -> None:
        self.peak_bytes = 0
        self._roots = [(name, psutil.Process(pid)) for name, pid in roots.items()]
        self._seconds: dict[tuple[str, int, float], float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def follow(self, name: str, pid: int) -> None:
        """Watch another process, as a further one of its part."""
        self._roots.append((name, psutil.Process(pid)))

    def processor_seconds(self) -> dict[str, float]:
        """The processor time of each part of the job at the last sample, with processes that have ended."""
        total: dict[str, float] = {}
        for (name, _, _), seconds in list(self._seconds.items()):
            total[name] = total.get(name, 0.0) + seconds
        return total

    def _go_on(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        memory = 0
        for name, root in list(self._roots):
            # The processes that were started here are parts of their own.
            of_part = [root] if root.pid == os.getpid() else family(root)
            for process in of_part:
                memory += used_bytes(process)
                with suppress(psutil.Error):
                    part = name if len(of_part) == 1 else f"{name}: {_role(process, root)}"
                    times = process.cpu_times()
                    self._seconds[part, process.pid, process.create_time()] = times.user + times.system
        self.peak_bytes = max(self.peak_bytes, memory)


def _role(process: psutil.Process, root: psutil.Process) -> str:
    if process == root:
        return "driver"
    return "JVM" if process.name() == "java" else "tasks"


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """The processor time that was used up to a moment.

    Attributes:
        moment: When, by the monotonic clock.
        by_part: Processor seconds, by the part of the job.
        of_machine: Processor seconds of the whole machine.
    """

    moment: float
    by_part: dict[str, float]
    of_machine: float

    @classmethod
    def now(cls, watch: Watch) -> "ProcessorTime":
        """Take it from the last sample of a watch."""
        times = psutil.cpu_times()
        busy = sum(times) - times.idle - getattr(times, "iowait", 0.0)
        return cls(time.monotonic(), watch.processor_seconds(), busy)

    def shares_since(self, before: "ProcessorTime") -> tuple[dict[str, float], float]:
        """Cores in use since `before`, by part and of the machine."""
        seconds = self.moment - before.moment
        shares = {part: (used - before.by_part.get(part, 0.0)) / seconds for part, used in self.by_part.items()}
        return shares, (self.of_machine - before.of_machine) / seconds
