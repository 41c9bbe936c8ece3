"""The values shown by `status`, and how they follow from the latest commits. No I/O.

An unknown value is None, not zero.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.control.diagnosis.health import Finding
from compactor.control.snapshot import LivingRun
from compactor.core.distributions import Spread
from compactor.core.documents.changes import DeadLetter
from compactor.core.documents.counts import without_zeros
from compactor.core.documents.records import RecentCommit
from compactor.core.rules.next_steps import Cause
from compactor.core.text.formatting import shown_seconds
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.backlog import Backlog
from compactor.ledger.housekeeping import FailingTask
from compactor.ledger.landing.progress import LogSeen
from compactor.ledger.sizing import SizedBytes, with_share
from compactor.ledger.visible import NOTHING_EXPIRED, ExpiredSeen
from compactor.ledger.work_time import covered_seconds, work_spans
from compactor.schema.schema import NO_COLUMNS, ColumnsUsed
from compactor.table.standing import TableSeen

WINDOW_SECONDS = 900.0
"""The window of rates, long enough that a pause between two manifests does not look like the end of the input."""

_LEAST_WINDOW_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Stored input per second."""

    window_seconds: float  # the window of the first two rates: the last minutes, as far as the ledger's summaries reach
    arriving_bytes_per_second: float  # input of the manifests created in the window
    processed_bytes_per_second: float  # input of the manifests committed in the window, including pauses
    # Input of the latest commits over the time in which any of them was in progress; None before the first commit
    at_work_bytes_per_second: float | None


@dataclass(frozen=True, slots=True)
class Drain:
    """The time until the backlog is empty."""

    seconds: float | None  # None if never or unknown
    is_never: bool  # whether the backlog never empties at the present rates
    reason: str  # why, in words


@dataclass(frozen=True, slots=True)
class Rejects:
    """Rejected lines in the latest commits."""

    commits: int  # how many of the latest commits were read, at most 64
    lines: int
    by_reason: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Misfits:
    """Values in the latest commits that do not fit their column's type, and are in the rescued data."""

    commits: int  # how many of the latest commits were read, at most 64
    values: int  # how many values
    by_column: Mapping[str, int]  # these values by column name


@dataclass(frozen=True, slots=True)
class OutputSizes:
    """Sizes of the output files of the latest commits."""

    target_file_bytes: int  # the target size
    commits: int  # how many of the latest commits are counted: those that recorded this target
    by_bytes: SizedBytes | None  # their bytes; None if there are no such commits


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Manifests that are dead letters."""

    manifests: int  # all dead letters, settled or not
    looked_at: int  # read ones: the latest, or those settled in closed dates; the next three refer to these
    open: int  # dead letters that were not redriven and, as far as read, not taken over by later manifests
    by_reason: Mapping[str, int]  # the open ones by reason
    latest: tuple[DeadLetter, ...] = ()  # some of the open ones, the latest first


@dataclass(frozen=True, slots=True)
class FilesQuarantined:
    """Files quarantined by the latest commits and not settled."""

    commits: int  # how many of the latest commits were read
    open: int  # how many files
    by_status: Mapping[str, int]
    latest: tuple[QuarantinedFile, ...] = ()  # some of the files, the latest first
    by_cause: Mapping[Cause, int] = field(default_factory=dict)  # the same by cause
    dismissed: int = 0  # how many others were given up, by an operator or because they no longer exist


@dataclass(frozen=True, slots=True)
class SchemaSeen:
    """The latest schema version."""

    version: int  # 0 before the first
    columns: int
    newest_column: str  # the last column; empty if there is none
    changed_at: datetime | None  # when the version was created; None before the first
    error: str = ""  # why no version is readable, as if there were none; empty if the latest was read


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts that determine the job's state."""

    as_of: datetime
    runs: tuple[LivingRun, ...]
    # While no run is alive, the latest heartbeat of a dead one; None if there is none
    last_heartbeat_at: datetime | None
    backlog: Backlog  # unfinished work
    drain: Drain
    dead_letters: DeadLetters
    quarantined_files: FilesQuarantined
    recent: tuple[RecentCommit, ...]  # summaries of the latest commits, oldest first
    columns: ColumnsUsed = NO_COLUMNS  # how many key columns are used
    schema: SchemaSeen = SchemaSeen(0, 0, "", None)  # the latest schema version
    shards: int = 1  # how many jobs share the manifests
    table: TableSeen | None = None  # the table that lists the output; null if the settings name none
    logs: tuple[LogSeen, ...] = ()  # the topics and streams that jobs land
    housekeeping: tuple[FailingTask, ...] = ()  # recurring tasks of jobs that fail

    @property
    def last_commit_at(self) -> datetime | None:
        return self.recent[-1].decided_at if self.recent else None

    def ago(self, moment: datetime) -> str:
        return shown_seconds((self.as_of - moment).total_seconds())


