"""What `compactor status --json` prints."""

from typing import Literal

from pydantic import Field

from compactor.cli.documents.common import CountByReason, Date, Document, Job, RecentCommit, Run, Time
from compactor.control.health import Condition, Severity, Word
from compactor.core.records import FileStatus


class State(Document):
    """How the job is doing."""

    word: Word = Field(description="State, as one word.")
    severity: Severity = Field(description="Whether a person has to act, or to check.")
    condition: Condition = Field(description="Condition behind the state, as alarms name it.")
    reason: str = Field(description="Reason for the state, as a sentence.")
    next_move: str = Field(description="Next action, often a command; empty if there is none.")


class StatusRun(Run):
    """A run of the job that sent a heartbeat in the last 40 seconds."""

    asked_to_stop_at: Time | None = Field(description="Time at which it was asked to stop; null if it was not.")


class Backlog(Document):
    """Work that is not done."""

    manifests: int = Field(description="Number of manifests in the watched prefix, including those in progress.")
    manifests_read: int = Field(description="Number of manifests that were read for their sizes, at most 200.")
    input_bytes: int | None = Field(description="Stored bytes they name; null if no waiting manifest could be read.")
    is_extrapolated: bool = Field(description="Whether `input_bytes` is an estimate because not all were read.")
    oldest_seconds: float = Field(description="Age of the oldest manifest; 0 if none waits.")
    begun_manifests: int = Field(description="Number of manifests that were started and are not done.")
    oldest_begun: str = Field(description="Id of the manifest that was started first; empty if there is none.")
    oldest_begun_seconds: float = Field(description="Time since that start.")
    pending_parts: int = Field(description="Number of pending parts: announced files that wait for a manifest.")
    oldest_pending_seconds: float = Field(description="Age of the oldest pending part.")


class Rates(Document):
    """Stored input bytes per second."""

    window_seconds: float = Field(description="Window of the first two rates: 900, or less if commits reach back less.")
    arriving_bytes_per_second: float = Field(description="Input of manifests created in the window.")
    processed_bytes_per_second: float = Field(description="Input committed in the window, pauses included.")
    at_work_bytes_per_second: float | None = Field(
        description="Input of the latest commits over the time spent on them; null before the first commit."
    )


class Drain(Document):
    """Time until the backlog is empty."""

    seconds: float | None = Field(description="Backlog over net rate; null if it never empties or is not known.")
    is_never: bool = Field(description="Whether the backlog never empties at the present rates.")
    reason: str = Field(description="Reason, in words.")


class Latency(Document):
    """Time from a file's arrival to its rows being visible, over the latest 16 commits."""

    commits: int = Field(description="Number of commits.")
    files: int = Field(description="Number of files in them.")
    p50_seconds: float = Field(description="Half of the files took at most this long.")
    p99_seconds: float = Field(description="99 % of the files took at most this long.")


class Rejects(Document):
    """Rejected lines of the latest commits."""

    commits: int = Field(description="Number of commits, at most 64.")
    lines: int = Field(description="Number of rejected lines in them.")
    by_reason: CountByReason = Field(description="Those lines by reason.")


class DeadLetter(Document):
    """A dead letter that was not redriven."""

    kind: Literal["dead_letter"] = Field(description="Always `dead_letter`.")
    manifest_id: str = Field(description="Id of the manifest.")
    date: Date = Field(description="Date of the manifest.")
    reason: str = Field(description="Reason, as one word.")
    message: str = Field(description="What is wrong, where, and what was expected.")
    source_uri: str = Field(description="URI that the manifest was read from.")
    run_id: str = Field(description="Run that decided.")
    decided_at: Time = Field(description="Time of the decision.")


class DeadLetters(Document):
    """Manifests that became dead letters."""

    manifests: int = Field(description="Number of all dead letters, redriven or not.")
    looked_at: int = Field(description="Number of those that were read: the latest 50. The other keys are about these.")
    open: int = Field(description="Number of those that were not redriven.")
    by_reason: CountByReason = Field(description="Open dead letters by reason.")
    latest: list[DeadLetter] = Field(description="Latest open dead letters, at most five.")


class QuarantinedFile(Document):
    """A quarantined file that was not redriven."""

    uri: str = Field(description="URI of the file.")
    manifest_id: str = Field(description="Manifest that names the file.")
    status: FileStatus = Field(description="Why the file was quarantined.")
    detail: str = Field(description="What was found, and what was expected.")
    committed_at: Time = Field(description="Time at which its manifest was committed.")
    redriven: bool | None = Field(description="False: only such files are listed; null if that could not be read.")


class QuarantinedFiles(Document):
    """Quarantined input files that were not redriven."""

    commits: int = Field(description="Number of latest commits that were read.")
    open: int = Field(description="Number of files.")
    by_status: dict[str, int] = Field(description="Those files by status.")
    latest: list[QuarantinedFile] = Field(description="Latest of those files, at most five.")


class Schema(Document):
    """The latest schema version."""

    version: int = Field(description="Number of the version; 0 before the first.")
    columns: int = Field(description="Number of its columns.")
    newest_column: str = Field(description="Last column; empty if there is none.")
    changed_at: Time | None = Field(description="Time at which the version was created; null before the first.")


class Cost(Document):
    """What the workers have cost, at list prices. All keys but `reason` are null if it is not known."""

    reason: str = Field(description="Why the cost is not known, such as `not on Glue`; else empty.")
    job: Job | None = Field(description="Workers of the latest run on Glue.")
    run_seconds: float | None = Field(description="Age of that run.")
    run_dollars: float | None = Field(description="Cost of that run so far.")
    day_dollars: float | None = Field(description="Cost of all runs of the last 24 hours.")
    dollars_per_hour: float | None = Field(description="Price of the latest run's workers for an hour.")
    dollars_per_terabyte: float | None = Field(
        description="Cost per terabyte of input over the latest commits, pauses included; null without commits."
    )


class Status(Document):
    """How the job is doing. It reads at most 200 waiting manifests, 64 commit summaries and 50 dead letters."""

    as_of: Time = Field(description="Time at which all of this was read.")
    state: State = Field(description="Summary.")
    runs: list[StatusRun] = Field(description="Runs that sent a heartbeat in the last 40 seconds.")
    last_heartbeat_at: Time | None = Field(
        description="Last heartbeat of a run that ended without signing off; null if there is none or a job runs."
    )
    backlog: Backlog = Field(description="Work that is not done.")
    rates: Rates = Field(description="Stored input bytes per second.")
    drain: Drain = Field(description="Time until the backlog is empty.")
    latency: Latency | None = Field(description="Time from arrival to visible; null before the first commit.")
    rejects: Rejects = Field(description="Rejected lines of the latest commits.")
    dead_letters: DeadLetters = Field(description="Manifests that became dead letters.")
    quarantined_files: QuarantinedFiles = Field(description="Quarantined input files that were not redriven.")
    schema_: Schema = Field(alias="schema", description="The latest schema version.")
    recent: list[RecentCommit] = Field(description="Summaries of the latest commits, oldest first, at most 64.")
    ratio: float | None = Field(description="Parquet bytes per decoded input byte, as learned; null before that.")
    cost: Cost = Field(description="What the workers have cost.")


class StatusFailure(Document):
    """What `--watch` prints when nothing can be read."""

    as_of: Time = Field(description="Time of the attempt to read.")
    error: str = Field(description="Why nothing could be read.")


Root = Status | StatusFailure
