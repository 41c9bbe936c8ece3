"""Measures an attack: the time of its neighbours alone and beside it, and what it takes of memory and disk."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import MemoryWatch
from bench.protocol import cpu_seconds
from tests.hostile.attack import GRACE_SECONDS, KEPT_BYTES, MIB, SCRATCH_BYTES, SLOWER, Attack
from tests.hostile.neighbours import Neighbours
from tests.hostile.scene import Scene

_SAMPLE_SECONDS = 0.02


@dataclass(frozen=True)
class Measured:
    """One attack.

    Attributes:
        alone_seconds: Until the last neighbour was committed, without the attack.
        beside_seconds: The same, beside the attack.
        memory_bytes: How much more memory the attack took than the neighbours alone.
        scratch_bytes: The most scratch space at once.
        kept_bytes: How much more is kept for good: records, outputs and rejects.
        cpu_seconds: How much more CPU time the attack took.
        faults: What is wrong.
    """

    name: str
    alone_seconds: float
    beside_seconds: float
    memory_bytes: int
    scratch_bytes: int
    kept_bytes: int
    cpu_seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def beyond(self, attack: Attack) -> list[str]:
        """The bounds that were not kept."""
        seconds = SLOWER * self.alone_seconds + GRACE_SECONDS
        found = [
            f"{what} is {value / MIB:.0f} MiB, expected at most {most / MIB:.0f}"
            for what, value, most in (
                ("memory", self.memory_bytes, attack.memory_bytes),
                ("scratch", self.scratch_bytes, SCRATCH_BYTES),
                ("kept", self.kept_bytes, KEPT_BYTES),
            )
            if value > most
        ]
        if self.beside_seconds > seconds:
            found.append(f"neighbours took {self.beside_seconds:.1f} s, expected at most {seconds:.1f}")
        return found


def warm_up(engine: str, attack: Attack, root: Path) -> None:
    """Import, compile and start everything that the first run of a process does."""
    scene = Scene(root, engine, attack)
    scene.let_neighbours_in()
    scene.run()


def measured(attack: Attack, engine: str, root: Path, rows: int) -> Measured:
    """Run the neighbours alone, then beside the attack."""
    neighbours = Neighbours(rows, attack.form)
    alone, beside = (Scene(root / name, engine, attack, neighbours) for name in ("alone", "beside"))
    if attack.instead is not None:
        attack.instead(alone)
    alone.let_neighbours_in()
    with _watched() as before:
        alone_seconds = alone.run()
    beside.let_attack_in()
    beside.let_neighbours_in()
    with _watched() as during:
        beside_seconds = beside.run()
    return Measured(
        name=attack.name,
        alone_seconds=alone_seconds,
        beside_seconds=beside_seconds,
        memory_bytes=max(0, during.memory_bytes - before.memory_bytes),
        scratch_bytes=during.scratch_bytes,
        kept_bytes=max(0, _kept(beside.root) - _kept(alone.root)),
        cpu_seconds=max(0.0, during.cpu_seconds - before.cpu_seconds),
        faults=[*alone.faults(), *beside.faults()],
    )


@dataclass
class _Peaks:
    memory_bytes: int = 0
    scratch_bytes: int = 0
    cpu_seconds: float = 0.0


@contextmanager
def _watched() -> Iterator[_Peaks]:
    """The peaks of memory, of all processes, and of scratch space until the block ends, and its CPU time."""
    peaks, ended = _Peaks(cpu_seconds=-cpu_seconds()), threading.Event()

    def watch() -> None:
        while not ended.wait(_SAMPLE_SECONDS):
            peaks.scratch_bytes = max(peaks.scratch_bytes, _size(Path(tempfile.gettempdir())))

    Path("/proc/self/clear_refs").write_text("5")  # begins a new peak of this process
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        with MemoryWatch(os.getpid()) as memory:
            yield peaks
    finally:
        ended.set()
        thread.join()
    peaks.cpu_seconds += cpu_seconds()
    status = Path("/proc/self/status").read_text()
    own = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    peaks.memory_bytes = max(own, memory.peak_bytes)


def _size(folder: Path) -> int:
    """The bytes of all files below a folder, which others may be writing and deleting meanwhile."""
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(at, name).lstat().st_size
    return total


def _kept(root: Path) -> int:
    return _size(root / "state") + _size(root / "output")
