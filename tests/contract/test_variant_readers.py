"""Other programs read the values of variants from a table, and the ids of its rows."""

import json
import sys
from pathlib import Path

import pytest

from compactor.adapters.iceberg.iceberg_table import IcebergTable
from compactor.adapters.iceberg.opening import open_catalog
from compactor.table.catalog import TableChange
from tests.contract.test_table_readers import in_another_program
from tests.contract.test_variant_tables import SCHEMA, variant
from tests.support import extras
from tests.support.iceberg_tables import NAME, client, rest_place, sql_place, written
from tests.support.rest_catalog import FOR_SPARK, SPARK_OF_CATALOG, RestCatalogServer
from tests.support.table_catalogs import OWNER

TEXTS = (
    '{"a":[1,-300,70000,5000000000],"b":{"c":"text","d":null,"e":true,"f":false}}',
    '{"exact":[1.10,12345678901234567890.123456789,10.25],"double":[100.0,1.0E-7]}',
    '{"long":"' + "é" * 100 + '","empty":{},"none":[]}',
    "[" + ",".join(map(str, range(300))) + "]",
)

IN_SPARK = (
    SPARK_OF_CATALOG
    + """
values = ["id", "to_json(`v.x`) AS text", "variant_get(`v.x`, '$.b.c', 'string') AS part", "_row_id AS row_id"]
rows = spark.table(name).selectExpr(*values)
print(json.dumps([row.asDict() for row in rows.collect()]))
"""
)

IN_DUCKDB = """
import json, sys
import duckdb
from duckdb_extensions import import_extension
for name in ("avro", "iceberg"):
    import_extension(name)
connection = duckdb.connect()
for name in ("avro", "iceberg"):
    connection.execute("LOAD " + name)
rows = connection.table_function("iceberg_scan", [sys.argv[1]]).project('id, CAST("v.x" AS JSON) AS text').fetchall()
print(json.dumps([{"id": number, "text": text} for number, text in rows]))
"""


def filled(table: IcebergTable, folder: Path) -> None:
    """Put a row of each text into a table, in two files, and one without a value."""
    head = table.create(OWNER, SCHEMA)
    for batch, texts in enumerate((TEXTS[:2], (*TEXTS[2:], None)), 1):
        rows = [{"id": batch * 10 + at, "v.x": variant(text) if text else None} for at, text in enumerate(texts)]
        file = written(folder / f"{batch}.parquet", SCHEMA, rows)
        table.commit(head, TableChange(batch, (file,)))
        found = table.head()
        assert found is not None
        head = found


EXPECTED = {**dict(zip((10, 11, 20, 21), map(json.loads, TEXTS), strict=True)), 22: None}


@pytest.mark.large
@pytest.mark.timeout(1800)
@extras.ON_SPARK.needed
def test_spark(rest_catalog: RestCatalogServer, tmp_path: Path) -> None:
    """Spark and Iceberg in the releases of Glue 6.0 know the type, each value, and each row's own id."""
    table = client(rest_place(rest_catalog.url), f"lake.{tmp_path.name}", 3)
    filled(table, tmp_path)
    jars = ",".join(str(path) for path in FOR_SPARK.glob("*.jar"))
    rows = in_another_program(sys.executable, IN_SPARK, jars, rest_catalog.url, f"lake.{table.name}")
    assert {row["id"]: row["text"] and json.loads(row["text"]) for row in rows} == EXPECTED
    assert {row["id"]: row["part"] for row in rows}[10] == "text"
    assert sorted(row["row_id"] for row in rows) == [*range(5)]


@pytest.mark.full
@extras.READERS.needed
def test_duckdb(tmp_path: Path) -> None:
    """So does DuckDB, with its own reader of Iceberg."""
    filled(client(sql_place(tmp_path), format_version=3), tmp_path)
    place = open_catalog(sql_place(tmp_path)).load_table(NAME).metadata_location.removeprefix("file://")
    rows = in_another_program(str(extras.readers_python()), IN_DUCKDB, place)
    assert {row["id"]: row["text"] and json.loads(row["text"]) for row in rows} == EXPECTED
