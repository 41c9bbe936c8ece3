"""The catalogue of what may be logged: events with their fields, what each means, and the next move."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]

EventName = Literal[
    "batch.finished",
    "checkpoints.kept",
    "cleaning.failed",
    "cleaning.finished",
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
    "run.asked_to_stop",
    "run.not_signed_off",
    "run.sign_not_given",
    "stream.restarting",
]
"""Every event, so that a type checker finds a name that is none."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One kind of event.

    Attributes:
        name: As `noun.past_participle`.
        level: How much it matters.
        meaning: What has happened.
        fields: What each field holds, by its name; a call names all of them, and no others.
        next_move: What to do about it; every warning and every error has one.
    """

    name: EventName
    level: Level
    meaning: str
    fields: Mapping[str, str] = field(default_factory=dict)
    next_move: str = ""


COMMON_FIELDS = {
    "time": "when, in UTC, as ISO 8601",
    "level": "how much it matters",
    "event": "what happened",
    "run_id": "which run of the job; while one is at work",
    "next": "the next move; on warnings and errors",
    "traceback": "the way to an error that nobody foresaw, without its values",
}
"""What the log itself adds to events."""

OF_THE_ERROR = "what the error's kind asks for"
"""The next move of events that tell of errors of many kinds, each of which has its own."""

_MANIFEST = "which manifest"
_ERROR = "what went wrong"
_NO_NEED = "none, unless it comes again and again: then look at what the error names"

_OF_THE_JOB = (
    LogEvent(
        "job.started",
        "info",
        "the job has begun on Glue",
        {"config": "where its settings are", "overridden": "names of settings that its arguments override"},
    ),
    LogEvent("job.failed", "error", "the job on Glue ends with an error", {"error": _ERROR}, OF_THE_ERROR),
    LogEvent("recovery.started", "info", "manifests of earlier runs are carried on", {"open_manifests": "how many"}),
    LogEvent(
        "manifests.unseen_by_stream",
        "info",
        "the watched prefix holds manifests that Spark's stream does not deliver; they are worked on now",
        {"manifests": "how many"},
    ),
    LogEvent(
        "batch.finished",
        "info",
        "a micro-batch is through",
        {
            "manifests": "how many came to an end",
            "failed": "how many have to be tried again",
            "stuck": "how many wait for a person",
            "seconds": "from its start to its end",
        },
    ),
    LogEvent(
        "stream.restarting",
        "warning",
        "a batch failed, or the stream did; it begins anew after a pause",
        {"failures": "how often in a row", "pause_seconds": "how long", "error": _ERROR},
        "none while it gets over it, and it ends by itself where it does not; look at manifest.failed before it",
    ),
    LogEvent("run.asked_to_stop", "info", "somebody asked the run to end after its batch"),
    LogEvent(
        "run.sign_not_given",
        "warning",
        "the run could not give its sign of life; others may take it for dead, which costs an attempt at most",
        {"error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "run.not_signed_off",
        "warning",
        "the run has ended, but its sign of life is still there until a later run sweeps it",
        {"error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "command.failed",
        "error",
        "a command or the job met an error that nobody foresaw",
        {"command": "which", "error": _ERROR},
        "run it again, nothing has been lost; where it comes back, report it with its traceback",
    ),
)

_OF_MANIFESTS = (
    LogEvent(
        "manifest.committed",
        "info",
        "the rows of a manifest are visible",
        {
            "manifest_id": _MANIFEST,
            "files": "input files that it names",
            "input_bytes": "stored size of them",
            "rows": "rows that became visible",
            "rejected_lines": "lines that were set aside",
            "output_files": "Parquet files of rows",
            "output_bytes": "size of them",
            "seconds": "from the attempt's start to its commit",
        },
    ),
    LogEvent(
        "manifest.dead_lettered",
        "warning",
        "a manifest was set aside; nothing of it is in the output",
        {"manifest_id": _MANIFEST, "reason": "one of `manifest.REASONS`", "message": "what was wrong, and where"},
        "mend what the message names, then `compactor redrive manifests` puts it back",
    ),
    LogEvent(
        "manifest.failed",
        "error",
        "an attempt at a manifest failed; it is tried again, and set aside once its attempts are used up",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        "none while the next attempt works; else mend what the error names before the attempts are used up",
    ),
    LogEvent(
        "manifest.stuck",
        "error",
        "only a person can put a manifest right; it stays as it is, all others go on",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        OF_THE_ERROR,
    ),
    LogEvent(
        "commit.not_remembered",
        "warning",
        "sizing will not learn from a commit; the commit itself holds",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        _NO_NEED,
    ),
)

_OF_CLEANING = (
    LogEvent(
        "orphans.swept", "info", "staging and checkpoints of dead runs were deleted", {"removed": "objects, by kind"}
    ),
    LogEvent(
        "checkpoints.kept",
        "warning",
        "the run could not delete its own checkpoints; a later one does",
        {"error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "cleaning.finished",
        "info",
        "the daily cleaning is through",
        {
            "removed": "objects, by kind",
            "removed_bytes": "size of them",
            "kept": "objects that had to stay, by reason",
        },
    ),
    LogEvent(
        "cleaning.failed",
        "warning",
        "the daily cleaning broke off; it goes on later",
        {"error": _ERROR},
        "none, unless it fails for days: then mend what the error names and run `compactor clean`",
    ),
)

_OF_BUILDING = (
    LogEvent(
        "messages.built",
        "info",
        "the builder has taken in a batch of S3 events",
        {
            "messages": "how many",
            "files": "files that they announce",
            "repeated": "those that were claimed before",
            "skipped": "objects that are no data, by reason",
            "manifests": "manifests that were written",
            "parts": "pending parts that were written",
            "failed": "messages that come again",
        },
    ),
    LogEvent(
        "message.unreadable",
        "error",
        "a message is no event of S3; the queue moves it to its dead letters",
        {"message_id": "which, as SQS names it", "error": "what is wrong with it"},
        "read it in the dead-letter queue; mend whoever sent it, and move it back if it announces files",
    ),
    LogEvent(
        "group.not_built",
        "warning",
        "files could not be made into a manifest; their messages come again",
        {"manifest_id": "which it would have been", "files": "how many", "error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "files.held",
        "warning",
        "another call of the builder has claimed files and not written them yet; their messages come again",
        {"files": "how many", "first": "the first of them", "until": "when the last of the claims runs out"},
        "none, unless it goes on after that time: then see why the builder dies or runs into its time limit",
    ),
    LogEvent(
        "planning.waiting",
        "info",
        "`compactor compact` lets others finish before it plans",
        {"waiting_for": "files that are being written, or another planner", "seconds": "for how long"},
    ),
    LogEvent(
        "parts.sealed",
        "info",
        "the sealer has looked at the pending parts",
        {
            "manifests": "manifests that were written",
            "sealed_parts": "parts that are in them",
            "waiting_parts": "parts that go on waiting",
            "oldest_seconds": "age of the oldest of these",
            "discarded_parts": "parts whose files were taken over by others",
            "unreadable_parts": "objects that are no parts",
        },
    ),
    LogEvent(
        "part.unreadable",
        "error",
        "an object among the pending parts is none; its files wait",
        {"uri": "which", "error": "what is wrong with it"},
        "restore an earlier version of it; or remove it, and `compactor plan` takes its files",
    ),
    LogEvent(
        "group.not_sealed",
        "warning",
        "parts could not be sealed into a manifest; the next call tries again",
        {"date": "of their files", "parts": "how many", "error": _ERROR},
        _NO_NEED,
    ),
)

_OF_REDRIVING = (
    LogEvent(
        "manifest.redriven",
        "info",
        "what was set aside waits in a new manifest",
        {
            "source": "the manifest that it comes from",
            "manifest_id": "the new one",
            "kind": "manifests, files or rejects",
            "counts": "what is put back, by reason",
        },
    ),
    LogEvent(
        "redrive.healed",
        "info",
        "an earlier redrive was on record without its manifest, which was written now",
        {"manifest_id": _MANIFEST, "source": "the manifest that it comes from"},
    ),
    LogEvent(
        "redrive.refused",
        "warning",
        "something cannot be put back as it is",
        {
            "manifest_id": "the manifest that it is in",
            "uri": "which file; nothing for all of them",
            "why": "the reason",
        },
        "mend what the reason names, then redrive again",
    ),
)

_OF_THE_CONTROL_PLANE = (
    LogEvent(
        "control.decided",
        "info",
        "the control plane decided to do something",
        {"kind": "what", "about": "what it is about", "reason": "why, in words"},
    ),
    LogEvent("control.runs_already", "info", "somebody else started the job first; one run is what is wanted"),
    LogEvent("control.other_job", "info", "an event was about another job of Glue", {"job": "which"}),
    LogEvent(
        "control.action_failed",
        "warning",
        "what was decided could not be done; it is decided anew at the next look",
        {"kind": "what", "error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "control.source_unknown",
        "warning",
        "something could not be seen; it counts as unknown, never as zero",
        {"source": "what", "error": _ERROR},
        "none if it passes; else see that the control plane's role may read it, and that the settings name it right",
    ),
    LogEvent(
        "control.notices_unread",
        "warning",
        "it is not known what people were told; they are told of what was done alone",
        {"error": _ERROR},
        _NO_NEED,
    ),
    LogEvent(
        "control.not_told",
        "warning",
        "people could not be told; it is tried again at the next look",
        {"error": _ERROR},
        "see that control.topic_arn is right, and that the control plane's role may publish to it",
    ),
)

_OF_METRICS = (
    LogEvent(
        "metrics.emitted",
        "info",
        "measurements, where the log is their sink",
        {"namespace": "what they are filed under", "values": "by the name of the metric"},
    ),
    LogEvent(
        "metrics.not_sent",
        "warning",
        "CloudWatch did not take measurements; unless it refused them, they are sent again",
        {"metrics": "how many", "refused": "whether no repeat would help", "error": _ERROR},
        "none if it passes; else see that the role may put metrics into this namespace",
    ),
    LogEvent(
        "metrics.not_flushed",
        "warning",
        "measurements were still waiting when time was up",
        {"metrics": "how many", "timeout_seconds": "how long they were waited for"},
        "none if it passes; else look at metrics.not_sent before it",
    ),
    LogEvent(
        "metrics.dropped",
        "warning",
        "measurements are lost",
        {"values": "how many now", "of_all": "how many since the process began"},
        "look at metrics.not_sent before it; graphs have gaps, the ledger has the figures",
    ),
    LogEvent(
        "metrics.unfit",
        "warning",
        "measurements that are no numbers, or that no metric of the catalogue is for, were left out",
        {"values": "how many, by the name of the metric"},
        "report it as a fault; graphs have gaps, the ledger has the figures",
    ),
    LogEvent(
        "metrics.not_understood",
        "warning",
        "a set of measurements could not be read",
        {"error": _ERROR},
        "report it as a fault; graphs have gaps, the ledger has the figures",
    ),
)

CATALOGUE: Mapping[str, LogEvent] = {
    event.name: event
    for event in (
        *_OF_THE_JOB,
        *_OF_MANIFESTS,
        *_OF_CLEANING,
        *_OF_BUILDING,
        *_OF_REDRIVING,
        *_OF_THE_CONTROL_PLANE,
        *_OF_METRICS,
    )
}
"""All events by name."""
