"""Runs Python tasks on Spark's executors: bins of the native engine, and file inspection."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pyspark.sql import SparkSession

from compactor.adapters.local.links import OwnFolders
from compactor.adapters.local.native.kernel import NativeKernel
from compactor.adapters.local.native.module import is_installed
from compactor.adapters.spark.failures import TaskFailed, translated
from compactor.adapters.stores import StoreSpec
from compactor.core.documents.manifest import Manifest
from compactor.core.errors import CompactorError
from compactor.core.logs.names import is_log
from compactor.core.ports import ObjectStore
from compactor.core.rules.packing import spread
from compactor.engines.engine import EngineRules, RowPlan
from compactor.engines.native.bin_task import BinResult, BinTask, write_bin
from compactor.engines.spark.input_files import InspectTask, InspectTaskResult, inspect_files
from compactor.engines.task_results import ManifestResults
from compactor.ndjson.inspection import Discovery
from compactor.schema.schema import KeyLimits
from compactor.telemetry.error_text import described


def runs_tasks(session: SparkSession, probe: Callable[[], bool] = lambda: True) -> bool:
    """Whether the executors run Python, and a probe there, a module-level function, returns true."""
    return _is_true(lambda: session.sparkContext.parallelize([1], 1).map(lambda _: probe()).collect() == [True])


def runs_queries(session: SparkSession) -> bool:
    """Whether the executors run queries."""
    return _is_true(lambda: session.range(1).count() == 1)


def _is_true(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except Exception:  # noqa: BLE001 - after any error, the answer is no
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkBinWorkers:
    """`compactor.engines.native.engine.BinWorkers` on Spark; executors open the store by its specification."""

    session: SparkSession
    store_spec: StoreSpec

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:
        with translated(manifest_id):
            return run_tasks(self.session, self.store_spec, tasks, _write, description=f"compact {manifest_id}")

    def are_healthy(self) -> bool:
        return runs_tasks(self.session, is_installed)


def _write(store: ObjectStore, task: BinTask) -> BinResult:
    return write_bin(store, task, partial(NativeKernel, threads=1))  # Spark gives a task one processor


TASKS_PER_CORE = 3
"""More tasks than cores balance files of different cost; many more would only add task starts."""


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """How inspection handles keys."""

    known: frozenset[str]  # the keys that have a column
    limits: KeyLimits  # which other keys to collect
    rows: RowPlan | None = None  # if not None, inspection makes the rows as well
    tasks: int = 0  # the most tasks; 0 for a number per core


class Inspection(ManifestResults[InspectTaskResult]):
    """All inspected files of a manifest."""

    @property
    def present_keys(self) -> frozenset[str]:
        """The keys with a column that some record may have."""
        return frozenset[str]().union(*(task.present_keys for task in self.tasks))

    @property
    def sources(self) -> dict[str, str]:
        """The URIs for Spark to read, each with its input file's URI."""
        return {file.readable_uri: file.report.origin_uri for file in self.files if file.readable_uri is not None}

    @property
    def decoded_bytes(self) -> int:
        return sum(file.report.decoded_bytes for file in self.files if file.readable_uri is not None)


def inspect_on_executors(
    session: SparkSession,
    store: StoreSpec,
    manifest: Manifest,
    staging: str,
    rules: EngineRules,
    *,
    keys: KeyPlan,
    discovery: Discovery,
    refused: Mapping[int, frozenset[bytes]],
) -> Inspection:
    """Inspect all files of a manifest, and stage rejects and repaired copies.

    `refused` has lines to reject although inspection would accept them, by file index. Spark opens local files by name,
    and does not check where links lead. So for files in other users' folders, and for Kafka ranges, it gets copies of
    the inspected data.

    Raises:
        CompactorError: A task's error, unchanged.
    """
    numbered = list(enumerate(manifest.files))
    own = OwnFolders(store.confined)
    copied = (index for index, file in numbered if is_log(file.uri) or not own.hold(file.uri))
    refused = {**dict.fromkeys(copied, frozenset[bytes]()), **refused}
    most_tasks = keys.tasks or session.sparkContext.defaultParallelism * TASKS_PER_CORE
    shares = spread(numbered, most_tasks, lambda entry: entry[1].weight_bytes)
    tasks = [
        InspectTask(
            manifest_id=manifest.manifest_id,
            files=tuple(share),
            staging=staging,
            rules=rules,
            discovery=discovery,
            refused={index: refused[index] for index, _ in share if index in refused},
            task_number=number,
            known_keys=keys.known,
            key_limits=keys.limits,
            rows=keys.rows,
        )
        for number, share in enumerate(shares)
    ]
    return Inspection(run_tasks(session, store, tasks, inspect_files, description=f"inspect {manifest.manifest_id}"))


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
    """Run tasks on the executors, one per core at a time; return the results in task order.

    `work` must be a module-level function, so that it can be pickled. Spark's UI shows the description.

    Raises:
        CompactorError: A task's error, unchanged.
        PySparkException: A task's unexpected error; its text has the `TaskFailed`.
    """
    context = session.sparkContext
    context.setLocalProperty("spark.job.description", description)

    def attempt(task: T) -> R | CompactorError:
        # Spark would turn an exception into a stack trace text; as a value it keeps its type.
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
