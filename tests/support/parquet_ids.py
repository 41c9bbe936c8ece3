"""The field ids of Parquet files, as another reader sees them."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.schema.field_ids import RESCUED_KEY_ID, RESCUED_VALUE_ID


def with_field_id(field: pa.Field, field_id: int) -> pa.Field:
    """The field with an id for pyarrow to write; without one for 0."""
    return field.with_metadata({"PARQUET:field_id": str(field_id)}) if field_id else field


MAP_WITH_IDS = pa.map_(
    with_field_id(pa.field("key", pa.string(), nullable=False), RESCUED_KEY_ID),
    with_field_id(pa.field("value", pa.string()), RESCUED_VALUE_ID),
)
"""The type of rescued data."""


def field_ids(file: Any) -> dict[str, int | None]:
    """The id of each column, and as `column.key` and `column.value` those of a map; None without one.

    Args:
        file: A path, or an open file.
    """
    found: dict[str, int | None] = {}
    for field in pq.ParquetFile(file).schema_arrow:
        found[field.name] = _id(field)
        if pa.types.is_map(field.type):
            found[f"{field.name}.key"] = _id(field.type.key_field)
            found[f"{field.name}.value"] = _id(field.type.item_field)
    return found


def _id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(b"PARQUET:field_id")
    return int(text) if text is not None else None
