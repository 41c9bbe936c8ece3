"""The command of the scale benchmark: costs that must not grow with the state, and input of every shape.

python -m bench.scale [ledger|days|shapes|s3] [--help]
"""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Self

import click

from bench.__main__ import leave
from bench.measure import MemoryWatch, end_family
from bench.scale import options
from bench.scale.days import days
from bench.scale.ledger import DAYS, write_finished
from bench.scale.probe import settings_at
from bench.scale.shapes.command import shapes
from bench.scale.shapes.over_s3 import over_s3
from bench.scale.table import Measure, make_rows, plain, verdicts

_MIB = 2.0**20
_WARM_UPS = 2

LEDGER_MEASURES = (
    Measure("start-up", "start-up, until the stream runs", "ms", 1e-3),
    Measure("recovery", "recovery of open manifests", "ms", 1e-3),
    Measure("manifest", "a small manifest, until it is done", "ms", 1e-3),
    Measure("status", "status", "ms", 1e-3),
    Measure("driver", "peak memory of the driver", "MiB", _MIB),
    Measure("family", "peak memory of all processes", "MiB", _MIB),
)


@click.group(invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """Measure costs that must stay flat, and input of every shape. Without a command, measure all but S3."""
    signal.signal(signal.SIGTERM, leave)
    if context.invoked_subcommand is None:
        context.invoke(ledger)
        context.invoke(days)
        context.invoke(shapes)


@main.command("ledger")
@click.option(
    "--manifests",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="Finish this many manifests in the large state.",
)
@click.option(
    "--against",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Finish this many manifests in the small state.",
)
@click.option("--open", "open_manifests", type=click.IntRange(min=1), default=10, show_default=True)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="Measure this many pairs; two more warm up.",
)
@click.option("--engine", type=click.Choice(["spark", "plain"]), default="spark", show_default=True)
@options.WORK
@options.JSON_FILE
def ledger(
    *,
    manifests: int,
    against: int,
    open_manifests: int,
    rounds: int,
    engine: str,
    work: Path,
    json_file: Path | None,
) -> None:
    """Measure a job that has finished many manifests against one that has finished few."""
    if manifests == against:
        raise click.UsageError("--manifests and --against are the same; expected two numbers")
    roots = {count: work.resolve() / f"scale-{count}" for count in (manifests, against)}
    said = (
        f"Much is {manifests:,} finished manifests on {DAYS} days, little is {against:,}; {open_manifests} open ones "
        f"to recover. Two processes at a time, asked in turn: {rounds} pairs after {_WARM_UPS} that warm up. The ratio "
        f"is the median of theirs. Engine: {engine}. Local disk, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}."
    )
    try:
        for count, root in roots.items():
            _make(root, count)
        with ExitStack() as stack:
            probes = [
                stack.enter_context(Probe(roots[count], engine, open_manifests)) for count in (manifests, against)
            ]
            pairs = [_pair(probes, number) for number in range(_WARM_UPS + rounds)][_WARM_UPS:]
        rows = make_rows(LEDGER_MEASURES, pairs)
        for line in (plain(rows), *verdicts(rows), said):
            click.echo(line)
        if json_file is not None:
            json_file.write_text(json.dumps({"rows": [asdict(row) for row in rows], "method": said}, indent=2) + "\n")
    finally:
        for root in roots.values():  # takes as long as making them
            shutil.rmtree(root, ignore_errors=True)


main.add_command(days)
main.add_command(shapes)
main.add_command(over_s3)


class Probe:
    """A process that measures on request, and whose memory is watched with that of its children. A context manager."""

    def __init__(self, root: Path, engine: str, open_manifests: int) -> None:
        self._log = root.with_suffix(".log")
        command = [sys.executable, "-m", "bench.scale.probe", str(root), "--engine", engine]
        with self._log.open("w") as log_file:
            self._child = subprocess.Popen(
                [*command, "--open", str(open_manifests)],
                cwd=Path(__file__).resolve().parents[2],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                text=True,
                start_new_session=True,
            )
        self._watch = MemoryWatch(self._child.pid)

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._watch.__exit__(*exception)
        end_family(self._child)

    def ask(self) -> dict[str, float]:
        """Measure everything once."""
        if self._child.stdin is None or self._child.stdout is None:
            raise RuntimeError("the process was started without pipes")
        with suppress(BrokenPipeError):
            self._child.stdin.write("\n")
            self._child.stdin.flush()
        for line in self._child.stdout:
            if line.startswith("{"):
                return {**json.loads(line), "family": float(self._watch.peak_bytes)}
        last = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()][-1:]
        raise click.ClickException(f"exit code {self._child.wait()}: {''.join(last)[:200]} (see {self._log})")


def _pair(probes: Sequence[Probe], number: int) -> tuple[dict[str, float], dict[str, float]]:
    """Measure the large and the small state, one right after the other."""
    click.echo(f"pair {number + 1} ...", err=True)
    much, little = probes
    if number % 2:  # the order alternates, as the machine warms up
        found = much.ask()
        return found, little.ask()
    found = little.ask()
    return much.ask(), found


def _make(root: Path, manifests: int) -> None:
    shutil.rmtree(root, ignore_errors=True)
    for place in ("manifests", "output", "state", "raw"):
        (root / place).mkdir(parents=True)
    began = time.monotonic()
    write_finished(settings_at(root).layout(), manifests, str(root / "raw"))
    click.echo(f"made {manifests:,} finished manifests in {time.monotonic() - began:.0f} s", err=True)


if __name__ == "__main__":
    main()
