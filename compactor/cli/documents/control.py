"""What `compactor control --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document, Job, RecentCommit, Time
from compactor.control.actions import ActionKind
from compactor.control.runs import JobState


class GlueRun(Document):
    """A run of the job, as Glue reports it."""

    run_id: str = Field(description="Glue's id of the run.")
    state: JobState = Field(description="Glue's state of the run.")
    started_at: Time = Field(description="Time at which the run was requested.")
    changed_at: Time = Field(description="Time of the last change.")
    ended_at: Time | None = Field(description="End of the run; null while it is alive.")
    error: str = Field(description="Glue's error message; empty if there is none.")
    size: Job | None = Field(description="Workers; null if Glue does not report them.")


class LivingRun(Document):
    """A run with a recent heartbeat."""

    run_id: str = Field(description="Id of the run.")
    host: str = Field(description="Machine and boot that it runs on.")
    started_at: Time = Field(description="Start of the run.")
    heartbeat_at: Time = Field(description="Last heartbeat.")
    asked_to_stop_at: Time | None = Field(description="Time at which it was asked to stop; null if it was not.")


class Heartbeats(Document):
    """Heartbeats of all runs."""

    last_at: Time | None = Field(description="Last heartbeat of any run; null if there is none.")
    living: list[LivingRun] = Field(description="Runs with a recent heartbeat.")


class Queue(Document):
    """The queue of S3 events."""

    waiting: int = Field(description="Number of messages that wait.")
    in_flight: int = Field(description="Number of messages in flight.")


class Backlog(Document):
    """Manifests that wait."""

    manifests: int = Field(description="Number of manifests.")
    oldest_seconds: float = Field(description="Age of the oldest; 0 if there is none.")


class Snapshot(Document):
    """What the control plane saw. Null means unknown, never zero."""

    runs: list[GlueRun] | None = Field(description="Glue's runs of the last 15 days, newest first.")
    heartbeats: Heartbeats | None = Field(description="Heartbeats of all runs.")
    queue: Queue | None = Field(description="The queue of S3 events; null also if there is none.")
    queue_oldest_seconds: float | None = Field(description="Age of the oldest message; null also if there is none.")
    dead_letters: int | None = Field(description="Messages in the dead-letter queue; null also if there is none.")
    backlog: Backlog | None = Field(description="Manifests that wait.")
    recent: list[RecentCommit] | None = Field(description="Summaries of the latest commits, oldest first.")
    breaker_closed_at: Time | None = Field(description="Time at which the breaker was last closed by hand.")
    unknown: dict[str, str] = Field(description="Why a source could not be read, by source.")


class Action(Document):
    """What was decided."""

    kind: ActionKind = Field(description="Kind of action.")
    reason: str = Field(description="Reason, in words.")
    targets: list[str] = Field(description="Ids of the runs it is about.")
    about: str = Field(description="Subject of an alarm or advice, as one word; else empty.")


class Check(Document):
    """One check of the control plane. With `--dry-run` nothing is done."""

    snapshot: Snapshot = Field(description="What the control plane saw.")
    actions: list[Action] = Field(description="What was decided.")
    done: list[str] = Field(description="What was done, in words; empty in a dry run.")
    failed: list[str] = Field(description="What could not be done, in words.")


class BreakerClosed(Document):
    """What `--close-breaker` prints."""

    closed_at: Time = Field(description="Failures before this time no longer count.")


Root = Check | BreakerClosed
