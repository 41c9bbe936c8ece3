"""The health model: every condition of the job, how bad it is, and what to do about it. Decisions, no I/O.

The control plane raises conditions as alarms and advice, `status` shows the most urgent one, and `report` lists those
of a period. A CloudWatch alarm about the same facts has the same name, with `-` for `_`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from compactor.core.formatting import count, shown_seconds
from compactor.ledger.backlog import Backlog

Word = Literal["stuck", "stopped", "stopping", "behind", "needs_you", "running", "idle", "empty"]
"""The state of the job, as `status` gives it to people and scripts."""

Severity = Literal["act", "look", "in_order", "nothing"]
"""A person has to act; something is worth a check; all is well; nothing has happened at all."""


class Condition(StrEnum):
    """What the job can be in, the most urgent first: several may hold at once."""

    NO_PROGRESS = "no_progress"
    NO_HEARTBEAT = "no_heartbeat"
    CRASH_LOOP = "crash_loop"
    STOPPING = "stopping"
    OLDEST_MANIFEST = "oldest_manifest"
    FALLING_BEHIND = "falling_behind"
    QUEUE_AGE = "queue_age"
    LATE_FILES = "late_files"
    MANIFESTS_STUCK = "manifests_stuck"
    SEALER_LATE = "sealer_late"
    EVENTS_DEAD_LETTERED = "events_dead_lettered"
    MANIFESTS_DEAD_LETTERED = "manifests_dead_lettered"
    FILES_QUARANTINED = "files_quarantined"
    RECORDS_UNREADABLE = "records_unreadable"
    SEVERAL_RUNS = "several_runs"
    FOREIGN_RUN = "foreign_run"
    STATE_LASTS = "state_lasts"
    UNKNOWN_STATE = "unknown_state"
    UNKNOWN = "unknown"
    SLOW_MANIFESTS = "slow_manifests"
    TOO_FEW_WORKERS = "too_few_workers"
    TOO_MANY_WORKERS = "too_many_workers"
    REJECTS_RATE = "rejects_rate"
    OFF_TARGET_SIZES = "off_target_sizes"
    CLOCKS_OFF = "clocks_off"
    RUNNING = "running"
    IDLE = "idle"
    ALL_DONE = "all_done"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a condition says of the job.

    Attributes:
        word: The state of the job while nothing more urgent holds.
        severity: How bad it is.
        next_move: The next action, unless a finding names a better one; empty if there is none.
    """

    word: Word
    severity: Severity
    next_move: str = ""


_ADD_WORKERS = "add workers (compactor cost tells what they cost)"

MEANINGS: dict[Condition, Meaning] = {
    Condition.NO_PROGRESS: Meaning("stuck", "act", "read the job's log; compactor stop, then start it again"),
    Condition.NO_HEARTBEAT: Meaning("stopped", "act", "read the end of the job's log"),
    Condition.CRASH_LOOP: Meaning("stopped", "act", "fix the cause, then compactor control --close-breaker"),
    Condition.STOPPING: Meaning("stopping", "in_order"),
    Condition.OLDEST_MANIFEST: Meaning("behind", "look", _ADD_WORKERS),
    Condition.FALLING_BEHIND: Meaning("behind", "look", _ADD_WORKERS),
    Condition.QUEUE_AGE: Meaning("behind", "look", "read the builder's log"),
    Condition.LATE_FILES: Meaning("behind", "look", _ADD_WORKERS),
    Condition.MANIFESTS_STUCK: Meaning("needs_you", "act", "the line manifest.stuck in the job's log names the object"),
    Condition.SEALER_LATE: Meaning("needs_you", "act", "read the sealer's log"),
    Condition.EVENTS_DEAD_LETTERED: Meaning(
        "needs_you", "act", "read one of them and the builder's log, fix the cause, then redrive the queue"
    ),
    Condition.MANIFESTS_DEAD_LETTERED: Meaning("needs_you", "act", "fix the cause, then compactor redrive manifests"),
    Condition.FILES_QUARANTINED: Meaning("needs_you", "act", "fix the cause, then compactor redrive files"),
    Condition.RECORDS_UNREADABLE: Meaning("needs_you", "act", "compactor verify names what is damaged"),
    Condition.SEVERAL_RUNS: Meaning("needs_you", "act", "stop all but one, and set MaxConcurrentRuns of the job to 1"),
    Condition.FOREIGN_RUN: Meaning("needs_you", "look", "end it with compactor stop if the job should run on Glue"),
    Condition.STATE_LASTS: Meaning("needs_you", "act", "see Glue's console"),
    Condition.UNKNOWN_STATE: Meaning("needs_you", "look", "see Glue's console, and deploy a newer release"),
    Condition.UNKNOWN: Meaning("needs_you", "look", "if it lasts, run compactor doctor --elsewhere"),
    Condition.SLOW_MANIFESTS: Meaning("running", "look", "add workers, or lower builder.target_manifest_bytes"),
    Condition.TOO_FEW_WORKERS: Meaning("running", "look", _ADD_WORKERS),
    Condition.TOO_MANY_WORKERS: Meaning("running", "look", 'use fewer workers, or control.mode = "on_work"'),
    Condition.REJECTS_RATE: Meaning("running", "look", "tell the producer, then compactor redrive rejects"),
    Condition.OFF_TARGET_SIZES: Meaning("running", "look"),
    Condition.CLOCKS_OFF: Meaning("running", "look", "check the clocks of the machines that ran the job"),
    Condition.RUNNING: Meaning("running", "in_order"),
    Condition.IDLE: Meaning("idle", "in_order"),
    Condition.ALL_DONE: Meaning("stopped", "in_order", "compactor plan PREFIX, if there is new input"),
    Condition.EMPTY: Meaning("empty", "nothing", "compactor plan PREFIX, then compactor run"),
}

