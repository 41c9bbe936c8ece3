"""The catalogue of log events: meaning, fields and next action."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One kind of event. Calls pass exactly its fields; every warning and error has a next action."""

    level: Level
    meaning: str  # what happened
    fields: Mapping[str, str] = field(default_factory=dict)  # each field's meaning, by name
    next_move: str = ""


_info = partial(LogEvent, "info")
_warning = partial(LogEvent, "warning")
_error = partial(LogEvent, "error")

COMMON_FIELDS = {
    "time": "UTC, ISO 8601",
    "level": "severity",
    "event": "name",
    "run_id": "the job's run; absent outside a run",
    "next": "action, for warnings and errors",
    "traceback": "call stack of an unexpected error, without values",
}
"""Fields that the log adds to every event."""

OF_THE_ERROR = "the error's own next action"
"""The next action for events with errors of several classes, each with its own."""

_MANIFEST = "manifest"
_ERROR = "error"
_LOG = "topic or stream, as kafka://cluster/topic or kinesis://source/stream"
_PAUSE = "pause before the retry; 0 for no retry"
_NO_NEED = "none unless it repeats"

CATALOGUE: Mapping[str, LogEvent] = {
    # The job.
    "job.started": _info(
        "the job started on Glue",
        {"config": "settings file", "overridden": "settings overridden by job arguments"},
    ),
    "job.failed": _error("the job on Glue failed", {"error": _ERROR}, OF_THE_ERROR),
    "stream.failed": _error(
        "one stream failed; the others continue",
        {
            "stream": "its name",
            "pause_seconds": _PAUSE,
            "error": _ERROR,
        },
        OF_THE_ERROR,
    ),
    "recovery.started": _info("the run resumes manifests of earlier runs", {"open_manifests": "how many"}),
    "manifest.revoked": _info(
        "the job removed a late manifest, whose files were taken over",
        {"manifest_id": _MANIFEST, "revoked_at": "time of the takeover"},
    ),
    "manifests.unseen_by_stream": _info(
        "Spark's file source does not deliver these manifests; the job processes them",
        {"manifests": "how many"},
    ),
    "batch.finished": _info(
        "manifests ended since the last such event, at least 5 s ago while there is work",
        {
            "manifests": "finished",
            "failed": "to retry",
            "stuck": "need an operator",
            "seconds": "since the intake of the first",
        },
    ),
    "run.engine_chosen": _info(
        "the run uses this engine",
        {
            "engine": "its name",
            "why": "reason",
            "source": "source of manifests: `spark` or `listing`",
            "watched": "prefix; empty for `--once`",
        },
    ),
    "run.died": _warning(
        "a run died; its attempts count as deaths now",
        {
            "dead_run_id": "that run",
            "in_flight": "manifests",
            "blamed": "the only manifest in flight; else empty",
        },
        "none if it was stopped externally; else `compactor trace` a file of the blamed manifest",
    ),
    "stream.replaced": _warning(
        "Spark's stream cannot open an object in the watched prefix; the run lists the prefix itself",
        {"error": _ERROR},
        "see manifest.stuck",
    ),
    "self_test.failed": _warning(
        "the job's own test sample failed, so it blames no manifest",
        {"error": _ERROR},
        "if it repeats, fix the reported cause: the engine, its workers or the store",
    ),
    "checkpoint.rotated": _info(
        "the stream moved to a new checkpoint; the old one is deleted",
        {"delivered": "manifests in the old checkpoint"},
    ),
    "stream.restarting": _warning(
        "the stream failed and restarts",
        {"failures": "in a row", "pause_seconds": _PAUSE, "error": _ERROR},
        "none if it recovers; else see manifest.failed, or let the job write below paths.state/checkpoint/",
    ),
    "attempt.unreadable": _warning(
        "a record of verified work is damaged; the work is repeated",
        {"manifest_id": _MANIFEST, "attempt": "its attempt", "error": _ERROR},
        "none for this manifest; find out what changed the reported object",
    ),
    "attempt.wasted": _info(
        "another run decided the manifest first; this attempt has no effect",
        {"manifest_id": _MANIFEST, "attempts": "so far"},
    ),
    "shards.changed": _info(
        "jobs with shards started or stopped, so this one takes other manifests",
        {
            "shard": "this run's shard number",
            "of": "known number of shards",
            "shards": "that take manifests",
            "taking": "whether this run does",
        },
    ),
    "shards.unread": _warning(
        "other shards' heartbeats are unreadable; this run keeps its share",
        {"shard": "this run's shard number", "of": "known number of shards", "error": _ERROR},
        "none if it passes; meanwhile, manifests of a stopped shard wait",
    ),
    "run.alive": _info(
        "the job takes its turns; every 5 minutes",
        {"memory_bytes": "resident memory", "peak_memory_bytes": "most so far"},
    ),
    "run.asked_to_stop": _info("stop requested; the run ends after its batch"),
    "run.ended": _info(
        "a run with `--log-format json` ended in order",
        {
            "manifests": "committed",
            "dead_letters": "manifests",
            "quarantined_files": "how many",
            "waiting": "manifests",
            "rows": "how many",
            "rejected_lines": "how many",
            "seconds": "since its start",
            "peak_memory_bytes": "see run.alive",
        },
    ),
    "run.heartbeat_failed": _warning(
        "heartbeat not written; other runs may consider this one dead",
        {"error": _ERROR},
        _NO_NEED,
    ),
    "run.heartbeat_left": _warning(
        "heartbeat not deleted at the end; a later run deletes it", {"error": _ERROR}, _NO_NEED
    ),
    "command.failed": _error(
        "unexpected error in a command or the job",
        {"command": "its name", "error": _ERROR},
        "run it again, no data is lost; if it fails again, report the traceback",
    ),
    # Manifests.
    "manifest.committed": _info(
        "a manifest was committed and its rows are visible",
        {
            "manifest_id": _MANIFEST,
            "input_files": "compacted",
            "input_bytes": "their stored size",
            "rows": "new rows",
            "rejected_lines": "how many",
            "output_files": "Parquet files with rows",
            "output_bytes": "their size",
            "seconds": "from the attempt's start to its commit",
        },
    ),
    "manifest.dead_lettered": _warning(
        "a manifest became a dead letter; it has no rows in the output",
        {"manifest_id": _MANIFEST, "reason": "one of `manifest.REASONS`", "message": "what and where"},
        "fix the reported cause; `compactor redrive manifests`",
    ),
    "manifest.failed": _error(
        "an attempt failed; after stream.max_attempts the manifest becomes a dead letter",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        "if the retry fails too, fix the reported cause",
    ),
    "manifest.stuck": _error(
        "a manifest needs an operator; others continue",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        OF_THE_ERROR,
    ),
    "columns.refused": _warning(
        "some keys got no column; their values are in _rescued_data",
        {"manifest_id": _MANIFEST, "keys": "at least", "new_columns": "for other keys"},
        "values used as keys: inform the producer; others: wait for the next UTC day, else raise schema.max_columns",
    ),
    "partitions.too_many": _warning(
        "too many partitions; some rows are in the partition without values",
        {"manifest_id": _MANIFEST, "rows": "such rows", "partitions": "with their own files"},
        "choose a coarser output.partition_by",
    ),
    "partitions.unparsed": _warning(
        "values that are not times; their rows are in a partition without a time",
        {"manifest_id": _MANIFEST, "rows": "such rows"},
        "inform the producer; numeric times need a unit, as in day(KEY, milliseconds)",
    ),
    "columns.nearly_full": _warning(
        "at least 90 % of the columns are used; after the last, new keys go to _rescued_data",
        {"columns": "used", "max_columns": "limit"},
        "`compactor schema retire COLUMN`, or raise schema.max_columns",
    ),
    "commit.not_remembered": _warning(
        "a commit's summary for sizing was not saved; the commit is valid",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        _NO_NEED,
    ),
    # Retention.
    "orphans.swept": _info("staging and checkpoints of dead runs were deleted", {"removed": "objects by kind"}),
    "checkpoint.not_rotated": _warning(
        "checkpoint rotation could not be decided; the stream keeps its checkpoint",
        {"error": _ERROR},
        _NO_NEED,
    ),
    "checkpoints.kept": _warning(
        "old checkpoints not deleted; this or a later run retries",
        {"error": _ERROR},
        "if it repeats, let the job delete below paths.state/checkpoint/, or triggers slow down",
    ),
    "retention.finished": _info(
        "the daily clean-up finished",
        {"removed": "objects by kind", "removed_bytes": "their size", "kept": "objects by reason"},
    ),
    "retention.failed": _warning(
        "staging or checkpoints of dead runs not deleted; the job retries",
        {"error": _ERROR},
        "if it fails for days, fix the reported cause; `compactor data clean`",
    ),
    "task.failed": _warning(
        "a recurring task failed; the job continues and retries",
        {
            "task": "such as `retention` or `table maintain`",
            "failures": "in a row",
            "pause_seconds": _PAUSE,
            "error": _ERROR,
        },
        "if it repeats, fix the reported cause; its command, such as `compactor data clean`, retries at once",
    ),
    "date.not_closed": _warning(
        "a date has inconsistencies and stays open",
        {"date": "the data's date", "why": "the inconsistency"},
        "`compactor verify --date` reports it",
    ),
    "date.expired": _info(
        "a retention rule deleted data of a date",
        {"date": "the data's date", "rule": "the rule", "manifests": "affected"},
    ),
    "date.summarised": _info(
        "a date was closed, or its summary got an addition",
        {
            "date": "the data's date",
            "number": "1 for the closing summary, more for additions",
            "manifests": "in the summary",
            "summary_place": "its place in the log of closed dates",
        },
    ),
    "table.updated": _info(
        "the catalog table got new columns",
        {"table": "database and table", "columns": "new columns", "version": "schema version"},
    ),
    "table.differs": _warning(
        "catalog column types differ from the output",
        {"table": "database and table", "columns": "how many"},
        "`compactor doctor` lists them; correct the types in the catalog",
    ),
    "table.committed": _info(
        "a batch was committed to the table of [table]",
        {
            "batch": "number",
            "manifests": "its manifests",
            "files": "added",
            "snapshot": "with the batch, or a later one",
            "seconds": "duration",
        },
    ),
    "table.upkeep_done": _info(
        "scheduled table maintenance or merging finished",
        {"task": "`table maintain` or `table merge`", "done": "results by kind"},
    ),
    "table.not_committed": _warning(
        "a batch was not committed to the table of [table], or its manifests not finished; the job retries",
        {
            "waiting": "manifests",
            "pause_seconds": _PAUSE,
            "error": _ERROR,
        },
        "if it repeats, fix the reported cause; nothing is lost or duplicated",
    ),
    "table.refused": _warning(
        "the catalog permanently refuses a batch; the job finds the manifest at fault and holds it back",
        {"batch": "number", "manifests": "its manifests", "error": _ERROR},
        "fix what manifest.stuck reports, then `compactor table repair`",
    ),
    # Planning, building and sealing.
    "messages.built": _info(
        "the builder processed a batch of S3 events",
        {
            "messages": "received",
            "files": "announced",
            "repeated": "files claimed earlier",
            "skipped": "objects that are not data, by reason",
            "manifests": "written",
            "parts": "pending parts written",
            "failed": "messages returned to the queue",
        },
    ),
    "message.unreadable": _error(
        "a message is not an S3 event; SQS moves it to the dead-letter queue",
        {"message_id": "SQS message id", "error": _ERROR},
        "read it there and fix the sender; move it back if it announces files",
    ),
    "group.not_planned": _warning(
        "a manifest was not written; its files are free, or left to the next call",
        {"manifest_id": _MANIFEST, "files": "its files", "error": _ERROR},
        _NO_NEED,
    ),
    "files.held": _warning(
        "another builder call holds claims on files; the queue redelivers the messages",
        {"files": "how many", "first": "one of them", "until": "end of the last lease"},
        "none until then; later, check why the builder dies or times out",
    ),
    "files.misdated": _warning(
        "names have dates before 2000, or over 31 days after arrival; the arrival date is used",
        {"files": "how many", "first": "one of them"},
        "inform the producer",
    ),
    "landing.gap": _warning(
        "retention removed records of a topic, or possibly of a stream, before landing",
        {"log": _LOG, "gap": "the gap, as in the manifest that quarantines it"},
        "compare with the producer; land more often, or raise the retention; `compactor dismiss`",
    ),
    "landing.landed": _info(
        "the job landed records of a topic or stream",
        {
            "log": _LOG,
            "manifests": "written",
            "lines": "landed",
            "strays": "packed records skipped, because they hash to another shard",
        },
    ),
    "landing.failed": _warning(
        "landing failed for a topic, a stream or some partitions; what was read is landed",
        {
            "log": _LOG,
            "failures": "in a row",
            "pause_seconds": _PAUSE,
            "error": _ERROR,
        },
        "if it repeats, `compactor doctor` checks the connection; meanwhile, retention may remove records",
    ),
    "landing.made_again": _warning(
        "a different topic or stream had this name; its unlanded records are lost",
        {"log": _LOG, "former_ids": "its ids"},
        "none if the deletion was intended",
    ),
    "manifest.misdated": _warning(
        "another program's manifest has a date before 2000, or over 31 days after arrival; the arrival date is used",
        {"manifest_id": _MANIFEST, "ignored_date": "its date", "date": "arrival date"},
        "inform its owner",
    ),
    "groups.left": _warning(
        "a builder call ran out of time; the queue redelivers the remaining messages",
        {"groups": "manifests not started", "seconds": "time for starting manifests"},
        "none for a back-fill; else find the producer of many dates, or lower `BuilderBatchMessages`",
    ),
    "files.unrouted": _error(
        "announced objects match no stream's prefix, so no manifest lists them",
        {"files": "how many", "first": "one of their URIs"},
        "add a stream or correct its prefixes; then `compactor plan PREFIX --stream NAME`",
    ),
    "stream.not_built": _error(
        "the builder failed for one stream; the queue redelivers its messages",
        {"stream": "its name", "messages": "its messages", "error": _ERROR},
        OF_THE_ERROR,
    ),
    "stream.not_sealed": _error(
        "the sealer failed for one stream; its next call retries",
        {"stream": "its name", "error": _ERROR},
        OF_THE_ERROR,
    ),
    "manifests.queue_failed": _warning(
        "the queue of new manifests cannot be read; they are listed at intervals until it can",
        {"error": _ERROR},
        OF_THE_ERROR,
    ),
    "manifests.of_no_stream": _warning(
        "manifests or pending parts predate the streams in the settings, and belong to none",
        {"objects": "how many", "first": "one of their URIs"},
        "run the settings without `[[streams]]` until nothing waits",
    ),
    "planning.waiting": _info(
        "`compactor compact` or `compactor plan --inventory` waits",
        {"waiting_for": "files still being written, another planner, or the job", "seconds": "duration"},
    ),
    "parts.sealed": _info(
        "the sealer processed the pending parts",
        {
            "manifests": "written",
            "sealed_parts": "sealed",
            "waiting_parts": "still waiting",
            "oldest_seconds": "age of the oldest one",
            "discarded_parts": "held by another planner",
            "unreadable_parts": "unreadable",
        },
    ),
    "part.unreadable": _error(
        "a pending part or its record is unreadable; its files wait",
        {"uri": "URI of the part", "error": _ERROR},
        "restore the reported object (`compactor restore OBJECT`), or grant access; keep the part, which holds claims",
    ),
    # Redriving.
    "manifest.redriven": _info(
        "a redrive wrote a new manifest",
        {
            "source": "original manifest",
            "manifest_id": "new manifest",
            "kind": "manifests, files or rejects",
            "counts": "redriven files or lines by reason",
        },
    ),
    "manifest.rebuilt": _info(
        "a manifest's rows were rebuilt",
        {
            "manifest_id": _MANIFEST,
            "why": "fault in its files; empty when resuming a rebuild",
            "generation": "commit generation; 2 after the first rebuild",
            "rows": "how many",
        },
    ),
    "rebuild.failed": _error(
        "a rebuild failed; its files are unchanged, or a later call resumes",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        "run `compactor rebuild` again; if it fails again, fix the reported cause",
    ),
    "redrive.healed": _info(
        "a redrive wrote the manifest of an interrupted redrive",
        {"manifest_id": _MANIFEST, "source": "original manifest"},
    ),
    # The control plane.
    "control.decided": _info(
        "the control plane decided on an action",
        {"kind": "kind of action", "about": "its target", "reason": "in words"},
    ),
    "control.shards_changed": _info(
        "the number of shards changes",
        {"shards": "how many", "before": "until now", "oldest_seconds": "backlog's age"},
    ),
    "control.runs_already": _info("the job is already running; one run is enough"),
    "control.other_job": _info("a Glue event was for a different job", {"job": "its name"}),
    "control.action_failed": _warning(
        "an action failed; the next check decides again", {"kind": "kind of action", "error": _ERROR}, _NO_NEED
    ),
    "control.source_unknown": _warning(
        "a source is unreadable for the control plane; its value is unknown",
        {"source": "its name", "error": _ERROR},
        "if it repeats, check the settings and the control plane's role",
    ),
    "control.notices_unread": _warning(
        "last notifications unreadable; the control plane only announces actions",
        {"error": _ERROR},
        _NO_NEED,
    ),
    "control.not_notified": _warning(
        "notification not sent; the next check retries",
        {"error": _ERROR},
        "check control.topic_arn and the control plane's role",
    ),
    # Metrics.
    "metrics.emitted": _info(
        'metrics, if metrics.sink is "log"', {"namespace": "CloudWatch namespace", "values": "by metric name"}
    ),
    "aws.heads_unchecked": _warning(
        "a tracer replaced botocore's connection classes: a truncated response header may go unnoticed",
        {"botocore": "its version"},
        "let the tracer wrap methods or subclass, or remove it",
    ),
    "metrics.not_sent": _warning(
        "CloudWatch did not accept metrics; retried unless it refused them",
        {"metrics": "how many", "refused": "true if a retry cannot help", "error": _ERROR},
        "if it repeats, check the role's permission to put metrics",
    ),
    "metrics.not_flushed": _warning(
        "metrics not sent before the time-out",
        {"metrics": "how many", "timeout_seconds": "waited"},
        "see metrics.not_sent",
    ),
    "metrics.dropped": _warning(
        "metrics were lost",
        {"values": "lost now", "of_all": "lost by this process"},
        "see metrics.not_sent; the ledger has the figures",
    ),
    "metrics.unfit": _warning(
        "values skipped: not numbers, or not in the catalogue",
        {"values": "by metric name"},
        "report a bug",
    ),
    "metrics.not_understood": _warning(
        "some metrics were unreadable",
        {"error": _ERROR},
        "report a bug",
    ),
}
"""All events by name, as `noun.past_participle`."""
