"""Whether a Spark session can do anything at all. Nothing here raises."""

from collections.abc import Callable

from pyspark.sql import SparkSession


def runs_tasks(session: SparkSession, probe: Callable[[], bool] = lambda: True) -> bool:
    """Whether its executors run Python.

    Args:
        session: Whose.
        probe: What must be true of an executor; a function of a module.
    """
    return _is_true(lambda: session.sparkContext.parallelize([1], 1).map(lambda _: probe()).collect() == [True])


def runs_queries(session: SparkSession) -> bool:
    """Whether its executors run queries."""
    return _is_true(lambda: session.range(1).count() == 1)


def _is_true(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except Exception:  # noqa: BLE001 - whatever it is, the answer is no
        return False
