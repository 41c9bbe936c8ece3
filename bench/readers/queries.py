# ruff: noqa: S608 - no text of others is in the queries
"""Ten questions, and how DuckDB, polars, pyarrow and Spark are asked."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

_TEXTS = ("id", "session", "agent", "page", "referrer", "custom_data", "received_at", "ip")


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        sql: As SQL, of a table `t`.
        arrow: The same as an expression, of a dataset.
    """

    name: str
    sql: str
    arrow: Callable[[ds.Dataset], Any]


def questions(file: Path) -> list[Question]:
    """The questions, of rows in the middle of a file."""
    times = pq.read_table(file, columns=["id", "time"])
    middle = times.slice(times.num_rows // 2, 1).to_pylist()[0]
    wanted, begin = middle["id"], middle["time"].astimezone(UTC)

    def within(minutes: int) -> tuple[str, pc.Expression]:
        end = begin + timedelta(minutes=minutes)
        time = ds.field("time")
        return f"time >= {_sql(begin)} AND time < {_sql(end)}", (time >= begin) & (time < end)

    (half_hour, in_half_hour), (moment, in_moment) = within(30), within(5)

    def total(data: ds.Dataset, name: str, rows: pc.Expression | None = None) -> object:
        return pc.sum(data.to_table(columns=[name], filter=rows)[name])

    def grouped(data: ds.Dataset, name: str) -> object:
        return data.to_table(columns=[name]).group_by(name).aggregate([(name, "count")])

    counted = ", ".join(f"count({name})" for name in _TEXTS)
    return [
        Question("a row by its id", f"SELECT * FROM t WHERE id = '{wanted}'",
                 lambda data: data.to_table(filter=ds.field("id") == wanted)),
        Question("a sum over half an hour", f"SELECT sum(price) FROM t WHERE {half_hour}",
                 partial(total, name="price", rows=in_half_hour)),
        Question("all rows of five minutes", f"SELECT * FROM t WHERE {moment}",
                 lambda data: data.to_table(filter=in_moment)),
        Question("a column of numbers", "SELECT sum(price) FROM t", partial(total, name="price")),
        Question("a column of texts", "SELECT max(length(page)) FROM t",
                 lambda data: pc.max(pc.utf8_length(data.to_table(columns=["page"])["page"]))),
        Question("a count", "SELECT count(*) FROM t", lambda data: data.count_rows()),
        Question("a count of some", "SELECT count(*) FROM t WHERE country = 'ES'",
                 lambda data: data.count_rows(filter=ds.field("country") == "ES")),
        Question("few groups", "SELECT country, count(*) FROM t GROUP BY country", partial(grouped, name="country")),
        Question("many groups", "SELECT visitor, count(*) FROM t GROUP BY visitor", partial(grouped, name="visitor")),
        Question("most columns", f"SELECT {counted} FROM t", lambda data: data.to_table(columns=list(_TEXTS))),
    ]  # fmt: skip


def _sql(time: datetime) -> str:
    return f"TIMESTAMPTZ '{time:%Y-%m-%d %H:%M:%S}+00'"


def ask_duckdb(question: Question, file: Path) -> pa.Table:
    """Its answer is a table of Arrow."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.read_parquet(str(file)).create_view("t")
        return connection.sql(question.sql).to_arrow_table()


def ask_polars(question: Question, file: Path) -> pl.DataFrame:
    """Lazily, so that it reads only what it needs."""
    sql = re.sub(r"TIMESTAMPTZ '([^+]+)\+00'", r"CAST('\1+0000' AS TIMESTAMPTZ)", question.sql)
    return pl.SQLContext(t=pl.scan_parquet(file)).execute(sql).collect()


def ask_pyarrow(question: Question, file: Path) -> Any:
    """By its dataset, which reads in several threads."""
    return question.arrow(ds.dataset(file))


def ask_spark(spark: SparkSession, question: Question, file: Path) -> None:
    """The answer goes nowhere."""
    spark.read.parquet(str(file)).createOrReplaceTempView("t")
    spark.sql(question.sql.replace("TIMESTAMPTZ", "TIMESTAMP")).write.format("noop").mode("overwrite").save()


def readers(spark: SparkSession) -> dict[str, Callable[[Question, Path], object]]:
    """The readers by name."""
    pa.set_cpu_count(2)
    return {"duckdb": ask_duckdb, "polars": ask_polars, "pyarrow": ask_pyarrow, "spark": partial(ask_spark, spark)}
