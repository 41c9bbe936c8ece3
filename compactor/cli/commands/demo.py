"""`compactor demo`: runs the complete job on this machine, without an AWS account."""

import re
from pathlib import Path

import click

from compactor.cli.invocation import Invocation, body
from compactor.cli.ui.failures import ExitCode
from compactor.cli.ui.terminal import echo
from compactor.wiring.spark import check_java

_SIZE = re.compile(r"(\d{1,6})\s*(mb|gb)", re.IGNORECASE)
_UNIT_BYTES = {"mb": 1_000_000, "gb": 1_000_000_000}


def parse_size(text: str) -> int:
    """Parse a size such as `100mb` or `1gb` (decimal units) into bytes.

    Raises:
        ValueError: It is not such a size.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or int(found.group(1)) == 0:
        raise ValueError(f"{text!r} is not a size; expected one such as 100mb or 1gb")
    return int(found.group(1)) * _UNIT_BYTES[found.group(2).lower()]


def _size(_context: click.Context, _option: click.Parameter, value: str) -> int:
    try:
        return parse_size(value)
    except ValueError as exc:
        raise click.BadParameter(str(exc)) from exc


@click.command("demo")
@click.option(
    "--size", "total_bytes", default="100mb", show_default=True, callback=_size, help="Generate this much input."
)
@click.option(
    "--local",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Use folders in DIR instead of the AWS emulator, and keep the output there.",
)
@click.option(
    "--source",
    type=click.Choice(("s3", "listing", "kafka")),
    default="s3",
    show_default=True,
    help="Source of events. s3: objects. listing: objects, with a job without Spark. kafka: a topic.",
)
@click.option(
    "--kafka-jars",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="With --source kafka, start the broker in DIR (default: .tools/kafka).",
)
@body
def demo(
    _invocation: Invocation, *, total_bytes: int, folder: Path | None, source: str, kafka_jars: Path | None
) -> ExitCode:
    """Generate a day of events, compact it, and prove that no row is lost.

    The demo runs against a local AWS emulator, or a Kafka broker on the loopback address.

    Exit codes: 1 if the output differs from the input.
    """
    if source == "kafka":
        from compactor.demo.kafka_day import JARS, run_kafka_demo  # noqa: PLC0415 - only this command needs it

        if folder is not None:
            raise click.UsageError("--local is for objects; with --source kafka, the demo keeps nothing")
        return ExitCode.DONE if run_kafka_demo(total_bytes, kafka_jars or JARS, echo) else ExitCode.FAILED
    from compactor.demo.run import run_demo  # noqa: PLC0415

    if kafka_jars is not None:
        raise click.UsageError("--kafka-jars needs --source kafka")
    if source == "listing":
        return ExitCode.DONE if run_demo(total_bytes, folder, echo, with_spark=False) else ExitCode.FAILED
    check_java()
    return ExitCode.DONE if run_demo(total_bytes, folder, echo) else ExitCode.FAILED
