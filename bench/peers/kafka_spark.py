"""Spark's Kafka source as it is usually used: a stream whose batches are parsed and appended as Parquet."""

import os
import shutil
from itertools import count

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from bench.kafka.feeding import TOPIC, Filled
from bench.protocol import parser, time_passes
from tests.support.kafka_broker import FOR_SPARK


def main() -> None:
    """Run the passes in one session, each with a checkpoint of its own. Spark's start is not timed."""
    chosen = parser().parse_args()
    filled = Filled.kept(chosen.input)
    output = str(chosen.output.resolve())
    checkpoints = chosen.output.resolve().with_name("spark-checkpoints")
    shutil.rmtree(checkpoints, ignore_errors=True)
    spark, numbers = session(), count(1)
    schema = StructType([StructField(key, StringType()) for key in filled.keys])

    def write(batch: DataFrame, _: int) -> None:
        rows = batch.select(f.from_json(f.col("value").cast("string"), schema).alias("row")).select("row.*")
        rows.write.mode("append").parquet(output)

    def convert() -> None:
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", filled.servers)
            .option("kafka.isolation.level", "read_committed")
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .load()
        )
        checkpoint = str(checkpoints / str(next(numbers)))
        query = stream.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()

    time_passes(chosen, filled.value_bytes, convert)
    spark.stop()


def session() -> SparkSession:
    """A session with the Kafka source, all cores and 4 GB, otherwise untuned; it listens on this machine only."""
    return (
        SparkSession.builder.master(f"local[{len(os.sched_getaffinity(0))}]")
        .appName("kafka")
        .config("spark.jars", ",".join(str(each) for each in sorted(FOR_SPARK.glob("*.jar"))))
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )


if __name__ == "__main__":
    main()
