"""The catalogue of log events: what each means, its fields, and the next action."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One kind of event. A call passes exactly its fields; every warning and every error has a next action."""

    level: Level
    meaning: str  # what happened
    fields: Mapping[str, str] = field(default_factory=dict)  # the meaning of each field by its name
    next_move: str = ""


_info = partial(LogEvent, "info")
_warning = partial(LogEvent, "warning")
_error = partial(LogEvent, "error")

COMMON_FIELDS = {
    "time": "UTC, ISO 8601",
    "level": "severity",
    "event": "name of the event",
    "run_id": "the run of the job; absent outside a run",
    "next": "next action; on warnings and errors",
    "traceback": "call stack of an unexpected error, without values",
}
"""Fields that the log adds to every event."""

OF_THE_ERROR = "the next action of the error"
"""The next action of events that report errors of several classes, each of which has its own."""

_MANIFEST = "manifest"
_ERROR = "error"
_LOG = "topic or stream, as kafka://cluster/topic or kinesis://source/stream"
_NO_NEED = "none, unless it repeats"

CATALOGUE: Mapping[str, LogEvent] = {
    # The job.
    "job.started": _info(
        "the job started on Glue",
        {"config": "settings file", "overridden": "settings that job arguments override"},
    ),
    "job.failed": _error("the job on Glue failed", {"error": _ERROR}, OF_THE_ERROR),
    "stream.failed": _error(
        "the work on one stream of the settings failed; that on the others goes on",
        {
            "stream": "name of the stream",
            "pause_seconds": "pause until the next try; 0 if there is none",
            "error": _ERROR,
        },
        OF_THE_ERROR,
    ),
    "recovery.started": _info("the run resumes manifests of earlier runs", {"open_manifests": "number of them"}),
    "manifest.revoked": _info(
        "the job removed a manifest that was written after its files were taken over for another one",
        {"manifest_id": _MANIFEST, "revoked_at": "when its files were taken over"},
    ),
    "manifests.unseen_by_stream": _info(
        "the job processes manifests that Spark's file source does not deliver",
        {"manifests": "number of them"},
    ),
    "batch.finished": _info(
        "manifests ended: those since the last such event, which is at least 5 s ago unless nothing is left to do",
        {
            "manifests": "manifests that finished",
            "failed": "manifests to retry",
            "stuck": "manifests that need an operator",
            "seconds": "time since the first of them was taken in",
        },
    ),
    "run.engine_chosen": _info(
        "the run starts with this engine",
        {
            "engine": "its name",
            "why": "why it was chosen",
            "source": "where manifests come from, `spark` or `listing`",
            "watched": "the folder that it watches for manifests; empty if it ends when nothing is left to do",
        },
    ),
    "run.died": _warning(
        "a run died; its attempts are on record as deaths now",
        {
            "dead_run_id": "that run",
            "in_flight": "manifests that it was working on",
            "blamed": "the manifest that was alone in flight; empty if there were others, or the run was asked to end",
        },
        "none if it was stopped from outside; else `compactor trace` a file of the blamed manifest",
    ),
    "stream.replaced": _warning(
        "Spark's stream cannot open an object of the watched prefix; until it ends, the run lists the prefix itself",
        {"error": _ERROR},
        "manifest.stuck names each manifest that the job may not read",
    ),
    "self_test.failed": _warning(
        "the job could not convert a sample of its own, so it blames no manifest for its failures",
        {"error": _ERROR},
        "if it fails again, fix what the error names: the engine, its workers or the store",
    ),
    "checkpoint.rotated": _info(
        "the stream went on with a new checkpoint; the old one is deleted",
        {"delivered": "manifests in the old checkpoint"},
    ),
    "stream.restarting": _warning(
        "the stream failed and restarts",
        {"failures": "consecutive failures", "pause_seconds": "length of the pause", "error": _ERROR},
        "none if it recovers; else read manifest.failed",
    ),
    "attempt.unreadable": _warning(
        "the record of verified work is damaged, so the work is done again",
        {"manifest_id": _MANIFEST, "attempt": "the attempt whose work it was", "error": _ERROR},
        "none for this manifest; find out what has changed the object that the error names",
    ),
    "attempt.wasted": _info(
        "another run decided a manifest while this one made an attempt, which has no effect",
        {"manifest_id": _MANIFEST, "attempts": "attempts so far"},
    ),
    "shards.changed": _info(
        "jobs of shards came or went, and this one takes other manifests",
        {
            "shard": "the number of this run's shard",
            "of": "how many shards it knows of",
            "shards": "numbers of the shards that take manifests",
            "taking": "whether this run does; not before it was seen by all, nor beside a run without a shard",
        },
    ),
    "shards.unread": _warning(
        "the heartbeats of other shards cannot be read; what this run takes stays as it is",
        {"shard": "the number of this run's shard", "of": "how many shards it knows of", "error": _ERROR},
        "none if it passes; while it lasts, no manifest of a shard that is gone is taken over",
    ),
    "run.asked_to_stop": _info("a stop request told the run to end after its batch"),
    "run.heartbeat_failed": _warning(
        "the run could not write its heartbeat; another run may consider it dead",
        {"error": _ERROR},
        _NO_NEED,
    ),
    "run.heartbeat_left": _warning(
        "the run ended but could not delete its heartbeat; a later run deletes it", {"error": _ERROR}, _NO_NEED
    ),
    "command.failed": _error(
        "a command or the job hit an unexpected error",
        {"command": "its name", "error": _ERROR},
        "run it again; nothing was lost. If it fails again, report the traceback",
    ),
    # Manifests.
    "manifest.committed": _info(
        "a manifest was committed and its rows are visible",
        {
            "manifest_id": _MANIFEST,
            "input_files": "input files that were compacted",
            "input_bytes": "their stored size",
            "rows": "rows that became visible",
            "rejected_lines": "rejected lines",
            "output_files": "Parquet files of rows",
            "output_bytes": "their size",
            "seconds": "from the attempt's start to its commit",
        },
    ),
    "manifest.dead_lettered": _warning(
        "a manifest became a dead letter; none of its rows are in the output",
        {"manifest_id": _MANIFEST, "reason": "one of `manifest.REASONS`", "message": "what was wrong, and where"},
        "fix what the message names; `compactor redrive manifests`",
    ),
    "manifest.failed": _error(
        "an attempt failed; the job retries, and after stream.max_attempts makes the manifest a dead letter",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        "if the next attempt fails too, fix what the error names",
    ),
    "manifest.stuck": _error(
        "a manifest needs an operator; the job continues with the others",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        OF_THE_ERROR,
    ),
    "columns.refused": _warning(
        "keys of a manifest got no column; all their values are in _rescued_data",
        {"manifest_id": _MANIFEST, "keys": "such keys, at least", "new_columns": "columns that other keys got"},
        "if values are used as keys, tell the producer; if the keys are honest, raise the limits in [schema]",
    ),
    "partitions.too_many": _warning(
        "rows of a manifest are in the partition without values, because they have more partitions than there may be",
        {"manifest_id": _MANIFEST, "rows": "such rows", "partitions": "partitions that got files of their own"},
        "if the values are honest, choose a coarser output.partition_by or raise output.max_partitions",
    ),
    "partitions.unparsed": _warning(
        "rows of a manifest are in a partition without a time, because their value is no time",
        {"manifest_id": _MANIFEST, "rows": "such rows"},
        "tell the producer; numbers are times only with a unit, as in day(KEY, milliseconds)",
    ),
    "columns.nearly_full": _warning(
        "at least 90 % of the columns are taken; once all are, every new key goes to _rescued_data",
        {"columns": "columns of keys", "max_columns": "the most that there may be"},
        "give the places of junk columns back with `compactor schema retire COLUMN`, or raise schema.max_columns",
    ),
    "commit.not_remembered": _warning(
        "the run could not save the summary of a commit for sizing; the commit is valid",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        _NO_NEED,
    ),
    # Retention.
    "orphans.swept": _info("staging and checkpoints of dead runs were deleted", {"removed": "objects by kind"}),
    "checkpoint.not_rotated": _warning(
        "whether the stream should go on with a new checkpoint cannot be told now; it goes on with its own one",
        {"error": _ERROR},
        _NO_NEED,
    ),
    "checkpoints.kept": _warning(
        "the run could not delete checkpoints of its own; it tries again, or a later run does",
        {"error": _ERROR},
        _NO_NEED,
    ),
    "retention.finished": _info(
        "the daily clean-up finished",
        {"removed": "deleted objects by kind", "removed_bytes": "their size", "kept": "kept objects by reason"},
    ),
    "retention.failed": _warning(
        "old staging, or checkpoints of dead runs, could not be deleted; the job retries",
        {"error": _ERROR},
        "if it fails for days, fix what the error names; `compactor clean`",
    ),
    "task.failed": _warning(
        "something that the job repeats beside its manifests failed; the job goes on, and tries again",
        {
            "task": "such as `retention`, `closing`, `table maintain`, or `topics main`",
            "failures": "times in a row",
            "pause_seconds": "pause until the next try",
            "error": _ERROR,
        },
        "if it repeats, fix what the error names; `compactor clean`, `close`, `table maintain`, `table merge` and "
        "`schema publish` try at once",
    ),
    "date.not_closed": _warning(
        "something of a date does not add up, so it stays open",
        {"date": "date of the data", "why": "what is wrong, in words"},
        "`compactor verify --date` names it",
    ),
    "date.expired": _info(
        "what a rule of retention takes of a date was put on record and deleted",
        {"date": "date of the data", "rule": "the rule", "manifests": "manifests that it took something of"},
    ),
    "date.summarised": _info(
        "a date was closed, or got an addition to its summary",
        {
            "date": "date of the data",
            "number": "1 if this closed it, else that of the addition",
            "manifests": "manifests in the summary",
            "summary_place": "place of the summary in the log of closed dates",
        },
    ),
    "table.updated": _info(
        "the table of the catalog got new columns",
        {"table": "database and table", "columns": "number of new columns", "version": "schema version"},
    ),
    "table.differs": _warning(
        "columns of the table in the catalog have other types than the output",
        {"table": "database and table", "columns": "number of these columns"},
        "`compactor doctor` names them; correct their types in the catalog",
    ),
    "table.committed": _info(
        "the table of [table] took a batch",
        {
            "batch": "number of the batch",
            "manifests": "number of its manifests",
            "files": "number of files that it added",
            "snapshot": "snapshot with the batch, or a later one",
            "seconds": "duration",
        },
    ),
    "table.upkeep_done": _info(
        "the job did the upkeep of the table, or merged its files, at the interval of the settings",
        {"task": "`table maintain` or `table merge`", "done": "how much of what"},
    ),
    "table.not_committed": _warning(
        "the table of [table] could not take a batch, or its manifests could not be brought to done; the job retries",
        {
            "waiting": "number of manifests that wait",
            "pause_seconds": "pause until the next try",
            "error": _ERROR,
        },
        "if it repeats, fix what the error names; nothing is lost or doubled, and all that waits is committed then",
    ),
    "table.refused": _warning(
        "the catalog refuses a batch of the table of [table] for good; its manifests go into smaller batches, until "
        "the one to blame is alone, which is held back as stuck",
        {"batch": "number of the batch", "manifests": "number of its manifests", "error": _ERROR},
        "if manifest.stuck follows, fix what it names, then `compactor table rebuild`; all other manifests continue",
    ),
    # Planning, building and sealing.
    "messages.built": _info(
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
    "message.unreadable": _error(
        "a message is not an S3 event; SQS moves it to the dead-letter queue",
        {"message_id": "SQS message id", "error": _ERROR},
        "read it there and fix the sender; move it back if it announces files",
    ),
    "group.not_planned": _warning(
        "a manifest could not be written; its files are free again, or left to the next call",
        {"manifest_id": _MANIFEST, "files": "files in it", "error": _ERROR},
        _NO_NEED,
    ),
    "files.held": _warning(
        "another builder call holds claims on files; the queue redelivers the messages",
        {"files": "number of them", "first": "first of them", "until": "end of the last lease"},
        "none until then; later, check why the builder dies or times out",
    ),
    "files.misdated": _warning(
        "files are named after dates before 2000, or more than 31 days after their arrival; the day of arrival counts",
        {"files": "number of them", "first": "first of them"},
        "inform the producer",
    ),
    "landing.gap": _warning(
        "retention removed records of a topic before they were landed, or may have removed some of a stream",
        {"log": _LOG, "gap": "the gap, as the manifest that quarantines it names it"},
        "compare with the producer; land more often, or raise the retention; `compactor accept` settles the gap",
    ),
    "landing.landed": _info(
        "the job landed records of a topic or stream, and wrote manifests of them",
        {
            "log": _LOG,
            "manifests": "number of manifests",
            "lines": "number of landed lines",
            "strays": "packed records that were left out, because they hash to another shard",
        },
    ),
    "landing.failed": _warning(
        "a topic or stream, or some of its partitions, could not be landed; what was read is landed, the rest later",
        {
            "log": _LOG,
            "failures": "landings that have failed in a row",
            "pause_seconds": "pause until the next try",
            "error": _ERROR,
        },
        "if it repeats, `compactor doctor` asks the brokers or the stream; retention may remove records meanwhile",
    ),
    "landing.made_again": _warning(
        "another topic or stream had this name before; what was not landed of it is gone",
        {"log": _LOG, "former_ids": "ids of the former ones"},
        "none, if it was meant to be deleted",
    ),
    "manifest.misdated": _warning(
        "another program's manifest gives a date outside that window; the day of its arrival counts",
        {"manifest_id": _MANIFEST, "ignored_date": "date that it gives", "date": "day of its arrival"},
        "inform its owner; if the date is right, change those settings, then `compactor stop`",
    ),
    "groups.left": _warning(
        "a builder call did not reach all dates of its batch in time; the queue redelivers their messages",
        {"groups": "number of manifests not begun", "seconds": "time for new ones"},
        "none for a back-fill; else find the producer of many dates, or lower `BuilderBatchMessages`",
    ),
    "files.unrouted": _error(
        "announced objects are below no prefix of a stream; no manifest names them",
        {"files": "number of objects", "first": "URI of one of them"},
        "add a stream, or correct its `input.allowed_prefixes`; then `compactor plan PREFIX --stream NAME`",
    ),
    "stream.not_built": _error(
        "the builder could not work for one stream; the queue redelivers its messages",
        {"stream": "name of the stream", "messages": "number of its messages", "error": _ERROR},
        OF_THE_ERROR,
    ),
    "stream.not_sealed": _error(
        "the sealer could not work for one stream; its next call retries",
        {"stream": "name of the stream", "error": _ERROR},
        OF_THE_ERROR,
    ),
    "manifests.of_no_stream": _warning(
        "manifests or pending parts are from before the settings had streams, and no stream has them",
        {"objects": "number of objects", "first": "URI of one of them"},
        "run the settings without `[[streams]]` until nothing waits",
    ),
    "planning.waiting": _info(
        "`compactor compact` waits before it plans, or `compactor plan --inventory` before it releases manifests",
        {"waiting_for": "files still being written, another planner, or the job", "seconds": "length of the wait"},
    ),
    "parts.sealed": _info(
        "the sealer processed the pending parts",
        {
            "manifests": "manifests written",
            "sealed_parts": "parts sealed into them",
            "waiting_parts": "parts still waiting",
            "oldest_seconds": "age of the oldest one",
            "discarded_parts": "parts whose files another planner has",
            "unreadable_parts": "parts that cannot be read",
        },
    ),
    "part.unreadable": _error(
        "a pending part, or what is on record about it, cannot be read; its files wait",
        {"uri": "URI of the part", "error": _ERROR},
        "restore what the error names, or allow reading it; do not delete the part: its files are claimed for it",
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
        "the rows of a manifest whose files were lost or damaged, or had lines to erase, were made again",
        {
            "manifest_id": _MANIFEST,
            "why": "what was wrong with its files; empty if an earlier rebuild was not finished",
            "generation": "generation of its commit; 2 after the first rebuild",
            "rows": "number of rows",
        },
    ),
    "rebuild.failed": _error(
        "the rebuild of a manifest failed; its files are as they were, or a later call continues",
        {"manifest_id": _MANIFEST, "error": _ERROR},
        "run `compactor rebuild` again; if it fails again, fix what the error names",
    ),
    "redrive.healed": _info(
        "a redrive wrote the manifest of an interrupted redrive",
        {"manifest_id": _MANIFEST, "source": "original manifest"},
    ),
    "redrive.refused": _warning(
        "a manifest, file or line cannot be redriven",
        {"manifest_id": _MANIFEST, "uri": "URI of the file; empty for all files", "why": "reason"},
        "fix what `why` names; redrive",
    ),
    # The control plane.
    "control.decided": _info(
        "the control plane decided on an action",
        {"kind": "kind of action", "about": "what it acts on", "reason": "reason in words"},
    ),
    "control.runs_already": _info("the job runs already; one run is enough"),
    "control.other_job": _info("a Glue event named another job", {"job": "its name"}),
    "control.action_failed": _warning(
        "an action failed; the next check decides again", {"kind": "kind of action", "error": _ERROR}, _NO_NEED
    ),
    "control.source_unknown": _warning(
        "the control plane could not read a source; its value counts as unknown",
        {"source": "its name", "error": _ERROR},
        "if it repeats, check the settings and the control plane's role",
    ),
    "control.notices_unread": _warning(
        "the control plane could not read its last notifications; it notifies of actions only",
        {"error": _ERROR},
        _NO_NEED,
    ),
    "control.not_told": _warning(
        "the control plane could not send a notification; the next check retries",
        {"error": _ERROR},
        "check control.topic_arn and the control plane's role",
    ),
    # Metrics.
    "metrics.emitted": _info(
        'metrics, where metrics.sink is "log"', {"namespace": "metrics namespace", "values": "values by metric name"}
    ),
    "aws.heads_unchecked": _warning(
        "botocore's classes of connections were replaced, as by a tracer, so the end of a connection within a head may "
        "go unnoticed: the size that S3 tells of an object may lack digits",
        {"botocore": "its version"},
        "have the tracer wrap methods or extend the classes, or take it out",
    ),
    "metrics.not_sent": _warning(
        "CloudWatch did not accept metrics; the sender retries unless it refused them",
        {"metrics": "number of metrics", "refused": "true if a retry cannot help", "error": _ERROR},
        "if it repeats, check that the role may put metrics",
    ),
    "metrics.not_flushed": _warning(
        "the time-out passed before all metrics were sent",
        {"metrics": "number of metrics", "timeout_seconds": "length of the wait"},
        "read metrics.not_sent",
    ),
    "metrics.dropped": _warning(
        "metrics were lost",
        {"values": "values lost now", "of_all": "values lost by this process"},
        "read metrics.not_sent; the ledger has the figures",
    ),
    "metrics.unfit": _warning(
        "values were skipped: not numbers, or not in the catalogue",
        {"values": "skipped values by metric name"},
        "report a bug",
    ),
    "metrics.not_understood": _warning(
        "a set of metrics could not be read",
        {"error": _ERROR},
        "report a bug",
    ),
}
"""All events by name, as `noun.past_participle`."""
