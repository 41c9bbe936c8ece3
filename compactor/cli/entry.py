"""The command `compactor`, with the options that all sub-commands share."""

import gc
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, get_args

import click
from click.shell_completion import CompletionItem

from compactor import __version__
from compactor.cli.invocation import CONFIG_HELP, Invocation, LogFormat, given_by
from compactor.cli.ui.terminal import flush_stdout, open_standard_streams
from compactor.core.text.safe_text import visible

EVERYDAY = {
    "compact": "Turn the NDJSON in SRC into Parquet in DST: plan, compact, verify.",
    "status": "Show the state of the job and the next action.",
    "verify": "Prove that every line is accounted for.",
    "trace": "Show what happened to a file or manifest, or where an output came from.",
    "rejects": "Show rejected lines: their places and faults.",
    "report": "Write a report on a period as one self-contained HTML page.",
    "redrive": "Reprocess dead letters, quarantined files or rejected lines.",
    "rebuild": "Regenerate lost or damaged output from the same input.",
    "dismiss": "Give up quarantined input, dead letters and lost output.",
    "restore": "Restore the earlier version of a damaged or deleted record of the job.",
    "doctor": "Check the settings, this machine, AWS and all storage.",
    "demo": "Generate a day of events, compact it, and prove that no row is lost.",
}
"""The commands without a group, with the first sentence of their help. `compactor --help` shows them without loading
any command."""

GROUPS = {
    "job": "Set up, run and check the job",
    "data": "Summarise, delete and erase stored data",
    "schema": "Show and change the columns",
    "table": "Keep the output table correct and fast to read",
    "cost": "Estimate or show the cost of compaction",
}

VERBS = {
    "job": {
        "init": "Write a commented settings file: FILE, or compactor.toml.",
        "plan": "Write manifests for files under PREFIX that have none.",
        "run": "Compact manifests as they arrive.",
        "stop": "Stop running jobs after the manifests in flight.",
        "check": "Run one check of the control plane now.",
        "smoke-test": "Send a test file through a deployment, and follow it to its row.",
    },
    "data": {
        "close": "Verify quiet dates, and write a summary of each.",
        "clean": "Delete expired archives, rejects, orphans and checkpoints.",
        "expire": "Remove the rows, rejects and archive of closed dates.",
        "erase": "Erase the lines that contain given values of a key, on request.",
    },
    "schema": {
        "show": "Show schema versions and the columns added by each.",
        "suggest": "Suggest a schema file for NDJSON.",
        "retire": "Retire columns to make room for other keys.",
        "publish": "Add new columns to the table of the Glue Data Catalog.",
    },
    "table": {
        "check": "Compare the output table with the ledger.",
        "repair": "Recreate a lost table, and add missing manifests.",
        "maintain": "Expire snapshots, and remove unneeded metadata.",
        "merge": "Merge small files in each partition into files of the target size.",
    },
    "cost": {
        "estimate": "Estimate the cost of a load at list prices.",
        "actual": "Show the cost of recent commits.",
    },
}
"""The commands of each group, with the first sentence of their help."""

LONG = ("data", "job")
"""The groups with a module for each command; those of other groups share one."""

SHORT = ("init", "plan", "run", "stop")
"""The commands of `compactor job` that work without `job`, too."""

_SHORT_NOTES = {"job": f" {', '.join(SHORT[:-1])} and {SHORT[-1]} also work without `job`."}