_RANKS = {condition: rank for rank, condition in enumerate(Condition)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition that holds.

    Attributes:
        condition: Which one.
        reason: Why it is known to hold, as a sentence without its full stop.
        next_move: What to do about it, often a command; empty if nothing has to be done.
        subject: What it is about where a condition may hold of several things, as one word.
    """

    condition: Condition
    reason: str
    next_move: str
    subject: str = ""

    @property
    def name(self) -> str:
        """One word that stays the same as long as the cause does."""
        return f"{self.condition}_{self.subject}" if self.subject else str(self.condition)

    @property
    def word(self) -> Word:
        return MEANINGS[self.condition].word

    @property
    def severity(self) -> Severity:
        return MEANINGS[self.condition].severity

    def __str__(self) -> str:
        return f"{self.reason}; {self.next_move}" if self.next_move else self.reason


def finding(condition: Condition, reason: str, next_move: str = "", *, subject: str = "") -> Finding:
    """A finding with the condition's own next action, unless a better one is given."""
    return Finding(condition, reason, next_move or MEANINGS[condition].next_move, subject)


def most_urgent(findings: Iterable[Finding]) -> Finding:
    """The one that `status` shows."""
    return min(findings, key=lambda each: _RANKS[each.condition])


def waiting_work(backlog: Backlog | None) -> str:
    """The work that waits for the job, in words; empty if there is none, or if it is not known."""
    if backlog is None or not (backlog.manifests or backlog.begun_manifests):
        return ""
    if not backlog.manifests:
        begun = backlog.begun_manifests
        return f"{count(begun, 'manifest')} {'is' if begun == 1 else 'are'} begun and not done"
    oldest = shown_seconds(backlog.oldest_seconds)
    if backlog.manifests == 1:
        return f"1 manifest waits or is in progress, for {oldest}"
    return f"{backlog.manifests:,} manifests wait or are in progress, the oldest for {oldest}"


def is_late(backlog: Backlog, sla_seconds: float) -> bool:
    """Whether a manifest has waited for as long as it may."""
    return bool(backlog.manifests) and backlog.oldest_seconds >= sla_seconds


def lacks_progress(
    backlog: Backlog, *, up_since: datetime, last_commit_at: datetime | None, stall_seconds: float, now: datetime
) -> bool:
    """Whether a run that is up has committed nothing for too long although work waits.

    Args:
        backlog: The work that waits.
        up_since: The start of the run.
        last_commit_at: The latest commit of any run; None before the first.
        stall_seconds: How long is too long, for the run as for the oldest manifest.
        now: The time.
    """
    since = max(up_since, last_commit_at or up_since)
    return is_late(backlog, stall_seconds) and (now - since).total_seconds() >= stall_seconds
