"""The native engine's output in the readers that people use: the same values in each of them."""

import json
from datetime import date, datetime
from pathlib import Path

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.support.extras import NATIVE

NATIVE.need()

TYPES = {
    "l": "long",
    "d": "double",
    "small": "decimal(9,2)",
    "wide": "decimal(38,10)",
    "b": "boolean",
    "day": "date",
    "time": "timestamp",
}
RECORDS = [
    {"s": "é 日本 😀\u0000", "l": -(2**63), "d": -0.0, "small": "1234567.89", "b": True, "day": "0001-01-01"},
    {"s": "", "wide": "-1234567890123456789012345678.0123456789", "time": "9999-12-31T23:59:59.999999Z"},
    {"l": "none", "time": "1583-01-01T00:00:00.000001Z", "day": "1582-10-15", "d": 1e300, "b": False},
    {
        "time": "1969-12-31T23:59:59.999999Z",
        "day": "9999-12-31",
        "l": 2**63 - 1,
        "small": "-0.01",
        "nested": {"a": [1]},
    },
    {},
]


@pytest.mark.parametrize("engine", ["native"])
@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_pyarrow_duckdb_and_spark_read_the_same(new_workspace, spark, compression):
    """Names, types and values, rescued data and metadata columns included."""
    metadata = ["_source_file", "_processed_at", "_manifest_id"]
    workspace = new_workspace(columns=TYPES, schema={"metadata_columns": metadata}, output={"compression": compression})
    lines = b"\n".join(json.dumps(record).encode() for record in RECORDS * 50)
    compacted = workspace.compact({"a b?.ndjson": lines})
    (output,) = compacted.commit.outputs
    table = pq.read_table(output.final)
    by_arrow = _shown([tuple(row.values()) for row in table.to_pylist()])
    # Python's own types hold neither these times nor these maps as the readers give them, so all compare as text.
    names = ", ".join(_as_text(name, kind) for name, kind in zip(table.schema.names, table.schema.types, strict=True))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute(f"SELECT {names} FROM read_parquet('{output.final}')").fetchall()  # noqa: S608
    assert _shown(found) == by_arrow
    frame = spark.read.parquet(output.final)
    assert frame.columns == table.schema.names
    assert _shown(map(tuple, frame.selectExpr(*names.split(", ")).collect())) == by_arrow


def _as_text(name: str, kind: object) -> str:
    """A column as something that Python can hold, for DuckDB and Spark alike."""
    return f"CAST({name} AS STRING)" if str(kind).startswith(("date", "timestamp")) else name


def _shown(rows) -> list[str]:
    return sorted(repr(tuple(map(_plain, row))) for row in rows)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return _without_zeros(value.isoformat(" ").removesuffix("+00:00"))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, list):
        return sorted(map(tuple, value))
    return _without_zeros(value.removesuffix("+00")) if isinstance(value, str) else value


def _without_zeros(text: str) -> str:
    """Readers differ in how many digits of a second they show."""
    return text.rstrip("0") if "." in text else text


@pytest.mark.parametrize("engine", ["native"])
def test_files_have_statistics_and_small_footers(new_workspace):
    """Readers can skip row groups, and a value of megabytes is not in the footer as well."""
    workspace = new_workspace()
    lines = b"\n".join(b'{"id":"%06d","kind":"k%d","huge":"%s"}' % (at, at % 3, b"x" * 100_000) for at in range(200))
    (output,) = workspace.compact({"a": lines}).commit.outputs
    footer = pq.read_metadata(output.final)
    by_name = {footer.row_group(0).column(at).path_in_schema: footer.row_group(0).column(at) for at in range(3)}
    assert (by_name["id"].statistics.min, by_name["id"].statistics.max) == ("000000", "000199")
    assert by_name["kind"].has_dictionary_page
    assert by_name["kind"].statistics.null_count == 0
    assert footer.serialized_size < 2_000


@pytest.mark.parametrize("engine", ["native"])
def test_every_reader_knows_the_bounds_of_doubles(new_workspace, spark):
    """Footers say -0 to 1.5, and a reader that skips row groups by this finds the zero, which is both 0 and -0."""
    workspace = new_workspace(columns={"d": "double"})
    (output,) = workspace.compact({"a": b'{"d":1.5}\n{"d":0.0}\n{}\n'}).commit.outputs
    found = pq.read_metadata(output.final).row_group(0).column(0).statistics
    assert (str(found.min), found.max, found.null_count) == ("-0.0", 1.5, 1)
    with duckdb.connect() as connection:
        bounds = "SELECT stats_min_value, stats_max_value FROM parquet_metadata(?) WHERE column_id = 0"
        assert connection.execute(bounds, [output.final]).fetchall() == [("-0.0", "1.5")]
        rows = "SELECT count(*) FROM read_parquet(?) WHERE d = ?"
        assert connection.execute(rows, [output.final, -0.0]).fetchone() == (1,)
    known = _by_parquet_java(spark, output.final)
    assert (str(known.genericGetMin()), known.genericGetMax(), known.getNumNulls()) == ("-0.0", 1.5, 1)
    assert spark.read.parquet(output.final).where("d = double(-0.0)").count() == 1
    assert ds.dataset(output.final).count_rows(filter=ds.field("d") == -0.0) == 1


def _by_parquet_java(spark, path):
    """The statistics of the first column as Spark reads them."""
    java = spark._jvm
    conf = spark._jsc.hadoopConfiguration()
    file = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(java.org.apache.hadoop.fs.Path(path), conf)
    reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        return reader.getFooter().getBlocks().get(0).getColumns().get(0).getStatistics()
    finally:
        reader.close()


@pytest.mark.parametrize(
    ("engine", "last"),
    [
        ("spark", "\U0010ffff"),
        ("native", "\U0010ffff"),
        ("native", "\x7f"),
        pytest.param("spark", "\x7f", marks=pytest.mark.full),
    ],
    indirect=["engine"],
)
def test_what_describes_a_file_is_small_whatever_its_values_are(new_workspace, last):
    """Neither engine keeps a long maximum of which no character can be counted up, in footer or page index."""
    lines = b"\n".join(b'{"huge":"%s"}' % (last.encode() * 100_000) for _ in range(50))
    (output,) = new_workspace().compact({"a": lines}).commit.outputs
    footer = pq.read_metadata(output.final)
    data = sum(footer.row_group(at).column(0).total_compressed_size for at in range(footer.num_row_groups))
    assert Path(output.final).stat().st_size < data + 5_000
