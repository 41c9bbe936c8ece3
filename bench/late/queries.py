# ruff: noqa: S608 - no text of others is in the queries
"""Ten queries of the table: pyiceberg chooses the files by their partitions and statistics, DuckDB reads them."""

import time
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import median

import duckdb
from pyiceberg.table import Table

TIMES = 3
"""How often each query is run; the median counts."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query.

    Attributes:
        name: What it asks.
        sql: What it asks of the rows, as `t`.
        chosen: Which files have these rows.
    """

    name: str
    sql: str
    chosen: str = "true"


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of a query: how many files were read, how long it took, and the answer."""

    name: str
    files: int
    seconds: float
    answer: str


def queries(day: date) -> list[Query]:
    """The queries about a day of arrival, and the days behind it."""

    def on(first: date, last: date) -> str:
        return f"ts >= '{first}T00:00:00+00:00' and ts < '{last + timedelta(days=1)}T00:00:00+00:00'"

    def within(first: date, last: date) -> str:
        return f"ts >= TIMESTAMPTZ '{first} 00:00:00+00' AND ts < TIMESTAMPTZ '{last + timedelta(days=1)} 00:00:00+00'"

    late, week, user = day - timedelta(days=10), day - timedelta(days=6), "user = 'u0500'"
    return [
        Query("all rows", "SELECT count(*) FROM t"),
        Query("sum of a column", "SELECT sum(amount) FROM t"),
        Query("one key", "SELECT count(*), sum(amount) FROM t WHERE \"user\" = 'u0500'", user),
        Query("frequent keys", 'SELECT "user", count(*) n FROM t GROUP BY 1 ORDER BY n DESC, 1 LIMIT 10'),
        Query("a day", f"SELECT count(*), sum(amount) FROM t WHERE {within(day, day)}", on(day, day)),
        Query("a late day", f"SELECT count(*), sum(amount) FROM t WHERE {within(late, late)}", on(late, late)),
        Query("a week", f"SELECT count(*), sum(amount) FROM t WHERE {within(week, day)}", on(week, day)),
        Query(
            "a key on a late day",
            f"SELECT count(*), sum(amount) FROM t WHERE \"user\" = 'u0500' AND {within(late, late)}",
            f"{user} and {on(late, late)}",
        ),
        Query("rows by day", "SELECT ts::DATE, count(*) FROM t GROUP BY 1 ORDER BY 1"),
        Query("what arrived late", "SELECT count(*), max(amount) FROM t WHERE ts::DATE < file_date"),
    ]


def asked(table: Table, query: Query) -> Asked:
    """Ask a query some times, with the choice of files."""
    times, files, answer = list[float](), 0, ""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for _ in range(TIMES):
            began = time.perf_counter()
            uris = [task.file.file_path for task in table.scan(row_filter=query.chosen).plan_files()]
            listed = ", ".join(f"'{uri}'" for uri in uris)
            source = f"(SELECT * FROM read_parquet([{listed}], union_by_name=true, hive_partitioning=false))"
            answer = str(connection.execute(f"WITH t AS {source} {query.sql}").fetchall())
            times.append(time.perf_counter() - began)
            files = len(uris)
    return Asked(query.name, files, median(times), answer)
