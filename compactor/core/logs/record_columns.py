"""What records of Kafka are as lines: the columns that they may have beside those of their values. No I/O."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

RecordColumn = Literal["key", "timestamp", "headers", "offset"]
"""What of a record a column has."""

KafkaValues = Literal["record", "lines"]
"""What a value is: one record, or lines, of which each is a record."""

RECORD_COLUMNS: tuple[RecordColumn, ...] = get_args(RecordColumn)

KEYS: Mapping[RecordColumn, str] = MappingProxyType({each: f"_kafka_{each}" for each in RECORD_COLUMNS})
"""The keys of the fields that lines get for them."""

TYPES: Mapping[RecordColumn, str] = MappingProxyType(
    {"key": "string", "timestamp": "timestamp", "headers": "string", "offset": "long"}
)
"""The types of the columns."""
