"""Measures some attacks in this process, and prints a JSON line for each.

Its process may die of an attack, which is a result as well: `tests.hostile.__main__` starts it.
"""

import shutil
import sys
import traceback
from dataclasses import asdict
from pathlib import Path

import orjson

from tests.hostile.attack import Attack
from tests.hostile.catalogue import named
from tests.hostile.measuring import Measured, measured, warm_up

TRIES = 3
"""What is beyond a bound is measured again: other programs may have taken the machine's time."""


def run(engine: str, rows: int, place: Path, attacks: list[Attack]) -> None:
    """Measure attacks one after the other, in folders that are deleted afterwards."""
    warm_up(engine, attacks[0], place / "warm-up")
    for number, attack in enumerate(attacks):
        for tried in range(TRIES):
            root = place / f"{number}-{tried}"
            result = _tried(attack, engine, root, rows)
            shutil.rmtree(root, ignore_errors=True)
            if result.faults or not result.beyond(attack):
                break
        sys.stdout.buffer.write(orjson.dumps(asdict(result)) + b"\n")
        sys.stdout.buffer.flush()


def _tried(attack: Attack, engine: str, root: Path, rows: int) -> Measured:
    try:
        return measured(attack, engine, root, rows)
    except Exception as exc:  # noqa: BLE001 - an error of a run is a result
        where = traceback.extract_tb(exc.__traceback__)[-1]
        fault = f"{type(exc).__name__}: {exc} ({where.filename}:{where.lineno})"
        return Measured(attack.name, 0, 0, 0, 0, 0, faults=[fault])


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), [named(name) for name in sys.argv[4:]])
