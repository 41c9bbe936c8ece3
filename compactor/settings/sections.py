"""The sections of the settings: every key with its type, default and one-line description.

`make generate` copies the descriptions into `docs/reference-settings.md` and the comments of the settings
files.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from compactor.core.logs.names import KafkaValues
from compactor.core.rules.sharding import MAX_SHARDS
from compactor.settings.types import (
    GIB,
    MIB,
    TIB,
    ApplicationId,
    CatalogName,
    CatalogUri,
    ClusterName,
    Dimension,
    Endpoint,
    Exclusions,
    FilePlace,
    FolderTemplate,
    GrokTable,
    InputPlaces,
    KafkaProperties,
    KeptKeys,
    KinesisSources,
    LogGroup,
    MetadataColumns,
    Namespace,
    OwnPlace,
    PartitionBy,
    QueueUrl,
    RecordColumns,
    RecordPath,
    Region,
    RoleArn,
    Seconds,
    SparkConf,
    StagingPlace,
    TableName,
    Texts,
    TopicArn,
    Warehouse,
    Window,
)


def _key(default: object, description: str, **bounds: Any) -> Any:
    """A key with a default; without one, a key is a `Field`."""
    return Field(default=default, description=description, **bounds)


class Section(BaseModel):
    """One table of the settings. Strict: values are never converted; one with the wrong type is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Paths(Section):
    """The compactor's own places. All are on S3, or all are local, and none is inside a different one."""

    manifests: OwnPlace = Field(description="prefix of the open manifests, which the job watches")
    output: OwnPlace = Field(description="prefix of the Parquet files, with a folder per date")
    state: OwnPlace = Field(description="prefix of everything else: ledger, rejects, schema versions and checkpoints")
    staging: StagingPlace = _key(
        "", "prefix of files before their commit, in a bucket without versions; empty: staging below paths.state"
    )


class Input(Section):
    """Where input may come from, and how the job reads it."""

    allowed_prefixes: InputPlaces = Field(
        description="folders, topics and streams from which input may come. The job lands each topic and stream "
        "listed here; a complete cluster or source, such as kafka://main, is landed only by "
        "`compactor plan`"
    )
    sources: Texts = _key((), "each SRC of `compact`, for suggested commands")
    format: Literal["ndjson", "json", "grok"] = _key(
        "ndjson",
        '"ndjson": one JSON object per line; "json": also JSON arrays and multi-line objects; "grok": text lines '
        "that match the pattern in input.grok",
    )
    grok: GrokTable = Field(
        default_factory=dict, description='for format = "grok": the pattern of a line, and the definitions it uses'
    )
    records: RecordPath = _key(
        "",
        'for format = "json": path to the arrays of records in a document; "auto" '
        "recognises some; empty: the document is a record",
    )
    keep: KeptKeys = _key((), "keys of the objects around these arrays to add as columns")
    discovery: Literal["full", "declared"] = _key(
        "full", '"full" adds a column for each new key; "declared" reads only the columns in schema.file'
    )
    max_line_bytes: int = _key(16 * MIB, "length limit of a line; longer lines are rejected", ge=1, le=GIB)
    max_decompressed_bytes: int = _key(
        8 * GIB, "size limit of a file after decompression; larger files are quarantined", ge=1, le=TIB
    )
    on_changed_file: Literal["skip", "read"] = _key(
        "skip",
        'for a file that changed after its manifest was written: "skip" quarantines it; "read" reads the new content',
    )
    on_grown: Literal["tail", "quarantine"] = _key(
        "tail",
        'for a local file that was appended to: "tail" takes the new lines; "quarantine" takes nothing, as for a '
        "replaced file",
    )
    max_rejected_lines: int = _key(
        100_000, "limit of rejected lines in a file; on_too_many_rejects applies beyond it", ge=1, le=1_000_000_000
    )
    on_too_many_rejects: Literal["quarantine", "keep_rows"] = _key(
        "quarantine",
        '"quarantine" rejects the whole file and keeps samples; "keep_rows" keeps its rows and the first '
        "max_rejected_lines rejects",
    )
    hive_keys: bool = _key(
        False, "true: a folder such as country=DE in a file's path adds a column country to its rows"
    )
    exclude: Exclusions = _key((), "patterns of files to ignore, by name (*.csv) or by complete path")


