"""The catalogue of metrics: name, unit, meaning, and what to do when one moves. Nothing else may be emitted."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["Count", "Bytes", "Bytes/Second", "Seconds", "Percent", "None"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    meaning: str  # what it counts
    advice: str  # what to do when it moves
    unit: Unit = "Count"  # as CloudWatch calls it; `None` for dollars, which have none there


CATALOGUE = {
    "ManifestsCommitted": Metric("manifests committed or finished by the batch", "0 while work waits: read the log"),
    "ManifestsDeadLettered": Metric(
        "manifests that the batch made dead letters", "read failed/*.reason.json under paths.state"
    ),
    "ManifestsStuck": Metric(
        "manifests that need an operator; they stay as they are", "read manifest.stuck in the log"
    ),
    "BatchDurationSeconds": Metric("duration of the batch", "above half the SLA: add workers", "Seconds"),
    "InputBytesPerSecond": Metric(
        "stored input of the batch divided by its duration", "below the arrival rate: add workers", "Bytes/Second"
    ),
    "RecordsIn": Metric("lines read, without blank ones", "compare with what producers sent"),
    "RecordsOut": Metric("rows that became visible", "always RecordsIn minus RecordsRejected"),
    "RecordsRejected": Metric("rejected lines", "check the rejects by reason; tell the producer"),
    "FilesQuarantined": Metric(
        "quarantined input files: missing, changed, unreadable, too large or with too many keys",
        "run `compactor trace` on one of them",
    ),
    "BytesIn": Metric("stored size of the input files", "falls: producers or events stopped", "Bytes"),
    "BytesOut": Metric("size of the Parquet files", "sizing learns its ratio to BytesIn", "Bytes"),
    "OutputFiles": Metric("Parquet files of rows", "rises against BytesOut: files become too small"),
    "OutputFileSizeHitRate": Metric(
        "output files within 25 % of the target", "below 90: the data changes quickly", "Percent"
    ),
    "ArrivalToVisibleSeconds": Metric(
        "time from a file's event, or else its manifest's creation, until its rows are visible; one value a file",
        "p99 above the SLA: check queue, manifests and batches; redriven files count with their full age",
        "Seconds",
    ),
    "ValuesRescued": Metric(
        "values that do not fit the type of their column, kept as text in _rescued_data",
        "rises: a producer changed its events, or the schema file is wrong",
    ),
    "BinsRedone": Metric(
        "bins of input files converted again because new keys appeared",
        "rises: producers keep adding keys; values may be used as keys",
    ),
    "NewColumns": Metric("new columns", "a producer changed its events"),
    "Attempts": Metric("attempts of the batch", "above ManifestsCommitted: read the attempt records"),
    "Heartbeat": Metric("1 with every batch and every idle minute", "stops: the job is down or hangs"),
    "JobState": Metric(
        "state of the Glue job each minute: 2 running, 1 starting or stopping, 0 no run, -1 no run and the breaker "
        "open after too many failures",
        "below 2 for long: run `compactor control --dry-run`; -1: fix the cause, then close the breaker",
    ),
    "Restarts": Metric("runs that the control plane started", "rises: read the reasons in its messages"),
    "QueueDepth": Metric("S3 events in the queue, in flight or not", "grows: the builder is too slow"),
    "QueueOldestAgeSeconds": Metric(
        "age of the oldest S3 event in the queue, some minutes late", "above the SLA: read the builder's log", "Seconds"
    ),
    "DeadLetterDepth": Metric(
        "messages in the dead-letter queue", "above 0: read them, fix the cause, move them back to the queue"
    ),
    "ManifestsPending": Metric(
        "manifests in the watched prefix", "grows: the job is down, hangs, or has too few workers"
    ),
    "OldestManifestAgeSeconds": Metric(
        "age of the oldest manifest in the watched prefix",
        "above the SLA: check JobState, then BatchDurationSeconds",
        "Seconds",
    ),
    "FilesAnnounced": Metric(
        "files that S3 events announced to the builder",
        "falls: producers stopped, or the bucket's notification is gone",
    ),
    "BytesAnnounced": Metric(
        "stored size of the files that S3 events announced to the builder",
        "its rate stays above InputBytesPerSecond: add workers",
        "Bytes",
    ),
    "FilesSkipped": Metric(
        "announced objects that are not data: empty, folder markers, outside the allowed prefixes",
        "rises: a producer writes to the wrong place; messages.built in the log counts the reasons",
    ),
    "FilesRepeated": Metric(
        "announced files that were claimed before",
        "a few are normal, S3 repeats events; many: a queue's visibility timeout is too short",
    ),
    "MessagesFailed": Metric(
        "messages that the builder returned to the queue",
        "stays up: read the builder's log before they reach the dead-letter queue",
    ),
    "ManifestsBuilt": Metric("manifests written by builder and sealer", "0 while files are announced: read the log"),
    "PartsPending": Metric("pending parts", "grows: the sealer does not run"),
    "OldestPartAgeSeconds": Metric(
        "age of the oldest pending part",
        "above twice builder.max_wait_seconds: the sealer fails or does not run",
        "Seconds",
    ),
    "PartsUnreadable": Metric(
        "pending parts that cannot be read; their files wait",
        "above 0: the sealer's log names them; delete one and run `compactor plan` to claim its files again",
    ),
    "EstimatedDollarsPerHour": Metric(
        "list price of the running job's workers; with auto scaling, of its maximum",
        "compare with `compactor cost`; changes with the number of workers",
        "None",
    ),
    "EstimatedDollarsPerTerabyte": Metric(
        "dollars since the oldest of the latest commits, divided by their input",
        "rises: use fewer workers, or stop when idle",
        "None",
    ),
    "MetricsDropped": Metric(
        "values that could not be sent: CloudWatch was unreachable too long, or they were not numbers",
        "above 0: read metrics.not_sent and metrics.dropped in the log; other metrics have gaps",
    ),
}
"""All metrics by name, as CloudWatch shows it."""
