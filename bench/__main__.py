"""The command: makes the input, runs the contenders one after the other, and prints the table."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType

import click
from rich.console import Console
from rich.table import Table

from bench.contenders import BASELINE, Contender, choose
from bench.inputs import Input, ensure_input, parse_size
from bench.last import keep_result
from bench.measure import Measurement, run_contender
from bench.table import HEADINGS, Row, cells, make_rows, notes, plain

_WORK = Path(__file__).resolve().parent.parent / ".bench"
_PACKAGES = ("pyspark", "duckdb", "polars", "pyarrow")


@click.command()
@click.option("--size", default="1gb", show_default=True, help="Convert this much input in each pass.")
@click.option(
    "--passes",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Run this many passes; the first warms up.",
)
@click.option("--only", help="Run only these contenders, separated by commas.")
@click.option("--seed", default=7, show_default=True, help="Make the input from this seed.")
@click.option(
    "--work", type=click.Path(file_okay=False, path_type=Path), default=_WORK, help="Keep all files in this folder."
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the results to this file too."
)
def main(*, size: str, passes: int, only: str | None, seed: int, work: Path, json_file: Path | None) -> None:
    """Compare ways to turn many NDJSON files into Parquet on this machine."""
    signal.signal(signal.SIGTERM, leave)
    try:
        contenders = choose(only)
        total_bytes = parse_size(size)
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    try:
        source = ensure_input(work.resolve(), total_bytes, seed)
    except OSError as exc:
        raise click.ClickException(str(exc)) from exc
    measurements = run_all(contenders, source, work.resolve(), passes)
    rows = make_rows(measurements, baseline=BASELINE, expected_rows=source.rows)
    said = method(source, passes)
    show(rows, said)
    keep_result(rows, work.resolve())
    if json_file is not None:
        json_file.write_text(json.dumps({"rows": [asdict(row) for row in rows], "method": said}, indent=2) + "\n")
    if any(row.note for row in rows):
        sys.exit(1)


def run_all(contenders: Sequence[Contender], source: Input, work: Path, passes: int) -> list[Measurement]:
    """Run the contenders one after the other; the output of each is deleted before the next one starts."""
    measurements = []
    for contender in contenders:
        click.echo(f"{contender.name} ...", err=True)
        output = work / "output" / contender.name
        try:
            log = work / f"{contender.name}.log"
            measurements.append(run_contender(contender, source.folder, output, log, passes=passes))
        finally:
            shutil.rmtree(output, ignore_errors=True)
    return measurements


def method(source: Input, passes: int) -> str:
    """How the figures were measured, in one line."""
    steady = "pass 1" if passes == 1 else f"the median of passes 2 to {passes}" if passes > 2 else "pass 2"  # noqa: PLR2004
    return (
        f"Ratio to {BASELINE}; speed is {steady}, in MB of 10^6 input bytes. Input: {source.files} files, "
        f"{source.bytes / 1e6:,.0f} MB, {source.rows:,} lines, seed {source.seed}, in the page cache. Memory: peak of "
        f"all processes, shared pages once where the system tells. {os.cpu_count()} cores, {platform.system()} "
        f"{platform.machine()}, {', '.join(versions())}."
    )


def versions() -> list[str]:
    """The versions of the installed contenders."""
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    try:
        java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True, timeout=30).stderr
        found.append(java.splitlines()[0].replace('"', ""))
    except (OSError, subprocess.SubprocessError, IndexError):
        pass
    return found


def show(rows: Sequence[Row], said: str) -> None:
    """Print the table: with lines and colours on a terminal, else as plain text."""
    if sys.stdout.isatty():
        table = Table()
        for heading in HEADINGS:
            first = heading == HEADINGS[0]
            table.add_column(heading, justify="left" if first else "right", no_wrap=first)
        for row in rows:
            table.add_row(*cells(row), style="bold" if row.contender.startswith("compactor") else None)
        Console().print(table)
    else:
        click.echo(plain(rows))
    for line in (*notes(rows), said):
        click.echo(line)


def leave(_signal: int, _frame: FrameType | None) -> None:
    """End as Ctrl-C does, so that no child process survives."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
