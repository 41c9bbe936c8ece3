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
    "ManifestsCommitted": Metric("manifests that the batch committed or finished", "0 while work waits: read the log"),
    "ManifestsDeadLettered": Metric(
        "manifests that the batch made dead letters", "read failed/*.reason.json under paths.state"
    ),
    "ManifestsStuck": Metric("manifests that need an operator", "read manifest.stuck in the log"),
    "ManifestsRetrying": Metric(
        "manifests that failed and wait for their next attempt", "stays above 0: read manifest.failed in the log"
    ),
    "BatchDurationSeconds": Metric(
        "time since the first of the manifests that ended together was taken in",
        "above half the SLA: add workers",
        "Seconds",
    ),
    "InputBytesPerSecond": Metric(
        "stored input of the batch divided by its duration", "below the arrival rate: add workers", "Bytes/Second"
    ),
    "RecordsIn": Metric("lines read, without blank ones", "compare with what producers sent"),
    "RecordsOut": Metric("rows that became visible", "always RecordsIn minus RecordsRejected"),
    "RecordsRejected": Metric("rejected lines", "check the rejects by reason; tell the producer"),
    "FilesQuarantined": Metric(
        "quarantined input files",
        "`compactor verify` lists them with their status",
    ),
    "BytesIn": Metric("stored size of the input files", "falls: producers or events stopped", "Bytes"),
    "BytesOut": Metric("size of the Parquet files", "sizing learns its ratio to BytesIn", "Bytes"),
    "OutputFiles": Metric("Parquet files of rows", "rises against BytesOut: files become too small"),
    "OutputFileSizeHitRate": Metric(
        "output files within 25 % of the target, of manifests or partitions that fill one",
        "below 90: the data changes quickly",
        "Percent",
    ),
    "SmallPartitionFiles": Metric(
        "output files of partitions that do not fill one; they do not count in the hit rate",
        "near OutputFiles: choose a coarser output.partition_by, or larger manifests",
    ),
    "RowsOfNoPartition": Metric(
        "rows without a value for output.partition_by, or beyond output.max_partitions",
        "rises: read partitions.* in the log",
    ),
    "ArrivalToVisibleSeconds": Metric(
        "time from a file's event (else its listing, or its manifest's creation) until its rows are visible",
        "p99 above the SLA: check queue, manifests and batches; a redriven file counts with its full age",
        "Seconds",
    ),
    "ValuesRescued": Metric(
        "values kept in _rescued_data because they do not fit the type of their column",
        "rises: a producer changed its events, or the schema file is wrong",
    ),
    "BinsRedone": Metric(
        "bins of input files converted again for new keys",
        "rises: values may be used as keys",
    ),
    "NewColumns": Metric("new columns", "a producer changed its events"),
    "ColumnsRefused": Metric(
        "keys that got no column, at least; their values are in _rescued_data",
        "rises: values may be used as keys; compare columns.refused in the log with the limits in [schema]",
    ),
    "ColumnsUsedPercent": Metric(
        "columns of keys, divided by schema.max_columns",
        "from 90 on: `compactor schema` shows which file brought them; `compactor schema retire` makes room",
        "Percent",
    ),
    "Attempts": Metric("attempts of the batch", "above ManifestsCommitted: read the attempt records"),
    "AttemptsWasted": Metric(
        "attempts of the batch at manifests that another run decided first",
        "stays above 0: two jobs work on the same manifests; `compactor status` lists them",
    ),
    "Heartbeat": Metric("1 with every batch and every idle minute", "stops: the job is down or hangs"),
    "TableCommits": Metric(
        "commits to the table of `[table]`; only with a table sink", "0 while manifests are placed: read the log"
    ),
    "TableCommitsFailed": Metric(
        "commits to the table of `[table]` that failed; what they had is committed later, once",
        "stays above 0: read table.not_committed in the log",
    ),
    "ManifestsPlaced": Metric(
        "manifests whose files wait until the table of `[table]` takes them",
        "grows to 5,000: the job begins no others until the catalog answers",
    ),
    "CheckpointRotations": Metric(
        "moves of the stream to a new Spark checkpoint, after 10,000 manifests",
        "many an hour: the manifests are small; raise builder.target_manifest_bytes or builder.max_wait_seconds",
    ),
    "JobState": Metric(
        "state of the Glue job: 2 running, 1 starting or stopping, 0 no run, -1 no run and breaker open",
        "below 2 for long: `compactor control --dry-run`; -1: fix the cause, close the breaker",
    ),
    "Restarts": Metric("runs that the control plane started", "rises: read the reasons in its notifications"),
    "QueueDepth": Metric("S3 events in the queue, in flight or not", "grows: the builder is too slow"),
    "QueueOldestAgeSeconds": Metric(
        "age of the oldest S3 event in the queue, some minutes late", "above the SLA: read the builder's log", "Seconds"
    ),
    "DeadLetterDepth": Metric("messages in the dead-letter queue", "above 0: read them, fix the cause, move them back"),
    "ManifestsPending": Metric("manifests in the watched prefix", "grows: check JobState, then BatchDurationSeconds"),
    "OldestManifestAgeSeconds": Metric(
        "age of the oldest manifest in the watched prefix",
        "above the SLA: check JobState, then BatchDurationSeconds",
        "Seconds",
    ),
    "LandingAgeSeconds": Metric(
        "for how long the oldest record of a topic or stream that is not landed may have waited, by the last answers "
        "of its partitions, or since the last landing while those of the job fail",
        "grows: read landing.failed in the log, or land more often; near the retention, records are lost",
        "Seconds",
    ),
    "LandingsFailed": Metric(
        "landings of `kafka.topics` and `kinesis.streams` that failed, or were of some partitions only",
        "stays above 0: read landing.failed in the log",
    ),
    "FilesAnnounced": Metric(
        "files that S3 events announced",
        "falls: producers stopped, or the bucket's notification is gone",
    ),
    "BytesAnnounced": Metric(
        "stored size of announced files",
        "rate stays above InputBytesPerSecond: add workers",
        "Bytes",
    ),
    "FilesSkipped": Metric(
        "announced objects that are empty, folder markers or outside the allowed prefixes",
        "rises: a producer writes to the wrong place; read messages.built in the log",
    ),
    "FilesRepeated": Metric(
        "announced files that were claimed before",
        "many: the queue's visibility timeout is too short; S3 repeats a few",
    ),
    "FilesUnrouted": Metric(
        "announced files that are below no prefix of a stream; only with `[[streams]]`",
        "above 0: read files.unrouted in the log; add a stream or correct its prefixes, then plan",
    ),
    "FilesMisdated": Metric(
        "announced files named after dates outside the window of `[input]`; the day of arrival counts",
        "above 0: read files.misdated in the log, and inform the producer",
    ),
    "MessagesFailed": Metric(
        "messages that the builder returned to the queue",
        "stays up: read the builder's log",
    ),
    "ManifestsBuilt": Metric("manifests written by builder and sealer", "0 while files are announced: read the log"),
    "PartsPending": Metric("pending parts", "grows: the sealer does not run"),
    "OldestPartAgeSeconds": Metric(
        "age of the oldest pending part",
        "above twice builder.max_wait_seconds: the sealer fails or does not run",
        "Seconds",
    ),
    "PartsUnreadable": Metric(
        "unreadable pending parts; their files wait",
        "above 0: read part.unreadable in the log",
    ),
    "EstimatedDollarsPerHour": Metric(
        "list price of the running job's workers; with auto scaling, of its maximum",
        "compare with `compactor cost`",
        "None",
    ),
    "EstimatedDollarsPerTerabyte": Metric(
        "dollars since the oldest of the latest commits, divided by their input",
        "rises: use fewer workers, or stop when idle",
        "None",
    ),
    "MetricsDropped": Metric(
        "values that were not numbers, or that CloudWatch did not take in time",
        "above 0: other metrics have gaps; read metrics.* in the log",
    ),
}
"""All metrics by name, as CloudWatch shows it."""

ONLY_OF_STREAMS = frozenset({"FilesUnrouted"})
"""Metrics that are emitted only where the settings have `[[streams]]`."""

ONLY_OF_PARTITIONS = frozenset({"SmallPartitionFiles", "RowsOfNoPartition"})
"""Metrics that are emitted only where the settings have `output.partition_by`."""

ONLY_OF_LOGS = frozenset({"LandingAgeSeconds", "LandingsFailed"})
"""Metrics that are emitted only where topics or streams are landed, also with the dimension `Log`."""
