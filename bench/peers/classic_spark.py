"""The usual script: infer, count, cast all to string, cache, count, coalesce, append; with Spark's defaults.

Also the same with fewer of these steps.
"""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from bench.protocol import first_keys, parser, run_passes


def session() -> SparkSession:
    """A Spark session with all cores and 4 GB for the driver, otherwise untuned; it listens on this machine only."""
    return (
        SparkSession.builder.master("local[*]")
        .appName("classic")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )


def convert(spark: SparkSession, files: Sequence[Path], output: Path) -> None:
    """Convert the files in one batch."""
    frame = spark.read.json([str(file) for file in files])
    frame = frame.withColumn("source_file", f.input_file_name()).withColumn("processed_at", f.current_timestamp())
    rows = frame.count()
    frame = frame.select([f.col(name).cast("string").alias(name) for name in frame.columns]).cache()
    frame.count()
    frame.coalesce(max(1, rows // 1024 // 128)).write.mode("append").parquet(str(output))
    frame.unpersist()


def convert_inferred(spark: SparkSession, files: Sequence[Path], output: Path) -> None:
    """Convert the files in one batch, with the types that Spark infers and nothing else."""
    spark.read.json([str(file) for file in files]).write.mode("append").parquet(str(output))


def convert_columns(spark: SparkSession, files: Sequence[Path], output: Path) -> None:
    """Convert the files in one batch, with the keys of the first lines as columns: the least that Spark can do."""
    columns = StructType([StructField(key, StringType()) for key in first_keys(files[0])])
    frame = spark.read.schema(columns).json([str(file) for file in files])
    frame.coalesce(spark.sparkContext.defaultParallelism).write.mode("append").parquet(str(output))


_WAYS = {"classic": convert, "inferred": convert_inferred, "columns": convert_columns}


def main() -> None:
    """Run as a contender."""
    arguments = parser()
    arguments.add_argument("--way", choices=_WAYS, default="classic")
    parsed = arguments.parse_args()
    spark = session()
    run_passes(parsed, lambda files, output: _WAYS[parsed.way](spark, files, output))
    spark.stop()


if __name__ == "__main__":
    main()
