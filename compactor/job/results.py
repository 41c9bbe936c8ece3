"""A manifest on its way through the job: its delivery and its result."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.counts import counts_of
from compactor.core.documents.records import Accepted, Attempt
from compactor.core.errors import ManifestError, StuckError
from compactor.core.rules.attempts import Lane
from compactor.core.rules.shares import NO_SHARE, Share
from compactor.ledger.work_time import arrival_seconds
from compactor.table.named import Published
from compactor.telemetry.logs import log_event


@dataclass(frozen=True, slots=True)
class Delivery:
    """One manifest as delivered.

    Attributes:
        uri: The object; a repeated delivery may use a different one.
        refusal: Why it is refused; None if it is accepted.
        since: When it was taken in or published, so since when it waits.
        lane: What may run at the same time.
        share: Which other manifests it takes turns with.
        alone: Whether nothing else is in flight until it ends; set when it starts.
    """

    uri: str
    digest: str
    accepted: Accepted
    refusal: ManifestError | None = None
    since: datetime | None = None
    lane: Lane = Lane.FRESH
    share: Share = NO_SHARE
    alone: bool = False

    @property
    def manifest_id(self) -> str:
        return self.accepted.manifest_id

    @property
    def place(self) -> tuple[str, str]:
        """The manifest and the object that delivered it."""
        return self.manifest_id, self.uri

    @property
    def files(self) -> int:
        return len(self.accepted.manifest.files) if self.accepted.manifest else 0

    @property
    def input_bytes(self) -> int:
        manifest = self.accepted.manifest
        return sum(file.weight_bytes for file in manifest.files) if manifest else 0


class Ending(StrEnum):
    """How far a manifest got."""

    COMMITTED = "committed"
    DEAD_LETTERED = "dead_lettered"
    ALREADY_DONE = "already_done"
    ELSEWHERE = "elsewhere"  # a living run of another shard has it
    DRAFTED = "drafted"  # its outcome is ready to be recorded
    DECIDED = "decided"  # its outcome is recorded
    PUBLISHED = "published"  # its files are published; it is done once the table has them
    GONE = "gone"  # nothing left to do: its object no longer exists, or belongs to another planner or shard
    NOT_DUE = "not_due"  # it failed before, and its next attempt is due later
    FAILED = "failed"  # a retry may help
    STUCK = "stuck"  # it needs an operator


FINISHED = {Ending.COMMITTED, Ending.DEAD_LETTERED, Ending.ALREADY_DONE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result for one manifest.

    Attributes:
        manifest_id: Its id; if it was not taken in, the id in the object's name.
        delivery: As taken in; None if it was not.
        outcome: The recorded or drafted outcome.
        attempts: How many attempts there were, including this one.
        new_columns: How many columns it added to the schema.
        arrival_seconds: For each file with newly visible rows, the time since its arrival.
        wasted: Whether an attempt was made, but another run decided first.
        error: Why it failed, or is stuck.
        due_at: The time of its next attempt; None if the store did not respond.
    """

    ending: Ending
    manifest_id: str
    uri: str = ""
    delivery: Delivery | None = None
    outcome: Commit | DeadLetter | None = None
    attempt: Attempt | None = None
    attempts: int = 0
    new_columns: int = 0
    arrival_seconds: tuple[float, ...] = ()
    wasted: bool = False
    error: Exception | None = None
    due_at: datetime | None = None

    @property
    def commit(self) -> Commit:
        if not isinstance(self.outcome, Commit):
            raise TypeError(f"manifest {self.manifest_id}: expected a commit")
        return self.outcome

    @property
    def verdict(self) -> Commit | DeadLetter:
        """The outcome of a manifest that has one."""
        if self.outcome is None:
            raise TypeError(f"manifest {self.manifest_id}: expected an outcome")
        return self.outcome

    @property
    def taken_in(self) -> Delivery:
        if self.delivery is None:
            raise TypeError(f"manifest {self.manifest_id}: expected it to have been taken in")
        return self.delivery

    @property
    def accepted(self) -> Accepted:
        """The record of a manifest that was taken in."""
        return self.taken_in.accepted

    @property
    def published(self) -> Published:
        """Its identity in the table."""
        return Published(self.commit.key, self.commit.generation)

    def done(self, done_at: datetime) -> "Result":
        """The result once the decided manifest is done and readers see all its files."""
        outcome = self.verdict
        if self.wasted:
            log_event("attempt.wasted", manifest_id=self.manifest_id, attempts=self.attempts)
        if outcome.generation > 1 or self.wasted:  # the run that first committed it counts its rows
            return replace(self, ending=Ending.ALREADY_DONE, attempts=0, new_columns=0)
        if not isinstance(outcome, Commit):
            return replace(self, ending=Ending.DEAD_LETTERED)
        seconds = arrival_seconds(self.accepted, outcome, done_at)
        return replace(self, ending=Ending.COMMITTED, arrival_seconds=seconds)


def result_of(
    delivery: Delivery, ending: Ending, outcome: Commit | DeadLetter | None = None, *, attempts: int = 0
) -> Result:
    """The result of a manifest that was taken in."""
    return Result(
        ending=ending,
        manifest_id=delivery.manifest_id,
        uri=delivery.uri,
        delivery=delivery,
        outcome=outcome,
        attempts=attempts,
    )


@dataclass(frozen=True, slots=True)
class Results:
    """The results for several manifests."""

    all: tuple[Result, ...] = field(default=())

    @property
    def finished(self) -> list[Result]:
        return [each for each in self.all if each.ending in FINISHED]

    @property
    def failures(self) -> dict[str, Exception]:
        return {each.manifest_id: each.error for each in self.all if each.ending is Ending.FAILED and each.error}

    @property
    def stuck(self) -> dict[str, StuckError]:
        return {each.manifest_id: each.error for each in self.all if isinstance(each.error, StuckError)}

    def seconds(self, now: datetime) -> float:
        """The time since the first of them was taken in."""
        begun = [each.delivery.since for each in self.all if each.delivery and each.delivery.since]
        return (now - min(begun)).total_seconds() if begun else 0.0


def log_result(result: Result) -> None:
    """Log how a manifest ended."""
    outcome = result.outcome
    if isinstance(outcome, Commit):
        found = counts_of(outcome, with_source=False)
        log_event(
            "manifest.committed",
            manifest_id=result.manifest_id,
            input_files=found.input_files,
            input_bytes=found.input_bytes,
            rows=found.rows,
            rejected_lines=found.rejected_lines,
            output_files=found.output_files,
            output_bytes=found.output_bytes,
            seconds=round((outcome.decided_at - outcome.started_at).total_seconds(), 3),
        )
    elif outcome is not None:
        log_event(
            "manifest.dead_lettered", manifest_id=result.manifest_id, reason=outcome.reason, message=outcome.message
        )
