"""The results of the tasks that read a manifest's files, and their totals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from compactor.core.documents.records import FileReport
from compactor.engines.engine import Staged, StagedOutput
from compactor.schema.schema import SchemaVersion, first_sources


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The result of one input file.

    Attributes:
        index: Its index in the manifest.
        new_keys: Keys without a column that are new within the task, in first-seen order.
        has_further_keys: Some keys without a column were not collected.
        readable_uri: The file for Spark to read: the original or its repaired copy; None if it has no records, or if
            the task made its rows.
    """

    index: int
    report: FileReport
    new_keys: tuple[str, ...] = ()
    has_further_keys: bool = False
    readable_uri: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of a task.

    Attributes:
        rejects_uri: The staged Parquet file of all rejects; None if there are none.
        outputs: URIs of the staged Parquet files of rows.
        rescued_values: Number of their values that do not fit their column's type.
    """

    files: tuple[TaskFile, ...]
    rejects_uri: str | None
    outputs: tuple[str, ...] = ()
    rescued_values: int = 0

    @property
    def records(self) -> int:
        return sum(file.report.records for file in self.files)


R = TypeVar("R", bound=TaskResult)


class ManifestResults(Generic[R]):
    """The results of all tasks for a manifest.

    Attributes:
        new_keys: The collected keys without a column in first-seen order, each with the first file's URI.
        further_from: The first file with keys that were not collected; empty if there is none.
    """

    def __init__(self, tasks: Sequence[R]) -> None:
        self.tasks = tasks
        self.files = sorted((file for task in tasks for file in task.files), key=lambda file: file.index)
        self.new_keys = first_sources((file.report.origin_uri, file.new_keys) for file in self.files)
        self.further_from = next((file.report.origin_uri for file in self.files if file.has_further_keys), "")
        self.records = sum(task.records for task in tasks)
        self.rescued_values = sum(task.rescued_values for task in tasks)

    def refused_keys(self, schema: SchemaVersion) -> int:
        """How many keys got no column in a schema version, at least."""
        return schema.refused(self.new_keys, has_further=bool(self.further_from))

    def staged(self, schema: SchemaVersion, outputs: Sequence[StagedOutput], **further: Any) -> Staged:
        """An engine's result for these task results; `further` has other fields of `Staged`."""
        return Staged(
            reports=tuple(file.report for file in self.files),
            schema=schema,
            outputs=tuple(outputs),
            rejects=tuple(task.rejects_uri for task in self.tasks if task.rejects_uri is not None),
            **further,
        )
