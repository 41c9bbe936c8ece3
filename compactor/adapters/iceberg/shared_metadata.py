"""Metadata of tables that is never changed in place, so that no one needs a copy of its own.

pyiceberg copies all snapshots, schemas and properties each time it applies updates. None of its updates changes what
is there: each makes a new list or a new object.
"""

from collections.abc import Mapping
from typing import Any, Self

from pyiceberg.table.metadata import TableMetadata, TableMetadataV2


class SharedMetadata(TableMetadataV2):
    """Metadata whose copies have the same lists and objects, but for those that an update replaces."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        del deep  # which is what pyiceberg asks for after each change
        return super().model_copy(update=update)


def shared(metadata: TableMetadata) -> TableMetadata:
    """The same metadata, without copies of its own; as it is in other versions of the format, which no table has here.

    Args:
        metadata: As pyiceberg has read it.
    """
    if type(metadata) is not TableMetadataV2:
        return metadata
    return SharedMetadata.model_construct(metadata.model_fields_set, **dict(metadata))
