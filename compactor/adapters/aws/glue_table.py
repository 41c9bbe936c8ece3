"""Adds columns to a table in the Glue Data Catalog, and changes nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import error_code, translated
from compactor.core.errors import StoreUnavailable
from compactor.schema.catalog import Drift, TableColumns, drift, table_columns

_TRIES = 5  # how often another writer may be faster

_INPUT = {
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
    "TargetTable",
    "ViewDefinition",
}
"""The GetTable fields that UpdateTable accepts, and replaces completely [Glue API, TableInput]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlueTable:
    """`compactor.schema.catalog.CatalogTable`, with a boto3 Glue client."""

    client: Any
    database: str
    table: str

    @property
    def name(self) -> str:
        return f"{self.database}.{self.table}"

    def columns(self) -> TableColumns:
        return table_columns(self._read())

    def add(self, wanted: Mapping[str, str]) -> Drift:
        for _ in range(_TRIES):
            found = self._read()
            differs = drift(table_columns(found), wanted)
            if not differs.missing or self._write(found, differs.missing):
                return differs
        raise StoreUnavailable(f"{self._place}: another writer changed it {_TRIES} times in a row")

    def _read(self) -> dict[str, Any]:
        with translated(self._place):
            found: dict[str, Any] = self.client.get_table(DatabaseName=self.database, Name=self.table)["Table"]
        return found

    def _write(self, found: Mapping[str, Any], missing: Mapping[str, str]) -> bool:
        """Add columns to the table version that was read; return whether it was still current."""
        storage = found.get("StorageDescriptor", {})
        added = [{"Name": name, "Type": kind} for name, kind in missing.items()]
        table = {key: value for key, value in found.items() if key in _INPUT}
        table["StorageDescriptor"] = {**storage, "Columns": [*storage.get("Columns", ()), *added]}
        version = {"VersionId": found["VersionId"]} if found.get("VersionId") else {}
        with translated(self._place):
            try:
                # The registry has the columns' history, so the catalog need not archive its own.
                self.client.update_table(DatabaseName=self.database, TableInput=table, SkipArchive=True, **version)
            except ClientError as exc:
                if error_code(exc) == "ConcurrentModificationException":
                    return False
                raise
        return True

    @property
    def _place(self) -> str:
        return f"Glue table {self.name}"
