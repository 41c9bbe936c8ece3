"""A schema that grows: new columns, types and rescued data, read together by every reader with the right values."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from compactor.adapters.spark.conversion import ConvertTask, convert
from compactor.wiring.app import App
from tests.support.engine_workspace import EngineWorkspace, schema_file
from tests.support.parquet_ids import field_ids

TYPES = {
    "n": "long",
    "price": "decimal(20,2)",
    "at": "timestamp seconds",
    "day": "date",
    "ok": "boolean",
    "x": "double",
}

EXPECTED = [
    {"id": "1", "a": "old"},
    {"id": "2", "n": 9223372036854775807, "price": "1.10", "at": -62135596800000000, "day": "0001-01-01", "ok": True},
    {"id": "3", "a": "mid", "price": "100.00", "at": 1700000000500000, "day": "1500-03-01", "ok": False, "x": -0.0},
    {"id": "4", "a": "no", "at": -14825808000000001, "x": 1e-300}
    | {"_rescued_data": {"day": "2023-02-29", "n": "1.0", "ok": "", "price": "1.105"}},
    {"id": "5", "n": 5, "late": "[1 ,2]"},
    {"id": "6", "late": "", "_rescued_data": {"beyond": "1.10", "n": "?"}},
]
"""What all readers have to see, without nulls: decimals and dates as text, timestamps as microseconds since 1970."""


def with_file(workspace: EngineWorkspace, columns: Mapping[str, str]) -> EngineWorkspace:
    """The same places, for an app that has a schema file."""
    settings = workspace.app.settings
    file = Path(settings.paths.state).parent / "columns.toml"
    file.write_text(schema_file(columns))
    return replace(workspace, app=App(replace(settings, schema=settings.schema.model_copy(update={"file": str(file)}))))


def test_files_of_all_versions_are_read_together(new_workspace, spark):
    """Before and after columns, types and rescued data came, DuckDB, Spark and pyarrow see one table."""
    before = new_workspace(schema={"max_columns": 9})
    commits = [before.compact({"1": b'{"id":1,"a":"old"}'}, "m1").commit]
    workspace = with_file(before, TYPES)
    lines = [
        b'{"id":2,"n":9223372036854775807,"price":1.100,"at":"0001-01-01T00:00:00Z","day":"0001-01-01","ok":true}',
        b'{"id":3,"a":"mid","price":1e2,"at":1700000000.5,"day":"1500-03-01","ok":"false","x":-0}',
        (
            b'{"id":4,"a":"no","n":1.0,"price":1.105,"day":"2023-02-29","ok":"","x":1e-300,'
            b'"at":"1500-03-10 23:59:59.999999Z"}'
        ),
    ]
    commits.append(workspace.compact({"2": b"\n".join(lines)}, "m2").commit)
    later = b'{"id":5,"n":5,"late":[1 ,2]}\n{"id":6,"n":"?","late":"","beyond":1.10}'
    commits.append(workspace.compact({"3": later}, "m3").commit)
    assert [commit.schema_version for commit in commits] == [1, 2, 3]
    assert [commit.rescued_values for commit in commits] == [0, 4, 1]
    paths = [file.final for commit in commits for file in commit.outputs]
    for read in (_by_duckdb, _by_pyarrow, lambda paths: _by_spark(spark, paths)):
        found = sorted(read(paths), key=lambda row: row["id"])
        assert [repr(sorted(row.items())) for row in found] == [repr(sorted(row.items())) for row in EXPECTED]
    _check_footers(paths[1])


def test_spark_reads_no_keys_of_columns_that_came_later(new_workspace, engine, monkeypatch):
    """Columns that only other manifests need are null, with their types; lines with such a key have its value."""
    read: list[tuple[str, ...]] = []

    def noted(session: SparkSession, task: ConvertTask) -> int | None:
        read.append(task.column_keys)
        return convert(session, task)

    monkeypatch.setattr("compactor.adapters.spark.engine.convert", noted)
    monkeypatch.setattr("compactor.adapters.spark.engine.CELLS_PER_BYTE", 1_000)  # else Python makes such rows
    before = new_workspace(schema={"metadata_columns": [], "names": "exact"})
    before.compact({"1": b'{"id":"1","a":"old"}'}, "m1")
    workspace = with_file(before, {"n": "long", "day": "date"})
    wide = {"A": "1", "a.`b": "2", **{f"k{number}": "wide" for number in range(50)}}
    workspace.compact({"2": orjson.dumps(wide)}, "m2")
    columns = workspace.app.registry.latest().columns
    every = tuple(column.key for column in columns if column.key is not None)
    rows = [({"a": "x"}, ("id", "a")), ({"a": "y", "k7": "z"}, every), ({"n": 5}, every), ({}, every)]
    for number, (row, keys) in enumerate(rows, 3):
        compacted = workspace.compact({str(number): orjson.dumps(row)}, f"m{number}")
        assert compacted.rows == [dict.fromkeys((column.name for column in columns), None) | row]
        assert read[-1:] == ([keys] if engine == "spark" else [])
        (output,) = compacted.commit.outputs
        assert pq.read_schema(output.final).field("n").type == pa.int64()
        assert field_ids(output.final).items() >= {column.name: column.field_id for column in columns}.items()


def _by_duckdb(paths: Sequence[str]) -> list[dict[str, Any]]:
    listed = ", ".join(f"'{path}'" for path in paths)
    rows = duckdb.sql(
        'SELECT * REPLACE (epoch_us("at") AS "at", price::VARCHAR AS price, day::VARCHAR AS day)'  # noqa: S608 - our own names
        f" FROM read_parquet([{listed}], union_by_name = true)"
    )
    names = [each[0] for each in rows.description]
    return [_without_nulls(dict(zip(names, row, strict=True))) for row in rows.fetchall()]


def _by_spark(spark: Any, paths: Sequence[str]) -> list[dict[str, Any]]:
    rows = spark.read.option("mergeSchema", "true").parquet(*paths)
    shown = {"at": F.unix_micros("at"), "price": F.col("price").cast("string"), "day": F.col("day").cast("string")}
    return [_without_nulls(row.asDict()) for row in rows.withColumns(shown).collect()]


def _by_pyarrow(paths: Sequence[str]) -> list[dict[str, Any]]:
    schema = pa.unify_schemas([pq.read_schema(path) for path in paths])
    table = ds.dataset(list(paths), schema=schema).to_table()
    at = table.schema.get_field_index("at")
    table = table.set_column(at, "at", table["at"].cast(pa.int64()))
    rows = [_without_nulls(row) for row in table.to_pylist()]
    return [{key: str(value) if key in {"price", "day"} else value for key, value in row.items()} for row in rows]


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    present = {key: value for key, value in row.items() if value is not None}
    if "_rescued_data" in present:
        present["_rescued_data"] = dict(sorted(dict(present["_rescued_data"]).items()))
    return present


def _check_footers(path: str) -> None:
    """Timestamps are INT64 microseconds in UTC, which no reader takes for local time; never INT96."""
    schema = pq.ParquetFile(path).schema
    columns = {schema.column(at).name: schema.column(at) for at in range(len(schema))}
    assert columns["at"].physical_type == "INT64"
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(columns["at"].logical_type)
    assert {name: columns[name].physical_type for name in ("n", "day", "ok", "x")} == {
        "n": "INT64", "day": "INT32", "ok": "BOOLEAN", "x": "DOUBLE",
    }  # fmt: skip
