"""The columns that records of Kafka may have beside those of their values. No I/O."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

RecordColumn = Literal["key", "timestamp", "headers", "offset"]
"""What of a record a column has."""

RECORD_COLUMNS: tuple[RecordColumn, ...] = get_args(RecordColumn)

KEYS: Mapping[RecordColumn, str] = MappingProxyType({each: f"_kafka_{each}" for each in RECORD_COLUMNS})
"""The keys of the fields that lines get for them."""

TYPES: Mapping[RecordColumn, str] = MappingProxyType(
    {"key": "string", "timestamp": "timestamp", "headers": "string", "offset": "long"}
)
"""The types of the columns."""


def are_record_columns(found: object) -> bool:
    """Whether a document from outside holds a list of these columns, each once."""
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return False
    return bool(found) and len(set(found)) == len(found) and set(found) <= set(RECORD_COLUMNS)
