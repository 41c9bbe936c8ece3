"""The command that converts every shape of input: `python -m bench.scale shapes`."""

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bench.contenders import choose
from bench.inputs import chosen, parse_size
from bench.scale import options
from bench.scale.shapes.runs import CONTENDERS, ShapeInput, reference_input, run_shape, shape_input
from bench.scale.shapes.table import HEADINGS, REFERENCE, TASK_BYTES, TEXT_COLUMNS, ShapeRow, verdicts
from bench.shapes import SHAPES, Shape
from compactor.settings.types import MIB

_NAMES = (*(shape.name for shape in SHAPES), REFERENCE)


@click.command("shapes")
@click.option(
    "--size",
    default="1000mb",
    show_default=True,
    help="Make this much input of each shape; the one large file is five times that.",
)
@click.option("--only", help=f"Convert only these shapes, separated by commas: {', '.join(_NAMES)}.")
@click.option("--contenders", help="Run only these contenders, separated by commas.")
@options.SEED
@options.WORK
@options.JSON_FILE
def shapes(
    *, size: str, only: str | None, contenders: str | None, seed: int, work: Path, json_file: Path | None
) -> None:
    """Convert input of every shape with either engine and with DuckDB."""
    try:
        total_bytes = parse_size(size)
        names = chosen(only, _NAMES)
        taking_part = choose(contenders, CONTENDERS)
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    rows: list[ShapeRow] = []
    left_out = []
    for name, opened in _inputs(names, total_bytes, seed, work.resolve()):
        click.echo(f"{name}: making the input ...", err=True)
        try:
            with opened as given:
                for contender in taking_part:
                    click.echo(f"{name}: {contender.name} ...", err=True)
                    rows.append(run_shape(given, contender, work.resolve()))
                    click.echo("  ".join(rows[-1].cells()), err=True)
        except (OSError, RuntimeError) as exc:
            left_out.append(f"NOT CONVERTED: {name}: {exc}")  # keep what was measured before
    report(rows, [], left_out, method(seed), json_file)
    if left_out or any(row.faults() for row in rows):
        sys.exit(1)


def report(rows: list[ShapeRow], compared: list[str], left_out: list[str], said: str, json_file: Path | None) -> None:
    """Print the table, the verdicts and the method; write the results to a file if one is named.

    Args:
        rows: All runs.
        compared: What follows from several runs together, a line each.
        left_out: What was not converted, a line each.
        said: The method.
        json_file: The file.
    """
    table = Table()
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if number < TEXT_COLUMNS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row.cells(), style="red" if row.faults() else None)
    console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=200)
    console.print(table)
    for line in (*verdicts(rows), *compared, *left_out, said):
        click.echo(line)
    if json_file is not None:
        found = [{**asdict(row), "faults": row.faults()} for row in rows]
        json_file.write_text(
            json.dumps({"rows": found, "compared": compared, "left_out": left_out, "method": said}, indent=2) + "\n"
        )


def method(seed: int, passes: int = 1) -> str:
    """How the figures were measured."""
    times = "once" if passes == 1 else f"{passes} times: shown is the pass with the median CPU time"
    return (
        "MB are 10^6 bytes of lines before compression. Each contender in a process of its own, one at a time; the "
        "engines convert a sample first, which warms them up and shows them sizes and columns, then all input, timed "
        f"{times}. CPU s/GB: of all its processes, in user and kernel mode. "
        f"all MiB: peak of all processes, JVM included. worker MiB: peak of any one Python worker of Spark, "
        f"which runs one task at a time; {TASK_BYTES // MIB} are promised. Right-sized: within a "
        "quarter of 128 MiB, among files that had enough input. Compared: every value of the sample, by deep "
        "verification; for the whole input the lines and rows of each file and the rows of each footer; for DuckDB "
        f"only the number of rows. Seed {seed}; {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}."
    )


def _inputs(
    names: list[str], total_bytes: int, seed: int, work: Path
) -> Iterator[tuple[str, AbstractContextManager[ShapeInput]]]:
    by_name: dict[str, Shape] = {shape.name: shape for shape in SHAPES}
    for name in names:
        if name == REFERENCE:
            yield name, reference_input(work, total_bytes, seed)
        else:
            yield name, shape_input(by_name[name].scaled(total_bytes), work, seed)
