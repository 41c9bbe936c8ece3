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

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "accept": (
        (
            "compactor accept --dry-run --why 'retention was too short'",
            "Show which records of topics and streams are gone.",
        ),
        (
            "compactor accept --yes --why 'retention was too short' 2025-12-21-00f3a9c2",
            "Put on record that those of one manifest are not expected.",
        ),
        (
            "compactor accept --date 2025-12-21 --yes --why 'retention was too short'",
            "Put on record that those of one day are not.",
        ),
    ),
    "clean": (
        ("compactor clean --dry-run", "Show what a clean-up would delete."),
        ("compactor clean --archive-days 30", "Delete archived manifests after 30 days."),
        ("compactor clean --checkpoints", "Delete the checkpoints of all stopped runs."),
    ),
    "close": (
        ("compactor close", "Close what has been quiet for retention.close_after_days."),
        ("compactor close rows", "Close dates of the folder rows."),
        ("compactor close --json", "Give the result to a program."),
    ),
    "compact": (
        ("compactor compact logs rows", "Turn the NDJSON below logs into Parquet below rows."),
        ("compactor compact logs rows --dry-run", "Show what it would do, and write nothing."),
        ("compactor compact s3://bucket/raw s3://bucket/rows --deep", "Compare every value afterwards."),
    ),
    "control": (
        ("compactor control --dry-run", "Show what the next check would do."),
        ("compactor control", "Check now, and start, drain or stop the job."),
        ("compactor control --close-breaker", "Allow starts again after a repair."),
    ),
    "cost": (
        ("compactor cost", "Estimate the cost of the default load."),
        ("compactor cost --files-per-hour 50000 --worker-type G.1X --workers 3", "Estimate another load and cluster."),
        ("compactor cost --config compactor.toml", "Show also what the latest commits cost."),
    ),
    "demo": (
        ("compactor demo", "Run the demo on 100 MB."),
        ("compactor demo --size 1gb", "Run it on more."),
        ("compactor demo --local /tmp/demo", "Keep the input and the output to look at."),
    ),
    "deploy": (
        ("compactor deploy check dev", "Send a file through the deployment of config/dev.toml."),
        ("compactor --config s3://bucket/compactor.toml deploy check", "Take the settings from S3."),
        ("compactor deploy check prod --timeout 600 --json", "Give the hops to a program, after 10 minutes at most."),
    ),
    "dismiss": (
        ("compactor dismiss rows logs/notes.csv --why 'not a log'", "Give up a file that is not NDJSON."),
        ("compactor dismiss rows logs/a.gz logs/b.gz --why 'lost' --dry-run", "Show what would be given up."),
        ("compactor dismiss s3://bucket/raw/a.gz --why 'sent again as b.gz'", "Give up a file of a job."),
    ),
    "doctor": (
        ("compactor doctor", "Check this machine, and everything that the settings name."),
        ("compactor doctor --config s3://bucket/compactor.toml --elsewhere", "Check what a job on Glue needs."),
        ("compactor doctor --json", "Give the findings to a program."),
    ),
    "forget": (
        ("compactor forget --key user_id --value-file ids.txt --dry-run", "Show what holds one of the values."),
        ("compactor forget --key /user/id --value-file ids.txt --inputs delete", "Erase them, input files included."),
        ("compactor forget rows --key user_id --value-file - --yes", "Erase the values on stdin from the folder rows."),
    ),
    "init": (
        ("compactor init", "Ask for three places, and write compactor.toml."),
        ("compactor init --input logs --output rows --state rows.state", "Ask nothing."),
        ("compactor init --force other.toml", "Overwrite other.toml."),
    ),
    "plan": (
        ("compactor plan s3://bucket/raw --dry-run", "Show which manifests it would write."),
        ("compactor plan s3://bucket/raw --date 2025-12-21", "Plan one day again after a loss of events."),
        (
            "compactor plan --inventory s3://inventories/daily/bucket/all/2025-12-21T01-00Z/manifest.json --dry-run",
            "Show what a back-fill from an S3 Inventory would plan, and cost.",
        ),
    ),
    "rebuild": (
        ("compactor rebuild --dry-run", "Find files that are lost or damaged."),
        ("compactor rebuild --date 2025-12-21", "Make those of one day again."),
        ("compactor rebuild m-0001 --force", "Make the files of one manifest again, also if they add up."),
    ),
    "redrive": (
        ("compactor redrive manifests --dry-run", "Show which dead letters would be tried again."),
        ("compactor redrive files --reason missing", "Try files again that were missing."),
        ("compactor redrive rejects --date 2025-12-21 --yes", "Try the rejected lines of a day again."),
    ),
    "rejects": (
        ("compactor rejects rows", "Show rejected lines with what is wrong at which column."),
        ("compactor rejects rows --reason invalid_json --limit 20", "Show twenty with one reason."),
        ("compactor rejects rows --file logs/a.ndjson --raw", "Write the exact lines of one file."),
    ),
    "report": (
        ("compactor report", "Report on the last 24 hours in report.html."),
        ("compactor report --since 2025-12-01 --until 2025-12-08 --out week.html", "Report on a week."),
        ("compactor report --no-samples", "Leave input data out of the page."),
    ),
    "retire": (
        ("compactor retire --before 2025-12-01 --dry-run", "Show what would be removed of the dates before December."),
        ("compactor retire --before 2025-12-01 --yes", "Remove it without a prompt."),
        ("compactor retire rows --before 2025-12-01", "Retire dates of the folder rows."),
    ),
    "run": (
        ("compactor run", "Compact manifests as they arrive."),
        ("compactor run --once", "Compact what is waiting, and end."),
        ("compactor --log-format json run", "Log in JSON lines on a terminal, too."),
    ),
    "schema": (
        ("compactor schema", "Show the columns and the versions that added them."),
        ("compactor schema suggest logs", "Suggest a schema file for the NDJSON below logs."),
        ("compactor schema retire junk_1 junk_2", "Free the places of two columns."),
    ),
    "status": (
        ("compactor status", "Show the state of the job."),
        ("compactor status --watch", "Show it again every 5 seconds."),
        ("compactor status --json", "Give it to a program."),
    ),
    "stop": (
        ("compactor stop", "Ask all jobs to stop."),
        ("compactor stop --wait 600", "Wait up to 10 minutes for them."),
        ("compactor stop --json", "Give the result to a program."),
    ),
    "table": (
        ("compactor table", "Compare the files of the table with the ledger."),
        ("compactor table rebuild", "Make a lost table again, and add what is in no batch."),
        ("compactor table maintain --dry-run", "Show which snapshots and files of metadata would go."),
    ),
    "trace": (
        ("compactor trace logs/2025-12-21-a.ndjson", "Show what became of a file."),
        ("compactor trace m-0001", "Show what became of a manifest."),
        ("compactor trace s3://bucket/raw/a.ndjson --days 90", "Search 90 dates for an old file."),
    ),
    "verify": (
        ("compactor verify", "Prove that all rows add up."),
        ("compactor verify --deep", "Compare every value with the input."),
        ("compactor verify --date 2025-12-21", "Verify one day."),
    ),
}
"""By command: calls, and what each does. The help and the manual page show them."""

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
        command.epilog = _examples(name)
        _complete_places(command)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


def _examples(name: str) -> str:
    """The examples of a command as a paragraph that click prints as it is."""
    return "\n".join(["\b", "Examples:", *(f"  {call}\n      {meaning}" for call, meaning in EXAMPLES[name])])


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
