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
            "manifests committed by the batch, or carried to done",
            "0 with work waiting: look at the log",
        ),
        Metric(
            "ManifestsDeadLettered",
            "Count",
            "manifests set aside by the batch",
            "read failed/*.reason.json under the state",
        ),
        Metric(
            "ManifestsStuck",
            "Count",
            "manifests that only a person can put right; they stay as they are",
            "the log's manifest.stuck says what is wrong",
        ),
        Metric(
            "BatchDurationSeconds",
            "Seconds",
            "time from the batch's start to its end",
            "above half the SLA: add workers",
        ),
        Metric(
            "InputBytesPerSecond",
            "Bytes/Second",
            "stored input of the batch over its duration",
            "below arrival: add workers",
        ),
        Metric("RecordsIn", "Count", "lines read, blank ones not counted", "compare with what producers sent"),
        Metric("RecordsOut", "Count", "rows that became visible", "always RecordsIn less RecordsRejected"),
        Metric("RecordsRejected", "Count", "lines set aside", "look at the rejects by reason; tell the producer"),
        Metric(
            "FilesQuarantined",
            "Count",
            "input files that were missing, changed, unreadable, too large or had too many keys",
            "trace one of them",
        ),
        Metric("BytesIn", "Bytes", "stored size of the input files", "falls: producers or events stopped"),
        Metric("BytesOut", "Bytes", "size of the Parquet files", "its ratio to BytesIn is what sizing learns"),
        Metric("OutputFiles", "Count", "Parquet files of rows", "rises against BytesOut: files get too small"),
        Metric(
            "OutputFileSizeHitRate",
            "Percent",
            "output files within 25 % of the target",
            "below 90: the data changes quickly",
        ),
        Metric(
            "ArrivalToVisibleSeconds",
            "Seconds",
            "from a file's event, else its manifest's creation, to its rows being visible; one value a file, "
            "for p50 and p99",
            "p99 above the SLA: see whether queue, manifests or batches wait; old files that were put back count "
            "with their full age",
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
            "parts of the input whose rows were written again, for keys that came up for the first time",
            "rises: producers bring new keys all the time; values may be written as keys",
        ),
        Metric("NewColumns", "Count", "columns that appeared", "a producer changed its events"),
        Metric("Attempts", "Count", "attempts made by the batch", "above ManifestsCommitted: read the attempt records"),
        Metric("Heartbeat", "Count", "1 with every batch and every idle minute", "stops: the job is down or hangs"),
        Metric(
            "JobState",
            "Count",
            "what Glue's runs are, each minute: 2 running, 1 on the way up or down, 0 no run, -1 no run and the "
            "breaker open after too many failures",
            "below 2 for long: `compactor control --dry-run` says why; -1: mend the cause, then close the breaker",
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
            "S3 events that nobody could read",
            "above 0: look at them, mend the cause, move them back to the queue",
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
            "above the SLA: look at JobState, then at BatchDurationSeconds",
        ),
        Metric(
            "FilesAnnounced",
            "Count",
            "files that S3 events told the builder of",
            "falls: producers stopped, or the bucket's notification is gone",
        ),
        Metric(
            "BytesAnnounced",
            "Bytes",
            "stored size of the files that S3 events told the builder of",
            "its rate above InputBytesPerSecond for long: add workers",
        ),
        Metric(
            "FilesSkipped",
            "Count",
            "announced objects that are no data: empty, folder markers, outside the allowed prefixes",
            "rises: a producer writes to the wrong place; the log's counts by reason say which",
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
            "messages that the builder gave back to the queue",
            "stays up: read the builder's log before they reach the dead-letter queue",
        ),
        Metric(
            "ManifestsBuilt", "Count", "manifests that builder and sealer wrote", "0 with files announced: see the log"
        ),
        Metric(
            "PartsPending", "Count", "parts that wait to be sealed into manifests", "grows: the sealer does not run"
        ),
        Metric(
            "OldestPartAgeSeconds",
            "Seconds",
            "age of the oldest part that waits to be sealed",
            "above twice builder.max_wait_seconds: the sealer fails or does not run",
        ),
        Metric(
            "PartsUnreadable",
            "Count",
            "objects among the pending parts that are none; their files wait",
            "above 0: the sealer's log names them; once one is removed, `compactor plan` takes its files",
        ),
        Metric(
            "EstimatedDollarsPerHour",
            "None",
            "list price of the running job's workers; with auto scaling, of as many as it may have",
            "compare with `compactor cost`; changes with the number of workers",
        ),
        Metric(
            "EstimatedDollarsPerTerabyte",
            "None",
            "those dollars since the oldest of the latest commits, over the input of all of them",
            "rises: fewer workers, or an idle stop, would do",
        ),
        Metric(
            "MetricsDropped",
            "Count",
            "values that could not be sent: CloudWatch was away too long, or they were no numbers",
            "above 0: the log's metrics.not_sent and metrics.dropped say why; other metrics have gaps",
        ),
    )
}
"""All metrics by name."""