class Schema(Section):
    """How JSON keys become columns."""

    file: FilePlace = _key(
        "", 'TOML file with columns and their types; discovery = "declared" needs one; empty: every column is a string'
    )
    names: Literal["safe", "exact"] = _key(
        "safe", '"safe" makes column names that Athena and Glue accept; "exact" keeps the JSON keys'
    )
    max_columns: int = _key(
        2000,
        "limit of columns; values of further keys go to _rescued_data. A job adds at most 1,000 columns per UTC "
        "day, and 500 per manifest, except for the first",
        ge=1,
        le=10_000,
    )
    metadata_columns: MetadataColumns = _key(
        ("file_date",), "columns with the origin of each row; `compact` adds none by default"
    )
    table: CatalogName = _key(
        "", "Glue table over the Parquet folders, as database.table, which gets each new column at once; empty: none"
    )


class Output(Section):
    """The Parquet files."""

    target_file_bytes: int = _key(128 * MIB, "target size of a Parquet file", ge=MIB, le=TIB)
    folder: FolderTemplate = _key(
        "merged-parquet-{date}", 'folder of a date in paths.output; "date={date}" suits Hive and Athena'
    )
    compression: Literal["snappy", "zstd"] = _key("snappy", "Parquet codec")
    partition_by: PartitionBy = _key(
        (),
        'folders below that of the date, by values of the rows: ["event_day = day(event_time)"]; '
        "a manifest fills at most 1,000",
    )


class Table(Section):
    """The Iceberg table that lists the output files. It needs a name."""

    catalog: Literal["rest", "glue", "s3tables", "sql"] = _key("rest", "kind of catalog")
    uri: CatalogUri = _key("", "address of the catalog: its endpoint, or for sql the URL of a database")
    warehouse: Warehouse = _key("", "warehouse in the catalog; for s3tables, the ARN of the table bucket")
    name: CatalogName = _key("", "name of the table, as namespace.table; empty: no table")
    commit_seconds: Seconds = _key(
        60, "interval between commits to the table; shorter is fresher, longer creates fewer snapshots"
    )
    keep_snapshot_days: int = _key(
        1,
        "days that `compactor table maintain` keeps a snapshot after a newer one replaced it",
        ge=1,
        le=3660,
    )
    merged_originals: Literal["keep", "remove"] = _key(
        "keep",
        'for files whose rows `compactor table merge` copied to a larger file: "remove" deletes them after a day, '
        "once no snapshot needs them",
    )
    maintain_hours: float = _key(
        24.0, "hours between the job's calls of `compactor table maintain`; 0: never", ge=0, le=8784
    )
    merge_hours: float = _key(0.0, "hours between the job's calls of `compactor table merge`; 0: never", ge=0, le=8784)


class Convert(Section):
    """The engine that converts lines to rows."""

    engine: Literal["auto", "spark", "native"] = _key(
        "auto", '"native" is faster, but not in every wheel; "auto" uses it if installed, else Spark'
    )


MANIFESTS_FOR_A_SLOT = 4
"""Manifests in a micro-batch per manifest processed at the same time."""


class Stream(Section):
    """How the streaming job processes manifests."""

    source: Literal["auto", "spark", "listing"] = _key(
        "auto",
        '"spark" streams manifests with Spark; "listing" lists them in one process, without Spark and Java; '
        '"auto" uses Spark if pyspark and Java are installed',
    )
    trigger_interval_seconds: Seconds = _key(10, "interval between micro-batches")
    queue_url: QueueUrl = _key(
        "",
        "SQS queue of S3 events of new manifests: one job without Spark lists them when it rings; empty: at intervals",
    )
    manifests_in_flight: int = _key(2, "manifests processed at the same time", ge=1, le=1000)
    max_attempts: int = _key(3, "failed attempts after which a manifest becomes a dead letter", ge=2, le=1000)

    @property
    def manifests_per_trigger(self) -> int:
        """The most manifests in one micro-batch: some wait for each slot, so none is idle until the next batch."""
        return MANIFESTS_FOR_A_SLOT * self.manifests_in_flight


class Builder(Section):
    """How input files are claimed and grouped into manifests."""

    claims: TableName = _key(
        "", 'DynamoDB table of claimed files; "@journal": objects in paths.state; empty: SQLite in a local paths.state'
    )
    target_manifest_bytes: int = _key(GIB, "target for the total size of a manifest's files", ge=1, le=TIB)
    max_wait_seconds: Seconds = _key(120, "longest time that an announced file waits for other files")