@dataclass(frozen=True, slots=True)
class StatusFailure:
    """The output of `--watch` when nothing can be read."""

    as_of: datetime  # time of the attempt to read
    error: str  # why nothing could be read


@dataclass(frozen=True, kw_only=True)
class Status(Facts):
    """The job's status. Reads at most 200 waiting manifests, 64 commit summaries and 50 dead letters."""

    state: Finding  # summary
    rates: Rates
    # From a file's event, else its manifest's creation, to visible rows, over files in the latest commits; None before
    # the first commit, and for a folder without an SLA
    latency: Spread | None
    rejects: Rejects
    misfits: Misfits
    # Parquet bytes per stored input byte in the latest commits; None without input
    output_bytes_per_input_byte: float | None
    sizes: OutputSizes  # sizes of the latest commits' output files
    folder: str = ""  # the output of `compact`, as commands name it; empty for a job
    expired: ExpiredSeen = NOTHING_EXPIRED  # what is recorded as expired


def rates(
    recent: Sequence[RecentCommit], waiting: Iterable[tuple[datetime, float]], now: datetime, *, slots: int
) -> Rates:
    """The rates of arrival and of processing.

    Everything that arrived in the window either waits or is among the latest commits. `waiting` has the creation time
    and the input bytes of each waiting manifest that is not among them. If all slots for summaries are taken, the
    window starts no earlier than the oldest of them.
    """
    start = now - timedelta(seconds=WINDOW_SECONDS)
    if len(recent) >= slots:
        start = max(start, min(each.decided_at for each in recent))
    window = max((now - start).total_seconds(), _LEAST_WINDOW_SECONDS)
    arrivals = [*((_arrived_at(each), float(each.input_bytes)) for each in recent), *waiting]
    worked = covered_seconds(work_spans(recent))
    return Rates(
        window_seconds=window,
        arriving_bytes_per_second=sum(length for moment, length in arrivals if moment > start) / window,
        processed_bytes_per_second=sum(each.input_bytes for each in recent if each.decided_at > start) / window,
        at_work_bytes_per_second=sum(each.input_bytes for each in recent) / worked if worked else None,
    )


def _arrived_at(commit: RecentCommit) -> datetime:
    """When a manifest was created; if unknown, when work on it began."""
    return commit.arrived_at or commit.decided_at - timedelta(seconds=commit.seconds)


def drain(backlog: Backlog, found: Rates, *, is_running: bool) -> Drain:
    """The time until the backlog is empty, if input keeps arriving at this rate and the job works without pauses."""
    if not backlog.manifests:
        return Drain(0.0, is_never=False, reason="nothing waits")
    if not is_running:
        return Drain(None, is_never=True, reason="no job runs")
    at_work, arriving = found.at_work_bytes_per_second, found.arriving_bytes_per_second
    if at_work is None or backlog.input_bytes is None:
        missing = "nothing was committed so far" if at_work is None else "no waiting manifest could be read"
        return Drain(None, is_never=False, reason=missing)
    if not found.processed_bytes_per_second and backlog.oldest_seconds >= found.window_seconds:
        return Drain(None, is_never=True, reason="nothing was committed lately")
    if at_work <= arriving:
        return Drain(None, is_never=True, reason="more arrives than is processed")
    return Drain(
        backlog.input_bytes / (at_work - arriving),
        is_never=False,
        reason="the rate at work minus the arrival rate",
    )


def rejects(recent: Sequence[RecentCommit]) -> Rejects:
    """The rejected lines of the latest commits, without those that another of these commits has redriven."""
    reasons, lines = Counter[str](), 0
    known = {commit.manifest_id for commit in recent}
    for commit in recent:
        reasons.update(commit.rejects)
        lines += commit.rejected_lines
        if commit.rejects_of in known:
            reasons.subtract(commit.redriven)
            lines -= sum(commit.redriven.values())
    return Rejects(len(recent), lines, dict(without_zeros(reasons)))


def misfits(recent: Sequence[RecentCommit]) -> Misfits:
    """The values in the latest commits that do not fit their column's type."""
    columns = Counter[str]()
    for commit in recent:
        columns.update(commit.misfits)
    return Misfits(len(recent), columns.total(), dict(columns))


def output_sizes(recent: Sequence[RecentCommit], target_file_bytes: int) -> OutputSizes:
    """How much of the latest commits' output is in right-sized files.

    Commits with a different recorded target are ignored.
    """
    known = [
        (each.output_bytes, each.right_sized_bytes, each.small_bytes)
        for each in recent
        if each.target_file_bytes == target_file_bytes
    ]
    if not known:
        return OutputSizes(target_file_bytes, 0, None)
    size_bytes, right_sized_bytes, small_bytes = map(sum, zip(*known, strict=True))
    return OutputSizes(target_file_bytes, len(known), with_share(size_bytes, right_sized_bytes, small_bytes))
