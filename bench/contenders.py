"""The contenders of the benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

BASELINE = "classic"
"""The contender that the others are compared with."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of the table.

    Attributes:
        name: The name in the table and for `--only`.
        module: Run as `python -m MODULE --input DIR --output DIR --passes N`; see `bench.protocol`.
        args: Further arguments for the module.
        needs: Packages without which it cannot run.
        engine: The engine of this project that it measures, as settings name it; None for anything else.
        said: How it converts, with its options, as the scoreboard prints it; empty for those it leaves out.
        dirty_args: Further arguments for input with lines that are not JSON.
        python: The Python that has its packages; None for this one.
    """

    name: str
    module: str
    args: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    engine: Literal["native", "spark"] | None = None
    said: str = ""
    dirty_args: tuple[str, ...] = ()
    python: Path | None = None

    def missing(self) -> list[str]:
        """The packages that this contender needs and that are not installed."""
        if self.python is not None:
            return [] if self.python.exists() else list(self.needs)
        return [name for name in (*self.needs, self.module) if find_spec(name) is None]


_COMPACTOR = "bench.peers.compactor_run"
_IGNORE = ("--ignore-errors",)
_DUCKDB_COPY = (
    "`COPY (SELECT * FROM {}) TO ... (FORMAT parquet, COMPRESSION snappy, FILE_SIZE_BYTES 134217728)`, "
    "`preserve_insertion_order = false`, all cores; on the dirty set `ignore_errors = true`"
)
_CLICKHOUSE = (
    "chdb: `INSERT INTO FUNCTION file(..., 'Parquet') SELECT * FROM file('*', 'JSONEachRow'{})`, snappy; on the dirty "
    "set `input_format_allow_errors_ratio = 0.1` and `input_format_record_errors_file_path`"
)

CONTENDERS = (
    Contender(
        "classic",
        "bench.peers.classic_spark",
        needs=("pyspark",),
        said="`spark.read.json`, all columns cast to string, cached, counted, coalesced, appended; local[*], 4 GB",
    ),
    Contender(
        "compactor_native",
        _COMPACTOR,
        ("--engine", "native"),
        needs=("pyspark", "compactor_native"),
        engine="native",
        said="the job on Spark: one manifest of all files, inspected to committed, with `convert.engine = native`",
    ),
    Contender(
        "compactor_spark",
        _COMPACTOR,
        ("--engine", "spark"),
        needs=("pyspark",),
        engine="spark",
        said="the same with `convert.engine = spark`",
    ),
    Contender("compactor_declared", _COMPACTOR, ("--engine", "spark", "--discovery", "declared"), needs=("pyspark",)),
    Contender("spark_columns", "bench.peers.classic_spark", ("--way", "columns"), needs=("pyspark",)),
    Contender(
        "duckdb_columns",
        "bench.peers.duckdb_copy",
        ("--read", "columns"),
        needs=("duckdb",),
        said=_DUCKDB_COPY.format(
            "read_json(..., format = 'newline_delimited', columns = {each key of the first ten lines: 'VARCHAR'})"
        ),
        dirty_args=_IGNORE,
    ),
    Contender(
        "duckdb_union",
        "bench.peers.duckdb_copy",
        ("--read", "union"),
        needs=("duckdb",),
        said=_DUCKDB_COPY.format(
            "read_json_auto(..., format = 'newline_delimited', sample_size = -1, union_by_name = true)"
        ),
        dirty_args=_IGNORE,
    ),
    Contender(
        "polars",
        "bench.peers.polars_scan",
        needs=("polars",),
        said="`scan_ndjson(..., infer_schema_length=None).sink_parquet(..., compression='snappy', engine='streaming')`"
        "; on the dirty set `ignore_errors=True`",
        dirty_args=_IGNORE,
    ),
)
"""The contenders of `make bench`."""

CLICKHOUSE = (
    Contender(
        "clickhouse_columns",
        "bench.peers.clickhouse_insert",
        ("--read", "columns"),
        needs=("chdb",),
        said=_CLICKHOUSE.format(", 'each key of the first ten lines Nullable(String)'"),
        dirty_args=_IGNORE,
    ),
    Contender(
        "clickhouse_union",
        "bench.peers.clickhouse_insert",
        ("--read", "union"),
        needs=("chdb",),
        said=_CLICKHOUSE.format("") + "; `schema_inference_mode = 'union'`",
        dirty_args=_IGNORE,
    ),
)
"""These need an environment of their own."""

SCOREBOARD = (
    Contender(
        "compactor",
        "bench.peers.compact_folder",
        needs=("compactor_native",),
        said="`compactor.compact(..., engine='native')` into an empty folder as the command does it, without Spark",
    ),
    *(each for each in CONTENDERS if each.said),
    Contender(
        "spark",
        "bench.peers.classic_spark",
        ("--way", "inferred"),
        needs=("pyspark",),
        said="`spark.read.json(...).write.parquet(...)`; local[*], 4 GB",
    ),
    Contender(
        "pyarrow",
        "bench.peers.pyarrow_json",
        needs=("pyarrow",),
        said='`pyarrow.json.read_json` of each file, `concat_tables(promote_options="permissive")`, `write_table`, '
        "snappy; it has no option for the dirty set",
    ),
    *CLICKHOUSE,
)
"""The contenders of `make scoreboard`."""


def choose(only: str | None, among: Sequence[Contender] = CONTENDERS) -> tuple[Contender, ...]:
    """Choose contenders, in their order.

    Args:
        only: Names separated by commas; None for all.
        among: Those that there are.

    Raises:
        ValueError: There is no contender of such a name.
    """
    if only is None:
        return tuple(among)
    wanted = {name.strip() for name in only.split(",")}
    unknown = sorted(wanted - {contender.name for contender in among})
    if unknown:
        names = ", ".join(contender.name for contender in among)
        raise ValueError(f"no contender called {', '.join(unknown)}: expected some of {names}")
    return tuple(contender for contender in among if contender.name in wanted)
