"""`compactor schema`: shows versions, columns and their first files; suggests, retires and publishes columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.parameters import is_output
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.output import print_fields, print_json
from compactor.cli.ui.progress import working
from compactor.cli.ui.terminal import echo, write_out
from compactor.core.logs.names import is_log
from compactor.core.meter import Meter
from compactor.core.text.formatting import count
from compactor.core.text.safe_text import visible
from compactor.ops.suggest.suggester import SAMPLE_RECORDS
from compactor.schema.catalog import Published
from compactor.schema.schema import Column, RetiredColumn, SchemaVersion
from compactor.settings.compact_paths import Options
from compactor.settings.validation import shown
from compactor.wiring import operating
from compactor.wiring.app import App
from compactor.wiring.opening import job_registry

SHOWN_VERSIONS = 20
SHOWN_COLUMNS = 40  # of each version

_SUGGEST = "suggest"
_PUBLISH = "publish"
_ACTIONS = (_SUGGEST, "retire", _PUBLISH)


@dataclass(frozen=True, slots=True)
class SeenVersion:
    """A schema version. The columns of all versions together may not fit into memory."""

    version: int
    created_at: datetime  # time at which it was created
    manifest_id: str  # manifest that caused it; empty if `compactor schema retire` did
    columns: int  # number of its columns
    added: tuple[Column, ...]  # columns that it added
    retired: tuple[RetiredColumn, ...]  # columns that it retired


@dataclass(frozen=True, slots=True)
class SchemaVersions:
    """The schema versions."""

    versions: Sequence[SeenVersion]  # schema versions, oldest first
    published: Published | None = None  # what was done to the table in the catalog; null unless published


@click.command("schema")
@click.argument("words", metavar="[DST] [suggest [SRC]... | retire COLUMN... | publish]", nargs=-1)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"suggest: Read N records, spread over the files; default: {SAMPLE_RECORDS:,}.",
)
@click.option("--all", "is_all", is_flag=True, help="suggest: Read all records of all files.")
@click.option(
    "--format",
    type=click.Choice(("ndjson", "json", "grok")),
    help="suggest: Read files of this format. json: also JSON arrays. grok: text, by --grok.",
)
@click.option("--grok", metavar="PATTERN", help="suggest: Read lines of text by this pattern.")
@click.option(
    "--names", type=click.Choice(("safe", "exact")), help="suggest: Name columns for Athena and Glue, or as the keys."
)
@click.option("--hive-keys", is_flag=True, default=None, help="suggest: Include folders such as country=DE.")
@click.option("--region", help="suggest: Use this AWS region.")
@click.option("--endpoint-url", metavar="URL", help="suggest: Use this server in place of AWS.")
@json_option(SchemaVersions)
@stream_option
@body
def schema(
    invocation: Invocation,
    *,
    words: tuple[str, ...],
    as_json: bool,
    sample: int | None,
    is_all: bool,
    **options: Any,
) -> ExitCode | None:
    """Show the schema versions and what each added; suggest, retire or publish columns.

    A column never changes its name or type. --json shows what the text form leaves out.

    `suggest` reads NDJSON and prints a schema file that gives each key a type, with what was found as comments. Each
    SRC is a folder, a file, a quoted pattern or s3://bucket/prefix, as for `compact`; without SRC, the input of DST. It
    needs no settings and writes nothing. Use the file with `compactor compact --schema FILE`, or as schema.file in the
    settings.

    `retire` makes a version without the named columns, so that other keys can have their places. Files that have them
    stay as they are. Later values of their keys go to _rescued_data for good. A running job takes the version when it
    needs new columns.

    `publish` adds the columns of the latest version to schema.table in the Glue Data Catalog, as the job does by
    itself. It removes and changes none.
    """
    if words and words[0] not in _ACTIONS:
        invocation, words = invocation.at(words[0]), words[1:]
    action, operands = words[:1], words[1:]
    if action and action[0] not in _ACTIONS:
        raise click.UsageError(f"{action[0]!r} -> expected {', '.join(_ACTIONS[:-1])} or {_ACTIONS[-1]}")
    if action == (_SUGGEST,):
        if as_json or (is_all and sample):
            raise click.UsageError("suggest: expected at most one of --sample and --all, and no --json")
        if len(operands) == 1 and invocation.destination is None and is_output(operands[0]):
            invocation, operands = invocation.at(operands[0]), ()
        _suggest(invocation, operands, None if is_all else sample or SAMPLE_RECORDS, Options(**options))
        return None
    if sample or is_all or any(options.values()):
        raise click.UsageError("options other than --json belong to `schema suggest`")
    _check_operands(action, operands)
    app = App(invocation.settings())
    if action == (_PUBLISH,):
        return _publish(app, as_json=as_json)
    if action:
        job_registry(app).retire(operands)
    _show_all(app, as_json=as_json)
    return None


def _check_operands(action: tuple[str, ...], operands: tuple[str, ...]) -> None:
    if action == (_PUBLISH,) and operands:
        raise click.UsageError(f"publish: {operands[0]!r} -> expected nothing after it")
    if action and action != (_PUBLISH,) and not operands:
        raise click.UsageError("retire: no COLUMN -> expected the name of at least one column")


def _show_all(app: App, *, as_json: bool) -> None:
    changes = [_change(version) for version in app.registry.versions()]
    if as_json:
        print_json(SchemaVersions(changes))
    elif changes:
        _show(changes)
    else:
        echo(f"No schema version yet in {app.layout.schemas_folder}: the first manifest makes one.")


def _publish(app: App, *, as_json: bool) -> ExitCode:
    done = operating.publish_columns(app)
    if as_json:
        print_json(SchemaVersions([_change(version) for version in app.registry.versions()], done))
    else:
        has = f"{done.table} has the columns of schema version {done.version}"
        echo(f"{has}: {count(len(done.added), 'column')} added" if done.added else f"{has}; there was none to add")
        print_fields([(f"  {_printable(name)}", "added") for name in done.added[:SHOWN_COLUMNS]])
        wrong = [
            (f"  {_printable(each.column)}", f"{each.found} in the table, expected {each.expected}")
            for each in done.other_types[:SHOWN_COLUMNS]
        ]
        print_fields(wrong)
    if not done.other_types:
        return ExitCode.DONE
    say(f"{done.table}: {count(len(done.other_types), 'column')} of another type than in the output")
    say_next("correct these types in the catalog; the compactor changes no type")
    return ExitCode.NEEDS_OPERATOR


def _suggest(invocation: Invocation, sources: Sequence[str], max_records: int | None, options: Options) -> None:
    from compactor.wiring.suggesting import suggested_file  # noqa: PLC0415 - the other actions do without

    kept = invocation.settings() if invocation.has_settings else None
    if not sources and kept is not None:
        sources = [each for each in kept.input.allowed_prefixes if not is_log(each)]
    if not sources:
        raise click.UsageError(
            "suggest: expected SRC: a folder, a file, a quoted pattern, s3://bucket/prefix, or a DST"
        )
    meter = Meter()
    with working("reading", meter):
        document = suggested_file(sources, options, kept, max_records, meter)
    # The file is UTF-8 whatever the terminal shows; it holds nothing that acts on one.
    write_out(document.encode(), nl=False)


def _change(version: SchemaVersion) -> SeenVersion:
    added = tuple(column for column in version.columns if column.added_in == version.version)
    retired = tuple(column for column in version.retired if column.retired_in == version.version)
    return SeenVersion(version.version, version.created_at, version.manifest_id, len(version.columns), added, retired)


def _show(changes: Sequence[SeenVersion]) -> None:
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
    return name if visible(name) == name else shown(name)
