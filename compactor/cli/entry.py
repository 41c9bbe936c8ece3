"""The command `compactor`, with the options that all of its sub-commands share."""

import gc
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, get_args

import click
from click.shell_completion import CompletionItem

from compactor import __version__
from compactor.cli.examples import help_of
from compactor.cli.invocation import CONFIG_HELP, Invocation, LogFormat
from compactor.cli.ui.terminal import flush_stdout, open_standard_streams
from compactor.core.text.safe_text import visible

GROUPS = {
    "Everyday": {
        "compact": "Turn the NDJSON below SRC into Parquet below DST: plan, compact, verify.",
        "status": "Show the state of the job and the next action.",
        "verify": "Prove that every line is where the ledger says.",
        "trace": "Show where a file, a manifest or an output is.",
        "rejects": "Show rejected lines: where each is, and what is wrong with it.",
        "redrive": "Process dead letters, quarantined files or rejected lines again.",
        "dismiss": "Give up quarantined files: nothing asks for a person because of them any more.",
        "rebuild": "Make the rows of lost or damaged files again, from the same input.",
        "schema": "Show the schema versions and what each added; suggest, retire or publish columns.",
        "report": "Report on a period as one page of HTML that needs no network.",
        "demo": "Make a day of events, compact it, and prove that no row is lost.",
    },
    "Job": {
        "init": "Write a commented settings file: FILE, or compactor.toml.",
        "run": "Compact manifests as they arrive.",
        "stop": "Stop running jobs after the manifests in flight.",
        "plan": "Write manifests for the files below PREFIX that are in none.",
        "doctor": "Check settings, machine, AWS and every place.",
        "clean": "Delete expired archives, rejects, orphans and checkpoints.",
        "close": "Verify dates that have been quiet, and write a summary of each.",
        "forget": "Erase the lines that have given values of a key, on request.",
        "accept": "Accept that quarantined ranges of topics and streams are gone.",
        "retire": "Remove the rows, the rejects and the archive of closed dates.",
        "table": "Compare the table of the output with the ledger; rebuild a lost one; keep it fast to read.",
    },
    "AWS": {
        "control": "Run one control-plane check now.",
        "deploy": "Check a deployment by a file that goes through everything.",
        "cost": "Estimate the cost of a load; with settings, also show that of the latest commits.",
    },
}
"""The commands by group, with the first sentence of their help: `compactor --help` need not load any of them."""

SUMMARIES = {name: summary for group in GROUPS.values() for name, summary in group.items()}


_PLACES = frozenset({"DST", "SRC", "URI", "PREFIX", "FILE", "PLACE", "DIR"})
"""What the help calls arguments and options that may be a path."""


class _Place(click.types.StringParamType):
    """A text that the shell completes as a path."""

    def shell_complete(self, _context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def _complete_places(command: click.Command) -> None:
    """Let the shell complete what may be a path; click completes only names of commands, options and choices."""
    for each in command.params:
        words = re.findall("[A-Z]+", each.metavar or (each.name or "").upper())
        if each.type is click.STRING and _PLACES.intersection(words):
            each.type = _Place()


class _Commands(Mapping[str, click.Command]):
    """The commands by name. The module of a command is loaded when it is first used."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in SUMMARIES:
            raise KeyError(name)
        command: click.Command = getattr(import_module(f"compactor.cli.commands.{name}"), name)
        command.epilog = help_of(name)
        _complete_places(command)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


@contextmanager
def _safely_shown() -> Iterator[None]:
    """Escape what click's own messages quote from the command line: a pattern of the shell may have put names there."""
    try:
        yield
    except click.ClickException as exc:
        exc.message = visible(exc.message)  # type: ignore[misc]  # it stays the same message
        raise


class _Group(click.Group):
    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _safely_shown():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _safely_shown():
            return super().invoke(ctx)

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(group.items()))


@click.group(cls=_Group, commands=_Commands(), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="compactor", message="%(prog)s %(version)s")
@click.option("--config", metavar="FILE", help=CONFIG_HELP)
@click.option(
    "--log-format",
    type=click.Choice(get_args(LogFormat)),
    default="auto",
    show_default=True,
    help="Format of the log on stderr. auto: warnings as text; of `run` without a terminal, everything as JSON lines.",
)
@click.pass_context
def compactor(context: click.Context, config: str | None, log_format: LogFormat) -> None:
    """Turn many small NDJSON objects into few, right-sized Parquet files.

    Exit codes: 0 done; 1 failed, try again or see the log; 2 wrong usage or settings; 3 done, but an operator has to
    act.
    """
    if not gc.isenabled():  # `compactor.__main__` disabled it while modules load
        gc.freeze()  # no collection goes through what they made
        gc.enable()
    context.obj = Invocation(config=config, log_format=log_format)
    context.obj.start_log()


_complete_places(compactor)


def main() -> None:
    """Run the command that the process was started with, and end the process with its exit code."""
    open_standard_streams()
    try:
        compactor.main(prog_name="compactor", standalone_mode=True)
    finally:
        flush_stdout()
