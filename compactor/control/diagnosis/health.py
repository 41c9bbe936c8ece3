"""The health model: every condition of the job, its severity, and what to do about it. Decisions, no I/O.

The control plane raises conditions as alarms, `status` shows the most urgent one, and `report` lists those in a period.
A CloudWatch alarm for the same facts has the same name, with `-` for `_`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, Self

from compactor.core.errors import TableHeldBack
from compactor.core.results import as_document
from compactor.core.text.formatting import count, shown_seconds
from compactor.ledger.backlog import Backlog, WaitingManifests
from compactor.schema.schema import ColumnsUsed

Word = Literal["stuck", "stopped", "stopping", "behind", "needs_you", "running", "idle", "empty"]
"""The state of the job, as `status` shows it to people and scripts."""

Severity = Literal["act", "look", "in_order", "nothing"]
"""Needs an operator; worth a check; healthy; nothing has happened at all."""

_ADD_WORKERS = "add workers (see compactor cost estimate)"


class Condition(StrEnum):
    """Conditions of the job, most urgent first. Several may hold at once."""

    word: Word  # the state of the job while nothing more urgent holds
    severity: Severity

    next_move: str  # the next action, unless a finding gives a better one; empty if there is none

    def __new__(cls, value: str, word: Word, severity: Severity, next_move: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.word, member.severity, member.next_move = word, severity, next_move
        return member

    NO_PROGRESS = "no_progress", "stuck", "act", "read the job's log; compactor stop, then start it again"
    NO_HEARTBEAT = "no_heartbeat", "stopped", "act", "stop that run; the control plane starts another"
    CRASH_LOOP = (
        "crash_loop",
        "stopped",
        "act",
        "fix the cause and deploy it, or run compactor job check --close-breaker",
    )
    STARTS_REFUSED = (
        "starts_refused",
        "stopped",
        "act",
        "check the job's runs in the AWS console, and stop any that hang",
    )
    STOPPING = "stopping", "stopping", "in_order"
    TABLE_BEHIND = (
        "table_behind",
        "behind",
        "act",
        "check that the table's catalog accepts commits; table.not_committed in the job's log has the error",
    )
    LOG_BEHIND = (
        "log_behind",
        "behind",
        "act",
        "check that a job runs; see compactor doctor, and landing.failed in the job's log",
    )
    OLDEST_MANIFEST = "oldest_manifest", "behind", "look", _ADD_WORKERS
    FALLING_BEHIND = "falling_behind", "behind", "look", _ADD_WORKERS
    QUEUE_AGE = "queue_age", "behind", "look", "read the builder's log"
    LATE_FILES = "late_files", "behind", "look"
    # Such a manifest is stuck, too; this condition is the informative one.
    MANIFESTS_HELD_BACK = (
        "manifests_held_back",
        "needs_you",
        "act",
        f"compactor table check lists them with the reason; {TableHeldBack.next_move}",
    )
    MANIFESTS_STUCK = (
        "manifests_stuck",
        "needs_you",
        "act",
        "restore the object that manifest.stuck in the job's log names",
    )
    SEALER_LATE = "sealer_late", "needs_you", "act", "read the sealer's log"
    EVENTS_DEAD_LETTERED = (
        "events_dead_lettered",
        "needs_you",
        "act",
        "read one of them and the builder's log, fix the cause, then redrive the queue",
    )
    MANIFESTS_DEAD_LETTERED = (
        "manifests_dead_lettered",
        "needs_you",
        "act",
        "fix the cause, then compactor redrive manifests",
    )
    FILES_QUARANTINED = "files_quarantined", "needs_you", "act", "fix the cause, then compactor redrive files"
    FEW_ROWS = (
        "few_rows",
        "needs_you",
        "act",
        "compactor rejects shows the faults; the input may not be NDJSON, which has one JSON object per line",
    )
    COLUMNS_NEARLY_FULL = (
        "columns_nearly_full",
        "needs_you",
        "act",
        "compactor schema show shows the files that added them; compactor schema retire makes room",
    )
    RECORDS_UNREADABLE = "records_unreadable", "needs_you", "act", "compactor verify reports the damage"
    SEVERAL_RUNS = "several_runs", "needs_you", "act", "stop all but one, and set MaxConcurrentRuns of the job to 1"
    FOREIGN_RUN = (
        "foreign_run",
        "needs_you",
        "look",
        "end it with compactor stop if the control plane should run the job",
    )
    SHARD_DOWN = "shard_down", "needs_you", "look", "compactor job check --dry-run --shard shows why it is not started"
    SHARDS_WAIT = "shards_wait", "needs_you", "look", "end the run without a shard with compactor stop"
    HOUSEKEEPING_FAILS = (
        "housekeeping_fails",
        "needs_you",
        "look",
        "fix the cause; a running job retries by itself",
    )
    STATE_LASTS = "state_lasts", "needs_you", "act", "see the run in the AWS console"
    UNKNOWN_STATE = "unknown_state", "needs_you", "look", "see the run in the AWS console, and deploy a newer release"
    UNKNOWN = "unknown", "needs_you", "look", "if it lasts, run compactor doctor --elsewhere"
    SLOW_MANIFESTS = "slow_manifests", "running", "look", "add workers, or lower builder.target_manifest_bytes"
    REJECTS_RATE = "rejects_rate", "running", "look", "inform the producer: compactor rejects shows the faults"
    OFF_TARGET_SIZES = "off_target_sizes", "running", "look"
    CLOCKS_OFF = "clocks_off", "running", "look"
    RUNNING = "running", "running", "in_order"
    IDLE = "idle", "idle", "in_order"
    FOLDER_DONE = "folder_done", "idle", "in_order"
    ALL_DONE = "all_done", "stopped", "in_order", "compactor plan PREFIX, if there is new input"
    EMPTY = "empty", "empty", "nothing", "compactor plan PREFIX, then compactor run"


_RANKS = {condition: rank for rank, condition in enumerate(Condition)}


@as_document(shows=("word", "severity"), omits=("subject",))
@dataclass(frozen=True, slots=True)
class Finding:
    """A condition that holds."""

    condition: Condition
    reason: str  # the evidence, as a sentence without its full stop
    next_move: str  # what to do about it, often a command; empty if nothing is needed
    subject: str = ""  # the affected thing, as one word, if a condition may affect several

    @property
    def name(self) -> str:
        """One word that stays the same while the cause lasts."""
        return f"{self.condition}_{self.subject}" if self.subject else str(self.condition)

    @property
    def word(self) -> Word:
        """State, as one word."""
        return self.condition.word

    @property
    def severity(self) -> Severity:
        """Whether it needs an operator, or a check."""
        return self.condition.severity

    @property
    def needs_operator(self) -> bool:
        """Whether `status` ends with exit code 3: an operator must act, or the state is named so."""
        return self.severity == "act" or self.word == "needs_you"

    @property
    def text(self) -> str:
        """The full text."""
        move = f" Next: {self.next_move}." if self.next_move else ""
        return f"{self.reason[:1].upper()}{self.reason[1:]}.{move}"

    def __str__(self) -> str:
        return f"{self.reason}; {self.next_move}" if self.next_move else self.reason


def finding(condition: Condition, reason: str, next_move: str = "", *, subject: str = "") -> Finding:
    """A finding with the condition's own next action, unless a better one is given."""
    return Finding(condition, reason, next_move or condition.next_move, subject)


