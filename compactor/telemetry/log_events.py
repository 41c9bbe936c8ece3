"""The catalogue of log events: what each means, its fields, and the next action."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]

EventName = Literal[
    "batch.finished",
    "checkpoints.kept",
    "columns.nearly_full",
    "columns.refused",
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
    "run_id": "the run of the job; absent outside a run",
    "next": "next action; on warnings and errors",
    "traceback": "call stack of an unexpected error, without values",
}
"""Fields that the log adds to every event."""

OF_THE_ERROR = "the next action of the error's class"
"""The next action of events that report errors of several classes, each of which has its own."""

_MANIFEST = "manifest"
_ERROR = "error"
_NO_NEED = "none; if it repeats, check what the error names"

_OF_THE_JOB = (
    LogEvent(
        "job.started",
        "info",
        "the job started on Glue",
        {"config": "place of the settings file", "overridden": "settings that the job arguments override"},
    ),
    LogEvent("job.failed", "error", "the job on Glue failed", {"error": _ERROR}, OF_THE_ERROR),
    LogEvent(
        "recovery.started", "info", "the run resumes manifests of earlier runs", {"open_manifests": "number of them"}
    ),
    LogEvent(
        "manifests.unseen_by_stream",
        "info",
        "the watched prefix holds manifests that Spark's file source does not deliver; the job processes them now",
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
        "a batch or the stream failed; the stream restarts after a pause",
        {"failures": "consecutive failures", "pause_seconds": "length of the pause", "error": _ERROR},
        "none if it recovers; else read the preceding manifest.failed",
    ),
    LogEvent("run.asked_to_stop", "info", "a stop request told the run to end after its batch"),
    LogEvent(
        "run.heartbeat_failed",
        "warning",
        "the run could not write its heartbeat; other runs may consider it dead, which costs at most one attempt",
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
        {"command": "name of the command", "error": _ERROR},
        "run it again; nothing was lost. If it returns, report it with its traceback",
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
        "fix what the message names, then run `compactor redrive manifests`",
    ),
    LogEvent(
        "manifest.failed",
        "error",
        "an attempt at a manifest failed; the job retries it and makes it a dead letter once its attempts run out",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        "none if the next attempt works; else fix what the error names before the attempts run out",
    ),
    LogEvent(
        "manifest.stuck",
        "error",
        "a manifest needs an operator; it stays as it is, and the job goes on with the others",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        OF_THE_ERROR,
    ),
    LogEvent(
        "columns.refused",
        "warning",
        "keys of a manifest got no column; all their values are in _rescued_data",
        {"manifest_id": _MANIFEST, "keys": "such keys, at least", "new_columns": "columns that other keys got"},
        "if values are used as keys, tell the producer; if the keys are honest, raise the limits in [schema]",
    ),
    LogEvent(
        "columns.nearly_full",
        "warning",
        "at least 90 % of the columns are taken; once all are, every new key goes to _rescued_data",
        {"columns": "columns of keys", "max_columns": "the most that there may be"},
        "give the places of junk columns back with `compactor schema retire COLUMN`, or raise schema.max_columns",
    ),
    LogEvent(
        "commit.not_remembered",
        "warning",
        "the summary of a commit could not be saved, so sizing does not learn from it; the commit holds",
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
        "the daily clean-up failed; the job retries it later",
        {"error": _ERROR},
        "none; if it fails for days, fix what the error names and run `compactor clean`",
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
        "read it in the dead-letter queue, fix the sender, and move it back if it announces files",
    ),
    LogEvent(
        "group.not_built",
        "warning",
        "a manifest could not be built; its messages return to the queue",
        {"manifest_id": _MANIFEST, "files": "files in it", "error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "files.held",
        "warning",
        "another builder call holds claims on files but has not written their manifest yet; the queue "
        "redelivers their messages",
        {"files": "number of them", "first": "first of them", "until": "when the last claim expires"},
        "none; if it continues after that time, check why the builder dies or times out",
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
            "oldest_seconds": "age of the oldest waiting part",
            "discarded_parts": "parts whose files another planner took over",
            "unreadable_parts": "objects that are not parts",
        },
    ),
    LogEvent(
        "part.unreadable",
        "error",
        "an object among the pending parts cannot be read; its files wait",
        {"uri": "URI of the object", "error": _ERROR},
        "restore an earlier version; or delete it and run `compactor plan` to claim its files again",
    ),
    LogEvent(
        "group.not_sealed",
        "warning",
        "parts could not be sealed into a manifest; the next sealer call retries",
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
        "the manifest of an interrupted redrive was written now",
        {"manifest_id": _MANIFEST, "source": "original manifest"},
    ),
    LogEvent(
        "redrive.refused",
        "warning",
        "a manifest, file or line cannot be redriven",
        {"manifest_id": _MANIFEST, "uri": "URI of the file; empty for all files", "why": "reason"},
        "fix what the reason names, then redrive again",
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
    LogEvent("control.other_job", "info", "a Glue event named another job", {"job": "name of that job"}),
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
        "a source could not be read; its value counts as unknown, never as zero",
        {"source": "name of the source", "error": _ERROR},
        "none if it passes; else check the settings and whether the control plane's role may read it",
    ),
    LogEvent(
        "control.notices_unread",
        "warning",
        "the last notifications could not be read; only actions are notified",
        {"error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "control.not_told",
        "warning",
        "a notification could not be sent; the next check retries",
        {"error": _ERROR},
        "check control.topic_arn and whether the control plane's role may publish to it",
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
        "CloudWatch did not accept metrics; they are sent again unless it refused them",
        {"metrics": "number of metrics", "refused": "true if a retry cannot help", "error": _ERROR},
        "none if it passes; else check whether the role may put metrics into this namespace",
    ),
    LogEvent(
        "metrics.not_flushed",
        "warning",
        "metrics were still waiting when the time ran out",
        {"metrics": "number of metrics", "timeout_seconds": "length of the wait"},
        "none if it passes; else read the preceding metrics.not_sent",
    ),
    LogEvent(
        "metrics.dropped",
        "warning",
        "metrics were lost",
        {"values": "values lost now", "of_all": "values lost since the process started"},
        "read the preceding metrics.not_sent; graphs have gaps, the ledger has the figures",
    ),
    LogEvent(
        "metrics.unfit",
        "warning",
        "values that are not numbers or not in the catalogue were skipped",
        {"values": "skipped values by metric name"},
        "report it as a bug; graphs have gaps, the ledger has the figures",
    ),
    LogEvent(
        "metrics.not_understood",
        "warning",
        "a set of metrics could not be read",
        {"error": _ERROR},
        "report it as a bug; graphs have gaps, the ledger has the figures",
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
