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
            "manifests that the batch committed or finished",
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
            "manifests that need an operator",
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
            "quarantined input files",
            "`compactor verify` lists them with their status",
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
            "time from a file's event (else its manifest's creation) until its rows are visible",
            "p99 above the SLA: check queue, manifests and batches; a redriven file counts with its full age",
        ),
        Metric(
            "ValuesRescued",
            "Count",
            "values kept in _rescued_data because they do not fit the type of their column",
            "rises: a producer changed its events, or the schema file is wrong",
        ),
        Metric(
            "BinsRedone",
            "Count",
            "bins of input files converted again for new keys",
            "rises: values may be used as keys",
        ),
        Metric("NewColumns", "Count", "new columns", "a producer changed its events"),
        Metric("Attempts", "Count", "attempts of the batch", "above ManifestsCommitted: read the attempt records"),
        Metric("Heartbeat", "Count", "1 with every batch and every idle minute", "stops: the job is down or hangs"),
        Metric(
            "JobState",
            "Count",
            "state of the Glue job: 2 running, 1 starting or stopping, 0 no run, -1 no run and breaker open",
            "below 2 for long: `compactor control --dry-run`; -1: fix the cause, close the breaker",
        ),
        Metric(
            "Restarts", "Count", "runs that the control plane started", "rises: read the reasons in its notifications"
        ),
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
            "above 0: read them, fix the cause, move them back",
        ),
        Metric(
            "ManifestsPending",
            "Count",
            "manifests in the watched prefix",
            "grows: check JobState, then BatchDurationSeconds",
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
            "files that S3 events announced",
            "falls: producers stopped, or the bucket's notification is gone",
        ),
        Metric(
            "BytesAnnounced",
            "Bytes",
            "stored size of announced files",
            "rate stays above InputBytesPerSecond: add workers",
        ),
        Metric(
            "FilesSkipped",
            "Count",
            "announced objects that are empty, folder markers or outside the allowed prefixes",
            "rises: a producer writes to the wrong place; read messages.built in the log",
        ),
        Metric(
            "FilesRepeated",
            "Count",
            "announced files that were claimed before",
            "many: the queue's visibility timeout is too short; S3 repeats a few",
        ),
        Metric(
            "MessagesFailed",
            "Count",
            "messages that the builder returned to the queue",
            "stays up: read the builder's log",
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
            "unreadable pending parts; their files wait",
            "above 0: read part.unreadable in the log",
        ),
        Metric(
            "EstimatedDollarsPerHour",
            "None",
            "list price of the running job's workers; with auto scaling, of its maximum",
            "compare with `compactor cost`",
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
            "values that were not numbers, or that CloudWatch did not take in time",
            "above 0: other metrics have gaps; read metrics.* in the log",
        ),
    )
}
"""All metrics by name."""
