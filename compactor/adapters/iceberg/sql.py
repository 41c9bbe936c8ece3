"""pyiceberg's catalog in a database, which reads a file of metadata once."""

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate

from compactor.adapters.iceberg.shared_metadata import shared


class RememberingSqlCatalog(SqlCatalog):
    """A catalog that remembers the metadata that it read or wrote last.

    The database is asked each time which file a table has. Such a file is never changed: its name has a random part.
    """

    _remembered: tuple[str, TableMetadata] | None = None  # with the name of its file; set as one, for several threads

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        answer = super().commit_table(table, requirements, updates)
        self._remembered = answer.metadata_location, shared(answer.metadata)
        return answer

    # The only place where the row of the database is known, and the file is not read yet. If a later pyiceberg has
    # another name for it, files are read more often; a test tells.
    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        remembered = self._remembered
        if remembered is None or remembered[0] != orm_table.metadata_location:
            table = super()._convert_orm_to_iceberg(orm_table)
            table.metadata = shared(table.metadata)
            self._remembered = table.metadata_location, table.metadata
            return table
        location, metadata = remembered
        return Table(
            identifier=(*Catalog.identifier_to_tuple(orm_table.table_namespace), orm_table.table_name),
            metadata=metadata,
            metadata_location=location,
            io=load_file_io({**self.properties, **metadata.properties}, location),
            catalog=self,
        )
