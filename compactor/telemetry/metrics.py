"""The catalogue of metrics: name, unit, meaning, and what to do when one moves. Nothing else may be emitted."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["Count", "Bytes", "Bytes/Second", "Seconds", "Percent", "None"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: As CloudWatch shows it.
        unit: One of CloudWatch's units; `None` for dollars, which have none there.
        meaning: What it counts.
        advice: What to do when it moves.
    """

    name: str
    unit: Unit
    meaning: str
    advice: str


CATALOGUE = {
    metric.name: metric
    for metric in (
        Metric(
            "ManifestsCommitted",
            "Count",
            "manifests committed or finished by the batch",
            "0 while work waits: read the log",
        ),
        Metric(
            "ManifestsDeadLettered",
            "Count",
            "manifests that the batch made dead letters",
            "read failed/*.reason.json under paths.state",
        ),
        Metric(
            "ManifestsStuck",
            "Count",
            "manifests that need an operator; they stay as they are",
            "read manifest.stuck in the log",
        ),
        Metric(
            "BatchDurationSeconds",
            "Seconds",
            "duration of the batch",
            "above half the SLA: add workers",
        ),
        Metric(
            "InputBytesPerSecond",
            "Bytes/Second",
            "stored input of the batch divided by its duration",
            "below the arrival rate: add workers",
        ),
        Metric("RecordsIn", "Count", "lines read, without blank ones", "compare with what producers sent"),
        Metric("RecordsOut", "Count", "rows that became visible", "always RecordsIn minus RecordsRejected"),
        Metric("RecordsRejected", "Count", "rejected lines", "check the rejects by reason; tell the producer"),
        Metric(
            "FilesQuarantined",
            "Count",
            "quarantined input files: missing, changed, unreadable, too large or full of rejects",
            "run `compactor trace` on one of them",
        ),
        Metric("BytesIn", "Bytes", "stored size of the input files", "falls: producers or events stopped"),
        Metric("BytesOut", "Bytes", "size of the Parquet files", "sizing learns its ratio to BytesIn"),
        Metric("OutputFiles", "Count", "Parquet files of rows", "rises against BytesOut: files become too small"),
        Metric(
            "OutputFileSizeHitRate",
            "Percent",
            "output files within 25 % of the target",
            "below 90: the data changes quickly",
        ),
        Metric(
            "ArrivalToVisibleSeconds",
            "Seconds",
            "time from a file's event, or else its manifest's creation, until its rows are visible; one value a file",
            "p99 above the SLA: check queue, manifests and batches; redriven files count with their full age",
        ),
        Metric(
            "ValuesRescued",
            "Count",
            "values that do not fit the type of their column, kept as text in _rescued_data",
            "rises: a producer changed its events, or the schema file is wrong",
        ),
        Metric(
            "BinsRedone",
            "Count",
            "bins of input files converted again because new keys appeared",
            "rises: producers keep adding keys; values may be used as keys",
        ),
        Metric("NewColumns", "Count", "new columns", "a producer changed its events"),
        Metric(
            "ColumnsRefused",
            "Count",
            "keys that got no column, at least; their values are in _rescued_data",
            "rises: values may be used as keys; compare columns.refused in the log with the limits in [schema]",
        ),
        Metric(
            "ColumnsUsedPercent",
            "Percent",
            "columns of keys, divided by schema.max_columns",
            "from 90 on: `compactor schema` shows which file brought them; `compactor schema retire` makes room",
        ),
        Metric("Attempts", "Count", "attempts of the batch", "above ManifestsCommitted: read the attempt records"),
        Metric("Heartbeat", "Count", "1 with every batch and every idle minute", "stops: the job is down or hangs"),
        Metric(
            "JobState",
            "Count",
            "state of the Glue job each minute: 2 running, 1 starting or stopping, 0 no run, -1 no run and the breaker "
            "open after too many failures",
            "below 2 for long: run `compactor control --dry-run`; -1: fix the cause, then close the breaker",
        ),
        Metric("Restarts", "Count", "runs that the control plane started", "rises: read the reasons in its messages"),
        Metric("QueueDepth", "Count", "S3 events in the queue, in flight or not", "grows: the builder is too slow"),
        Metric(
            "QueueOldestAgeSeconds",
            "Seconds",
            "age of the oldest S3 event in the queue, some minutes late",
            "above the SLA: read the builder's log",
        ),
        Metric(
            "DeadLetterDepth",
            "Count",
            "messages in the dead-letter queue",
            "above 0: read them, fix the cause, move them back to the queue",
        ),
        Metric(
            "ManifestsPending",
            "Count",
            "manifests in the watched prefix",
            "grows: the job is down, hangs, or has too few workers",
        ),
        Metric(
            "OldestManifestAgeSeconds",
            "Seconds",
            "age of the oldest manifest in the watched prefix",
            "above the SLA: check JobState, then BatchDurationSeconds",
        ),
        Metric(
            "FilesAnnounced",
            "Count",
            "files that S3 events announced to the builder",
            "falls: producers stopped, or the bucket's notification is gone",
        ),
        Metric(
            "BytesAnnounced",
            "Bytes",
            "stored size of the files that S3 events announced to the builder",
            "its rate stays above InputBytesPerSecond: add workers",
        ),
        Metric(
            "FilesSkipped",
            "Count",
            "announced objects that are not data: empty, folder markers, outside the allowed prefixes",
            "rises: a producer writes to the wrong place; messages.built in the log counts the reasons",
        ),
        Metric(
            "FilesRepeated",
            "Count",
            "announced files that were claimed before",
            "a few are normal, S3 repeats events; many: a queue's visibility timeout is too short",
        ),
        Metric(
            "MessagesFailed",
            "Count",
            "messages that the builder returned to the queue",
            "stays up: read the builder's log before they reach the dead-letter queue",
        ),
        Metric(
            "ManifestsBuilt",
            "Count",
            "manifests written by builder and sealer",
            "0 while files are announced: read the log",
        ),
        Metric("PartsPending", "Count", "pending parts", "grows: the sealer does not run"),
        Metric(
            "OldestPartAgeSeconds",
            "Seconds",
            "age of the oldest pending part",
            "above twice builder.max_wait_seconds: the sealer fails or does not run",
        ),
        Metric(
            "PartsUnreadable",
            "Count",
            "pending parts that cannot be read; their files wait",
            "above 0: the sealer's log names them; delete one and run `compactor plan` to claim its files again",
        ),
        Metric(
            "EstimatedDollarsPerHour",
            "None",
            "list price of the running job's workers; with auto scaling, of its maximum",
            "compare with `compactor cost`; changes with the number of workers",
        ),
        Metric(
            "EstimatedDollarsPerTerabyte",
            "None",
            "dollars since the oldest of the latest commits, divided by their input",
            "rises: use fewer workers, or stop when idle",
        ),
        Metric(
            "MetricsDropped",
            "Count",
            "values that could not be sent: CloudWatch was unreachable too long, or they were not numbers",
            "above 0: read metrics.not_sent and metrics.dropped in the log; other metrics have gaps",
        ),
    )
}
"""All metrics by name."""
