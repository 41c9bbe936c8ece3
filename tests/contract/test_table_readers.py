"""Other programs read from a table what the Parquet files have."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from compactor.adapters.iceberg.opening import CatalogPlace, open_catalog
from compactor.schema.schema import RESCUED_COLUMN
from compactor.table.catalog import TableChange
from tests.support import extras
from tests.support.iceberg_tables import NAME, client, rest_place, sql_place, written
from tests.support.rest_catalog import FOR_SPARK, SPARK_OF_CATALOG, RestCatalogServer
from tests.support.table_catalogs import OWNER
from tests.unit.adapters.test_iceberg_files import ROW, typed

# The same reader reads the files without the table, so that values compare as it spells them.
IN_DUCKDB = """
import json, sys
import duckdb
from duckdb_extensions import import_extension
for name in ("avro", "iceberg"):
    import_extension(name)
connection = duckdb.connect()
for name in ("avro", "iceberg"):
    connection.execute("LOAD " + name)
connection.execute("SET TimeZone = 'UTC'")
sources = "iceberg_scan('" + sys.argv[1] + "')", "read_parquet(" + str(sys.argv[2:]) + ", union_by_name=true)"
found = []
for source in sources:
    rows = connection.execute("SELECT columns(*)::varchar FROM " + source + " ORDER BY c3, file_date")
    names = [each[0] for each in rows.description]
    found.append([dict(zip(names, row)) for row in rows.fetchall()])
print(json.dumps(found))
"""


IN_SPARK = (
    SPARK_OF_CATALOG
    + """
table = spark.table(name)
files = spark.read.option("mergeSchema", "true").parquet(*paths).select(*table.columns)
print(json.dumps([[str(row) for row in each.collect()] for each in (table, files)]))
"""
)


def table_of_two(place: CatalogPlace, name: str, folder: Path) -> list[Path]:
    """A table with a file of an older and one of a newer schema version, after a removal, a merge and an expiry."""
    table, paths = client(place, name), [folder / "older.parquet", folder / "newer.parquet"]
    older = written(paths[0], typed(1), [{**ROW, RESCUED_COLUMN: None}, {"c3": 1, "c5": Decimal("0.01")}], "2026-01-01")
    gone, newer = written(folder / "gone.parquet", typed(1), [{}]), written(paths[1], typed(2), [ROW, {"c3": 2}])
    for number, (added, removed, schema) in enumerate(
        [((older, gone), (), None), ((newer,), (gone.uri,), typed(2)), ((), (), None)], 1
    ):
        head = table.head() or table.create(OWNER, typed(1))
        table.commit(head, TableChange(number, added, removed, schema))
    head = table.head()
    assert head is not None
    table.merge_manifests(head)
    opened = open_catalog(place).load_table(name)
    current = opened.metadata.current_snapshot_id
    old = [each.snapshot_id for each in opened.snapshots() if each.snapshot_id != current]
    opened.maintenance.expire_snapshots().by_ids(old).commit()
    return paths


@pytest.mark.full
@extras.READERS.needed
def test_duckdb(tmp_path: Path) -> None:
    """Also columns that a file is too old for, and after a change of the schema, a removal and an expiry."""
    paths = table_of_two(sql_place(tmp_path), NAME, tmp_path)
    place = open_catalog(sql_place(tmp_path)).load_table(NAME).metadata_location.removeprefix("file://")
    command = [str(extras.readers_python()), "-c", IN_DUCKDB, place, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    by_table, by_file = json.loads(done.stdout)
    assert sorted(map(by_name, by_table)) == sorted(map(by_name, by_file))
    assert len(by_table) == 4
    assert sum(row["c1"] is not None for row in by_table) == 2


@pytest.mark.large
@pytest.mark.timeout(1800)
@extras.ON_SPARK.needed
def test_spark(rest_catalog: RestCatalogServer, tmp_path: Path) -> None:
    """The same, in the release of Glue 6.0, from a REST catalog."""
    name = f"lake.{tmp_path.name}"
    paths = table_of_two(rest_place(rest_catalog.url), name, tmp_path)
    jars = ",".join(str(path) for path in FOR_SPARK.glob("*.jar"))
    command = [sys.executable, "-c", IN_SPARK, jars, rest_catalog.url, f"lake.{name}", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    by_table, by_file = json.loads(done.stdout.splitlines()[-1])
    assert sorted(by_table) == sorted(by_file)
    assert len(by_table) == 4


def by_name(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)
