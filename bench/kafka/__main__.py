"""The command: python -m bench.kafka [--help]."""

import json
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from bench.__main__ import leave, versions
from bench.contenders import Contender, choose
from bench.inputs import check_room, parse_size
from bench.kafka.feeding import Filled, fill
from bench.kafka.figures import HEADINGS, cells, figures_of
from bench.measure import Measurement, run_contender
from bench.table import aligned
from tests.support.kafka_broker import KafkaBroker

_WORK = Path(__file__).resolve().parents[2] / ".bench" / "kafka"
_DISK_PER_INPUT_BYTE = 3  # for the log of the broker and the Parquet of one contender

CONTENDERS = (
    Contender("spark", "bench.peers.kafka_spark", needs=("pyspark", "confluent_kafka")),
    Contender("compactor", "bench.peers.kafka_compactor", needs=("compactor_native", "confluent_kafka")),
)
"""The first is what the others are compared with."""


@click.command()
@click.option("--size", default="300mb", show_default=True, help="Write records of this size in all.")
@click.option("--passes", type=click.IntRange(min=1), default=4, show_default=True, help="The first one warms up.")
@click.option("--partitions", type=click.IntRange(min=1), default=6, show_default=True, help="Of the topic.")
@click.option("--only", help="Run only these contenders, separated by commas.")
@click.option("--seed", default=7, show_default=True, help="Make the records from this seed.")
def main(*, size: str, passes: int, partitions: int, only: str | None, seed: int) -> None:
    """Turn a topic of records of 1 kB into Parquet, by this project and by Spark's Kafka source."""
    signal.signal(signal.SIGTERM, leave)
    try:
        contenders, total_bytes = choose(only, CONTENDERS), parse_size(size)
        check_room(_WORK, total_bytes * _DISK_PER_INPUT_BYTE)
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    except OSError as exc:
        raise click.ClickException(str(exc)) from exc
    with tempfile.TemporaryDirectory(dir=_WORK) as folder, KafkaBroker(Path(folder)) as broker:
        filled = fill(broker.servers, total_bytes, partitions, seed)
        source = Path(folder) / "input"
        filled.keep(source)
        measured = [_run(each, source, passes) for each in contenders]
    _show(measured, filled, passes)


def _run(contender: Contender, source: Path, passes: int) -> Measurement:
    click.echo(f"{contender.name} ...", err=True)
    output = _WORK / "output" / contender.name
    try:
        return run_contender(contender, source, output, _WORK / f"{contender.name}.log", passes=passes)
    finally:
        shutil.rmtree(output.parent, ignore_errors=True)


def _show(measured: list[Measurement], filled: Filled, passes: int) -> None:
    rows = [figures_of(each, measured[0], filled.records) for each in measured]
    (_WORK / "last.json").write_text(json.dumps([asdict(each) for each in rows], indent=2) + "\n")
    click.echo(aligned([HEADINGS, *map(cells, rows)]))
    for each in rows:
        if each.note:
            click.echo(f"{each.contender}: {each.note}")
    click.echo(
        f"Medians of passes 2 to {passes}. {filled.records:,} records of 1 kB in {filled.partitions} partitions of a "
        f"broker on this machine, whose time counts by the clock only. {os.cpu_count()} cores, {', '.join(versions())}."
    )
    if any(each.note for each in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
