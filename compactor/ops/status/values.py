"""The values that `status` shows. What is unknown is None, which is not zero."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from compactor.control.health import Finding
from compactor.control.snapshot import LivingRun
from compactor.core.records import DeadLetter, RecentCommit
from compactor.cost.prices import JobSize
from compactor.ledger.backlog import Backlog
from compactor.ops.redrive.quarantined_file import QuarantinedFile


@dataclass(frozen=True, slots=True)
class Rates:
    """Stored input per second.

    Attributes:
        window_seconds: The window of the first two rates: 900, or less if the ledger's summaries reach back less.
        arriving_bytes_per_second: Input of the manifests created in the window.
        processed_bytes_per_second: Input of the manifests committed in the window, pauses included.
        at_work_bytes_per_second: Input of the latest commits over the time in which any of them was in progress; None
            before the first commit.
    """

    window_seconds: float
    arriving_bytes_per_second: float
    processed_bytes_per_second: float
    at_work_bytes_per_second: float | None


@dataclass(frozen=True, slots=True)
class Drain:
    """The time until nothing waits.

    Attributes:
        seconds: The backlog over the net rate; None if it never empties, or if that is unknown.
        is_never: Whether the backlog never empties at the present rates.
        reason: Why, in words.
    """

    seconds: float | None
    is_never: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Latency:
    """The time from a file's event, else its manifest's creation, to its rows being visible.

    Attributes:
        commits: How many of the latest commits were read.
        files: Files compacted in them.
    """

    commits: int
    files: int
    p50_seconds: float
    p99_seconds: float


@dataclass(frozen=True, slots=True)
class Rejects:
    """Lines that the latest commits rejected.

    Attributes:
        commits: How many of the latest commits were read, at most 64.
    """

    commits: int
    lines: int
    by_reason: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Manifests that are dead letters.

    Attributes:
        manifests: All dead letters, redriven or not.
        looked_at: How many of them, the latest 50, were read. The next three are about these.
        open: Dead letters that were not redriven.
        by_reason: The open ones by reason.
        latest: The latest five of the open ones, the latest first.
    """

    manifests: int
    looked_at: int
    open: int
    by_reason: Mapping[str, int]
    latest: tuple[DeadLetter, ...] = ()


@dataclass(frozen=True, slots=True)
class FilesQuarantined:
    """Files that the latest commits quarantined, and that were not redriven.

    Attributes:
        commits: How many of the latest commits were read.
        open: How many files.
        latest: The latest five of the files, the latest first.
    """

    commits: int
    open: int
    by_status: Mapping[str, int]
    latest: tuple[QuarantinedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaSeen:
    """The latest schema version.

    Attributes:
        version: The number of the version; 0 before the first.
        columns: The number of its columns.
        newest_column: The last column; empty if there is none.
        changed_at: When the version was created; None before the first.
    """

    version: int
    columns: int
    newest_column: str
    changed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of the workers so far, at list prices.

    Attributes:
        reason: Why the cost is unknown; empty if it is known.
        job: The workers of the latest run on Glue.
        run_seconds: The age of that run.
        run_dollars: The cost of that run so far.
        day_dollars: The cost of all runs in the last 24 hours.
        dollars_per_hour: The price of the latest run's workers.
        dollars_per_terabyte: The cost per terabyte of input of the latest commits, pauses included; None without
            commits.
    """

    reason: str = ""
    job: JobSize | None = None
    run_seconds: float | None = None
    run_dollars: float | None = None
    day_dollars: float | None = None
    dollars_per_hour: float | None = None
    dollars_per_terabyte: float | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that `status` shows.

    Attributes:
        as_of: When this was read.
        state: The most urgent finding.
        runs: The runs that sent a heartbeat in the last 40 seconds.
        latency: The time from arrival to visible; None before the first commit.
        last_heartbeat_at: While no run is alive, the latest heartbeat of one that died; None if there is none.
        recent: Summaries of the latest commits, oldest first, at most 64.
        ratio: Parquet bytes per decoded input byte, as learned from the ledger.
    """

    as_of: datetime
    state: Finding
    runs: tuple[LivingRun, ...]
    last_heartbeat_at: datetime | None
    backlog: Backlog
    rates: Rates
    drain: Drain
    latency: Latency | None
    rejects: Rejects
    dead_letters: DeadLetters
    quarantined_files: FilesQuarantined
    schema: SchemaSeen
    recent: tuple[RecentCommit, ...]
    ratio: float | None
    cost: Spent