SUMMARIES = EVERYDAY | {f"{group} {verb}": summary for group, verbs in VERBS.items() for verb, summary in verbs.items()}
"""The first sentence of each command, by its words."""

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "compact": (
        ("compactor compact logs rows", "Turn the NDJSON in logs into Parquet in rows."),
        ("compactor compact logs rows --dry-run", "Show what it would do, and write nothing."),
        ("compactor compact s3://bucket/raw s3://bucket/rows --deep", "Compare every value afterwards."),
    ),
    "status": (
        ("compactor status", "Show the state of the job."),
        ("compactor status --watch", "Repeat it every 5 seconds."),
        ("compactor status rows --json", "Print the state of the folder rows as JSON."),
    ),
    "verify": (
        ("compactor verify", "Check that all counts add up."),
        ("compactor verify rows --deep", "Compare every value in the folder rows with the input."),
        ("compactor verify --date 2025-12-21", "Verify one day."),
    ),
    "trace": (
        ("compactor trace logs/2025-12-21-a.ndjson --in rows", "Show what happened to a file."),
        ("compactor trace m-0001", "Show what happened to a manifest."),
        ("compactor trace s3://bucket/raw/a.ndjson --days 90", "Search 90 dates for an old file."),
    ),
    "rejects": (
        ("compactor rejects rows", "Show rejected lines, with the column and kind of each fault."),
        ("compactor rejects rows --reason invalid_json --limit 20", "Show twenty lines with one reason."),
        ("compactor rejects rows --file logs/a.ndjson --raw", "Write the exact lines of one file."),
    ),
    "report": (
        ("compactor report", "Report on the last 24 hours in report.html."),
        ("compactor report --since 2025-12-01 --until 2025-12-08 --out week.html", "Report on one week."),
        ("compactor report --no-samples", "Leave input data out of the page."),
    ),
    "redrive": (
        ("compactor redrive manifests --dry-run", "Show which dead letters would be redriven."),
        ("compactor redrive files --reason missing --in rows", "Redrive files that were missing."),
        ("compactor redrive rejects --date 2025-12-21 --yes", "Redrive the rejected lines of a day."),
    ),
    "rebuild": (
        ("compactor rebuild --dry-run", "Find files that are lost or damaged."),
        ("compactor rebuild rows --date 2025-12-21", "Regenerate the files of one day."),
        ("compactor rebuild --manifest m-0001 --force", "Regenerate a manifest's files even if they are correct."),
    ),
    "dismiss": (
        ("compactor dismiss logs/notes.csv --in rows --why 'not a log'", "Give up a file that is not NDJSON."),
        ("compactor dismiss s3://bucket/raw/a.gz --why 'sent again as b.gz' --dry-run", "Show what would be given up."),
        (
            "compactor dismiss 'kafka://main/orders/3?from=16&to=42' --why 'retention was too short'",
            "Give up offsets that the brokers deleted before they were landed.",
        ),
    ),
    "restore": (
        ("compactor restore s3://bucket/state/accepted/1.json", "Restore what the bucket kept, after a prompt."),
        ("compactor restore s3://bucket/state/accepted/1.json --dry-run", "Show which version that is."),
        ("compactor restore s3://bucket/state/accepted/1.json --yes --json", "Do so in a script."),
    ),
    "doctor": (
        ("compactor doctor", "Check this machine, and everything in the settings."),
        ("compactor doctor --config s3://bucket/compactor.toml --elsewhere", "Check what a job on Glue needs."),
        ("compactor doctor --json", "Print the findings as JSON."),
    ),
    "demo": (
        ("compactor demo", "Run the demo on 100 MB."),
        ("compactor demo --size 1gb", "Run it on 1 GB."),
        ("compactor demo --local /tmp/demo", "Keep the input and the output in /tmp/demo."),
    ),
    "job init": (
        ("compactor init", "Ask for three places, and write compactor.toml."),
        ("compactor init --input logs --output rows --state rows.state", "Ask nothing."),
    ),
    "job plan": (
        ("compactor plan s3://bucket/raw --dry-run", "Show which manifests it would write."),
        (
            "compactor plan s3://bucket/raw --date 2025-12-21",
            "Plan the missing files of one day, after events were lost.",
        ),
        (
            "compactor plan --inventory s3://inventories/daily/bucket/all/2025-12-21T01-00Z/manifest.json --dry-run",
            "Show what a back-fill from an S3 Inventory would plan and cost.",
        ),
    ),
    "job run": (
        ("compactor run", "Compact manifests as they arrive."),
        ("compactor run --once", "Compact the waiting manifests, and exit."),
    ),
    "job stop": (
        ("compactor stop", "Ask all jobs to stop."),
        ("compactor stop --wait 600", "Wait up to 10 minutes for them."),
    ),
    "job check": (
        ("compactor job check --dry-run", "Show what the control plane would do now."),
        ("compactor job check", "Check now, and start, drain or stop the job."),
        ("compactor job check --close-breaker", "Allow starts again after a repair."),
    ),
    "job smoke-test": (
        ("compactor job smoke-test config/dev.toml", "Send a file through the deployment of config/dev.toml."),
        ("compactor job smoke-test --timeout 600 --json", "Print the hops as JSON, within 10 minutes."),
    ),
    "data close": (("compactor data close", "Close dates that have been quiet for retention.close_after_days."),),
    "data clean": (
        ("compactor data clean --dry-run", "Show what it would delete."),
        ("compactor data clean --checkpoints", "Delete the checkpoints of all stopped runs."),
    ),
    "data expire": (
        ("compactor data expire --before 2025-12-01 --dry-run", "Show what would be removed."),
        ("compactor data expire rows --before 2025-12-01", "Expire dates of the folder rows."),
    ),
    "data erase": (
        (
            "compactor data erase --key user_id --value-file ids.txt --dry-run",
            "Show which lines contain one of the values.",
        ),
        ("compactor data erase rows --key /user/id --value-file -", "Erase the values on stdin from the folder rows."),
    ),
    "schema show": (("compactor schema show rows", "Show the columns of the folder rows."),),
    "schema suggest": (
        ("compactor schema suggest logs", "Suggest a schema file for the NDJSON in logs."),
        ("compactor schema suggest --in rows", "Suggest one for the input of the folder rows."),
    ),
    "schema retire": (("compactor schema retire junk_1 junk_2 --in rows", "Retire two columns of the folder rows."),),
    "schema publish": (("compactor schema publish", "Add new columns to the table of the Glue Data Catalog."),),
    "table check": (("compactor table check", "Compare the table with the ledger."),),
    "table repair": (("compactor table repair", "Recreate a lost table, and add missing manifests."),),
    "table maintain": (
        ("compactor table maintain --dry-run", "Show which snapshots and metadata files would be removed."),
        ("compactor table maintain --keep-days 3", "Expire snapshots 3 days after the next one."),
    ),
    "table merge": (
        ("compactor table merge --dry-run", "Show which small files would be merged."),
        ("compactor table merge --date 2025-12-21", "Merge the files of one day."),
    ),
    "cost estimate": (
        ("compactor cost estimate", "Estimate the cost of the default load."),
        (
            "compactor cost estimate --files-per-hour 50000 --worker-type G.1X --workers 3",
            "Estimate a different load and cluster.",
        ),
    ),
    "cost actual": (
        ("compactor cost actual", "Show the cost of the latest commits."),
        ("compactor cost actual --days 30", "Show the cost of the last 30 days."),
    ),
}
"""Examples and captions by command, for the help and the manual page."""

