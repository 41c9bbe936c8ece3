"""`compactor schema`: shows the columns, the version that added each, and the file it came from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.output import print_fields, print_json, shallow
from compactor.cli.ui.terminal import echo
from compactor.core.formatting import count
from compactor.schema.schema import Column, RetiredColumn, SchemaVersion
from compactor.settings.validation import shown
from compactor.wiring.app import App

SHOWN_VERSIONS = 20
SHOWN_COLUMNS = 40  # of each version

_RETIRE = "retire"


@click.command("schema")
@click.argument("words", metavar="[DST] [retire COLUMN...]", nargs=-1)
@json_option
@body
def schema(invocation: Invocation, *, words: tuple[str, ...], as_json: bool) -> None:
    """Show the schema versions and what each added, or retire columns.

    A column never changes its name or type. --json shows what the text form leaves out.

    `retire` makes a version without the named columns, so that other keys can have their places. Files that have them
    stay as they are. Later values of their keys go to _rescued_data for good. A running job takes the version when it
    needs new columns.
    """
    if words and words[0] != _RETIRE:
        invocation, words = invocation.at(words[0]), words[1:]
    action, columns = words[:1], words[1:]
    if action and action[0] != _RETIRE:
        raise click.UsageError(f"{action[0]!r} -> expected {_RETIRE}")
    if action and not columns:
        raise click.UsageError("retire: no COLUMN -> expected the name of at least one column")
    app = App(invocation.settings())
    if action:
        app.job_registry.retire(columns)
    changes = [_change(version) for version in app.registry.versions()]
    if as_json:
        print_json({"versions": [_document(change) for change in changes]})
    elif changes:
        _show(changes)
    else:
        echo(f"No schema version yet in {app.layout.schemas_folder}: the first manifest makes one.")


@dataclass(frozen=True, slots=True)
class _Change:
    """What one version added. The columns of all versions together may not fit into memory."""

    version: int
    created_at: datetime
    manifest_id: str
    columns: int
    added: tuple[Column, ...]
    retired: tuple[RetiredColumn, ...]


def _change(version: SchemaVersion) -> _Change:
    added = tuple(column for column in version.columns if column.added_in == version.version)
    retired = tuple(column for column in version.retired if column.retired_in == version.version)
    return _Change(version.version, version.created_at, version.manifest_id, len(version.columns), added, retired)


def _document(change: _Change) -> dict[str, Any]:
    shown_fields = {"name", "type", "key", "epoch", "source_uri"}
    return {
        **shallow(change),
        "added": [column.model_dump(include=shown_fields) for column in change.added],
        "retired": [column.model_dump(include={"name", "key"}) for column in change.retired],
    }


def _show(changes: Sequence[_Change]) -> None:
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
    return name if name.isprintable() else shown(name)
