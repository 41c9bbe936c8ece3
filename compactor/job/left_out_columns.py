"""Says which metadata columns the output cannot have, once at the start of a run."""

from collections.abc import Collection

from compactor.schema.schema import SchemaVersion, metadata_names
from compactor.telemetry.logs import log_event


def tell_left_out(schema: SchemaVersion, metadata_columns: Collection[str]) -> None:
    """Log each of the wanted metadata columns whose name a key has."""
    present = metadata_names(schema, metadata_columns)
    for name in metadata_columns:
        if name not in present:
            log_event("columns.left_out", column=name)
