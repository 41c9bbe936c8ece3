"""Runs seeds, and shrinks those that break a promise."""

import sys
import time
from collections.abc import Iterable

from tests.simulation.scheduler import Broken
from tests.simulation.world import World


def run_seeds(
    seeds: Iterable[int], days: float, until_fault: int | None, lines: int, *, shrink: bool, began: float
) -> int:
    """Run seeds; returns the exit code."""
    broken = []
    done = 0
    is_long = days >= 1
    for seed in seeds:
        error = broken_by(seed, days, until_fault, say=say if is_long else None)
        done += 1
        say(f'seed {seed} {broken_by.last.described()} cpu {time.process_time()-began:.1f} {broken_by.last.faults.describe()}')
        if error is not None:
            broken.append(seed)
            say(f"seed {seed}: {error}")
            tell(seed, days, until_fault, lines, shrink=shrink)
    seconds = time.process_time() - began
    say(f"{done - len(broken)} of {done} seeds kept every promise, {done / seconds:.2f} seeds a CPU second")
    return 1 if broken else 0


def broken_by(seed, days, until_fault=None, trace=None, say=None):
    world = World(seed, days, until_fault, trace, *([say] if say else []))
    try:
        world.run()
    except Broken as exc:
        error = exc
    except Exception as exc:  # noqa: BLE001
        import traceback
        traceback.print_exc()
        error = exc
    else:
        error = None
    broken_by.last = world
    return error


def tell(seed, days, until_fault, lines, *, shrink):
    ...


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
