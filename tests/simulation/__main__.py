"""Simulates the whole system for many seeds, and shrinks each seed that breaks a promise to its shortest prefix.

python -m tests.simulation --seeds 200 runs the seeds 1 to 200; --seed 7 --days 30 a month of one.
"""

import argparse
import logging
import os
import sys
from types import ModuleType, SimpleNamespace

from tests.simulation.importing import install

SHORT_DAYS = 1 / 24


def main() -> int:
    chosen = _arguments()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of a set of texts is chance as well
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606
    install({"compactor.adapters.local.machine": _without_processes})
    logging.disable(logging.CRITICAL)
    from tests.simulation.runs import Case, Show, run_seeds  # noqa: PLC0415 - only now the package may be imported
    from tests.simulation.scheduler import Death  # noqa: PLC0415

    def told(unraisable: "sys.UnraisableHookArgs") -> None:
        """Report an error in a destructor, but not the death of the process whose generator is dropped."""
        if not isinstance(unraisable.exc_value, Death):
            sys.__unraisablehook__(unraisable)

    sys.unraisablehook = told
    numbers = [chosen.seed] if chosen.seed is not None else range(chosen.first, chosen.first + chosen.seeds)
    cases = (Case(number, chosen.days, chosen.faults, chosen.harsh) for number in numbers)
    show = Show(chosen.trace, shrinks=not chosen.as_is, is_verbose=chosen.verbose, until_broken=chosen.until_broken)
    return run_seeds(cases, show)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--seed", type=int, help="this seed alone")
    parser.add_argument("--days", type=float, default=SHORT_DAYS, help="simulated days of work and trouble in each")
    parser.add_argument("--faults", type=int, help="let only the first so many faults happen")
    parser.add_argument("--harsh", action="store_true", help="let all kinds of faults happen, and often")
    parser.add_argument("--trace", type=int, default=40, help="lines of the trace to show of a seed that fails")
    parser.add_argument("--until-broken", action="store_true", help="end with the first seed that fails")
    parser.add_argument("--as-is", action="store_true", help="do not shrink a seed that fails")
    parser.add_argument("--verbose", action="store_true", help="show what happened in each seed")
    return parser.parse_args()


def _without_processes(module: ModuleType) -> None:
    """Each simulated process has a machine of its own: nothing but its heartbeat tells of it."""
    processes = SimpleNamespace(this=lambda: module.ProcessName("simulated", 1), is_gone=lambda _: False)
    vars(module)["MachineProcesses"] = lambda: processes


if __name__ == "__main__":
    sys.exit(main())
