"""The port of the engines, which turn a manifest's lines into Parquet. Callers do not depend on the engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, Protocol

from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import FileReport
from compactor.core.partitions import PartitionField, PartitionValues
from compactor.ndjson.files.file_walk import OnChangedFile
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import Limits
from compactor.schema.schema import NO_NEW_KEYS, KeyLimits, SchemaVersion

EngineName = Literal["native", "spark"]
"""The engine names in settings and ledger."""


class ColumnsFor(Protocol):
    """Assigns columns to keys."""

    def __call__(self, keys: Mapping[str, str], *, rescued_from: str = "") -> SchemaVersion:
        """A schema version with a column for each of these keys that may have one; created if necessary.

        If a key gets no column, the version has the rescued data column.

        Args:
            keys: In first-seen order, each with the URI of the first file containing it.
            rescued_from: The first file with keys that cannot get a column; empty if there is none.
        """


@dataclass(frozen=True, slots=True)
class EngineRules:
    """The settings of an engine."""

    limits: Limits
    on_changed_file: OnChangedFile
    metadata_columns: tuple[str, ...]
    target_file_bytes: int
    compression: str
    formats: Formats = Formats()  # noqa: RUF009 - it is frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """The columns of a manifest's rows, and how to write them.

    Attributes:
        target_file_bytes: The size of a file at which the next one starts.
        rescues_unknown: Whether all keys without a column go to the rescued data. Otherwise rows wait until eligible
            keys have a column.
        key_limits: Which keys without a column to collect. All others always go to the rescued data.
        held_bytes: Bytes of records to hold back from the output, so that their file can be withdrawn.
        pages_bytes: Total bytes in unfinished pages of all columns. A file's length counts these uncompressed, so they
            must be a small part of it.
    """

    manifest_id: str
    date: date
    processed_at: datetime
    schema: SchemaVersion
    metadata_columns: Sequence[str]
    compression: str
    target_file_bytes: int
    rescues_unknown: bool = False
    key_limits: KeyLimits = NO_NEW_KEYS
    held_bytes: int = 0
    pages_bytes: int = 0


@dataclass(frozen=True, slots=True)
class StageRequest:
    """One attempt at one manifest.

    Attributes:
        staging: The attempt's own folder; ends with `/`.
        schema: The latest version on record.
        declared_keys: The keys in the schema file, which have a column in every version from `columns_for`.
        columns_for: Assigns columns to the manifest's keys.
        key_limits: Which keys may still become columns; values of all others go to the rescued data.
        ratio: Parquet bytes per decoded byte in earlier commits; None if the engine has to measure a sample.
        stored_ratio: Parquet bytes per stored byte, for an engine that plans before it decodes; or None.
        manifests_in_flight: Number of manifests being processed at once, including this one.
        on_inspected: Called when every line has been read and all rejects are staged.
        place: The attempt's folder in the output, for an engine that can write row files there under their final names.
            Ends with `/`; empty to stage them.
    """

    manifest: Manifest
    staging: str
    schema: SchemaVersion
    declared_keys: frozenset[str]
    columns_for: ColumnsFor
    key_limits: KeyLimits
    ratio: float | None
    stored_ratio: float | None
    manifests_in_flight: int
    processed_at: datetime
    on_inspected: Callable[[], None]
    place: str = ""

    def row_plan(self, schema: SchemaVersion, rules: EngineRules, **further: Any) -> RowPlan:
        return RowPlan(
            manifest_id=self.manifest.manifest_id,
            date=date.fromisoformat(self.manifest.date),
            processed_at=self.processed_at,
            schema=schema,
            metadata_columns=rules.metadata_columns,
            compression=rules.compression,
            target_file_bytes=rules.target_file_bytes,
            **further,
        )


@dataclass(frozen=True, slots=True)
class StagedOutput:
    """A Parquet file of rows.

    Attributes:
        schema: The version with its columns; older than the commit's if no row has a later key.
        partition: The common value of all rows for each field of `Staged.partition_by`.
        holds_others: The rows have various values, and `partition` is all None: there were too many partitions.
    """

    uri: str
    schema: SchemaVersion
    partition: PartitionValues = ()
    holds_others: bool = False


@dataclass(frozen=True, slots=True)
class Staged:
    """The files that an engine staged.

    Attributes:
        reports: One per input file, in the manifest's order.
        schema: The version that has a column for every key that gets one.
        outputs: The Parquet files of rows, in the order of their numbers.
        rejects: URIs of the Parquet files of rejects, in the order of their numbers.
        rescued_values: Number of values in the rescued data because they do not fit the type of their column.
        redone_bins: Number of bins that were rewritten because of new keys.
        refused_keys: Number of keys that got no column, at least.
        partition_by: How the rows are partitioned; empty if they are not.
        unparsed_times: Number of rows with a value that is not a time where one was expected.
        partition_rows: The rows per partition, counted before splitting; excludes outputs that hold others.
        are_partition_rows_exact: Whether these numbers are exact rather than lower bounds.
    """

    reports: tuple[FileReport, ...]
    schema: SchemaVersion
    outputs: tuple[StagedOutput, ...]
    rejects: tuple[str, ...]
    rescued_values: int = 0
    redone_bins: int = 0
    refused_keys: int = 0
    partition_by: tuple[PartitionField, ...] = ()
    unparsed_times: int = 0
    partition_rows: Mapping[PartitionValues, int] = field(default_factory=dict)
    are_partition_rows_exact: bool = True


class Engine(Protocol):
    """Turns the lines of a manifest's files into staged Parquet files.

    Each line becomes one row or one reject, or is blank. A file that cannot be read completely is reported and leaves
    nothing in the output. The caller verifies the staged files before it publishes them.
    """

    @property
    def name(self) -> str:
        """The engine's name in the ledger."""

    def is_healthy(self) -> bool:
        """Whether the engine still works. Called after an unexpected error. Never raises."""

    def stage(self, request: StageRequest) -> Staged:
        """Make one attempt. Called from several threads at once.

        Raises:
            TryAgainError: A transient failure.
            OperatorError: An operator must act.
        """
