"""Checks whether a Spark session still works. Nothing here raises."""

from collections.abc import Callable

from pyspark.sql import SparkSession


def runs_tasks(session: SparkSession, probe: Callable[[], bool] = lambda: True) -> bool:
    """Whether the executors run Python, and a probe there, a function at module level, returns true."""
    return _is_true(lambda: session.sparkContext.parallelize([1], 1).map(lambda _: probe()).collect() == [True])


def runs_queries(session: SparkSession) -> bool:
    """Whether the executors run queries."""
    return _is_true(lambda: session.range(1).count() == 1)


def _is_true(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except Exception:  # noqa: BLE001 - after any error, the answer is no
        return False
