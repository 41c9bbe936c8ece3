"""The command: feeds the whole job for some minutes, and says whether it kept up.

python -m bench.sustained [--help]
"""

import json
import os
import platform
import signal
import sys
from pathlib import Path

import click

from bench.__main__ import leave
from bench.inputs import ensure_input, parse_size
from bench.sustained import places
from bench.sustained.building import BATCH_MESSAGES, WINDOW_SECONDS
from bench.sustained.flow import Flow
from bench.sustained.report import fields, figures, judge
from bench.sustained.run import Document, Load, NotHeldError, run_sustained
from bench.sustained.shards import Trouble
from compactor.cli.ui.output import print_fields
from compactor.sources.events.sealer import SEAL_INTERVAL_SECONDS

_WORK = Path(__file__).resolve().parents[2] / ".bench"
_SOURCE = parse_size("1gb")
_SEED = 7


@click.command()
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), default=5, show_default=True)
@click.option(
    "--megabytes-per-second",
    type=click.FloatRange(min=0, min_open=True),
    default=194.4,
    show_default=True,
    help="Of 10^6 bytes; 194.4 are 700 GB an hour.",
)
@click.option("--engine", type=click.Choice(["native", "spark"]), default="native", show_default=True)
@click.option(
    "--manifest-mib", type=click.IntRange(min=1), default=1024, show_default=True, help="Aim at manifests of this size."
)
@click.option(
    "--in-flight", type=click.IntRange(min=1), default=2, show_default=True, help="Process this many manifests at once."
)
@click.option("--over-tls", is_flag=True, help="On an S3 server of this machine over TLS, with a queue of SQS.")
@click.option("--kills", type=click.IntRange(min=0), default=0, show_default=True, help="Kill the job this often.")
@click.option(
    "--shards",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Run this many processes of the job in the middle third.",
)
@click.option("--seed", type=int, default=_SEED, show_default=True, help="Decides when which process is killed.")
@click.option(
    "--work", type=click.Path(file_okay=False, path_type=Path), default=_WORK, help="Keep all files in this folder."
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures to this file too."
)
def main(
    *,
    minutes: float,
    megabytes_per_second: float,
    engine: str,
    manifest_mib: int,
    in_flight: int,
    over_tls: bool,
    kills: int,
    shards: int,
    seed: int,
    work: Path,
    json_file: Path | None,
) -> None:
    """Feed the whole job at a steady rate, and see whether its backlog grows.

    Exit codes: 1 if it grew, or a file was lost or committed twice.
    """
    signal.signal(signal.SIGTERM, leave)
    load = Load(minutes * 60, megabytes_per_second * 1e6, Trouble(kills, shards, seed))
    settings = _settings(engine, manifest_mib * 2**20, in_flight, without_spark=over_tls)
    print_fields(_said(load, settings))
    try:
        source = ensure_input(work.resolve(), _SOURCE, _SEED)
        place = places.over_tls if over_tls else places.on_disk
        result = run_sustained(source, work.resolve(), load, settings, lambda line: click.echo(line, err=True), place)
    except (NotHeldError, OSError, RuntimeError) as exc:
        raise click.ClickException(str(exc)) from exc
    flow = Flow([*result.proved.passages.values()], result.fed.seconds)
    verdict = judge(flow, result, asked_rate=load.bytes_per_second, manifest_bytes=manifest_mib * 2**20)
    print_fields(fields(flow, result, verdict))
    if json_file is not None:
        json_file.write_text(json.dumps({**figures(flow, result, verdict), "settings": settings}, indent=2) + "\n")
    if verdict.faults:
        sys.exit(1)


def _settings(engine: str, manifest_bytes: int, in_flight: int, *, without_spark: bool) -> Document:
    return {
        "convert": {"engine": engine},
        "builder": {"target_manifest_bytes": manifest_bytes, "max_wait_seconds": 2 * SEAL_INTERVAL_SECONDS},
        # A manifest that arrives while others are in flight should not wait long.
        "stream": {
            "source": "listing" if without_spark else "auto",
            "manifests_in_flight": in_flight,
            "trigger_interval_seconds": 2,
        },
        "metrics": {"sink": "log"},
    }


def _said(load: Load, settings: Document) -> list[tuple[str, str]]:
    values = [f"{section}.{key} = {value}" for section, keys in settings.items() for key, value in keys.items()]
    called = (
        f"builder every {WINDOW_SECONDS:.0f} s or {BATCH_MESSAGES:,} messages, sealer every {SEAL_INTERVAL_SECONDS} s"
    )
    return [
        ("load", f"{load.bytes_per_second / 1e6:.1f} MB/s for {load.seconds / 60:g} min, in files of 3.5 MB"),
        ("settings", "\n".join([*values, called])),
        ("machine", f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"),
    ]


if __name__ == "__main__":
    main()