def most_urgent(findings: Iterable[Finding]) -> Finding:
    """The finding that `status` shows."""
    return min(findings, key=lambda each: _RANKS[each.condition])


def waiting_work(backlog: WaitingManifests | None) -> str:
    """The work that waits for the job, in words; empty if none or unknown."""
    if backlog is None or not backlog.manifests:
        return started_work(backlog.begun_manifests) if isinstance(backlog, Backlog) and backlog.begun_manifests else ""
    oldest = shown_seconds(backlog.oldest_seconds)
    if backlog.manifests == 1:
        return f"1 manifest waits or is in progress, for {oldest}"
    return f"{backlog.manifests:,} manifests wait or are in progress, the oldest for {oldest}"


def started_work(manifests: int) -> str:
    """The started manifests, in words."""
    return f"{count(manifests, 'manifest')} {'is' if manifests == 1 else 'are'} started and not done"


def is_late(backlog: WaitingManifests, sla_seconds: float) -> bool:
    """Whether a manifest has waited for the full SLA."""
    return bool(backlog.manifests) and backlog.oldest_seconds >= sla_seconds


def columns_nearly_full(used: ColumnsUsed) -> Iterator[Finding]:
    """Whether there is little room for new keys."""
    if used.is_nearly_full:
        reason = f"{used.columns:,} of {used.max_columns:,} columns are used; keys beyond them go to _rescued_data"
        yield finding(Condition.COLUMNS_NEARLY_FULL, reason)


def lacks_progress(
    backlog: WaitingManifests,
    *,
    up_since: datetime,
    last_commit_at: datetime | None,
    stall_seconds: float,
    now: datetime,
) -> bool:
    """Whether an active run has committed nothing for too long although work waits.

    Both the run and the oldest manifest must be older than `stall_seconds`. The latest commit may be from any run.
    """
    since = max(up_since, last_commit_at or up_since)
    return is_late(backlog, stall_seconds) and (now - since).total_seconds() >= stall_seconds
