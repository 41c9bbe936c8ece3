"""The schema versions as printed by commands."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from compactor.cli.ui.output import print_fields
from compactor.cli.ui.terminal import echo
from compactor.core.text.formatting import count, shown
from compactor.core.text.safe_text import visible
from compactor.schema.schema import Column, RetiredColumn, SchemaVersion
from compactor.wiring.app import App

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


def seen_versions(app: App) -> SchemaVersions:
    """Read all schema versions."""
    return SchemaVersions([_change(version) for version in app.registry.versions()])


def _change(version: SchemaVersion) -> SeenVersion:
    added = tuple(column for column in version.columns if column.added_in == version.version)
    retired = tuple(column for column in version.retired if column.retired_in == version.version)
    return SeenVersion(version.version, version.created_at, version.manifest_id, len(version.columns), added, retired)


def show_versions(found: SchemaVersions) -> None:
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
        print_fields([(f"  {printable(column.name)}", "retired") for column in change.retired[:SHOWN_COLUMNS]])
        print_fields([(f"  {printable(column.name)}", _origin(column)) for column in change.added[:SHOWN_COLUMNS]])
        if len(change.added) > SHOWN_COLUMNS:
            echo(f"  and {len(change.added) - SHOWN_COLUMNS:,} more; --json shows all")


def _origin(column: Column) -> str:
    """Describe type, key and first file of a column in one line."""
    said = [column.type if column.epoch is None else f"{column.type} (numbers are {column.epoch})"]
    if column.key is not None and column.key != column.name:
        said.append(f"key {shown(column.key)}")
    return ", ".join([*said, f"from {column.source_uri or 'the schema file'}"])


def printable(name: str) -> str:
    """The name of a column; in quotes if it has characters that a terminal does not show."""
    return name if visible(name) == name else shown(name)
