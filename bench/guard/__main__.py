"""Compares the CPU time of this tree with that of an earlier commit: `make bench-guard BASE=COMMIT`.

Both programs compact the same files, one after the other and in turn the first, in a process of their own each time.
A shape gets further pairs until they tell whether the new one takes over 5 % more, or there are enough of them.
"""

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from bench import shape_lines
from bench.guard.base import base_of, unpack_commit
from bench.guard.programs import ROOT, Program, check_apart
from bench.guard.rule import LEAST_PAIRS, Verdict
from bench.guard.table import HEADING, Row, closing
from bench.inputs import check_room, chosen, parse_size
from bench.shapes import MB, SHAPES, Shape, write_shape

STEP_PAIRS = 4
_DISK_PER_INPUT_BYTE = 2
GUARDED = (
    Shape("events", shape_lines.events, file_bytes=3_670_016),
    *(replace(shape, total_bytes=min(shape.total_bytes, 1000 * MB)) for shape in SHAPES if shape.name != "one file"),
)
"""The reference events, and the other shapes of `bench.scale`."""


@click.command()
@click.option("--size", default="300mb", show_default=True, help="Make this much input of each shape.")
@click.option("--pairs", default=48, show_default=True, help="Stop after so many pairs of a shape.")
@click.option("--only", help="Compare only these shapes, separated by commas.")
@click.option("--base", default="main", show_default=True, help="Compare with the commit that parted from this one.")
@click.option("--seed", default=7, show_default=True, help="Make the input from this seed.")
def guard(*, size: str, pairs: int, only: str | None, base: str, seed: int) -> None:
    """Fail if this tree takes over 5 % more CPU time than the commit that it comes from."""
    try:
        total_bytes = parse_size(size)
        names = chosen(only, [shape.name for shape in GUARDED])
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    if pairs < LEAST_PAIRS:
        raise click.UsageError(f"--pairs: expected {LEAST_PAIRS} or more")
    with tempfile.TemporaryDirectory(prefix="bench-guard-") as name:
        work = Path(name)
        (work / "old").mkdir()
        try:
            commit = base_of(base)
            click.echo(f"building commit {commit[:12]}, unless it is built ...", err=True)
            unpack_commit(commit, work / "old")
            programs = Program("old", work / "old"), Program("new", ROOT)
            check_apart(*programs, work)
            rows = [
                _row(shape.scaled(total_bytes), programs, work, pairs, seed) for shape in GUARDED if shape.name in names
            ]
        except (OSError, RuntimeError, AssertionError) as exc:
            raise click.ClickException(str(exc)) from exc
    code, said = closing(rows)
    click.echo("\n".join([HEADING, *(row.line() for row in rows), said]))
    sys.exit(code)


def _row(shape: Shape, programs: tuple[Program, Program], work: Path, most_pairs: int, seed: int) -> Row:
    """Run both programs in turn until their pairs tell, or there are enough of them."""
    check_room(work, shape.total_bytes * _DISK_PER_INPUT_BYTE)
    try:
        given = write_shape(shape, work / "input", seed)
        for program in programs:  # not counted: it fills the page cache, and compiles Python
            program.cpu_seconds(given.folder, given.lines, work)
        row, wanted = Row(shape.name, given.decoded_bytes, []), LEAST_PAIRS
        while len(row.pairs) < most_pairs:
            turn = len(row.pairs) % 2
            took = {each.name: each.cpu_seconds(given.folder, given.lines, work) for each in programs[:: 1 - 2 * turn]}
            row = replace(row, pairs=[*row.pairs, (took["old"], took["new"])])
            if len(row.pairs) >= wanted:
                click.echo(row.line(), err=True)
                wanted += STEP_PAIRS
                if row.judged.verdict is not Verdict.UNDECIDED:
                    break
        return row
    finally:
        shutil.rmtree(work / "input", ignore_errors=True)


if __name__ == "__main__":
    guard()
