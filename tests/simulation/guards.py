"""Takes guards out of a copy of the code, one at a time, and sees that the simulation finds each one missing.

python -m tests.simulation.guards [WORD ...] runs the seed of each guard whose name has one of these words, and the same
seed with all guards in place, which then has to keep every promise. With `--search 100`, it runs the seeds 1 to 100
until one breaks a promise, for guards whose seed is not known or has to change. Then the words choose among all guards.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.guards import GUARDS, Guard
from tests.guards.__main__ import COPIED, ROOT, _copy, taken_out
from tests.simulation.found import SEEDS

PATIENCE_SECONDS = 900.0
TRIED = 60
"""A change of the code moves all faults: then so many seeds are tried instead of the known one."""

HARSH = ("--harsh", "--days", "0.04", "--as-is", "--trace", "0")
SEED = re.compile(r"^seed (\d+) breaks: .*$", re.MULTILINE)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.guards", description=__doc__)
    parser.add_argument("words", nargs="*", help="only guards whose names have one of these words")
    parser.add_argument("--search", type=int, default=0, help="run up to so many seeds instead of the known one")
    chosen = parser.parse_args(arguments)
    known_names = (guard.name for guard in GUARDS) if chosen.search and chosen.words else SEEDS
    names = [name for name in known_names if not chosen.words or any(word in name for word in chosen.words)]
    unfound = 0
    with tempfile.TemporaryDirectory(prefix="compactor-guards-") as folder:
        copy = Path(folder)
        for name in COPIED:
            _copy(ROOT / name, copy / name)
        whole: dict[str, str] = {}
        for name in names:
            known = [] if chosen.search else [["--seed", str(SEEDS[name])]]
            tries = [*known, ["--seeds", str(chosen.search or TRIED), "--until-broken"]]
            broken = next(filter(None, (found_by(named(name), copy, seeds) for seeds in tries)), "")
            anyway = _with_all_guards(broken, copy, whole) if broken else ""
            unfound += not broken or bool(anyway)
            sys.stdout.write(f"{name}\n    {broken or 'NOT FOUND'}\n")
            sys.stdout.write(f"    NOT FOUND, for with all guards {anyway}\n" if anyway else "")
            sys.stdout.flush()
    sys.stdout.write(f"{len(names) - unfound} of {len(names)} guards are missed by the simulation when they are gone\n")
    return 1 if unfound else 0


def _with_all_guards(broken: str, copy: Path, whole: dict[str, str]) -> str:
    """What the seed that broke breaks with all guards in place, where it has to keep every promise: then empty."""
    found = SEED.match(broken)
    if found is None:
        return f"nothing was tried: {broken}"
    if found[1] not in whole:
        whole[found[1]] = broken_by(copy, ["--seed", found[1]])
    return whole[found[1]]


def named(name: str) -> Guard:
    """The guard of a name."""
    [guard] = [each for each in GUARDS if each.name == name]
    return guard


def found_by(guard: Guard, copy: Path, seeds: Sequence[str]) -> str:
    """What the simulation says without a guard; empty if it notices nothing. The copy is as before afterwards."""
    module, code = taken_out(copy, guard)
    try:
        return broken_by(copy, seeds)
    finally:
        module.write_text(code)


def broken_by(copy: Path, seeds: Sequence[str]) -> str:
    """The promise that seeds break in a copy of the code; empty if they keep all."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", "tests.simulation", *seeds, *HARSH]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return ""
    broken = SEED.search(done.stdout)
    if done.returncode == 0 or broken is None:
        return "" if done.returncode == 0 else f"FAILED OTHERWISE: {done.stdout[-300:]}"
    return broken[0][:240]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
