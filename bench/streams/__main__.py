"""The command: floods one of ten streams, and says what that costs the other nine.

python -m bench.streams [--help]
"""

import json
import os
import platform
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import click

from bench.__main__ import leave
from bench.inputs import check_room
from bench.streams.report import faults, fields, figures, slow
from bench.streams.run import Document, NotHeldError, run_streams
from bench.streams.traffic import LEAST_WAITING, LINES, STREAMS, Load
from compactor.cli.ui.output import Field, print_fields

_WORK = Path(__file__).resolve().parents[2] / ".bench"
_ROOM_BYTES = 4_000_000_000

EVERY_SECONDS = {"listing": 3.0, "spark": 15.0}
"""The time between two manifests of a stream, by the source: far below what two cores can do."""


@click.command()
@click.option("--source", type=click.Choice(["listing", "spark"]), default="listing", show_default=True)
@click.option("--engine", type=click.Choice(["native", "spark"]), default="native", show_default=True)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=90,
    show_default=True,
    help="Deliver this long without the flood, and as long beside it.",
)
@click.option(
    "--every-seconds",
    type=click.FloatRange(min=0, min_open=True),
    show_default=", ".join(f"{seconds} for {source}" for source, seconds in EVERY_SECONDS.items()),
    help="Deliver a manifest to each stream in this time.",
)
@click.option(
    "--flood", type=click.IntRange(min=1), default=300, show_default=True, help="Deliver so many manifests at once."
)
@click.option(
    "--trigger-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=10,
    show_default=True,
    help="Set `stream.trigger_interval_seconds`.",
)
@click.option(
    "--in-flight", type=click.IntRange(min=1), default=2, show_default=True, help="Set `stream.manifests_in_flight`."
)
@click.option(
    "--work", type=click.Path(file_okay=False, path_type=Path), default=_WORK, help="Keep all files in this folder."
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures to this file too."
)
def main(
    *,
    source: str,
    engine: str,
    seconds: float,
    every_seconds: float | None,
    flood: int,
    trigger_seconds: float,
    in_flight: int,
    work: Path,
    json_file: Path | None,
) -> None:
    """Flood one of ten streams of a job, and see how much longer the others wait.

    Exit codes: 1 if one waits more than 1.5 times as long (p99), or a total does not add up.
    """
    signal.signal(signal.SIGTERM, leave)
    every_seconds = every_seconds or EVERY_SECONDS[source]
    if seconds < every_seconds:
        raise click.UsageError("--seconds is shorter than --every-seconds; expected time for a manifest of each stream")
    load = Load(seconds, every_seconds, flood)
    settings: Document = {
        "convert": {"engine": engine},
        "stream": {
            "source": source,
            "manifests_in_flight": in_flight,
            "trigger_interval_seconds": trigger_seconds,
        },
        "metrics": {"sink": "log"},
    }
    print_fields(_said(load, settings))
    try:
        check_room(work.resolve(), _ROOM_BYTES)
        home = Path(tempfile.mkdtemp(prefix="streams-", dir=work.resolve()))
        try:
            result = run_streams(home, load, settings, lambda line: click.echo(line, err=True))
        finally:
            with suppress(FileNotFoundError):  # no job was started
                shutil.copyfile(home / "job.log", work.resolve() / "streams-job.log")
            shutil.rmtree(home, ignore_errors=True)
    except (NotHeldError, OSError) as exc:
        raise click.ClickException(str(exc)) from exc
    print_fields(fields(result))
    if json_file is not None:
        json_file.write_text(json.dumps({**figures(result), "settings": settings}, indent=2) + "\n")
    if any([*faults(result), *slow(result)]):
        sys.exit(1)


def _said(load: Load, settings: Document) -> list[Field]:
    values = [f"{section}.{key} = {value}" for section, keys in settings.items() for key, value in keys.items()]
    rate = (len(STREAMS) - 1) / load.every_seconds
    few, many = min(LINES.values()), max(LINES.values())
    return [
        ("load", f"{rate:.1f} manifests/s in nine streams, of {few} to {many:,} lines, {load.seconds:g} s each time"),
        ("flood", f"{load.flood} manifests at once in the tenth, again whenever fewer than {LEAST_WAITING} wait"),
        ("settings", values),
        ("machine", f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"),
    ]


if __name__ == "__main__":
    main()
