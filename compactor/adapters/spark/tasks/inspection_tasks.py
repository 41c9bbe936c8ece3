"""Inspects files on Spark's executors, in plain Python tasks that read the files themselves."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from compactor.adapters.local.own_folders import OwnFolders
from compactor.adapters.spark.tasks.executor_tasks import run_tasks
from compactor.adapters.stores import StoreSpec
from compactor.core.documents.manifest import Manifest
from compactor.core.inputs.topics_and_streams import is_topic_or_stream
from compactor.core.rules.packing import spread
from compactor.engines.engine import EngineRules
from compactor.engines.spark.input_files import InspectedFile, InspectTask, inspect_files
from compactor.engines.spark.made_rows import RowsPlan
from compactor.ndjson.inspection import Discovery
from compactor.schema.schema import KeyLimits, first_sources

TASKS_PER_CORE = 3
"""More tasks than cores balance files of different cost; many more would only add task starts."""


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """What inspection does with keys."""

    known: frozenset[str]  # the keys that have a column
    limits: KeyLimits  # which other keys to collect
    rows: RowsPlan | None = None  # if not None, inspection makes the rows as well
    tasks: int = 0  # the most tasks; 0 for some of each core


@dataclass(frozen=True, slots=True)
class Inspection:
    """All inspected files of a manifest.

    Attributes:
        rejects: URIs of the staged Parquet files of rejects.
        keys: The collected keys without a column in first-seen order, with the URI of the first file that has each.
        present_keys: The keys with a column that some record may have.
        outputs: URIs of the staged Parquet files of rows, if inspection makes them.
        rescued_values: The values in them that do not fit the type of their column.
    """

    files: tuple[InspectedFile, ...]
    rejects: tuple[str, ...]
    keys: Mapping[str, str]
    present_keys: frozenset[str]
    outputs: tuple[str, ...]
    rescued_values: int

    @property
    def sources(self) -> dict[str, str]:
        """The URIs for Spark to read, each with the URI of its input file."""
        return {file.readable_uri: file.report.origin_uri for file in self.files if file.readable_uri is not None}

    @property
    def further_from(self) -> str:
        """The first file with keys that were not collected; empty if there is none."""
        return next((file.report.origin_uri for file in self.files if file.has_further_keys), "")

    @property
    def records(self) -> int:
        return sum(file.report.records for file in self.files)

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

    By file index, `refused` has lines to reject although inspection would accept them. Spark opens local files by name,
    without a check where links lead: of those in folders of others, and of ranges of Kafka, it gets copies, which are
    made of what inspection read.

    Raises:
        CompactorError: The error of a task, unchanged.
    """
    numbered = list(enumerate(manifest.files))
    own = OwnFolders(store.confined)
    copied = (index for index, file in numbered if is_topic_or_stream(file.uri) or not own.hold(file.uri))
    refused = {**dict.fromkeys(copied, frozenset[bytes]()), **refused}
    most_tasks = keys.tasks or session.sparkContext.defaultParallelism * TASKS_PER_CORE
    shares = spread(numbered, most_tasks, lambda entry: entry[1].weight_bytes)
    tasks = [
        InspectTask(
            manifest_id=manifest.manifest_id,
            files=tuple(share),
            staging=staging,
            limits=rules.limits,
            on_changed_file=rules.on_changed_file,
            formats=rules.formats,
            kafka=rules.kafka,
            discovery=discovery,
            refused={index: refused[index] for index, _ in share if index in refused},
            task_number=number,
            known_keys=keys.known,
            key_limits=keys.limits,
            rows=keys.rows,
        )
        for number, share in enumerate(shares)
    ]
    results = run_tasks(session, store, tasks, inspect_files, description=f"inspect {manifest.manifest_id}")
    files = tuple(sorted((file for result in results for file in result.files), key=lambda file: file.index))
    new_keys = first_sources((file.report.origin_uri, file.keys) for file in files)
    rejects = tuple(result.rejects_uri for result in results if result.rejects_uri is not None)
    present_keys = frozenset[str]().union(*(result.present_keys for result in results))
    return Inspection(
        files=files,
        rejects=rejects,
        keys=new_keys,
        present_keys=present_keys,
        outputs=tuple(uri for result in results for uri in result.outputs),
        rescued_values=sum(result.rescued_values for result in results),
    )
