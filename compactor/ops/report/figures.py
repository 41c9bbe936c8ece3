"""The figures of a report: values for the page and the JSON document."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from compactor.core.distributions import Spread
from compactor.core.documents.counts import quarantined_of
from compactor.core.documents.records import FileStatus
from compactor.core.rules.next_steps import Cause
from compactor.ledger.accounts.account import DeadLetterManifest, QuarantinedFile
from compactor.ledger.housekeeping import FailingTask
from compactor.ledger.landing.progress import LogSeen
from compactor.ledger.sizing import SizedBytes
from compactor.ledger.visible import ExpiredSeen
from compactor.ops.report.period import Period
from compactor.table.standing import TableSeen

SHOWN_BYTES = 80  # of a rejected line
SHOWN_FILES = 50  # quarantined ones, the newest of a period
SHOWN_VERSIONS = 100  # of the schema, the newest of a period


@dataclass(frozen=True, kw_only=True)
class Work:
    """Sums over committed manifests."""

    manifests: int
    input_files: int
    input_bytes: int
    output_files: int
    output_bytes: int
    rows: int
    rejected_lines: int
    durations: Spread | None  # of manifests, from the start of the successful attempt to rows being visible
    latency: Spread | None  # of files, from arrival to rows being visible


@dataclass(frozen=True, kw_only=True)
class Bucket(Work, Period):
    """Work in a part of the period."""

    @property
    def input_rate(self) -> float:
        """Bytes per second."""
        return self.input_bytes / self.seconds


@dataclass(frozen=True, kw_only=True)
class Totals(Work):
    """Work of the whole period."""

    dead_letters: int  # manifests that became dead letters
    failed_attempts: int  # attempts that ended without an outcome
    redrives: int  # the number of redrives
    lines: int  # lines of the input files: `rows + rejected_lines + blank_lines + erased_lines`
    blank_lines: int
    erased_lines: int  # lines whose row or reject was erased on request
    # Time during which at least one manifest was between the start of its successful attempt and the decision
    at_work_seconds: float
    at_work_bytes_per_second: float | None  # stored input over that time; null without work
    output_bytes_per_input_byte: float | None  # Parquet bytes per stored input byte; null without input
    late_files: int  # files that took longer than the SLA; 0 without one
    slow_manifests: int  # manifests that took longer than half the SLA; 0 without one
    clocks_off: int  # manifests dated by the store, because the clock of their driver was wrong


@dataclass(frozen=True, slots=True)
class Sample:
    """A rejected line."""

    source_uri: str  # the file that has the line
    line_number: int  # the number of the line, from 1
    head: str  # its first 80 bytes, as text
    length_bytes: int  # the length of the line, or of its first piece


@dataclass(frozen=True, slots=True)
class RejectReason:
    """Lines rejected for one reason."""

    reason: str
    lines: int
    manifests: int  # the number of manifests that have some of them
    samples: tuple[Sample, ...]  # a few of the lines; empty with `--no-samples`


@dataclass(frozen=True, slots=True)
class DeadLetterLine(DeadLetterManifest):
    """A dead letter of the period."""

    done_at: datetime = field(kw_only=True)  # the time of the decision


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Manifests that became dead letters."""

    manifests: int  # number of all dead letters of any time, settled or not
    open: int  # those of the period and in `latest` that need an operator
    by_reason: dict[str, int]  # dead letters of the period by reason, settled or not
    latest: tuple[DeadLetterLine, ...]  # newest of the period, settled or not

    @classmethod
    def of(cls, kept: int, by_reason: Mapping[str, int], latest: Sequence[DeadLetterLine]) -> Self:
        """Those of a period; `latest` were checked for what settled them."""
        return cls(kept, sum(not each.is_settled for each in latest), dict(by_reason), tuple(latest))

    @property
    def older(self) -> int:
        """Those of the period that were not checked for a redrive."""
        return sum(self.by_reason.values()) - len(self.latest)


@dataclass(frozen=True, slots=True)
class QuarantinedFiles:
    """Input files that were quarantined in the period."""

    open: int  # files that need an operator: not redriven, and not otherwise settled
    by_status: dict[str, int]  # these by status
    by_cause: dict[Cause, int]  # the same by cause
    ever_by_status: dict[str, int]  # all by status, settled or not; repeated quarantines count each time
    changed: int  # files that changed, so were not quarantined: a new version has its own event
    latest: tuple[QuarantinedFile, ...]  # newest, settled or not, at most 50
    older: int  # not checked for settlement, unlike the newest 5,000

    @classmethod
    def of(cls, files_by_status: Mapping[str, int], checked: Sequence[QuarantinedFile]) -> Self:
        """Those of a period; the newest were checked for what settled them."""
        waiting = [file for file in checked if not file.is_settled]
        by_status = Counter(str(file.status) for file in waiting)
        ever = quarantined_of(files_by_status) + Counter(
            str(file.status) for file in checked if file.status == "replaced"
        )
        return cls(
            open=by_status.total(),
            by_status=dict(by_status),
            by_cause=dict(Counter(file.cause for file in waiting)),
            ever_by_status=dict(ever),
            changed=files_by_status.get(FileStatus.CHANGED, 0),
            latest=tuple(checked[:SHOWN_FILES]),
            older=ever.total() - len(checked),
        )

    @property
    def ever(self) -> int:
        return sum(self.ever_by_status.values())


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column that a version added."""

    name: str  # the name in the Parquet files
    type: str  # such as `string` or `decimal(10,2)`
    source_uri: str  # the first file that had the key; empty if it was declared


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A schema version."""

    version: int
    created_at: datetime
    manifest_id: str  # the manifest that caused it
    columns: int  # the number of its columns
    added_columns: int  # the number of columns that it added
    added: tuple[AddedColumn, ...]  # the first 40 of those


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns."""

    version: int  # number of the latest version; 0 before the first
    columns: int  # number of its columns
    changes: tuple[SchemaChange, ...]  # versions of the period, oldest first, at most 100


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Records of the ledger that are damaged."""

    records: int  # number of records
    messages: tuple[str, ...]  # the first faults


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Everything found about a period."""

    period: Period  # the period
    totals: Totals  # work of the whole period
    bucket_seconds: float  # length of a bucket; the first and the last may be shorter
    buckets: tuple[Bucket, ...]  # parts of the period in order, at most 49
    target_file_bytes: int  # how large an output file should be
    sizes: SizedBytes  # how much of the output is in files of that size
    rejects: tuple[RejectReason, ...]  # rejected lines by reason, most frequent first
    dead_letters: DeadLetters  # manifests that became dead letters
    quarantined_files: QuarantinedFiles  # quarantined input files
    schema: Schema  # the columns
    unreadable: Unreadable  # records of the ledger that are damaged
    expired: ExpiredSeen  # expired data on record by now, whatever the period
    table: TableSeen | None = None  # the table that lists the output, as of now; null if the settings name none
    logs: tuple[LogSeen, ...] = ()  # the topics and streams that jobs land, as of their latest landings
    housekeeping: tuple[FailingTask, ...] = ()  # recurring tasks of jobs that fail now
