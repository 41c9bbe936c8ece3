"""Spark's daemon of Python workers, which loads what tasks need before it forks the first worker.

Else each worker loads it at its first task, and Spark ends workers that were idle for a minute.
"""

import gc
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from pyspark import daemon


def main(load_more: Callable[[], None] = lambda: None) -> None:
    """Load the tasks of both engines, and fork workers until Spark ends this process.

    Args:
        load_more: Loads what else they need.
    """
    for tasks in ("bin_workers", "inspection_tasks"):
        with suppress(ImportError):  # the task that needs what is missing then fails and names it, as no daemon can
            import_module(f"compactor.adapters.spark.tasks.{tasks}")
    with suppress(Exception):  # the first task that makes a client fails, and says why
        load_more()
    gc.freeze()  # a worker that collects garbage would go through what all of them share, and so copy it
    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
