"""The files: one of the compactor, and its rows as DuckDB, Spark and pyarrow write them."""

import shutil
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.inputs import Input
from compactor import compact

WRITERS = ("compactor", "duckdb", "spark", "pyarrow")


def ensure_files(work: Path, made: Input, spark: SparkSession) -> dict[str, Path]:
    """Make the files, each with all rows in their order, in the writer's own row groups; by writer.

    Args:
        work: A folder for them.
        made: The input.
        spark: Writes one of them.
    """
    for old in (work / "rows", work / "rows.compactor"):
        shutil.rmtree(old, ignore_errors=True)
    compact(made.folder, work / "rows", types="infer")
    [own] = (work / "rows").rglob("*.parquet")
    files = {name: work / f"{name}.parquet" for name in WRITERS}
    shutil.copyfile(own, files["compactor"])
    duckdb.sql(f"COPY (FROM '{own}') TO '{files['duckdb']}' (FORMAT parquet, COMPRESSION snappy)")
    pq.write_table(pq.read_table(own), files["pyarrow"], compression="snappy", write_page_index=True)
    spark.read.parquet(str(own)).coalesce(1).write.mode("overwrite").parquet(str(work / "spark"))
    [by_spark] = (work / "spark").glob("*.parquet")
    shutil.copyfile(by_spark, files["spark"])
    return files
