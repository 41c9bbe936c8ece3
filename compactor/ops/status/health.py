"""How the job stands, in one word, with the reason and the next move in words. Decisions, no I/O."""

from dataclasses import dataclass
from datetime import datetime

from compactor.core.formatting import shown_seconds
from compactor.ops.status.values import Backlog, DeadLetters, Drain, FilesQuarantined, LivingRun, State

STALE_PENDING = 5
"""A part that waited for so many times the longest wait was forgotten by the sealer."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is too long.

    Attributes:
        sla_seconds: For a manifest to wait.
        stall_seconds: For a run to commit nothing while work waits, and for a manifest to be in work.
        max_wait_seconds: For an announced file to wait for others.
        is_on_glue: Whether the control plane starts the job, and not a person.
    """

    sla_seconds: float
    stall_seconds: float
    max_wait_seconds: float
    is_on_glue: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What is decided on.

    Attributes:
        runs: Those that are alive.
        last_sign_at: The last sign of a run that did not sign off; None if there is none on record.
        last_commit_at: None if nothing was ever committed.
    """

    now: datetime
    runs: tuple[LivingRun, ...]
    last_sign_at: datetime | None
    last_commit_at: datetime | None
    backlog: Backlog
    drain: Drain
    dead_letters: DeadLetters
    quarantined_files: FilesQuarantined

    def ago(self, moment: datetime) -> str:
        """The time since then, in words."""
        return shown_seconds((self.now - moment).total_seconds())


def health(facts: Facts, rules: Rules) -> State:
    """How the job stands.

    What keeps data from getting through at all comes before what makes it late, and that before what was set aside.
    """
    return (
        _stuck(facts, rules)
        or _down(facts, rules)
        or _stopping(facts)
        or _behind(facts, rules)
        or _needs_you(facts, rules)
        or _quiet(facts)
    )


def _stuck(facts: Facts, rules: Rules) -> State | None:
    backlog = facts.backlog
    if not (facts.runs and backlog.manifests and backlog.oldest_seconds >= rules.stall_seconds):
        return None
    since = max([min(run.started_at for run in facts.runs), *([facts.last_commit_at] if facts.last_commit_at else [])])
    if (facts.now - since).total_seconds() < rules.stall_seconds:
        return None
    reason = f"a job runs but committed nothing for {facts.ago(since)}, and {_waiting(backlog)}"
    if backlog.oldest_begun:
        return State("stuck", reason, f"compactor trace {backlog.oldest_begun}, and the job's log")
    return State("stuck", reason, "read the job's log; compactor stop, then start it again")


def _down(facts: Facts, rules: Rules) -> State | None:
    if facts.runs or not (facts.backlog.manifests or facts.backlog.begun_manifests):
        return None
    move = (
        "compactor control --dry-run says why it is not started"
        if rules.is_on_glue
        else "compactor run goes on where it was left"
    )
    died = facts.last_sign_at
    why = "no job runs" if died is None else f"the job died: its last sign of life is {facts.ago(died)} old"
    return State("stopped", f"{why}, and {_waiting(facts.backlog)}", move)


def _stopping(facts: Facts) -> State | None:
    asked = [run.asked_to_stop_at for run in facts.runs if run.asked_to_stop_at is not None]
    if not asked or len(asked) < len(facts.runs):
        return None
    return State("stopping", f"asked to end {facts.ago(min(asked))} ago; it ends after the batch in flight")


def _behind(facts: Facts, rules: Rules) -> State | None:
    backlog, seconds = facts.backlog, facts.drain.seconds
    is_late = backlog.oldest_seconds >= rules.sla_seconds
    is_losing = facts.drain.is_never and backlog.oldest_seconds >= rules.sla_seconds / 2
    if not facts.runs or not backlog.manifests or not (is_late or is_losing):
        return None
    reason = f"{_waiting(backlog)}; the SLA is {shown_seconds(rules.sla_seconds)}"
    if seconds is None:
        return State(
            "behind", f"{reason}, and {facts.drain.reason}", "add workers (compactor cost tells what they cost)"
        )
    move = f"wait {shown_seconds(seconds)} until it is drained, or add workers"
    return State("behind", reason, move)


def _needs_you(facts: Facts, rules: Rules) -> State | None:
    backlog, letters, files = facts.backlog, facts.dead_letters, facts.quarantined_files
    if backlog.oldest_begun and backlog.oldest_begun_seconds >= rules.stall_seconds:
        reason = f"a manifest was begun {shown_seconds(backlog.oldest_begun_seconds)} ago and is not done"
        return State("needs_you", reason, f"compactor trace {backlog.oldest_begun}")
    if backlog.pending_parts and backlog.oldest_pending_seconds >= STALE_PENDING * rules.max_wait_seconds:
        reason = f"announced files wait for {shown_seconds(backlog.oldest_pending_seconds)}, and nobody seals them"
        return State("needs_you", reason, "read the log of the function that seals manifests")
    if letters.open:
        what = "1 manifest is a dead letter" if letters.open == 1 else f"{letters.open:,} manifests are dead letters"
        named = f"compactor trace {letters.latest[0].manifest_id}, then " if letters.latest else ""
        return State("needs_you", what, f"{named}compactor redrive manifests")
    if files.open:
        what = "1 input file was set aside" if files.open == 1 else f"{files.open:,} input files were set aside"
        return State("needs_you", what, "mend the cause, then compactor redrive files")
    return None


def _quiet(facts: Facts) -> State:
    last = f"the last commit was {facts.ago(facts.last_commit_at)} ago" if facts.last_commit_at else ""
    if facts.runs:
        if facts.backlog.manifests or facts.backlog.begun_manifests:
            return State("running", _waiting(facts.backlog))
        return State("idle", f"nothing waits; {last or 'nothing was committed yet'}")
    if not last:
        return State(
            "empty", "nothing was committed here yet, and nothing waits", "compactor plan PREFIX, then compactor run"
        )
    return State("stopped", f"no job runs, and nothing waits; {last}", "compactor plan PREFIX, if there is new input")


def _waiting(backlog: Backlog) -> str:
    if not backlog.manifests:
        begun = backlog.begun_manifests
        return "1 manifest is begun and not done" if begun == 1 else f"{begun:,} manifests are begun and not done"
    oldest = shown_seconds(backlog.oldest_seconds)
    if backlog.manifests == 1:
        return f"1 manifest waits or is in work, for {oldest}"
    return f"{backlog.manifests:,} manifests wait or are in work, the oldest for {oldest}"
