"""`compactor schema suggest`: prints a schema file for NDJSON."""

from typing import Any

import click

from compactor.cli.invocation import Invocation, body, stream_option
from compactor.cli.parameters import FORMATS, destination_option, refuse_destination
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import write_out
from compactor.core.logs.names import is_log
from compactor.ops.suggest.suggester import SAMPLE_RECORDS
from compactor.settings.compact_paths import Options
from compactor.telemetry.meter import Meter
from compactor.wiring.suggesting import suggested_file


@click.command("schema suggest")
@click.argument("sources", metavar="[SRC]...", nargs=-1)
@destination_option
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Read N records, spread over the files; default: {SAMPLE_RECORDS:,}.",
)
@click.option("--all", "is_all", is_flag=True, help="Read all records of all files.")
@click.option(
    "--format",
    type=FORMATS,
    help="Read this format. json: also arrays. grok: text lines, parsed by --grok.",
)
@click.option("--grok", metavar="PATTERN", help="Parse text lines with this pattern.")
@click.option("--records", metavar="PATH", help="Read the elements of the arrays at PATH in JSON documents.")
@click.option("--keep", metavar="KEYS", help="With --records, add these keys beside the arrays.")
@click.option(
    "--names",
    type=click.Choice(("safe", "exact")),
    help="Name columns to suit Athena and Glue (safe), or exactly as the keys (exact).",
)
@click.option("--hive-keys", is_flag=True, default=None, help="Add columns for folders such as country=DE.")
@click.option("--region", help="Use this AWS region.")
@click.option("--endpoint-url", metavar="URL", help="Use this server instead of AWS.")
@stream_option
@body
def suggest(
    invocation: Invocation, *, sources: tuple[str, ...], sample: int | None, is_all: bool, **options: Any
) -> None:
    """Suggest a schema file for NDJSON.

    Reads NDJSON, and prints a schema file with a type for each key, and comments on the findings. Each SRC is a folder,
    a file, a quoted pattern or s3://bucket/prefix, as for `compact`; without SRC, it reads the input in the settings.
    It writes no file. Use the result with `compactor compact --schema FILE`, or as schema.file in the settings.
    """
    if is_all and sample:
        raise click.UsageError("give --sample or --all, not both")
    for each in sources:
        refuse_destination(invocation, each, "SRC")
    kept = invocation.settings() if invocation.has_settings else None
    places = sources or (tuple(each for each in kept.input.allowed_prefixes if not is_log(each)) if kept else ())
    if not places:
        raise click.UsageError("expected SRC (a folder, a file, a quoted pattern, s3://bucket/prefix), or --in DST")
    meter = Meter()
    with working("reading", meter):
        document = suggested_file(places, Options(**options), kept, None if is_all else sample or SAMPLE_RECORDS, meter)
    # The file is UTF-8 on every terminal; it contains no control characters.
    write_out(document.encode(), nl=False)
