"""The catalogue of metrics: name, unit, meaning, and what to do when one moves. No others may be emitted."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["Count", "Bytes", "Bytes/Second", "Seconds", "Percent", "None"]

Alarm = Literal["none", "absence", "work", "fault"]
"""What an alarm of the deployment needs of a metric: each value, as it also tells of absent ones, or those that are not
zero: there are some whenever there is work, or only if something is wrong."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    meaning: str  # what it counts
    advice: str  # what to do when it moves
    unit: Unit = "Count"  # CloudWatch's unit; `None` for dollars, for which it has none
    alarm: Alarm = "none"  # which values an alarm needs


CATALOGUE = {
    "ManifestsCommitted": Metric("manifests committed or finished by the batch", "0 while work waits: read the log"),
    "ManifestsDeadLettered": Metric(
        "manifests that became dead letters in the batch", "read failed/*.reason.json under paths.state", alarm="fault"
    ),
    "ManifestsStuck": Metric("manifests that need an operator", "read manifest.stuck in the log", alarm="fault"),
    "ManifestsRetrying": Metric(
        "manifests that failed and wait for their next attempt", "stays above 0: read manifest.failed in the log"
    ),
    "BatchDurationSeconds": Metric(
        "from the intake of the first manifest until they ended together",
        "above half the SLA: add workers",
        "Seconds",
        alarm="work",
    ),
    "InputBytesPerSecond": Metric(
        "stored input of the batch, divided by its duration", "below the arrival rate: add workers", "Bytes/Second"
    ),
    "RecordsIn": Metric("non-blank lines read", "compare with what producers sent", alarm="work"),
    "RecordsOut": Metric("new visible rows", "always RecordsIn minus RecordsRejected"),
    "RecordsRejected": Metric("rejected lines", "check the rejects by reason; inform the producer", alarm="fault"),
    "FilesQuarantined": Metric(
        "quarantined input files", "`compactor verify` lists them with their status", alarm="fault"
    ),
    "BytesIn": Metric("stored size of the input files", "falls: producers or events stopped", "Bytes"),
    "BytesOut": Metric("size of the Parquet files", "sizing learns its ratio to BytesIn", "Bytes"),
    "OutputFiles": Metric("Parquet files with rows", "rises against BytesOut: files become too small"),
    "OutputFileSizeHitRate": Metric(
        "output files within 25 % of the target, for manifests or partitions that can fill one",
        "below 90: the data changes quickly",
        "Percent",
    ),
    "SmallPartitionFiles": Metric(
        "output files of partitions too small to fill one; excluded from the hit rate",
        "near OutputFiles: choose a coarser output.partition_by, or larger manifests",
    ),
    "RowsOfNoPartition": Metric(
        "rows without a value for output.partition_by, or beyond 1,000 partitions of a manifest",
        "rises: read partitions.* in the log",
    ),
    "ArrivalToVisibleSeconds": Metric(
        "time from a file's event (else its listing, or its manifest's creation) until its rows are visible",
        "p99 above the SLA: check queue, manifests and batches; a redriven file counts with its full age",
        "Seconds",
    ),
    "ValuesRescued": Metric(
        "values in _rescued_data that do not fit their column's type",
        "rises: a producer changed its events, or the schema file is wrong",
    ),
    "BinsRedone": Metric(
        "bins of input files converted again for new keys",
        "rises: values may be used as keys",
    ),
    "NewColumns": Metric("new columns", "a producer changed its events"),
    "ColumnsRefused": Metric(
        "minimum number of keys without a column; their values are in _rescued_data",
        "rises: values may be used as keys; compare columns.refused in the log with schema.max_columns",
    ),
    "ColumnsUsedPercent": Metric(
        "key columns, divided by schema.max_columns",
        "from 90 on: `compactor schema show` shows the files that added them; `compactor schema retire` makes room",
        "Percent",
        alarm="absence",
    ),
    "Attempts": Metric("attempts of the batch", "above ManifestsCommitted: read the attempt records"),
    "AttemptsWasted": Metric(
        "attempts at manifests that another run decided first",
        "stays above 0: two jobs work on the same manifests; `compactor status` lists them",
    ),
    "Heartbeat": Metric("1 per batch and per idle minute", "stops: the job is down or hangs", alarm="absence"),
    "TableCommits": Metric(
        "commits to the table of `[table]`; only with a table sink", "0 while manifests are published: read the log"
    ),
    "TableCommitsFailed": Metric(
        "failed commits to the table of `[table]`; their content is committed later, once",
        "stays above 0: read table.not_committed in the log",
        alarm="fault",
    ),
    "ManifestsPlaced": Metric(
        "manifests whose files are not yet in the table of `[table]`",
        "grows to 5,000: the job starts no more until the catalog responds",
    ),
    "CheckpointRotations": Metric(
        "moves of the stream to a new Spark checkpoint, after 10,000 manifests",
        "many per hour: the manifests are small; raise builder.target_manifest_bytes or builder.max_wait_seconds",
    ),
    "JobState": Metric(
        "state of the Glue job: 2 running, 1 starting or stopping, 0 no run, -1 no run and breaker open",
        "below 2 for long: `compactor job check --dry-run`; -1: fix the cause, close the breaker",
        alarm="absence",
    ),
    "Restarts": Metric(
        "runs started by the control plane", "rises: read the reasons in its notifications", alarm="fault"
    ),
    "QueueDepth": Metric("S3 events in the queue, in flight or not", "grows: the builder is too slow"),
    "QueueOldestAgeSeconds": Metric(
        "age of the oldest S3 event in the queue, delayed by some minutes",
        "above the SLA: read the builder's log",
        "Seconds",
        alarm="work",
    ),
    "DeadLetterDepth": Metric(
        "messages in the dead-letter queue", "above 0: read them, fix the cause, move them back", alarm="fault"
    ),
    "ManifestsPending": Metric("manifests in the watched prefix", "grows: check JobState, then BatchDurationSeconds"),
    "OldestManifestAgeSeconds": Metric(
        "age of the oldest manifest in the watched prefix",
        "above the SLA: check JobState, then BatchDurationSeconds",
        "Seconds",
        alarm="work",
    ),
    "LandingAgeSeconds": Metric(
        "longest possible wait of an unlanded record of a topic or stream, by the last responses of its "
        "partitions, or since the last landing while landings fail",
        "grows: read landing.failed in the log, or land more often; near the retention, records are lost",
        "Seconds",
        alarm="work",
    ),
    "LandingsFailed": Metric(
        "landings of topics and streams that failed completely or partly",
        "stays above 0: read landing.failed in the log",
    ),
    "FilesAnnounced": Metric(
        "files announced by S3 events",
        "falls: producers stopped, or the bucket's notification is missing",
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
        "announced files that were already claimed",
        "many: the queue's visibility timeout is too short; a few are S3 repeats",
    ),
    "FilesUnrouted": Metric(
        "announced files that match no stream's prefix; only with `[[streams]]`",
        "above 0: read files.unrouted in the log; add a stream or correct its prefixes, then plan",
        alarm="fault",
    ),
    "FilesMisdated": Metric(
        "announced files whose names have a date outside the window of `[input]`; the arrival date is used",
        "above 0: read files.misdated in the log, and inform the producer",
        alarm="fault",
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
        alarm="absence",
    ),
    "PartsUnreadable": Metric(
        "unreadable pending parts; their files wait",
        "above 0: read part.unreadable in the log",
    ),
    "EstimatedDollarsPerHour": Metric(
        "list price of the running job's workers; with auto scaling, of its maximum",
        "compare with `compactor cost estimate`",
        "None",
    ),
    "EstimatedDollarsPerTerabyte": Metric(
        "dollars since the oldest of the latest commits, divided by their input",
        "rises: use fewer workers, or stop when idle",
        "None",
    ),
    "MetricsDropped": Metric(
        "values that were not numbers, or that CloudWatch did not accept in time",
        "above 0: other metrics have gaps; read metrics.* in the log",
    ),
}
"""All metrics by name, as CloudWatch shows it."""

ONLY_OF_STREAMS = frozenset({"FilesUnrouted"})
"""Metrics emitted only if the settings have `[[streams]]`."""

ONLY_OF_PARTITIONS = frozenset({"SmallPartitionFiles", "RowsOfNoPartition"})
"""Metrics emitted only if the settings have `output.partition_by`."""

ONLY_OF_LOGS = frozenset({"LandingAgeSeconds", "LandingsFailed"})
"""Metrics emitted only where topics or streams are landed, also with the dimension `Log`."""
