"""Runs one contender in a process of its own, and watches the memory of all its processes."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from bench.contenders import Contender
from bench.protocol import Pass, load

_SAMPLE_SECONDS = 0.2
_GRACE_SECONDS = 5.0
_LIMIT_SECONDS = 86_400.0
_ERROR = re.compile(r"[\w.]*(?:Error|Exception|ArrowInvalid)\b")


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one contender.

    Attributes:
        name: The contender.
        passes: Its passes, in order; fewer than asked for if it failed.
        peak_memory_bytes: The largest sample of the memory of all its processes together, or the peak that the system
            records of its first process, if that is more.
        peak_worker_bytes: The largest memory of any one of Spark's Python workers; 0 if there was none.
        failure: The error; empty if there was none.
    """

    name: str
    passes: tuple[Pass, ...]
    peak_memory_bytes: int
    failure: str = ""
    peak_worker_bytes: int = 0


class MemoryWatch:
    """Samples the memory of a process and its descendants until it is left.

    Shared pages are counted once (PSS) where the system tells of them, else in each process (RSS).
    """

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self.peak_worker_bytes = 0
        self._root = psutil.Process(pid)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            processes = family(self._root)
            first = peak_bytes(self._root) if processes else 0
            self.peak_bytes = max(self.peak_bytes, sum(map(used_bytes, processes)), first)
            self.peak_worker_bytes = max(self.peak_worker_bytes, *map(peak_bytes, filter(is_worker, processes)), 0)


def family(root: psutil.Process) -> list[psutil.Process]:
    """A process and all its descendants; empty if it has ended."""
    try:
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def used_bytes(process: psutil.Process) -> int:
    """The memory of one process; 0 if it has ended or may not be read."""
    try:
        full = process.memory_full_info()
        return int(getattr(full, "pss", 0) or full.rss)
    except psutil.AccessDenied:
        with suppress(psutil.Error):
            return int(process.memory_info().rss)
    except psutil.Error:
        pass
    return 0


def is_worker(process: psutil.Process) -> bool:
    """Whether a process is a Python worker of Spark, or the daemon that forks them."""
    try:
        return "pyspark.worker" in process.cmdline()  # which the daemon, whatever its name, is told to run
    except psutil.Error:
        return False


def peak_bytes(process: psutil.Process) -> int:
    """The peak memory of a process where the system records it, else its memory now."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError, ValueError):  # another system, or it has just ended
        return used_bytes(process)


def run_contender(
    contender: Contender, source: Path, output: Path, log: Path, *, passes: int, limit_seconds: float = _LIMIT_SECONDS
) -> Measurement:
    """Run a contender to its end.

    Args:
        contender: The contender.
        source: The folder of the input files.
        output: The folder for its output; emptied before each pass.
        log: The file for all that it prints and that is not a result.
        passes: How many times to convert the input.
        limit_seconds: End it after this time.
    """
    missing = contender.missing()
    if missing:
        return Measurement(contender.name, (), 0, f"not installed: {', '.join(missing)}")
    python = str(contender.python or sys.executable)
    command = [python, "-m", contender.module, "--input", str(source), "--output", str(output)]
    command += ["--passes", str(passes), *contender.args]
    done: list[Pass] = []
    with log.open("w") as log_file:
        # It has its own session: Ctrl-C reaches only the benchmark, which then ends all processes.
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log_file, text=True, errors="replace", start_new_session=True
        )
        limit = threading.Timer(limit_seconds, end_family, (child,))
        began = time.monotonic()  # before the limit does: what it ends has then always taken as long
        limit.start()
        try:
            with MemoryWatch(child.pid) as watch:
                done.extend(_results(child.stdout or (), log_file.write))
                code = child.wait()
        finally:
            limit.cancel()
            is_late = time.monotonic() - began >= limit_seconds
            end_family(child)
    failure = "" if code == 0 and len(done) == passes else _failure(code, len(done), passes, log)
    failure = f"it took over {limit_seconds:,.0f} s" if failure and is_late else failure
    return Measurement(contender.name, tuple(done), watch.peak_bytes, failure, watch.peak_worker_bytes)


def _results(lines: Iterable[str], to_log: object) -> Iterable[Pass]:
    for line in lines:
        result = load(line)
        if result is not None:
            yield result
        elif callable(to_log):
            to_log(line)


def end_family(child: subprocess.Popen[str]) -> None:
    """End a process and its descendants, by SIGTERM first and then by SIGKILL."""
    try:
        alive = family(psutil.Process(child.pid))
    except psutil.NoSuchProcess:
        return
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in alive:
            with suppress(psutil.NoSuchProcess):
                end(process)
        _, alive = psutil.wait_procs(alive, timeout=_GRACE_SECONDS)
    child.wait()


def _failure(code: int, done: int, passes: int, log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.match(line)]  # a message may have further lines
    last = (named or lines)[-1:]
    return f"exit code {code} after {done} of {passes} passes: {''.join(last).strip()[:200]} (see {log})"
