"""The seam between a manifest's life and what turns its lines into Parquet: nothing outside knows which engine ran."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from compactor.core.manifest import Manifest
from compactor.core.records import FileReport
from compactor.schema.schema import SchemaVersion

EngineName = Literal["native", "spark"]
"""The engines there are, as settings and ledger call them."""


@dataclass(frozen=True, slots=True)
class StageRequest:
    """One attempt at one manifest.

    Attributes:
        manifest: What to compact.
        staging: A folder of this attempt's own; it ends with `/`.
        schema: The latest version that is on record.
        declared_keys: Keys that have a column whether or not they were seen; `columns_for` brings it.
        columns_for: Gives the schema version that holds these keys, and makes it if need be. The keys are in first-seen
            order, each with the URI of the first file that has it.
        max_columns: Columns that keys may have; further keys share the column of rescued data.
        ratio: Parquet bytes per decoded byte as learned so far; None where the engine has to measure a sample.
        stored_ratio: The same per stored byte, for an engine that plans before it decodes.
        manifests_in_flight: How many manifests are worked on at once, this one included.
        processed_at: The value of the column `_processed_at`.
        on_inspected: To be called when every line was read and what was set aside is staged.
    """

    manifest: Manifest
    staging: str
    schema: SchemaVersion
    declared_keys: frozenset[str]
    columns_for: Callable[[Mapping[str, str]], SchemaVersion]
    max_columns: int
    ratio: float | None
    stored_ratio: float | None
    manifests_in_flight: int
    processed_at: datetime
    on_inspected: Callable[[], None]


@dataclass(frozen=True, slots=True)
class StagedOutput:
    """A Parquet file of rows.

    Attributes:
        schema: The version whose columns it has: that of the whole, or an older one if none of its rows has a key that
            came later.
    """

    uri: str
    schema: SchemaVersion


@dataclass(frozen=True, slots=True)
class Staged:
    """What an engine left in staging.

    Attributes:
        reports: The audit, one a file, in the manifest's order.
        schema: The version that has a column for every key, as far as there may be columns.
        outputs: The Parquet files of rows, in the order in which they are to be numbered.
        rejects: URIs of the Parquet files of rejects, likewise.
        rescued_values: Values that do not fit the type of their column, and are in the rescued data instead.
        redone_bins: Parts of the input whose rows had to be written again, for keys that nobody had seen before.
    """

    reports: tuple[FileReport, ...]
    schema: SchemaVersion
    outputs: tuple[StagedOutput, ...]
    rejects: tuple[str, ...]
    rescued_values: int = 0
    redone_bins: int = 0


class Engine(Protocol):
    """Turns the lines of a manifest's files into staged Parquet files.

    Each line ends as one row, one reject, or a blank; each file that cannot be read whole is reported as such and
    leaves nothing behind. What is staged is verified by the caller and becomes visible only then.
    """

    @property
    def name(self) -> str:
        """What the ledger calls this engine."""

    def is_healthy(self) -> bool:
        """Whether the engine can do anything at all. Asked after trouble that nobody foresaw. Never raises."""

    def stage(self, request: StageRequest) -> Staged:
        """Do the work of one attempt. May be called from several threads at once.

        Raises:
            TryAgainError: Passing trouble.
            OperatorError: A person must act.
        """
