"""A table has the columns of the registry, in Iceberg's spelling and by the ids of the files."""

from datetime import UTC, datetime

from compactor.schema.registry import EMPTY_SCHEMA
from compactor.schema.schema import (
    FILE_DATE,
    METADATA_COLUMNS,
    DeclaredColumn,
    SchemaVersion,
    extend,
    without,
)
from compactor.table.columns import TableColumn, faults, lacking_columns, table_columns

NOW = datetime(2026, 1, 2, tzinfo=UTC)
DECLARED = [
    DeclaredColumn(kind[0], kind[0], kind)
    for kind in ("string", "long", "double", "decimal(9,2)", "boolean", "timestamp")
] + [DeclaredColumn("day", "day", "date")]


def extended(schema: SchemaVersion, *keys: str) -> SchemaVersion:
    return extend(schema, dict.fromkeys(keys, "/raw"), names="safe", max_columns=9, manifest_id="m", now=NOW)


def test_types() -> None:
    """Each column has its type; the map of rescued data has ids of its own, and a nested column those after its own."""
    declared = [each for each in DECLARED if each.type != "double"]
    declared.append(DeclaredColumn(key="n", name="n", type="map<string,list<long>>"))
    schema = extend(
        EMPTY_SCHEMA, {"z": "/raw"}, declared=declared, names="safe", max_columns=9, manifest_id="m", now=NOW
    )
    assert table_columns(schema, METADATA_COLUMNS) == (
        TableColumn(10_000_001, "_source_file", "string"),
        TableColumn(10_000_002, "_processed_at", "timestamp"),
        TableColumn(10_000_003, "_manifest_id", "string"),
        TableColumn(10_000_004, "file_date", "date"),
        TableColumn(1, "s", "string"),
        TableColumn(2, "l", "long"),
        TableColumn(3, "d", "decimal(9,2)"),
        TableColumn(4, "b", "boolean"),
        TableColumn(5, "t", "timestamp"),
        TableColumn(6, "day", "date"),
        TableColumn(7, "n", "map<string,list<long>>", 8),
        TableColumn(11, "z", "string"),
        TableColumn(12, "_rescued_data", "map<string,string>", 10_000_101),
    )


def test_columns_that_a_table_lacks() -> None:
    """It gets the new columns of a later version, and keeps those that were retired."""
    first = extended(EMPTY_SCHEMA, "a", "b")
    third = extended(without(first, ["a"], now=NOW), "c")
    added = (
        TableColumn(3, "_rescued_data", "map<string,string>", 10_000_101),
        TableColumn(4, "c", "string"),
    )
    assert [column.name for column in table_columns(third, ())] == ["a", "b", "_rescued_data", "c"]
    assert lacking_columns({1, 2, 3, 10_000_004}, table_columns(third, (FILE_DATE,))) == added[1:]


def test_faults() -> None:
    """A table needs the metadata column of its partitions, and an id for each column."""
    schema = extended(EMPTY_SCHEMA, "a")
    assert not list(faults(schema, (FILE_DATE,), needed=(FILE_DATE,)))
    assert len(list(faults(schema, (), needed=(FILE_DATE,)))) == 1
    for wrong in (0, 10_000_000):
        columns = (schema.columns[0].model_copy(update={"field_id": wrong}),)
        assert len(list(faults(schema.model_copy(update={"columns": columns}), ()))) == 1
