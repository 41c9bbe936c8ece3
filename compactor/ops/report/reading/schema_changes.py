"""Reads which schema versions were added in a period, and the columns of each."""

from compactor.core.layout import schema_number
from compactor.ledger.state import State
from compactor.ops.report.figures import SHOWN_VERSIONS, AddedColumn, Schema, SchemaChange
from compactor.ops.report.period import Period
from compactor.ops.report.reading.facts import CLOCK_TOLERANCE_SECONDS, moment_of
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import SchemaVersion

SHOWN_COLUMNS = 40  # of each version


def schema_of(state: State, registry: SchemaRegistry, period: Period) -> Schema:
    """The latest version, and the newest `SHOWN_VERSIONS` versions of a period.

    Raises:
        RecordUnreadable: One of them is damaged.
    """
    near = period.widened(CLOCK_TOLERANCE_SECONDS)
    written = {
        number: info.modified_at
        for info in state.store.list(state.layout.schemas_folder)
        if (number := schema_number(info.uri)) is not None and near.holds(info.modified_at)
    }
    newest = ((registry.version(number), written[number]) for number in sorted(written)[-SHOWN_VERSIONS:])
    changes = tuple(_change(schema) for schema, at in newest if period.holds(moment_of(schema.created_at, at)))
    latest = registry.latest()
    return Schema(latest.version, len(latest.columns), changes)


def _change(schema: SchemaVersion) -> SchemaChange:
    added = [column for column in schema.columns if column.added_in == schema.version]
    return SchemaChange(
        version=schema.version,
        created_at=schema.created_at,
        manifest_id=schema.manifest_id,
        columns=len(schema.columns),
        added_columns=len(added),
        added=tuple(AddedColumn(each.name, each.type, each.source_uri) for each in added[:SHOWN_COLUMNS]),
    )
