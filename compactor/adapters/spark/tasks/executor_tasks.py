"""Runs plain Python tasks on Spark's executors."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark.sql import SparkSession

from compactor.adapters.spark.failures import TaskFailed
from compactor.adapters.stores import StoreSpec
from compactor.core.errors import CompactorError
from compactor.core.ports import ObjectStore
from compactor.telemetry.error_text import described

T = TypeVar("T")
R = TypeVar("R")


def run_tasks(
    session: SparkSession,
    store: StoreSpec,
    tasks: Sequence[T],
    work: Callable[[ObjectStore, T], R],
    *,
    description: str,
) -> list[R]:
    """Run tasks on the executors, as many at once as there are cores; returns the results in the order of the tasks.

    `work` has to be a function at module level, so that it can be pickled. Spark's UI shows the description.

    Raises:
        CompactorError: The error of a task, unchanged.
        PySparkException: An unexpected error of a task; its text has the `TaskFailed`.
    """
    context = session.sparkContext
    context.setLocalProperty("spark.job.description", description)

    def attempt(task: T) -> R | CompactorError:
        # Spark would turn an exception into the text of a stack trace; as a value it keeps its type.
        try:
            return work(store.open(), task)
        except CompactorError as exc:
            return exc
        except Exception as exc:  # noqa: BLE001 - Spark retries the task after any error
            raise TaskFailed(described(exc)).with_traceback(exc.__traceback__) from None

    results: list[R] = []
    for outcome in context.parallelize(tasks, len(tasks)).map(attempt).collect():
        if isinstance(outcome, CompactorError):
            raise outcome
        results.append(outcome)
    return results
