"""The port of the engines, which turn the lines of a manifest into Parquet. Callers do not depend on the engine."""

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
"""The names of the engines in settings and ledger."""


class ColumnsFor(Protocol):
    """Gives keys their columns."""

    def __call__(self, keys: Mapping[str, str], *, rescued_from: str = "") -> SchemaVersion:
        """Return a schema version with a column for each of these keys that may have one; create it if necessary.

        If a key gets no column, the version has the column of rescued data.

        Args:
            keys: In first-seen order, each with the URI of the first file that has it.
            rescued_from: The first file with keys that can get no column; empty if there is none.
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
    """The columns of the rows of a manifest and how to write them.

    Attributes:
        target_file_bytes: The size of a file at which the next one begins.
        rescues_unknown: Whether all keys without a column go to the rescued data. Otherwise rows wait until keys that
            may get a column have one.
        key_limits: Which keys without a column to collect. All others go to the rescued data in any case.
        held_bytes: Bytes of records to hold back from the output, so that their file can be withdrawn.
        pages_bytes: Bytes of the unfinished pages of all columns together. The length of a file counts these
            uncompressed, so they have to be a small part of it.
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
        declared_keys: The keys of the schema file, which have a column in every version that `columns_for` returns.
        columns_for: Gives the keys of the manifest their columns.
        key_limits: Which keys may still become columns; the values of all others go to the rescued data.
        ratio: Parquet bytes per decoded byte, from earlier commits; None if the engine has to measure a sample.
        stored_ratio: Parquet bytes per stored byte, for an engine that plans before it decodes; or None.
        manifests_in_flight: Number of manifests being processed at once, including this one.
        on_inspected: The engine calls it when every line has been read and all rejects are staged.
        place: A folder of the attempt in the output, for an engine that can write files of rows there under their final
            names. Ends with `/`; empty to stage them.
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
        schema: The version whose columns it has. Older than that of the commit if no row has a key that came later.
        partition: The value of each field of `Staged.partition_by` in all its rows.
        holds_others: Its rows have different values than `partition`, which are None: there were too many partitions.
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
        schema: The version with a column for every key that may have one.
        outputs: The Parquet files of rows, in the order in which they will be numbered.
        rejects: URIs of the Parquet files of rejects, in the order in which they will be numbered.
        rescued_values: Number of values in the rescued data because they do not fit the type of their column.
        redone_bins: Number of bins that had to be written again because of new keys.
        refused_keys: Number of keys that got no column, at least.
        partition_by: How the rows are partitioned; empty if they are not.
        unparsed_times: Number of rows with a value that is not a time where one was expected.
        partition_rows: The rows of each partition, counted before the split; without outputs that hold others.
        are_partition_rows_exact: Whether these numbers are exact, and not lower bounds.
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

    Each line becomes one row or one reject, or is blank. A file that cannot be read whole is reported as such and
    leaves nothing behind. The caller verifies the staged files before it publishes them.
    """

    @property
    def name(self) -> str:
        """The engine's name in the ledger."""

    def is_healthy(self) -> bool:
        """Whether the engine still works. Called after an unexpected error. Never raises."""

    def stage(self, request: StageRequest) -> Staged:
        """Make one attempt. May be called from several threads at once.

        Raises:
            TryAgainError: Passing trouble.
            OperatorError: A person must act.
        """
