"""Reads which schema versions came in a period, and what each added."""

from compactor.core.layout import Layout, base_name
from compactor.core.ports import ObjectStore
from compactor.ops.report.facts import CLOCK_TOLERANCE_SECONDS, moment_of
from compactor.ops.report.figures import SHOWN_VERSIONS, AddedColumn, SchemaChange
from compactor.ops.report.period import Period
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import SchemaVersion

SHOWN_COLUMNS = 40  # of each version


def schema_changes(
    store: ObjectStore, layout: Layout, registry: SchemaRegistry, period: Period
) -> tuple[SchemaChange, ...]:
    """The versions that came in a period, oldest first; the newest `SHOWN_VERSIONS` of them.

    Args:
        store: Where the versions are.
        layout: The places.
        registry: Reads them.
        period: What is asked for.

    Raises:
        RecordUnreadable: One of them is damaged.
    """
    near = period.widened(CLOCK_TOLERANCE_SECONDS)
    written = {
        int(number): info.modified_at
        for info in store.list(layout.schemas_folder)
        if (number := base_name(info.uri).removesuffix(".json")).isdigit() and near.holds(info.modified_at)
    }
    # Versions are numbered as they came, so those near the end of the list are the newest of the period.
    changes = []
    for version in sorted(written)[-SHOWN_VERSIONS:]:
        schema = registry.version(version)
        if period.holds(moment_of(schema.created_at, written[version])):
            changes.append(_change(schema))
    return tuple(changes)


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
