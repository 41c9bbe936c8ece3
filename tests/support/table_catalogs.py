"""Catalogs of a table sink, and files for their tables."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from compactor.schema.schema import Column, SchemaVersion
from compactor.table.catalog import TableCatalog, TableFile, TableHead
from tests.support.memory_store import ManualClock
from tests.support.memory_table import MemoryTable

OWNER = "file:///lake/state/"
DATE = "2026-01-02"


@dataclass(frozen=True)
class CatalogCase:
    """An implementation with an empty place for one table.

    Attributes:
        catalog: The catalog.
        other: Makes another client of the same table, as another process has it.
        file: A file of rows by a name, and the schema version whose columns it has; made if it is not there.
        tag: Gives a snapshot a name, as a person does.
        leave: Puts a file with a name beside the files of metadata.
        age: Makes all files of metadata that there are older, by days.
        drop: Loses the table; None if that is not possible.
        drop_keeps_files: Whether its files of metadata stay then, for a table that is made in its place.
    """

    catalog: TableCatalog
    other: Callable[[], TableCatalog]
    file: Callable[..., TableFile]
    tag: Callable[[int], None]
    leave: Callable[[str], None]
    age: Callable[[float], None]
    drop: Callable[[], None] | None = None
    drop_keeps_files: bool = True


def now(case: CatalogCase) -> TableHead:
    """The head of the table, which is there."""
    head = case.catalog.head()
    assert head is not None
    return head


def memory_case() -> CatalogCase:
    """The one in memory, whose files need not be there."""
    table = MemoryTable()

    def file(name: str, schema: int = 1) -> TableFile:
        return TableFile(f"/lake/output/{DATE}/{name}-{schema}.parquet", 100, 3, DATE)

    def age(days: float) -> None:
        table.written = {name: at - timedelta(days=days) for name, at in table.written.items()}

    def leave(name: str) -> None:
        table.written[name] = table.now()

    return CatalogCase(table, lambda: table, file, table.tags.add, leave, age, table.drop, drop_keeps_files=False)


def version(number: int) -> SchemaVersion:
    """A schema version with as many columns of text as its number, `c1` and so on."""
    columns = tuple(
        Column(key=f"c{each}", name=f"c{each}", added_in=each, field_id=each) for each in range(1, number + 1)
    )
    return SchemaVersion(version=number, created_at=ManualClock().now(), manifest_id="m", columns=columns)
