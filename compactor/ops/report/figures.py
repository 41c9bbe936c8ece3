"""The figures of a report: values from which the page and the JSON document are made."""

from dataclasses import dataclass
from datetime import datetime

from compactor.core.distributions import Distribution
from compactor.core.records import NEEDS_OPERATOR
from compactor.ops.redrive.quarantined_file import QuarantinedFile
from compactor.ops.report.period import Period

SHOWN_BYTES = 80  # of a rejected line
SHOWN_VERSIONS = 100  # of the schema, the newest of a period


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, the tail and the maximum of many times in seconds, each within about 1 %."""

    values: int
    p50_seconds: float
    p99_seconds: float
    longest_seconds: float

    @classmethod
    def of(cls, times: Distribution) -> "Spread | None":
        if not times.total:
            return None
        return cls(times.total, times.percentile(50), times.percentile(99), times.percentile(100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Sums over committed manifests.

    Attributes:
        durations: Of manifests, from the start of the successful attempt until the rows were visible.
        arrivals: Of files, from their arrival until their rows were visible.
    """

    manifests: int
    input_files: int
    input_bytes: int
    output_files: int
    output_bytes: int
    rows: int
    rejected_lines: int
    durations: Spread | None
    arrivals: Spread | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket(Work):
    """What became visible in one interval of the period.

    Attributes:
        since: The start of the interval.
        until: The end of the interval, which is not part of it.
    """

    since: datetime
    until: datetime

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()

    @property
    def input_rate(self) -> float:
        """Bytes per second."""
        return self.input_bytes / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals(Work):
    """The whole period.

    Attributes:
        failed_attempts: Attempts that ended without an outcome.
        redrives: The number of redrives.
        dead_letters: Manifests that became dead letters.
        lines: Lines of all files that were read: `rows + rejected_lines + blank_lines`.
        quarantined: Quarantined files by status.
        at_work_seconds: Time during which at least one of these manifests was being processed.
        clocks_off: Manifests dated by the store, because the clock of their driver was wrong.
    """

    dead_letters: int
    failed_attempts: int
    redrives: int
    lines: int
    blank_lines: int
    quarantined: dict[str, int]
    at_work_seconds: float
    clocks_off: int


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Output files of similar size.

    Attributes:
        from_bytes: Files above this size.
        to_bytes: Files up to this size; None for no limit.
        counted: Files of manifests that could fill a file of the target size.
        of_small_manifests: Files of manifests that could not.
    """

    from_bytes: float
    to_bytes: float | None
    counted: int
    of_small_manifests: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of output files.

    Attributes:
        target_file_bytes: The target size.
        bins: The histogram, smallest first.
        counted: Files of manifests that could fill one of the target size.
        hits: Those within the tolerance of the target, 25 %.
    """

    target_file_bytes: int
    bins: tuple[SizeBin, ...]
    counted: int
    hits: int


@dataclass(frozen=True, slots=True)
class Sample:
    """A rejected line.

    Attributes:
        source_uri: The file that has the line.
        line_number: The number of the line, from 1.
        head: Its first 80 bytes, as text.
        length_bytes: The length of the line, or of its first piece.
    """

    source_uri: str
    line_number: int
    head: str
    length_bytes: int


@dataclass(frozen=True, slots=True)
class RejectReason:
    """Lines rejected for one reason.

    Attributes:
        manifests: The number of manifests that have some of them.
        samples: A few of the lines; empty with `--no-samples`.
    """

    reason: str
    lines: int
    manifests: int
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class DeadLetterLine:
    """A dead letter of the period.

    Attributes:
        done_at: The time of the decision.
        redriven: Whether it was redriven; None if its records cannot be read.
    """

    manifest_id: str
    reason: str
    message: str
    done_at: datetime
    redriven: bool | None


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column that a version added.

    Attributes:
        name: The name in the Parquet files.
        type: Such as `string` or `decimal(10,2)`.
        source_uri: The first file that had the key; empty if it was declared, None if it was not recorded.
    """

    name: str
    type: str
    source_uri: str | None


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A schema version.

    Attributes:
        manifest_id: The manifest that caused it.
        columns: The number of its columns.
        added_columns: The number of columns that it added.
        added: The first 40 of those.
    """

    version: int
    created_at: datetime
    manifest_id: str
    columns: int
    added_columns: int
    added: tuple[AddedColumn, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything found about a period.

    Attributes:
        dead_letters: The newest of the period; `dead_letters_by_reason` counts all of the period.
        dead_letters_kept: All that exist now, of any period, redriven or not.
        quarantined_files: The newest quarantined files that need an operator.
        schema_version: The latest version that exists now; it has `columns`.
        unreadable: The first messages about damaged records; `unreadable_records` counts all of them.
    """

    period: Period
    step_seconds: int
    totals: Totals
    buckets: tuple[Bucket, ...]
    sizes: Sizes
    rejects: tuple[RejectReason, ...]
    dead_letters: tuple[DeadLetterLine, ...]
    dead_letters_by_reason: dict[str, int]
    dead_letters_kept: int
    quarantined_files: tuple[QuarantinedFile, ...]
    schema_changes: tuple[SchemaChange, ...]
    schema_version: int
    columns: int
    unreadable: tuple[str, ...]
    unreadable_records: int

    @property
    def older_dead_letters(self) -> int:
        """Dead letters of the period that were not checked for a redrive."""
        return self.totals.dead_letters - len(self.dead_letters)

    @property
    def files_for_operator(self) -> dict[str, int]:
        """Quarantined files that need an operator, by status."""
        return {status: files for status, files in self.totals.quarantined.items() if status in NEEDS_OPERATOR}

    @property
    def older_quarantined_files(self) -> int:
        """Such files of the period that were not checked for a redrive."""
        return sum(self.files_for_operator.values()) - len(self.quarantined_files)
