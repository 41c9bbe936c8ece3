"""Runs the inspect step on Spark's executors: plain Python tasks that read the files themselves."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from compactor.adapters.spark.executor_tasks import run_tasks
from compactor.adapters.stores import StoreSpec
from compactor.core.manifest import Manifest
from compactor.core.packing import spread
from compactor.engines.input_files import InspectTask, InspectTaskResult, inspect_files
from compactor.ndjson.file_walk import OnChangedFile
from compactor.ndjson.inspection import Discovery
from compactor.ndjson.lines import Limits

TASKS_PER_CORE = 3
"""More tasks than cores even out files of different cost; many more would only cost task starts."""


@dataclass(frozen=True, slots=True)
class InspectRules:
    """The settings that inspection depends on."""

    limits: Limits
    on_changed_file: OnChangedFile


def inspect_on_executors(
    session: SparkSession,
    store: StoreSpec,
    manifest: Manifest,
    staging: str,
    rules: InspectRules,
    *,
    discovery: Discovery,
    refused: Mapping[int, frozenset[bytes]],
) -> list[InspectTaskResult]:
    """Inspect all files of a manifest.

    Args:
        session: Where to run.
        store: How executors reach the store.
        manifest: What to inspect.
        staging: The folder for rejects and repaired copies; it ends with `/`.
        rules: Limits.
        discovery: Whether lines are parsed, or only counted.
        refused: Lines to be rejected although inspection would take them, by the index of their file.

    Raises:
        CompactorError: What a task raised on purpose, as it raised it.
    """
    numbered = list(enumerate(manifest.files))
    shares = spread(
        numbered, session.sparkContext.defaultParallelism * TASKS_PER_CORE, lambda entry: entry[1].weight_bytes
    )
    tasks = [
        InspectTask(
            manifest_id=manifest.manifest_id,
            files=tuple(share),
            staging=staging,
            limits=rules.limits,
            on_changed_file=rules.on_changed_file,
            discovery=discovery,
            refused={index: refused[index] for index, _ in share if index in refused},
            task_number=number,
        )
        for number, share in enumerate(shares)
    ]
    description = f"inspect {manifest.manifest_id}"
    return run_tasks(session, store, tasks, inspect_files, description=description)
