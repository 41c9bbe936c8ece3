"""`compactor schema`: shows, suggests, retires and publishes columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from compactor.cli.invocation import Invocation, body, reporting, stream_option
from compactor.cli.parameters import FORMATS, destination_argument, destination_option, refuse_destination
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.output import print_fields, print_result
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo, write_out
from compactor.core.logs.names import is_log
from compactor.core.text.formatting import count, shown
from compactor.core.text.safe_text import visible
from compactor.schema.catalog import Published
from compactor.schema.column_types import MAX_LEVELS
from compactor.schema.schema import Column, RetiredColumn, SchemaVersion
from compactor.settings.compact_paths import Options
from compactor.telemetry.meter import Meter
from compactor.wiring.app import App

# What each verb needs is slow to load.
# ruff: noqa: PLC0415

SAMPLE_RECORDS = 10_000  # by default
SHOWN_VERSIONS = 20
SHOWN_COLUMNS = 40  # per version


@dataclass(frozen=True, slots=True)
class SeenVersion:
    """A schema version. The columns of all versions may not fit into memory."""

    version: int
    created_at: datetime  # time at which it was created
    manifest_id: str  # the manifest that caused it; empty for `compactor schema retire`
    columns: int  # number of its columns
    added: tuple[Column, ...]  # columns that it added
    retired: tuple[RetiredColumn, ...]  # columns that it retired


@dataclass(frozen=True, slots=True)
class SchemaVersions:
    """The schema versions."""

    versions: Sequence[SeenVersion]  # schema versions, oldest first


def _versions(app: App) -> SchemaVersions:
    """Read all schema versions."""
    return SchemaVersions([_change(version) for version in app.registry.versions()])


def _change(version: SchemaVersion) -> SeenVersion:
    added = tuple(column for column in version.columns if column.added_in == version.version)
    retired = tuple(column for column in version.retired if column.retired_in == version.version)
    return SeenVersion(version.version, version.created_at, version.manifest_id, len(version.columns), added, retired)


def _show_versions(found: SchemaVersions) -> None:
    """Print the latest versions with the columns that each added and retired."""
    changes = found.versions
    if not changes:
        echo("No schema version yet: the first manifest creates one.")
    older = len(changes) - SHOWN_VERSIONS
    if older > 0:
        echo(f"{count(older, 'older version')} left out; --json shows all", "")
    for change in changes[-SHOWN_VERSIONS:]:
        cause = f"manifest {change.manifest_id}" if change.manifest_id else "compactor schema retire"
        done = [f"{count(len(change.added), 'column')} added"] if change.added or not change.retired else []
        done += [f"{count(len(change.retired), 'column')} retired"] if change.retired else []
        at = f"{change.created_at:%Y-%m-%d %H:%M:%S} UTC"
        echo(f"version {change.version}, {at}, {cause}: {', '.join(done)}")
        print_fields([(f"  {_printable(column.name)}", "retired") for column in change.retired[:SHOWN_COLUMNS]])
        print_fields([(f"  {_printable(column.name)}", _origin(column)) for column in change.added[:SHOWN_COLUMNS]])
        if len(change.added) > SHOWN_COLUMNS:
            echo(f"  and {len(change.added) - SHOWN_COLUMNS:,} more; --json shows all")


def _origin(column: Column) -> str:
    """Describe type, key and first file of a column in one line."""
    said = [column.type if column.epoch is None else f"{column.type} (numbers are {column.epoch})"]
    if column.key is not None and column.key != column.name:
        said.append(f"key {shown(column.key)}")
    return ", ".join([*said, f"from {column.source_uri or 'the schema file'}"])


def _printable(name: str) -> str:
    """The name of a column; in quotes if it has characters that a terminal does not show."""
    return name if visible(name) == name else shown(name)


@click.command("schema show")
@destination_argument
@reporting(SchemaVersions)
def show(invocation: Invocation, *, as_json: bool) -> None:
    """Show schema versions and the columns added by each.

    A column never changes its name or type. --json shows all details.
    """
    print_result(_versions(App(invocation.settings())), _show_versions, as_json=as_json)


@click.command("schema retire")
@click.argument("columns", metavar="COLUMN...", nargs=-1, required=True)
@destination_option
@reporting(SchemaVersions)
def retire(invocation: Invocation, *, columns: tuple[str, ...], as_json: bool) -> None:
    """Retire columns to make room for other keys.

    Creates a schema version without these columns. Existing files keep them. Later values of their keys go to
    _rescued_data permanently. A running job adopts the version when it needs new columns.
    """
    from compactor.wiring.opening import job_registry

    app = App(invocation.settings())
    job_registry(app).retire(columns)
    print_result(_versions(app), _show_versions, as_json=as_json)


@click.command("schema publish")
@destination_argument
@reporting(Published)
def publish(invocation: Invocation, *, as_json: bool) -> ExitCode:
    """Add new columns to the table of the Glue Data Catalog.

    Adds the columns of the latest schema version to schema.table, as the job does by itself. Never removes or changes
    columns.

    Exit codes: 3 if a column has a different type in the table.
    """
    from compactor.wiring import operating

    done = operating.publish_columns(App(invocation.settings()))
    print_result(done, _show_published, as_json=as_json)
    if not done.other_types:
        return ExitCode.DONE
    say(f"{done.table}: {count(len(done.other_types), 'column')} with other types than the output")
    say_next("correct these types in the catalog; the compactor never changes a type")
    return ExitCode.NEEDS_OPERATOR


def _show_published(done: Published) -> None:
    has = f"{done.table} has the columns of schema version {done.version}"
    echo(f"{has}: {count(len(done.added), 'column')} added" if done.added else f"{has}; none to add")
    print_fields([(f"  {_printable(name)}", "added") for name in done.added[:SHOWN_COLUMNS]])
    wrong = [
        (f"  {_printable(each.column)}", f"{each.found} in the table, expected {each.expected}")
        for each in done.other_types[:SHOWN_COLUMNS]
    ]
    print_fields(wrong)


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
@click.option("--nested", is_flag=True, help=f"Type arrays and objects, too, to {MAX_LEVELS} levels.")
@click.option("--hive-keys", is_flag=True, default=None, help="Add columns for folders such as country=DE.")
@click.option("--region", help="Use this AWS region.")
@click.option("--endpoint-url", metavar="URL", help="Use this server instead of AWS.")
@stream_option
@body
def suggest(
    invocation: Invocation, *, sources: tuple[str, ...], sample: int | None, is_all: bool, nested: bool, **options: Any
) -> None:
    """Suggest a schema file for NDJSON.

    Reads NDJSON, and prints a schema file with a type for each key, and comments on the findings. Each SRC is a folder,
    a file, a quoted pattern or s3://bucket/prefix, as for `compact`; without SRC, it reads the input in the settings.
    It writes no file. Use the result with `compactor compact --schema FILE`, or as schema.file in the settings.
    """
    from compactor.wiring.suggesting import suggested_file

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
        most, levels = None if is_all else sample or SAMPLE_RECORDS, MAX_LEVELS if nested else 0
        document = suggested_file(places, Options(**options), kept, most, meter, levels=levels)
    # The file is UTF-8 on every terminal; it contains no control characters.
    write_out(document.encode(), nl=False)
