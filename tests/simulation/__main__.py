"""python -m tests.simulation --seeds 200: simulates so many runs, and shrinks each that breaks a promise."""

import argparse
import logging
import os
import sys
import time
from types import ModuleType, SimpleNamespace

from tests.simulation.importing import install


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many seeds")
    parser.add_argument("--seed", type=int, help="one seed alone")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--days", type=float, default=0.125, help="simulated days of each seed")
    parser.add_argument("--faults", type=int, help="let only the first so many faults happen")
    parser.add_argument("--trace", type=int, default=60, help="lines of the trace of a failing seed")
    parser.add_argument("--no-shrink", action="store_true", help="do not look for the shortest prefix")
    chosen = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets of text is chance, too
        os.execve(sys.executable, [*sys.orig_argv], {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606
    install({"compactor.adapters.local.processes": _without_processes})
    logging.disable(logging.CRITICAL)
    from tests.simulation.runs import run_seeds  # noqa: PLC0415 - what it imports must be imported so

    seeds = [chosen.seed] if chosen.seed is not None else range(chosen.first, chosen.first + chosen.seeds)
    began = time.process_time()
    return run_seeds(seeds, chosen.days, chosen.faults, chosen.trace, shrink=not chosen.no_shrink, began=began)


def _without_processes(module: ModuleType) -> None:
    """Each simulated process has a machine of its own, so that nothing but its heartbeat tells of it."""
    processes = SimpleNamespace(this=lambda: module.ProcessName("simulated", 1), is_gone=lambda _: False)
    vars(module)["MachineProcesses"] = lambda: processes


if __name__ == "__main__":
    sys.exit(main())
