"""Measures attacks of a hostile producer, and prints a table; the exit code is 1 if one of them succeeded.

python -m tests.hostile [--engine native|spark] [--rows N] [NAME, KIND or GENOME ...]
"""

# ruff: noqa: T201 - a program

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from tests.hostile.attack import MIB, Attack
from tests.hostile.catalogue import ATTACKS, named
from tests.hostile.measuring import Measured

ROWS = 10_000
ATTACK_SECONDS = 600
AT_ONCE = {"native": 1, "spark": 20}
"""Attacks a process: Spark takes seconds to start."""


def _chosen(engine: str, names: Sequence[str]) -> list[Attack]:
    chosen = [each for each in ATTACKS if not names or each.kind in names]
    try:
        chosen += [named(name) for name in names if all(name != each.kind for each in ATTACKS)]
    except ValueError as exc:
        raise SystemExit(f"no attack, no kind of attacks and no genome: {exc}") from exc
    return [each for each in chosen if engine in each.engines]


def results(
    engine: str, rows: int, attacks: Sequence[Attack], seconds: float = ATTACK_SECONDS, at_once: int = 0
) -> Iterator[Measured]:
    """Measure attacks in processes of their own; one that dies, or takes too long, is the result of its attack."""
    left = [each.name for each in attacks]
    while left:
        batch = left[: at_once or AT_ONCE[engine]]
        with tempfile.TemporaryDirectory(prefix="hostile-") as place:
            for result in _child(engine, rows, Path(place), batch, seconds * len(batch)):
                yield result
                left.remove(result.name)
            if left[:1] and left[0] in batch:
                end = " ".join(Path(place, "errors").read_text(errors="replace").split()[-30:])
                yield Measured(left.pop(0), 0, 0, 0, 0, 0, faults=[f"the process died, or took too long: {end}"])


def _child(engine: str, rows: int, place: Path, names: Sequence[str], seconds: float) -> Iterator[Measured]:
    scratch = place / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch)}
    command = [sys.executable, "-m", "tests.hostile.child", engine, str(rows), str(place), *names]
    with (
        (place / "errors").open("wb") as errors,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        late = threading.Timer(seconds, process.kill)
        late.start()
        assert process.stdout is not None
        yield from (Measured(**orjson.loads(line)) for line in process.stdout if line.startswith(b"{"))
        late.cancel()


HEAD = f"{'attack':<44}{'alone s':>8}{'beside':>8}{'CPU s':>8}{'mem MiB':>9}{'scratch':>9}{'kept':>9}"


def line(result: Measured, faults: Sequence[str]) -> str:
    """A line of the table."""
    sizes = "".join(f"{value / MIB:9.0f}" for value in (result.memory_bytes, result.scratch_bytes, result.kept_bytes))
    times = f"{result.alone_seconds:8.1f}{result.beside_seconds:8.1f}{result.cpu_seconds:8.1f}"
    return f"{result.name:<44}{times}{sizes}  {'; '.join(faults) if faults else 'held'}"


def main() -> int:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile")
    parser.add_argument("--engine", choices=sorted(AT_ONCE), default="native")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each file of the honest manifests")
    parser.add_argument("names", nargs="*", metavar="NAME", help="attacks, kinds or genomes; all attacks by default")
    options = parser.parse_args()
    attacks = _chosen(options.engine, options.names)
    print(HEAD, flush=True)
    succeeded = []
    for result in results(options.engine, options.rows, attacks):
        faults = [*result.faults, *result.beyond(named(result.name))]
        print(line(result, faults), flush=True)
        succeeded += [result.name] if faults else []
    print(
        f"{len(attacks) - len(succeeded)} of {len(attacks)} attacks held; succeeded: {', '.join(succeeded) or 'none'}"
    )
    return 1 if succeeded else 0


if __name__ == "__main__":
    sys.exit(main())
