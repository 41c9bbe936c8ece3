"""The numbers by which tables know columns, whatever they are called: Parquet's field ids. No I/O.

A column of the registry has the number of columns that there were before it, plus 1. Columns that the compactor adds by
itself have fixed ids above all of those: a column that another writer adds to a table gets an id above these, and so
never one that the registry will give. They are not as high as Iceberg allows (2,147,483,447), because its format
version 4, as proposed, has statistics for ids up to 10.7 million only.
"""

from collections.abc import Mapping

from compactor.schema.schema import FILE_DATE

METADATA_IDS: Mapping[str, int] = {
    "_source_file": 10_000_001,
    "_processed_at": 10_000_002,
    "_manifest_id": 10_000_003,
    FILE_DATE: 10_000_004,
}

RESCUED_KEY_ID = 10_000_101
RESCUED_VALUE_ID = 10_000_102
"""The ids of the entries of the rescued data. The native kernel has the same."""

MAX_COLUMN_ID = 10_000_000
"""The highest id that a column of the registry may have."""
