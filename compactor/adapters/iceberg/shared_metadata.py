"""Metadata of tables that is never changed in place, so that no one needs a copy of its own.

pyiceberg copies all snapshots, schemas and properties each time it applies updates. None of its updates changes what
is there: each makes a new list or a new object.
"""

from collections.abc import Mapping
from typing import Any, Self

from pyiceberg.table.metadata import TableMetadata, TableMetadataV2, TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel


class _Shared:
    """Metadata whose copies have the same lists and objects, but for those that an update replaces."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        del deep  # which is what pyiceberg asks for after each change
        return super().model_copy(update=update)  # type: ignore[misc, no-any-return]  # beside a model of pydantic


class SharedMetadata(_Shared, TableMetadataV2):
    """That of version 2 of the format."""


class SharedMetadataV3(_Shared, TableMetadataV3):
    """That of version 3."""

    def model_dump_json(  # type: ignore[override]  # as pyiceberg does
        self, exclude_none: bool = True, exclude: Any | None = None, by_alias: bool = True, **options: Any
    ) -> str:
        """Write it as in other versions. pyiceberg refuses, as it makes no snapshots of this one."""
        return IcebergBaseModel.model_dump_json(
            self, exclude_none=exclude_none, exclude=exclude, by_alias=by_alias, **options
        )


def shared(metadata: TableMetadata) -> TableMetadata:
    """The same metadata, without copies of its own; as it is in version 1 of the format, which no table has here.

    Args:
        metadata: As pyiceberg has read it.
    """
    kinds: dict[type[Any], type[SharedMetadata | SharedMetadataV3]] = {
        TableMetadataV2: SharedMetadata,
        TableMetadataV3: SharedMetadataV3,
    }
    kind = kinds.get(type(metadata))
    if kind is None:
        return metadata
    values = dict(metadata)
    if kind is SharedMetadataV3 and not values["snapshots"]:
        values["next_row_id"] = values["next_row_id"] or 0  # which pyiceberg forgets for a new table
    return kind.model_construct(metadata.model_fields_set, **values)
