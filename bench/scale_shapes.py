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

from bench.inputs import parse_size
from bench.shape_runs import CONTENDERS, ShapeInput, reference_over_s3, run_shape, shape_input
from bench.shape_table import HEADINGS, TASK_BYTES, TEXT_COLUMNS, ShapeRow, verdicts
from bench.shapes import SHAPES, Shape
from compactor.settings.types import MIB

WORK = Path(__file__).resolve().parent.parent / ".bench"
S3_NAME = "s3"
_NAMES = ", ".join([*(shape.name for shape in SHAPES), S3_NAME])


@click.command("shapes")
@click.option("--size", default="1000mb", show_default=True, help="Of a shape; the one large file is five times that.")
@click.option("--only", help=f"Shapes to convert, with commas in between; all by default: {_NAMES}.")
@click.option("--contenders", help="Who converts them, with commas in between; all by default.")
@click.option("--seed", default=7, show_default=True, help="What the input is made from.")
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), default=WORK, help="Folder on a local disk.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the results here.")
def shapes(
    *, size: str, only: str | None, contenders: str | None, seed: int, work: Path, json_file: Path | None
) -> None:
    """Convert input of every shape with either engine and with DuckDB."""
    try:
        total_bytes = parse_size(size)
        chosen = _chosen(only, [*(shape.name for shape in SHAPES), S3_NAME])
        taking_part = _chosen(contenders, [each.name for each in CONTENDERS])
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    rows: list[ShapeRow] = []
    left_out = []
    for name, opened in _inputs(chosen, total_bytes, seed, work.resolve()):
        click.echo(f"{name}: making the input ...", err=True)
        try:
            with opened as given:
                for contender in CONTENDERS:
                    if contender.name in taking_part and (given.s3 is None or contender.args[0] == "--engine"):
                        click.echo(f"{name}: {contender.name} ...", err=True)
                        rows.append(run_shape(given, contender, work.resolve()))
                        click.echo("  ".join(rows[-1].cells()), err=True)
        except (OSError, RuntimeError) as exc:
            left_out.append(f"NOT CONVERTED: {name}: {exc}")  # what was measured before is worth having
    report(rows, left_out, seed, json_file)
    if left_out or any(row.faults() for row in rows):
        sys.exit(1)


def report(rows: list[ShapeRow], left_out: list[str], seed: int, json_file: Path | None) -> None:
    """Print the table, what to make of it, and how it came about; write it all to a file if one is named."""
    table = Table()
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if number < TEXT_COLUMNS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row.cells(), style="red" if row.faults() else None)
    said = method(seed)
    console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=200)
    console.print(table)
    for line in (*verdicts(rows), *left_out, said):
        click.echo(line)
    if json_file is not None:
        found = [{**asdict(row), "faults": row.faults()} for row in rows]
        json_file.write_text(json.dumps({"rows": found, "left_out": left_out, "method": said}, indent=2) + "\n")


def method(seed: int) -> str:
    """How the figures came about."""
    return (
        "MB are 10^6 bytes of lines before compression. Each contender in a process of its own, one at a time; the "
        "engines convert a sample first, which warms them up and teaches them sizes and columns, then all of it, timed "
        f"once. all MiB: peak of all processes, JVM included. worker MiB: most that one of Spark's Python workers, "
        f"which does one task at a time, ever had in memory; {TASK_BYTES // MIB} are promised. Right-sized: within a "
        "quarter of 128 MiB, of files that had enough input. Compared: the sample, every value of it, by the deep "
        "audit; of the whole input the counts of lines and rows of each file, and of rows in each footer. Of DuckDB, "
        f"the number of rows only. Seed {seed}; {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}."
    )


def _chosen(only: str | None, names: list[str]) -> list[str]:
    """Those that were asked for.

    Raises:
        ValueError: There is none of such a name.
    """
    wanted = names if only is None else [name.strip() for name in only.split(",")]
    if unknown := sorted(set(wanted).difference(names)):
        raise ValueError(f"nothing called {', '.join(unknown)}: expected some of {', '.join(names)}")
    return [name for name in names if name in wanted]


def _inputs(
    chosen: list[str], total_bytes: int, seed: int, work: Path
) -> Iterator[tuple[str, AbstractContextManager[ShapeInput]]]:
    by_name: dict[str, Shape] = {shape.name: shape for shape in SHAPES}
    for name in chosen:
        if name == S3_NAME:
            yield name, reference_over_s3(work, total_bytes, seed)
        else:
            yield name, shape_input(by_name[name].scaled(total_bytes), work, seed)
