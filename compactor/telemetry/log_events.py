"""The catalogue of log events: what each means, its fields, and the next action."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]

EventName = Literal[
    "batch.finished",
    "checkpoints.kept",
    "command.failed",
    "commit.not_remembered",
    "control.action_failed",
    "control.decided",
    "control.not_told",
    "control.notices_unread",
    "control.other_job",
    "control.runs_already",
    "control.source_unknown",
    "files.held",
    "group.not_built",
    "group.not_sealed",
    "job.failed",
    "job.started",
    "manifest.committed",
    "manifest.dead_lettered",
    "manifest.failed",
    "manifest.redriven",
    "manifest.stuck",
    "manifests.unseen_by_stream",
    "message.unreadable",
    "messages.built",
    "metrics.dropped",
    "metrics.emitted",
    "metrics.not_flushed",
    "metrics.not_sent",
    "metrics.not_understood",
    "metrics.unfit",
    "orphans.swept",
    "part.unreadable",
    "parts.sealed",
    "planning.waiting",
    "recovery.started",
    "redrive.healed",
    "redrive.refused",
    "retention.failed",
    "retention.finished",
    "run.asked_to_stop",
    "run.heartbeat_failed",
    "run.heartbeat_left",
    "stream.restarting",
]
"""Every event name, so that a type checker finds a misspelled one."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One kind of event.

    Attributes:
        name: As `noun.past_participle`.
        level: Severity.
        meaning: What happened.
        fields: The meaning of each field by its name. A call passes exactly these fields.
        next_move: The next action; every warning and every error has one.
    """

    name: EventName
    level: Level
    meaning: str
    fields: Mapping[str, str] = field(default_factory=dict)
    next_move: str = ""


COMMON_FIELDS = {
    "time": "UTC, ISO 8601",
    "level": "severity",
    "event": "name of the event",
    "run_id": "run of the job; only during a run",
    "next": "next action; on warnings and errors",
    "traceback": "call stack of an unexpected error, without values",
}
"""Fields that the log adds to every event."""

OF_THE_ERROR = "the next action of the error"
"""The next action of events that report errors of several classes, each of which has its own."""

_MANIFEST = "manifest"
_ERROR = "error"
_NO_NEED = "none, unless it repeats"

_OF_THE_JOB = (
    LogEvent(
        "job.started",
        "info",
        "the job started on Glue",
        {"config": "settings file", "overridden": "settings that job arguments override"},
    ),
    LogEvent("job.failed", "error", "the job on Glue failed", {"error": _ERROR}, OF_THE_ERROR),
    LogEvent(
        "recovery.started", "info", "the run resumes manifests of earlier runs", {"open_manifests": "number of them"}
    ),
    LogEvent(
        "manifests.unseen_by_stream",
        "info",
        "the job processes manifests that Spark's file source does not deliver",
        {"manifests": "number of them"},
    ),
    LogEvent(
        "batch.finished",
        "info",
        "a micro-batch finished",
        {
            "manifests": "manifests that finished",
            "failed": "manifests to retry",
            "stuck": "manifests that need an operator",
            "seconds": "duration",
        },
    ),
    LogEvent(
        "stream.restarting",
        "warning",
        "a batch or the stream failed; the stream restarts",
        {"failures": "consecutive failures", "pause_seconds": "length of the pause", "error": _ERROR},
        "none if it recovers; else read manifest.failed",
    ),
    LogEvent("run.asked_to_stop", "info", "a stop request told the run to end after its batch"),
    LogEvent(
        "run.heartbeat_failed",
        "warning",
        "the run could not write its heartbeat; another run may consider it dead",
        {"error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "run.heartbeat_left",
        "warning",
        "the run ended but could not delete its heartbeat; a later run deletes it",
        {"error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "command.failed",
        "error",
        "a command or the job hit an unexpected error",
        {"command": "its name", "error": _ERROR},
        "run it again; nothing was lost. If it fails again, report the traceback",
    ),
)

_OF_MANIFESTS = (
    LogEvent(
        "manifest.committed",
        "info",
        "a manifest was committed and its rows are visible",
        {
            "manifest_id": _MANIFEST,
            "files": "input files",
            "input_bytes": "their stored size",
            "rows": "rows that became visible",
            "rejected_lines": "rejected lines",
            "output_files": "Parquet files of rows",
            "output_bytes": "their size",
            "seconds": "from the attempt's start to its commit",
        },
    ),
    LogEvent(
        "manifest.dead_lettered",
        "warning",
        "a manifest became a dead letter; none of its rows are in the output",
        {"manifest_id": _MANIFEST, "reason": "one of `manifest.REASONS`", "message": "what was wrong, and where"},
        "fix what the message names; `compactor redrive manifests`",
    ),
    LogEvent(
        "manifest.failed",
        "error",
        "an attempt failed; the job retries, and after stream.max_attempts makes the manifest a dead letter",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        "if the next attempt fails too, fix what the error names",
    ),
    LogEvent(
        "manifest.stuck",
        "error",
        "a manifest needs an operator; the job continues with the others",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        OF_THE_ERROR,
    ),
    LogEvent(
        "commit.not_remembered",
        "warning",
        "the run could not save the summary of a commit for sizing; the commit is valid",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        _NO_NEED,
    ),
)

_OF_RETENTION = (
    LogEvent(
        "orphans.swept", "info", "staging and checkpoints of dead runs were deleted", {"removed": "objects by kind"}
    ),
    LogEvent(
        "checkpoints.kept",
        "warning",
        "the run could not delete its own checkpoints; a later run deletes them",
        {"error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "retention.finished",
        "info",
        "the daily clean-up finished",
        {
            "removed": "deleted objects by kind",
            "removed_bytes": "their size",
            "kept": "kept objects by reason",
        },
    ),
    LogEvent(
        "retention.failed",
        "warning",
        "the daily clean-up failed; the job retries",
        {"error": _ERROR},
        "if it fails for days, fix what the error names; `compactor clean`",
    ),
)

_OF_BUILDING = (
    LogEvent(
        "messages.built",
        "info",
        "the builder processed a batch of S3 events",
        {
            "messages": "messages received",
            "files": "files they announce",
            "repeated": "files claimed before",
            "skipped": "objects that are not data, by reason",
            "manifests": "manifests written",
            "parts": "pending parts written",
            "failed": "messages returned to the queue",
        },
    ),
    LogEvent(
        "message.unreadable",
        "error",
        "a message is not an S3 event; SQS moves it to the dead-letter queue",
        {"message_id": "SQS message id", "error": _ERROR},
        "read it there and fix the sender; move it back if it announces files",
    ),
    LogEvent(
        "group.not_built",
        "warning",
        "the builder could not build a manifest; its messages return to the queue",
        {"manifest_id": _MANIFEST, "files": "files in it", "error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "files.held",
        "warning",
        "another builder call holds claims on files; the queue redelivers the messages",
        {"files": "number of them", "first": "first of them", "until": "end of the last lease"},
        "none until then; later, check why the builder dies or times out",
    ),
    LogEvent(
        "planning.waiting",
        "info",
        "`compactor compact` waits before it plans",
        {"waiting_for": "files still being written, or another planner", "seconds": "length of the wait"},
    ),
    LogEvent(
        "parts.sealed",
        "info",
        "the sealer processed the pending parts",
        {
            "manifests": "manifests written",
            "sealed_parts": "parts sealed into them",
            "waiting_parts": "parts still waiting",
            "oldest_seconds": "age of the oldest one",
            "discarded_parts": "parts whose files another planner has",
            "unreadable_parts": "objects that are not parts",
        },
    ),
    LogEvent(
        "part.unreadable",
        "error",
        "an object among the pending parts cannot be read; its files wait",
        {"uri": "URI of the object", "error": _ERROR},
        "restore an earlier version; or delete it, then `compactor plan`",
    ),
    LogEvent(
        "group.not_sealed",
        "warning",
        "the sealer could not seal parts; its next call retries",
        {"date": "date of the files", "parts": "number of parts", "error": _ERROR},
        _NO_NEED,
    ),
)

_OF_REDRIVING = (
    LogEvent(
        "manifest.redriven",
        "info",
        "a redrive wrote a new manifest",
        {
            "source": "original manifest",
            "manifest_id": "new manifest",
            "kind": "manifests, files or rejects",
            "counts": "redriven files or lines by reason",
        },
    ),
    LogEvent(
        "redrive.healed",
        "info",
        "a redrive wrote the manifest of an interrupted redrive",
        {"manifest_id": _MANIFEST, "source": "original manifest"},
    ),
    LogEvent(
        "redrive.refused",
        "warning",
        "a manifest, file or line cannot be redriven",
        {"manifest_id": _MANIFEST, "uri": "URI of the file; empty for all files", "why": "reason"},
        "fix what `why` names; redrive",
    ),
)

_OF_THE_CONTROL_PLANE = (
    LogEvent(
        "control.decided",
        "info",
        "the control plane decided on an action",
        {"kind": "kind of action", "about": "what it acts on", "reason": "reason in words"},
    ),
    LogEvent("control.runs_already", "info", "the job runs already; one run is enough"),
    LogEvent("control.other_job", "info", "a Glue event named another job", {"job": "its name"}),
    LogEvent(
        "control.action_failed",
        "warning",
        "an action failed; the next check decides again",
        {"kind": "kind of action", "error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "control.source_unknown",
        "warning",
        "the control plane could not read a source; its value counts as unknown",
        {"source": "its name", "error": _ERROR},
        "if it repeats, check the settings and the control plane's role",
    ),
    LogEvent(
        "control.notices_unread",
        "warning",
        "the control plane could not read its last notifications; it notifies of actions only",
        {"error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "control.not_told",
        "warning",
        "the control plane could not send a notification; the next check retries",
        {"error": _ERROR},
        "check control.topic_arn and the control plane's role",
    ),
)

_OF_METRICS = (
    LogEvent(
        "metrics.emitted",
        "info",
        'metrics, where metrics.sink is "log"',
        {"namespace": "metrics namespace", "values": "values by metric name"},
    ),
    LogEvent(
        "metrics.not_sent",
        "warning",
        "CloudWatch did not accept metrics; the sender retries unless it refused them",
        {"metrics": "number of metrics", "refused": "true if a retry cannot help", "error": _ERROR},
        "if it repeats, check that the role may put metrics",
    ),
    LogEvent(
        "metrics.not_flushed",
        "warning",
        "the time-out passed before all metrics were sent",
        {"metrics": "number of metrics", "timeout_seconds": "length of the wait"},
        "read metrics.not_sent",
    ),
    LogEvent(
        "metrics.dropped",
        "warning",
        "metrics were lost",
        {"values": "values lost now", "of_all": "values lost by this process"},
        "read metrics.not_sent; the ledger has the figures",
    ),
    LogEvent(
        "metrics.unfit",
        "warning",
        "values were skipped: not numbers, or not in the catalogue",
        {"values": "skipped values by metric name"},
        "report a bug",
    ),
    LogEvent(
        "metrics.not_understood",
        "warning",
        "a set of metrics could not be read",
        {"error": _ERROR},
        "report a bug",
    ),
)

CATALOGUE: Mapping[str, LogEvent] = {
    event.name: event
    for event in (
        *_OF_THE_JOB,
        *_OF_MANIFESTS,
        *_OF_RETENTION,
        *_OF_BUILDING,
        *_OF_REDRIVING,
        *_OF_THE_CONTROL_PLANE,
        *_OF_METRICS,
    )
}
"""All events by name."""
