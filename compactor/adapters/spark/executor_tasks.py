"""Runs plain Python tasks on Spark's executors."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark.sql import SparkSession

from compactor.adapters.stores import StoreSpec
from compactor.core.errors import CompactorError
from compactor.core.ports import ObjectStore
from compactor.telemetry.error_text import described

T = TypeVar("T")
R = TypeVar("R")


class TaskFailed(Exception):
    """A task met what nobody foresaw. Spark writes its text into logs, so it holds nothing of the data."""


def run_tasks(
    session: SparkSession,
    store: StoreSpec,
    tasks: Sequence[T],
    work: Callable[[ObjectStore, T], R],
    *,
    description: str,
) -> list[R]:
    """Do tasks on the executors, as many at once as there are cores.

    Args:
        session: Where to run.
        store: How executors reach the store.
        tasks: What to do, one Spark task each.
        work: How; a function of a module.
        description: What Spark's pages call it.

    Returns:
        The results, in the order of the tasks.

    Raises:
        CompactorError: What a task raised on purpose, as it raised it.
        PySparkException: What nobody foresaw, as `TaskFailed` in Spark's words.
    """
    context = session.sparkContext
    context.setLocalProperty("spark.job.description", description)

    def attempt(task: T) -> R | CompactorError:
        # Spark would turn an exception into the text of a stack trace; as a value it keeps its kind.
        try:
            return work(store.open(), task)
        except CompactorError as exc:
            return exc
        except Exception as exc:  # noqa: BLE001 - Spark is to try it again, whatever it is
            raise TaskFailed(described(exc)).with_traceback(exc.__traceback__) from None

    results: list[R] = []
    for outcome in context.parallelize(tasks, len(tasks)).map(attempt).collect():
        if isinstance(outcome, CompactorError):
            raise outcome
        results.append(outcome)
    return results
