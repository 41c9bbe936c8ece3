"""Raises a table to version 3 of the format."""

from typing import Any

from pyiceberg.table.metadata import TableMetadata, TableMetadataV3
from pyiceberg.table.update import UpgradeFormatVersionUpdate, _apply_table_update, _TableMetadataUpdateContext

from compactor.adapters.iceberg.shared_metadata import shared
from compactor.settings.types import FORMAT_3


class RaiseFormatUpdate(UpgradeFormatVersionUpdate):
    """Raises a table from version 2 to version 3, which pyiceberg does not do."""


@_apply_table_update.register(RaiseFormatUpdate)
def _raised(update: RaiseFormatUpdate, base: TableMetadata, context: _TableMetadataUpdateContext) -> TableMetadata:
    """The metadata in version 3, in which no row has an id yet; unchanged if it is in that version."""
    if base.format_version >= FORMAT_3:
        return base
    values: dict[str, Any] = {**dict(base), "format_version": FORMAT_3, "next_row_id": 0}
    context.add_update(update)
    return shared(TableMetadataV3.model_construct(**values))
