"""The figures of a report, as values that a page and a document are made of."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from compactor.core.distributions import Distribution
from compactor.core.records import NEEDS_OPERATOR
from compactor.ops.report.period import Period

SHOWN_BYTES = 80
"""Of a rejected line."""

SHOWN_VERSIONS = 100
"""Of the schema, the newest of a period."""

Health = Literal["nothing", "in_order", "look", "act"]
"""How a period went: nothing happened; all well; something to look at; something that only a person can settle."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Many times in seconds, by their middle, their tail and their end. None of them is more than about 1 % off."""

    values: int
    p50_seconds: float
    p99_seconds: float
    longest_seconds: float


def spread_of(times: Distribution) -> Spread | None:
    """What some times are like; None of no times."""
    if not times.total:
        return None
    return Spread(times.total, times.percentile(50), times.percentile(99), times.percentile(100))


@dataclass(frozen=True, slots=True)
class Bucket:
    """What became visible in a piece of the period.

    Attributes:
        durations: Of manifests, from the begin of the attempt that won to their rows being visible.
        arrivals: Of files, from their arrival to their rows being visible.
    """

    since: datetime
    until: datetime
    manifests: int
    input_files: int
    input_bytes: int
    output_files: int
    output_bytes: int
    rows: int
    rejected_lines: int
    durations: Spread | None
    arrivals: Spread | None

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


@dataclass(frozen=True, slots=True)
class Totals:
    """The whole period.

    Attributes:
        manifests: Committed, and all of it in its place.
        dead_letters: Manifests that were set aside.
        failed_attempts: Attempts that ended without an outcome.
        redrives: How often something was put back.
        lines: Of all files that were read: `rows + rejected_lines + blank_lines`.
        quarantined: Files that were set aside whole, by status.
        at_work_seconds: Time within the period during which at least one of these manifests was in work.
        clocks_off: Manifests whose driver's clock was not believed.
    """

    manifests: int
    dead_letters: int
    failed_attempts: int
    redrives: int
    input_files: int
    input_bytes: int
    output_files: int
    output_bytes: int
    lines: int
    rows: int
    rejected_lines: int
    blank_lines: int
    quarantined: dict[str, int]
    at_work_seconds: float
    clocks_off: int
    durations: Spread | None
    arrivals: Spread | None


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Output files above `from_bytes`, up to `to_bytes`; without end if that is None.

    Attributes:
        counted: Those of manifests that could fill a file.
        of_small_manifests: Those of manifests that could not, which nobody can size.
    """

    from_bytes: float
    to_bytes: float | None
    counted: int
    of_small_manifests: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the output files are.

    Attributes:
        hits: Of the files that counted, those within the tolerance of the target.
    """

    target_bytes: int
    bins: tuple[SizeBin, ...]
    counted: int
    hits: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One rejected line.

    Attributes:
        head: Its first bytes as text; bytes that are none are shown as escapes.
        length_bytes: Of the line, or of its first piece where it is kept in pieces.
    """

    source_uri: str
    line_number: int
    head: str
    length_bytes: int


@dataclass(frozen=True, slots=True)
class RejectReason:
    """Lines that were rejected for one reason; `manifests` is how many had some of them."""

    reason: str
    lines: int
    manifests: int
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class DeadLetterLine:
    """One manifest that was set aside; `is_redriven` is None where its records cannot be read."""

    manifest_id: str
    reason: str
    message: str
    since: datetime
    is_redriven: bool | None


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """One file that was set aside whole; `is_redriven` as for a dead letter."""

    uri: str
    manifest_id: str
    status: str
    detail: str
    since: datetime
    is_redriven: bool | None


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column that a schema version added, and the file that had it first; None where nobody noted it."""

    name: str
    type: str
    source_uri: str | None


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A schema version of the period; `columns` is how many it has in all, `added` the first of the new ones."""

    version: int
    created_at: datetime
    manifest_id: str
    columns: int
    added_columns: int
    added: tuple[AddedColumn, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """All that was found about a period.

    Attributes:
        dead_letters: The newest of the period.
        dead_letters_by_reason: All of the period.
        dead_letters_kept: All that are there now, of whatever time, redriven or not.
        quarantined_files: The newest that need an operator.
        schema_version: The latest version there is now, with its columns in `columns`.
        unreadable: Records that could not be understood, as messages; `unreadable_records` is how many.
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
        """Dead letters of the period of which it is not known whether they were put back."""
        return self.totals.dead_letters - len(self.dead_letters)

    @property
    def files_for_operator(self) -> dict[str, int]:
        """Files that were set aside whole and need a person, by status."""
        return {status: files for status, files in self.totals.quarantined.items() if status in NEEDS_OPERATOR}

    @property
    def older_quarantined_files(self) -> int:
        """Such files of the period of which it is not known whether they were put back."""
        return sum(self.files_for_operator.values()) - len(self.quarantined_files)
