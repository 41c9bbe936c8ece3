"""The numbers by which tables identify columns, whatever their names: Parquet's field ids. No I/O.

A registry column gets the first unused number. The parts of a nested column have the next ones in the order of its
type, a map's keys before its values, and each part before its own parts. Columns added by the compactor have fixed ids
above all of those. A column that another writer adds to a table gets an id above these, so never one that the registry
will assign. They are below Iceberg's limit (2,147,483,447), because the proposed format version 4 has statistics only
for ids up to 10.7 million.
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
"""The ids of the rescued data's map entries. The native kernel has the same."""

MAX_COLUMN_ID = 10_000_000
"""The highest id of a registry column."""