class Control(Section):
    """How the control plane runs the job, and where its queues and notifications are."""

    shards: int = _key(1, "number of jobs that share the work and are kept running", ge=1, le=MAX_SHARDS)
    job_name: Dimension = _key(
        "compactor", "name of the Glue job, or of its runs elsewhere; a dimension of every metric"
    )
    queue_url: QueueUrl = _key("", "SQS queue of S3 events")
    dead_letter_queue_url: QueueUrl = _key("", "dead-letter queue of queue_url")
    topic_arn: TopicArn = _key("", "SNS topic for notifications")
    mode: Literal["always", "on_work", "never"] = _key(
        "always",
        '"always" keeps the job running; "on_work" starts it when work waits, and stops it after 30 minutes '
        'without work; "never" lets it finish started work, and stops it',
    )
    sla_seconds: Seconds = _key(
        900, "a manifest that waits longer raises an alarm; processing should take less than half of this"
    )
    maintenance_window: Window = _key("", "maintenance window of the Glue job: a day and an hour in UTC")


class Emr(Section):
    """The EMR Serverless application that runs the job. Without it, the job runs on Glue."""

    application_id: ApplicationId = _key("", "id of the application; empty: the job runs on Glue")
    role_arn: RoleArn = _key("", "the job's role")
    entry_point: FilePlace = _key("", "glue_entry.py on S3")
    archive: FilePlace = _key("", "archive with the job's Python packages on S3")
    log_group: LogGroup = _key("", "CloudWatch log group of the job; empty: none")
    spark_conf: SparkConf = Field(default_factory=dict, description="Spark properties with which a run is submitted")


class Ecs(Section):
    """The ECS cluster that runs the job without Spark."""

    cluster: ClusterName = _key("", "its name; empty: none")
    task_definition: ClusterName = _key("", "its family")
    subnets: Texts = _key((), "ids of subnets")
    security_groups: Texts = _key((), "ids of security groups")
    public_ip: bool = _key(False, "true: tasks have a public address")
    max_shards: int = _key(1, "most shards; more than control.shards run while the backlog is old", ge=1, le=MAX_SHARDS)
    capacity_provider: ClusterName = _key("FARGATE", '"FARGATE", "FARGATE_SPOT" or a capacity provider of instances')


class Retention(Section):
    """When old objects are deleted, by the job once a day or by `compactor data clean`, and when dates are closed."""

    archive_days: int = _key(
        30, "age in days at which archived manifests, redriven lines and landed records are deleted", ge=1, le=36_600
    )
    rejects_days: int = _key(0, "age in days at which rejects are deleted; 0: never", ge=0, le=36_600)
    close_after_days: int = _key(
        2, "days without a new record after which `compactor data close` closes a date", ge=1, le=3660
    )


class Aws(Section):
    """AWS access. Empty values come from the environment."""

    region: Region = _key("", "AWS region")
    endpoint_url: Endpoint = _key("", "endpoint of an S3-compatible store or an emulator of AWS")
    timeout_seconds: float = _key(60, "timeout per request", ge=1, le=3600, allow_inf_nan=False)


class Metrics(Section):
    """Where metrics are sent."""

    namespace: Namespace = _key("Compactor", "CloudWatch namespace")
    environment: Dimension = _key("local", 'name of the deployment, such as "prod"; a dimension of every metric')
    sink: Literal["cloudwatch", "log", "none"] = _key(
        "log", '"cloudwatch" sends metrics there; "log" writes them to the log; "none" drops them'
    )
    detail: Literal["all", "alarms"] = _key(
        "all", '"alarms" sends only values that an alarm of the deployment needs, for a stream that costs little'
    )


class Spark(Section):
    """The Spark session."""

    conf: SparkConf = Field(
        default_factory=dict, description="Spark properties, such as spark.master; quote names with dots"
    )


class Kafka(Section):
    """The Kafka clusters for input."""

    clusters: KafkaProperties = Field(
        default_factory=dict,
        description="client properties of each cluster, by name; secrets as env:NAME, file:/path or secretsmanager:ARN",
    )
    record_columns: RecordColumns = _key(
        (), 'record fields that become columns next to the value: "key", "timestamp", "headers", "offset"'
    )
    values: KafkaValues = _key(
        "record",
        '"record": each value is one JSON object; "lines": each is NDJSON, which needs "offset" in record_columns',
    )


class Kinesis(Section):
    """The Kinesis streams for input."""

    sources: KinesisSources = Field(
        default_factory=dict,
        description="the sources of streams, by name: region, consumer, strays (keep or drop), endpoint_url",
    )
