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
from compactor.schema.schema import Column, SchemaVersion
from compactor.settings.validation import shown
from compactor.wiring.app import App

SHOWN_VERSIONS = 20
SHOWN_COLUMNS = 40  # of each version


@click.command("schema")
@json_option
@body
def schema(invocation: Invocation, *, as_json: bool) -> None:
    """Show the schema versions and what each added.

    A column never changes its name, type or position. --json shows what the text form leaves out.
    """
    app = App(invocation.settings())
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


def _change(version: SchemaVersion) -> _Change:
    added = tuple(column for column in version.columns if column.added_in == version.version)
    return _Change(version.version, version.created_at, version.manifest_id, len(version.columns), added)


def _document(change: _Change) -> dict[str, Any]:
    shown_fields = {"name", "type", "key", "epoch", "source_uri"}
    return {**shallow(change), "added": [column.model_dump(include=shown_fields) for column in change.added]}


def _show(changes: Sequence[_Change]) -> None:
    older = len(changes) - SHOWN_VERSIONS
    if older > 0:
        echo(f"{count(older, 'older version')} left out; --json shows all", "")
    for change in changes[-SHOWN_VERSIONS:]:
        echo(
            f"version {change.version}, {change.created_at:%Y-%m-%d %H:%M:%S} UTC, manifest {change.manifest_id}: "
            f"{count(len(change.added), 'column')} added"
        )
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
