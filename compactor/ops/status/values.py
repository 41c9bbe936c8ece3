"""What `status` tells, as values. What is not known is None, which is not zero."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from compactor.core.records import DeadLetter, RecentCommit
from compactor.cost.prices import JobSize

Word = Literal["empty", "idle", "running", "stopping", "behind", "needs_you", "stopped", "stuck"]


@dataclass(frozen=True, slots=True)
class State:
    """How the job stands, for somebody who was just woken up.

    Attributes:
        word: In one word.
        reason: In one sentence.
        next_move: What to do about it, often a command; empty if nothing has to be done.
    """

    word: Word
    reason: str
    next_move: str = ""


@dataclass(frozen=True, slots=True)
class LivingRun:
    """A run that gave a sign of life lately.

    Attributes:
        host: The machine and its boot.
        heartbeat_at: The last sign.
        asked_to_stop_at: When it was asked to end; None if it was not.
    """

    run_id: str
    host: str
    started_at: datetime
    heartbeat_at: datetime
    asked_to_stop_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is there to do.

    Attributes:
        manifests: In the watched prefix, those in work included.
        manifests_read: So many of them were read for their bytes.
        input_bytes: That they name, extrapolated if not all were read; None where none that waits could be read.
        oldest_seconds: The age of the oldest of them; 0 if there is none.
        begun_manifests: Begun and not done.
        oldest_begun: The id of the one that was begun first; empty if there is none.
        oldest_begun_seconds: The time since then.
        pending_parts: Announced files that wait for others, in so many parts.
        oldest_pending_seconds: The age of the oldest part.
    """

    manifests: int = 0
    manifests_read: int = 0
    input_bytes: int | None = 0
    oldest_seconds: float = 0.0
    begun_manifests: int = 0
    oldest_begun: str = ""
    oldest_begun_seconds: float = 0.0
    pending_parts: int = 0
    oldest_pending_seconds: float = 0.0

    @property
    def is_extrapolated(self) -> bool:
        """Whether the bytes are an estimate."""
        return self.manifests_read < self.manifests


@dataclass(frozen=True, slots=True)
class Rates:
    """Stored input per second.

    Attributes:
        window_seconds: What the first two are taken over: the last while, as far as the ledger's summaries reach.
        arriving_bytes_per_second: In manifests that came to be in it.
        processed_bytes_per_second: In manifests that were committed in it, pauses included.
        at_work_bytes_per_second: Of the latest commits while any of them was in work; None before the first.
    """

    window_seconds: float
    arriving_bytes_per_second: float
    processed_bytes_per_second: float
    at_work_bytes_per_second: float | None


@dataclass(frozen=True, slots=True)
class Drain:
    """How long until nothing waits.

    Attributes:
        seconds: None if that is never, or not known.
        is_never: As things are, it would never be.
        reason: Why, in words.
    """

    seconds: float | None
    is_never: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Latency:
    """From a file's event, else its manifest's creation, to its rows being visible.

    Attributes:
        commits: The latest ones that were looked at.
        files: Compacted in them.
        p50_seconds: Half of the files took no longer.
        p99_seconds: 99 of a hundred took no longer.
    """

    commits: int
    files: int
    p50_seconds: float
    p99_seconds: float


@dataclass(frozen=True, slots=True)
class Rejects:
    """Lines that the latest commits rejected.

    Attributes:
        commits: How many commits.
        lines: Rejected in them.
        by_reason: Those lines; a summary of an older release has no reasons.
    """

    commits: int
    lines: int
    by_reason: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Manifests that were set aside.

    Attributes:
        manifests: All that ever were.
        looked_at: So many of them, the latest, were looked at.
        open: Those of them that nobody put back.
        by_reason: Of the open ones.
        latest: Some of the open ones, the latest first.
    """

    manifests: int
    looked_at: int
    open: int
    by_reason: Mapping[str, int]
    latest: tuple[DeadLetter, ...] = ()


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """An input file that was set aside whole, and not put back.

    Attributes:
        status: Why: one of `compactor.core.records.FileStatus`.
        detail: What was found and what was expected.
    """

    manifest_id: str
    uri: str
    status: str
    detail: str


@dataclass(frozen=True, slots=True)
class FilesQuarantined:
    """Input files that the latest commits set aside, and that nobody put back.

    Attributes:
        commits: The latest ones that were looked at.
        open: How many files.
        by_status: Those files.
        latest: Some of them, the latest first.
    """

    commits: int
    open: int
    by_status: Mapping[str, int]
    latest: tuple[QuarantinedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaSeen:
    """The latest schema version.

    Attributes:
        version: 0 before the first.
        columns: How many it has.
        newest_column: The one that came last; empty if there is none.
        changed_at: When the version was made; None before the first.
    """

    version: int
    columns: int
    newest_column: str
    changed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Spent:
    """What the workers cost so far, at list prices.

    Attributes:
        reason: Why nothing is known of it; empty if it is.
        job: The workers of the latest run at Glue.
        run_seconds: How long that run has lived.
        run_dollars: What it cost.
        day_dollars: What all runs of the last 24 hours cost in these.
        dollars_per_hour: Of the latest run's workers.
        dollars_per_terabyte: Of the input of the latest commits, pauses included; None where there were none.
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
    """How the job stands.

    Attributes:
        as_of: When this was read.
        state: All of it in a word and a sentence.
        runs: Those that are alive.
        last_sign_at: The last sign of life of any run that did not sign off; None if there is none on record.
        recent: Summaries of the latest commits, oldest first.
        ratio: Parquet bytes per decoded input byte, as sizing has learned it.
    """

    as_of: datetime
    state: State
    runs: tuple[LivingRun, ...]
    last_sign_at: datetime | None
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
