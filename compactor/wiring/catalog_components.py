"""Puts together what knows the table of a stream."""

from functools import cached_property

from compactor.table.catalog import TableCatalog
from compactor.table.listed import ListedTable
from compactor.wiring.components import Components


class CatalogComponents(Components):
    """The catalog of a table sink. Nothing is connected to without one."""

    @property
    def has_table(self) -> bool:
        """Whether the output is listed in a table."""
        return self.settings.output.table == "iceberg"

    @cached_property
    def table_catalog(self) -> TableCatalog:
        """The catalog with the table of the output.

        Raises:
            ExtraMissing: Packages that it needs are not installed.
        """
        from compactor.wiring.iceberg_catalog import iceberg_catalog  # noqa: PLC0415 - an extra

        return iceberg_catalog(self.settings)

    @property
    def listed_table(self) -> ListedTable | None:
        """The table of the output; None if the settings name none."""
        if not self.has_table:
            return None
        table, control = self.settings.table, self.settings.control
        upkeep = {"maintain": table.maintain_hours, "merge": table.merge_hours}
        return ListedTable(
            name=table.name,
            catalog=lambda: self.table_catalog,
            late_seconds=table.commit_seconds + control.stall_seconds,
            shards=control.shards,
            upkeep=tuple(name for name, hours in upkeep.items() if hours),
        )
