"""The command that reads over S3 and from files in turn: `python -m bench.scale s3`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click

from bench.contenders import Contender, choose
from bench.inputs import parse_size
from bench.scale import options
from bench.scale.shapes.command import method, report
from bench.scale.shapes.runs import ENGINES, ShapeInput, reference_input, reference_over_s3, run_shape
from bench.scale.shapes.table import ShapeRow
from bench.scale.table import middle_half


@dataclass(frozen=True, slots=True)
class Round:
    """The same input, converted by the same engine from files and over S3, one right after the other."""

    local: ShapeRow
    over_s3: ShapeRow

    @property
    def rows(self) -> tuple[ShapeRow, ShapeRow]:
        return self.local, self.over_s3

    @property
    def is_comparable(self) -> bool:
        """Whether both runs did all that they had to do."""
        return not any(row.faults() for row in self.rows)

    @property
    def relative_rate(self) -> float:
        """Bytes in a second of CPU time over S3, as a part of those from files."""
        return self.local.cpu_seconds_per_gb / self.over_s3.cpu_seconds_per_gb


@click.command("s3")
@click.option("--size", default="1000mb", show_default=True, help="Make this much input.")
@click.option("--contenders", help="Run only these engines, separated by commas.")
@click.option(
    "--rounds",
    default=5,
    show_default=True,
    type=click.IntRange(min=1),
    help="Convert files and S3 in turn, this many times.",
)
@click.option(
    "--passes",
    default=3,
    show_default=True,
    type=click.IntRange(min=1),
    help="In each run, convert all input this many times; the pass with the median CPU time counts.",
)
@options.SEED
@options.WORK
@options.JSON_FILE
def over_s3(
    *, size: str, contenders: str | None, rounds: int, passes: int, seed: int, work: Path, json_file: Path | None
) -> None:
    """Read the reference events from files and over S3 with TLS in turn, and compare the compactor's CPU time."""
    try:
        total_bytes = parse_size(size)
        engines = choose(contenders, ENGINES)
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    work = work.resolve()
    made: dict[str, list[Round]] = {engine.name: [] for engine in engines}
    left_out: list[str] = []
    try:
        with reference_input(work, total_bytes, seed) as local, reference_over_s3(work, total_bytes, seed) as remote:
            for engine in engines:
                for number in range(rounds):
                    made[engine.name].append(_round(engine, local, remote, work, passes, is_s3_first=number % 2 == 1))
    except (OSError, RuntimeError) as exc:
        left_out.append(f"NOT CONVERTED: {exc}")  # keep what was measured before
    rows = [row for found in made.values() for each in found for row in each.rows]
    lines = [line for name, found in made.items() for line in compared(name, found)]
    report(rows, lines, left_out, method(seed, passes), json_file)
    if left_out or any(row.faults() for row in rows):
        sys.exit(1)


def compared(engine: str, rounds: Sequence[Round]) -> list[str]:
    """What an engine does over S3 in a second of CPU time, beside files; empty if no round can be compared."""
    rates = [each.relative_rate for each in rounds if each.is_comparable]
    if not rates:
        return []
    said = f"{engine} over S3 with TLS: {median(rates):.0%} as many bytes in a second of CPU time as from files"
    if len(rates) == 1:
        return [f"{said} (one round)"]
    low, high = middle_half(rates)
    return [f"{said} (median of {len(rates)} rounds; half of them {low:.0%} to {high:.0%})"]


def _round(
    engine: Contender, local: ShapeInput, remote: ShapeInput, work: Path, passes: int, *, is_s3_first: bool
) -> Round:
    made = {}
    for given in (remote, local) if is_s3_first else (local, remote):
        row = run_shape(given, engine, work, passes)
        click.echo("  ".join(row.cells()), err=True)
        made[given.name] = row
    return Round(made[local.name], made[remote.name])
