"""The usual script: infer, count, cast all to string, cache, count, coalesce, append; with Spark's defaults."""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from bench.protocol import parser, run_passes


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


def main() -> None:
    """Run as a contender."""
    arguments = parser()
    arguments.add_argument("--inferred", action="store_true", help="Neither cast, cache nor count.")
    parsed = arguments.parse_args()
    spark = session()
    chosen = convert_inferred if parsed.inferred else convert
    run_passes(parsed, lambda files, output: chosen(spark, files, output))
    spark.stop()


if __name__ == "__main__":
    main()
