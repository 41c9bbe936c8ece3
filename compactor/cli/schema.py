"""`compactor schema`: which columns there are, since when, and where each of them came from."""

from collections.abc import Sequence
from typing import Any

import click

from compactor.app import App
from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.output import count, print_fields, print_json
from compactor.schema import Column, SchemaVersion
from compactor.settings_faults import shown

SHOWN_VERSIONS = 20
SHOWN_COLUMNS = 40  # of each version


@click.command("schema")
@json_option
@body
def schema(invocation: Invocation, *, as_json: bool) -> ExitCode:
    """Show the schema versions and what each added.

    A column never changes its name, type or place. --json shows all that the screen shortens.
    """
    app = App(invocation.settings())
    versions = list(app.registry.versions())
    if as_json:
        print_json({"versions": [_document(version) for version in versions]})
    elif versions:
        _show(versions)
    else:
        click.echo(f"No schema version yet in {app.layout.schemas_folder}: the first manifest makes one.")
    return ExitCode.DONE


def _added(version: SchemaVersion) -> list[Column]:
    return [column for column in version.columns if column.added_in == version.version]


def _document(version: SchemaVersion) -> dict[str, Any]:
    return {
        "version": version.version,
        "created_at": version.created_at,
        "manifest_id": version.manifest_id,
        "columns": len(version.columns),
        "added": [
            column.model_dump(include={"name", "type", "key", "epoch", "source_uri"}) for column in _added(version)
        ],
    }


def _show(versions: Sequence[SchemaVersion]) -> None:
    older = len(versions) - SHOWN_VERSIONS
    if older > 0:
        click.echo(f"{count(older, 'older version')} left out; --json shows all\n")
    for version in versions[-SHOWN_VERSIONS:]:
        added = _added(version)
        click.echo(
            f"version {version.version}, {version.created_at:%Y-%m-%d %H:%M:%S} UTC, manifest {version.manifest_id}: "
            f"{count(len(added), 'column')} added"
        )
        print_fields([(f"  {_printable(column.name)}", _origin(column)) for column in added[:SHOWN_COLUMNS]])
        if len(added) > SHOWN_COLUMNS:
            click.echo(f"  and {len(added) - SHOWN_COLUMNS:,} more; --json shows all")


def _origin(column: Column) -> str:
    """Type, key and first file of a column, in one line."""
    said = [column.type if column.epoch is None else f"{column.type} (numbers are {column.epoch})"]
    if column.key is not None and column.key != column.name:
        said.append(f"key {shown(column.key)}")
    if column.source_uri is not None:
        said.append(f"from {column.source_uri or 'the schema file'}")
    return ", ".join(said)


def _printable(name: str) -> str:
    return name if name.isprintable() else shown(name)
