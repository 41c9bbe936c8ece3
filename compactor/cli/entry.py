"""The command `compactor`, with what holds for all of its sub-commands."""

import os
import sys

import click

from compactor import __version__
from compactor.cli.commands.clean import clean
from compactor.cli.commands.compact import compact
from compactor.cli.commands.control import control
from compactor.cli.commands.cost import cost
from compactor.cli.commands.demo import demo
from compactor.cli.commands.doctor import doctor
from compactor.cli.commands.init import init
from compactor.cli.commands.plan import plan
from compactor.cli.commands.redrive import redrive
from compactor.cli.commands.report import report
from compactor.cli.commands.run import run
from compactor.cli.commands.schema import schema
from compactor.cli.commands.status import status
from compactor.cli.commands.stop import stop
from compactor.cli.commands.trace import trace
from compactor.cli.commands.verify import verify
from compactor.cli.invocation import CONFIG_HELP, Invocation, LogFormat

LOG_FORMATS: tuple[LogFormat, ...] = ("auto", "text", "json")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="compactor", message="%(prog)s %(version)s")
@click.option("--config", metavar="FILE", help=CONFIG_HELP)
@click.option(
    "--log-format",
    type=click.Choice(LOG_FORMATS),
    default="auto",
    show_default=True,
    help="Of the log, which goes to stderr; auto is text on a terminal, else JSON lines.",
)
@click.pass_context
def compactor(context: click.Context, config: str | None, log_format: LogFormat) -> None:
    """Turn many small NDJSON objects into few, right-sized Parquet files.

    Exit codes: 0 done; 1 failed, try again or look at the log; 2 wrong usage or settings; 3 done, but something needs
    an operator.
    """
    context.obj = Invocation(config=config, log_format=log_format)
    context.obj.start_log()


for command in (
    init,
    doctor,
    compact,
    run,
    plan,
    status,
    verify,
    redrive,
    clean,
    trace,
    schema,
    report,
    cost,
    stop,
    control,
    demo,
):
    compactor.add_command(command)


def main() -> None:
    """Run the command that the process was started with, and end the process with its exit code."""
    try:
        compactor.main(prog_name="compactor", standalone_mode=True)
    except BrokenPipeError:  # whoever read the output has seen enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
