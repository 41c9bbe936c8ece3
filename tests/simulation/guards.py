"""Takes guards out of a copy of the code, one at a time, and sees that the simulation finds each one missing.

python -m tests.simulation.guards [WORD ...] runs the seed of each guard whose name has one of these words; with
`--search 100`, the seeds 1 to 100 until one breaks a promise, for guards whose seed is not known or has to change. Then
the words choose among all guards of `tests/guards/`, too.
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
from tests.guards.__main__ import COPIED, ROOT, _copy
from tests.simulation.found import ADDED, SEEDS

PATIENCE_SECONDS = 900.0
TRIED = 20
"""A change of the code moves all faults: then so many seeds are tried instead of the known one."""

HARSH = ("--harsh", "--days", "0.04", "--as-is", "--trace", "0")
GUARDED = (*GUARDS, *ADDED)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.guards", description=__doc__)
    parser.add_argument("words", nargs="*", help="only guards whose names have one of these words")
    parser.add_argument("--search", type=int, default=0, help="run up to so many seeds instead of the known one")
    chosen = parser.parse_args(arguments)
    known_names = (guard.name for guard in GUARDED) if chosen.search and chosen.words else SEEDS
    names = [name for name in known_names if not chosen.words or any(word in name for word in chosen.words)]
    unfound = 0
    with tempfile.TemporaryDirectory(prefix="compactor-guards-") as folder:
        copy = Path(folder)
        for name in COPIED:
            _copy(ROOT / name, copy / name)
        for name in names:
            known = "" if chosen.search else found_by(named(name), copy, ["--seed", str(SEEDS[name])])
            error = known or found_by(named(name), copy, ["--seeds", str(chosen.search or TRIED), "--until-broken"])
            unfound += not error
            sys.stdout.write(f"{name}\n    {error or 'NOT FOUND'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(names) - unfound} of {len(names)} guards are missed by the simulation when they are gone\n")
    return 1 if unfound else 0


def named(name: str) -> Guard:
    """The guard of a name."""
    [guard] = [each for each in GUARDED if each.name == name]
    return guard


def found_by(guard: Guard, copy: Path, seeds: Sequence[str]) -> str:
    """What the simulation says without a guard; empty if it notices nothing. The copy is as before afterwards."""
    module = copy / "compactor" / guard.module
    code = module.read_text()
    if code.count(guard.text) != 1:
        return ""
    module.write_text(code.replace(guard.text, guard.without))
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
    finally:
        module.write_text(code)
    broken = re.search(r"^seed \d+ breaks: .*$", done.stdout, re.MULTILINE)
    if done.returncode == 0 or broken is None:
        return "" if done.returncode == 0 else f"FAILED OTHERWISE: {done.stdout[-300:]}"
    return broken[0][:240]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