_PLACES = frozenset({"DST", "SRC", "URI", "PREFIX", "FILE", "PLACE", "DIR"})
"""Metavars of arguments and options that may be paths."""


class _Place(click.types.StringParamType):
    """A text that the shell completes as a path."""

    def shell_complete(self, _context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def _complete_places(command: click.Command) -> None:
    """Let the shell complete paths; click itself completes only commands, options and choices."""
    for each in command.params:
        words = re.findall("[A-Z]+", each.metavar or (each.name or "").upper())
        if each.type is click.STRING and _PLACES.intersection(words):
            each.type = _Place()


@cache
def command_of(words: str) -> click.Command:
    """The command with these words, such as `job run`. Its module is loaded on first use."""
    group, _, name = words.replace("-", "_").rpartition(" ")
    place = f"{group}.{name}" if group in LONG else group or name
    command: click.Command = getattr(import_module(f"compactor.cli.commands.{place}"), name)
    command.epilog = _examples(words)
    _complete_places(command)
    return command


class _Commands(Mapping[str, click.Command]):
    """The commands in a group by name, each loaded on first use. `places` has the words of each."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self.places = places

    def __getitem__(self, name: str) -> click.Command:
        return _group(name) if self.places[name] in GROUPS else command_of(self.places[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


def _examples(words: str) -> str:
    """A command's examples as a paragraph that click prints unchanged."""
    return "\n".join(["\b", "Examples:", *(f"  {call}\n      {meaning}" for call, meaning in EXAMPLES[words])])


@contextmanager
def _safely_shown() -> Iterator[None]:
    """Escape quoted arguments in click's messages: shell patterns may have inserted file names.

    After too many arguments, the message adds the options that may be meant; after a verb without its group, the group.
    """
    try:
        yield
    except click.ClickException as exc:
        if not isinstance(exc, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # the help, of newer versions
            context = exc.ctx if isinstance(exc, click.UsageError) else None
            hint, said = "", exc.message
            if context and "unexpected extra argument" in said:
                hint = given_by(context.command)
            elif (unknown := _UNKNOWN.match(said)) and (meant := _meant(unknown[1])):
                hint, said = f" Did you mean {meant}?", unknown[0]
                exc.possibilities = []  # type: ignore[attr-defined]  # newer versions of click append their own
            # A group within a group comes here twice.
            exc.message = visible(said).removesuffix(hint) + hint  # type: ignore[misc]  # the same message
        raise


_UNKNOWN = re.compile(r"No such command '([\w-]+)'\.")


def _meant(verb: str) -> str:
    """The commands that a verb without its group may mean."""
    found = ["--help"] if verb == "help" else [f"{group} {verb}" for group, verbs in VERBS.items() if verb in verbs]
    return " or ".join(f"`compactor {each}`" for each in found)


class _Group(click.Group):
    """Lists its commands without loading them.

    Attributes:
        sections: By title, the entries with a sentence on each.
    """

    def __init__(self, *declared: Any, sections: Mapping[str, Mapping[str, str]], **options: Any) -> None:
        super().__init__(*declared, **options)
        self.sections = sections

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _safely_shown():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _safely_shown():
            return super().invoke(ctx)

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, listed in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(list(listed.items()))


@cache
def _group(name: str) -> _Group:
    verbs = VERBS[name]
    commands = _Commands({verb: f"{name} {verb}" for verb in verbs})
    return _Group(
        name, commands=commands, sections={"Commands": verbs}, help=f"{GROUPS[name]}.{_SHORT_NOTES.get(name, '')}"
    )


_LISTED = {
    name: f"{sentence}: {', '.join(VERBS[name])}.{_SHORT_NOTES.get(name, '')}" for name, sentence in GROUPS.items()
}
_PLACES_OF_ALL = {name: name for name in (*EVERYDAY, *GROUPS)} | {verb: f"job {verb}" for verb in SHORT}


@click.group(
    cls=_Group,
    commands=_Commands(_PLACES_OF_ALL),
    sections={"Everyday": EVERYDAY, "Groups": _LISTED},
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", prog_name="compactor", message="%(prog)s %(version)s")
@click.option("--config", metavar="FILE", help=CONFIG_HELP)
@click.option(
    "--log-format",
    type=click.Choice(get_args(LogFormat)),
    default="auto",
    show_default=True,
    help="Format of the log on stderr. auto: warnings as text; for `run` without a terminal, everything as JSON lines.",
)
@click.pass_context
def compactor(context: click.Context, config: str | None, log_format: LogFormat) -> None:
    """Turn many small NDJSON objects into few, right-sized Parquet files.

    Exit codes: 0 done; 1 failed, retry or see the log; 2 wrong usage or settings; 3 done, but something needs
    attention.
    """
    if not gc.isenabled():  # `compactor.__main__` disabled it while modules load
        gc.freeze()  # collections then skip the objects of the modules
        gc.enable()
    context.obj = Invocation(config=config, log_format=log_format)
    context.obj.start_log()


_complete_places(compactor)


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    open_standard_streams()
    os.umask(os.umask(0o077) | 0o002)  # guard: libraries write nothing that all users may write
    try:
        compactor.main(prog_name="compactor", standalone_mode=True)
    finally:
        flush_stdout()
