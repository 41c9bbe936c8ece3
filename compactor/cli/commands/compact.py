"""`compactor compact`: converts one folder to another, without a settings file."""

from typing import Any

import click

from compactor.api.compact import folder_run
from compactor.api.compact_result import CompactResult
from compactor.cli.folder_watch import FolderWatch
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.parameters import FORMATS, FiniteRange, HintedChoice
from compactor.cli.ui.compact_screen import show
from compactor.cli.ui.failures import ExitCode
from compactor.cli.ui.output import print_result
from compactor.cli.ui.progress import CompactProgress
from compactor.cli.ui.signals import EndsAtOnce, StopSignals
from compactor.core.text.safe_text import quoted
from compactor.settings.compact_paths import Options
from compactor.sources.folders.planning import OnReplaced

MAX_WAIT_SECONDS = 60.0


@click.command("compact")
@click.argument("sources", metavar="SRC...", nargs=-1)
@click.argument("destination", metavar="DST")
@click.option("--deep", is_flag=True, help="Compare every value, not only counts; reads all input again.")
@click.option("--dry-run", is_flag=True, help="Show what would be compacted; write nothing.")
@click.option("--hidden", is_flag=True, help="Include files and folders whose names begin with . or _.")
@click.option(
    "--on-replaced",
    type=click.Choice(("quarantine", "rebuild", "append")),
    default="quarantine",
    show_default=True,
    help="What to do if a compacted file was replaced, not just appended to. quarantine: leave the new version "
    "out, and report it. rebuild: regenerate its rows from the new version. append: add all lines of the new "
    "version, and keep the earlier rows.",
)
@click.option("--watch", is_flag=True, help="Run until Ctrl-C, and compact files as they arrive. Works without Spark.")
@click.option(
    "--max-wait",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    help=f"With --watch, wait up to this long for more small files (default: {MAX_WAIT_SECONDS:g}).",
)
@click.option(
    "--engine", type=click.Choice(("auto", "native", "spark")), help="Use this engine; auto: native if installed."
)
@click.option(
    "--format",
    type=FORMATS,
    help="Read this format. json: also arrays and multi-line documents. grok: text lines, parsed by --grok.",
)
@click.option("--grok", metavar="PATTERN", help="Parse text lines with this pattern, such as '%{COMBINEDAPACHELOG}'.")
@click.option(
    "--records",
    metavar="PATH",
    help="Make a row of each element of the arrays at PATH in JSON documents, such as 'Records[]'. auto: recognise "
    "CloudTrail, CloudWatch Logs and OTLP.",
)
@click.option(
    "--keep", metavar="KEYS", help="With --records, add columns for these keys beside the arrays: owner,logGroup."
)
@click.option("--schema", metavar="FILE", help="Read column names and types from FILE (TOML), and keep a copy.")
@click.option(
    "--types",
    type=HintedChoice(("infer",), "To choose types, write them to a file: see compactor schema suggest --help."),
    help="Infer column types from the input of the first call; `schema suggest` shows them first.",
)
@click.option(
    "--names",
    type=click.Choice(("safe", "exact")),
    help="Name columns to suit Athena and Glue (safe), or exactly as the keys (exact).",
)
@click.option("--hive-keys", is_flag=True, default=None, help="Add columns for folders such as country=DE.")
@click.option(
    "--exclude",
    metavar="GLOB",
    multiple=True,
    help="Skip these files, now and in later calls: a name such as '*.csv', or a path as for SRC. Repeatable.",
)
@click.option("--state", metavar="PLACE", help="Keep state in PLACE; default: DST.compactor.")
@click.option("--claims", metavar="TABLE", help="Record claims in this DynamoDB table; optional.")
@click.option("--region", help="Use this AWS region.")
@click.option("--endpoint-url", metavar="URL", help="Use this server instead of AWS.")
@json_option(CompactResult)
@body
def compact(
    invocation: Invocation,
    *,
    sources: tuple[str, ...],
    destination: str,
    deep: bool,
    dry_run: bool,
    hidden: bool,
    on_replaced: OnReplaced,
    watch: bool,
    max_wait: float | None,
    state: str | None,
    as_json: bool,
    **options: Any,
) -> ExitCode:
    """Turn the NDJSON in SRC into Parquet in DST: plan, compact, verify.

    Each SRC is a folder, a file, a quoted pattern such as 'logs/**/*.gz', or s3://bucket/prefix; DST is a folder or
    s3://bucket/prefix. No settings file is needed. A second call compacts only new files, and resumes an interrupted
    call. SIGTERM and Ctrl-C stop it after the work in progress.

    Exit codes: 2 also if SRC has no data; 3 if input was quarantined or left out, counts do not add up, fewer than half
    of the lines became rows, or rows look like envelopes; 130 if interrupted.
    """
    if invocation.config is not None:
        raise click.UsageError("compact takes no settings file; to use one, run plan, run --once and verify")
    if not sources:
        raise click.UsageError(f"expected SRC and DST, as in: compactor compact {quoted(destination)} rows")
    if watch and dry_run:
        raise click.UsageError("give --watch or --dry-run, not both")
    if max_wait is not None and not watch:
        raise click.UsageError("--max-wait needs --watch")
    with EndsAtOnce():
        run = folder_run(
            sources,
            destination,
            state,
            Options(**options),
            CompactProgress(),
            StopSignals,
            deep=deep,
            dry_run=dry_run,
            on_replaced=on_replaced,
            with_hidden=hidden,
        )
        if watch:
            return FolderWatch(run, MAX_WAIT_SECONDS if max_wait is None else max_wait, as_json=as_json).watch()
        result = run.run()
        print_result(result, show, as_json=as_json)
        return result.exit_code
