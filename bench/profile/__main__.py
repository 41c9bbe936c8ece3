"""The command: profiles each shape, prints the table, and writes it into the document: `make profile`."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from bench.guard.programs import ROOT, Program
from bench.inputs import check_room, chosen, parse_size
from bench.profile.building import Built, build
from bench.profile.figures import Profile, closing, table
from bench.profile.limits import limits
from bench.profile.runs import Spent, spent
from bench.profile.shapes import OPTIONS, PROFILED
from bench.shapes import Shape, write_shape
from tools.document_tables import with_tables

_WORK = ROOT / ".bench" / "profile"
_MODULE = "bench.profile"
_DISK_PER_INPUT_BYTE = 3


@click.command()
@click.option("--size", default="100mb", show_default=True, help="Make this much input of each shape.")
@click.option("--samples", default=2_000, show_default=True, help="Repeat each shape until it has so many samples.")
@click.option("--only", help="Profile only these shapes, separated by commas.")
@click.option("--seed", default=7, show_default=True, help="Make the input from this seed.")
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), default=_WORK, help="Keep all files here.")
@click.option(
    "--document", type=click.Path(dir_okay=False, exists=True, path_type=Path), help="Write the table into this page."
)
def main(*, size: str, samples: int, only: str | None, seed: int, work: Path, document: Path | None) -> None:
    """Measure which stage of the work takes the CPU time, and what it would take at best."""
    try:
        total_bytes = parse_size(size)
        names = chosen(only, [shape.name for shape in PROFILED])
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    if samples < 1:
        raise click.UsageError("--samples: expected 1 or more")
    if document is not None and only is not None:
        raise click.UsageError("--document and --only: expected one of them; a page has all shapes")
    work = work.resolve()
    runs = work / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    runs.mkdir(parents=True)
    try:
        check_room(work, total_bytes * _DISK_PER_INPUT_BYTE)
        click.echo("building the kernel with names; the first build takes about 4 minutes ...", err=True)
        built = build(work)
        shapes = [shape.scaled(total_bytes) for shape in PROFILED if shape.name in names]
        profiles = _profiles(shapes, built, runs, samples, seed)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as exc:
        raise click.ClickException(str(exc)) from exc
    finally:
        shutil.rmtree(runs, ignore_errors=True)
    text = f"{table(profiles)}\n\n{closing(profiles)} Measured on {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores."
    (work / "profile.json").write_text(json.dumps([each.document() for each in profiles], indent=2) + "\n")
    click.echo(text)
    if document is not None:
        document.write_text(with_tables(document.read_text(), {"stages": text}, f"python -m {_MODULE}"))


def _profiles(shapes: list[Shape], built: Built, work: Path, samples: int, seed: int) -> list[Profile]:
    """Profile the start of the program, then each shape."""
    one_line = replace(PROFILED[0], total_bytes=1)
    start = spent(built, write_shape(one_line, work / "start", seed), work, samples)
    profiles = []
    for shape in shapes:
        click.echo(f"{shape.name}: {shape.total_bytes / 1e6:,.0f} MB ...", err=True)
        profiles.append(_profile(shape, start, built, work, samples, seed))
    return profiles


def _profile(shape: Shape, start: Spent, built: Built, work: Path, samples: int, seed: int) -> Profile:
    options = OPTIONS.get(shape.name, ())
    source, kept = work / "input", work / "kept"
    try:
        given = write_shape(shape, source, seed)
        found = spent(built, given, work, samples, options)
        command = [sys.executable, "-m", "compactor", "compact", str(source), str(kept / "rows"), *options]
        program = Program("kept", ROOT, built.variables())
        subprocess.run(command, check=True, env=program.environment(), cwd=work, capture_output=True)
        return Profile(shape.name, given.decoded_bytes, found, start, limits(source, kept / "rows", work))
    finally:
        shutil.rmtree(source, ignore_errors=True)
        shutil.rmtree(kept, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
