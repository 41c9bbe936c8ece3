"""The field ids of Parquet files, as another reader sees them."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


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
