"""Which declared columns can tell partitions. No I/O."""

from collections.abc import Iterator, Sequence

from compactor.core.partitions import PartitionField
from compactor.schema.schema import DeclaredColumn, SchemaVersion

_TIMES = {"day": ("timestamp", "date"), "hour": ("timestamp",)}
_NO_BUCKETS = ("double", "boolean")


def partition_faults(
    fields: Sequence[PartitionField], declared: Sequence[DeclaredColumn], *, has_table: bool
) -> Iterator[str]:
    """Each reason why partitions cannot be told by the columns of the schema file.

    Args:
        fields: What divides the output.
        declared: The columns of the schema file.
        has_table: Whether a table lists the output, which tells partitions by columns of the same type.
    """
    types = {column.key: column.type for column in declared}
    for field in fields:
        found = types.get(field.key)
        where = f"output.partition_by: {str(field)!r}"
        if has_table and found is None:
            yield f"{where}: its key has no column in the schema file -> expected one, as the table finds it by that"
        elif has_table and field.transform in _TIMES and found not in _TIMES[field.transform]:
            yield f"{where}: the column is of type {found} -> expected {' or '.join(_TIMES[field.transform])}"
        elif has_table and field.transform == "bucket" and found in _NO_BUCKETS:
            yield f"{where}: the column is of type {found} -> expected one that Iceberg has buckets for"
        elif field.transform == "hour" and found == "date":
            yield f"{where}: the column is of type date -> expected one with a time"


def name_faults(names: Sequence[str], schema: SchemaVersion, declared: Sequence[DeclaredColumn]) -> Iterator[str]:
    """Each folder of partitions that has the name of a column: readers take the one for the other, or refuse both."""
    columns = {column.name.lower() for column in schema.columns} | {column.name.lower() for column in declared}
    for name in names:
        if name.lower() in columns:
            yield (
                f"output.partition_by: {name!r} is the name of a column -> expected another name for the folder, as in "
                f"NAME = day(KEY)"
            )
