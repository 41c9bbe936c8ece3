"""What is known of one thing that was asked for, and what to do about it. Values and decisions, no I/O."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from compactor.core.attempts import AttemptState
from compactor.core.records import NEEDS_OPERATOR, DeadLetter, FileReport
from compactor.ops.redrive.redrive_log import RedriveLogEntry
from compactor.ops.redrive.selection import Scope, left_of
from compactor.ops.trace.histories import History

TracedKind = Literal["file", "manifest", "output", "rejects"]


class TraceState(StrEnum):
    """How far something has come."""

    UNKNOWN = "unknown"  # nothing that was searched names it
    CLAIMED = "claimed"  # claimed for a manifest that is not written
    PENDING = "pending"  # announced, and waits for others to fill a manifest with
    WAITING = "waiting"  # in a manifest that nobody began
    IN_WORK = "in_work"  # in a manifest that was begun
    DECIDED = "decided"  # committed, and not all of it is in its final place yet
    DONE = "done"  # every line is in the output, in the rejects, or blank
    QUARANTINED = "quarantined"  # the file alone was set aside
    DEAD_LETTERED = "dead_lettered"  # its manifest is a dead letter


@dataclass(frozen=True, slots=True)
class TracedRedrive:
    """A redrive of what was traced, or of a part of it.

    Attributes:
        manifest_id: The manifest that it was put back as.
        kind: `manifests`, `files` or `rejects`.
        counts: What was taken, by reason.
        fate: What became of that manifest: `accepted`, `waiting`, `unwritten` or `revoked`.
    """

    manifest_id: str
    kind: str
    counts: dict[str, int]
    fate: str


@dataclass(frozen=True, slots=True)
class TracedAttempt:
    """One attempt at a manifest.

    Attributes:
        alone: Whether no other manifest was in flight.
        error: How it ended, where it ended without an outcome and its driver could say so.
        passing: Whether that trouble was not the manifest's.
    """

    number: int
    started_at: datetime
    run_id: str
    alone: bool
    error: str = ""
    passing: bool = False


@dataclass(slots=True)
class Trace:
    """What is known of one thing.

    Attributes:
        uri: As asked: a URI, or a manifest id.
        kind: What it is.
        trace_state: How far it has come.
        exists: Whether the object is there now; for a manifest, wherever that is.
        manifest_id: The manifest that names it, or wrote it.
        date: That manifest's date.
        manifest_uri: Where the manifest's object is now; empty if it is nowhere.
        attempts: At that manifest.
        report: An input file's audit, once there is one.
        files: Input files of a manifest, or those that an output file has rows of, with their audit.
        outputs: Parquet files of the manifest; an input file's rows are in them.
        rejects: Files of the manifest's rejects, if this file has any.
        redriven_from: The manifest that this one was redriven from; empty if it was not.
        origin: The file whose rejected lines a file of redriven lines holds.
        redriven_as: What was put back of it.
        message: Why it was set aside, where it was, or what else there is to know.
        next_moves: What to do about it, if something has to be done.
        searched: Where it was looked for, where looking was needed.
    """

    uri: str
    kind: TracedKind = "file"
    trace_state: TraceState = TraceState.UNKNOWN
    exists: bool = False
    manifest_id: str = ""
    date: str = ""
    manifest_uri: str = ""
    attempts: list[TracedAttempt] = field(default_factory=list)
    report: FileReport | None = None
    files: list[FileReport] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    rejects: list[str] = field(default_factory=list)
    redriven_from: str = ""
    origin: str = ""
    redriven_as: list[TracedRedrive] = field(default_factory=list)
    message: str = ""
    next_moves: list[str] = field(default_factory=list)
    searched: str = ""

    @property
    def needs_operator(self) -> bool:
        """Whether it was set aside, alone or with its manifest, and nobody put it back."""
        quarantined = self.trace_state in {TraceState.QUARANTINED, TraceState.DEAD_LETTERED}
        return quarantined and not any(each.kind != "rejects" and each.fate != "revoked" for each in self.redriven_as)


def add_history(trace: Trace, history: History) -> None:
    """What holds for everything of a manifest."""
    trace.manifest_id, trace.manifest_uri = history.manifest_id, history.uri
    trace.attempts = [_traced(each) for each in history.attempts]
    trace.redriven_from = history.redriven_from.source if history.redriven_from is not None else ""
    trace.redriven_as = [traced_redrive(entry) for entry in history.redriven_as]
    if history.accepted is None:
        trace.trace_state = TraceState.WAITING if history.uri else TraceState.CLAIMED
        if not history.uri:
            trace.message = "its manifest is on record as redriven, and was not written yet; redrive again"
        return
    trace.date = history.accepted.date
    if history.accepted.kind == "revoked":
        trace.trace_state = TraceState.CLAIMED
        trace.message = f"manifest {history.manifest_id} was given up by its planner; plan again"
    elif history.outcome is None:
        trace.trace_state = TraceState.IN_WORK if history.attempts else TraceState.WAITING
    elif isinstance(history.outcome, DeadLetter):
        trace.trace_state = TraceState.DEAD_LETTERED
        trace.message = f"{history.outcome.reason}: {history.outcome.message}"
    else:
        trace.trace_state = TraceState.DONE if history.is_done else TraceState.DECIDED


def traced_redrive(entry: RedriveLogEntry) -> TracedRedrive:
    """A redrive as a trace shows it."""
    redrive = entry.redrive
    return TracedRedrive(redrive.manifest.manifest_id, redrive.kind, redrive.counts, entry.fate)


def moves_of_manifest(history: History) -> list[str]:
    """The commands that put back what of a manifest was set aside and is not put back yet."""
    made_by = history.redriven_from
    if made_by is not None and history.accepted is None and not history.uri:
        return [f"compactor redrive {made_by.kind} {made_by.source}"]
    if history.outcome is None or not history.is_done:
        return []
    redrives = [entry.redrive for entry in history.redriven_as if entry.in_effect]
    return [
        f"compactor redrive {kind} {history.manifest_id}"
        for kind in ("manifests", "files", "rejects")
        if left_of(Scope(kind), history.outcome, redrives)
    ]


def moves_of_file(history: History, report: FileReport) -> list[str]:
    """The command that takes in again a file that was set aside."""
    if report.status in NEEDS_OPERATOR:
        return [move for move in moves_of_manifest(history) if " files " in move]
    return [move_to_plan(report.uri)]


def move_to_plan(uri: str) -> str:
    """The command that takes in a file that is in no manifest."""
    return f"compactor plan {uri.rpartition('/')[0]}"


def _traced(state: AttemptState) -> TracedAttempt:
    attempt, failure = state.attempt, state.failure
    return TracedAttempt(
        attempt.number,
        attempt.started_at,
        attempt.run_id,
        attempt.alone,
        failure.error if failure else "",
        failure.passing if failure else False,
    )
