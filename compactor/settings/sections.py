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
    Dimension,
    Endpoint,
    Exclusions,
    FilePlace,
    FolderTemplate,
    GrokTable,
    InputPlaces,
    KafkaProperties,
    KinesisSources,
    LogGroup,
    MetadataColumns,
    Namespace,
    OwnPlace,
    PartitionBy,
    QueueUrl,
    RecordColumns,
    Region,
    RoleArn,
    Seconds,
    SparkConf,
    TableName,
    TopicArn,
    Warehouse,
    Window,
)


def _key(default: object, description: str, **bounds: Any) -> Any:
    """A key with a default; without one, a key is a `Field`."""
    return Field(default=default, description=description, **bounds)


class Section(BaseModel):
    """One table of the settings. Strict: a value of another type is an error and is never converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Paths(Section):
    """The compactor's own places: all on S3 or all local, none inside another."""

    manifests: OwnPlace = Field(description="watched prefix, one object per open manifest")
    output: OwnPlace = Field(description="prefix of the Parquet folders")
    state: OwnPlace = Field(description="prefix of ledger, staging, rejects, schemas and checkpoints")


class Input(Section):
    """Which input may be read, and how."""

    allowed_prefixes: InputPlaces = Field(
        description="folders and topics that input may come from; must not overlap paths"
    )
    format: Literal["ndjson", "json", "grok"] = _key(
        "ndjson",
        '"json" also reads JSON arrays and documents of several lines, whose elements count as lines; "grok" reads '
        "lines of text by the pattern in input.grok",
    )
    grok: GrokTable = Field(
        default_factory=dict, description='for format = "grok": the pattern of a line, and definitions that it uses'
    )
    discovery: Literal["full", "declared"] = _key(
        "full", '"full" inspects every line for new keys; "declared" reads only the columns of schema.file'
    )
    max_line_bytes: int = _key(16 * MIB, "longest line; longer lines are rejected", ge=1, le=GIB)
    max_decompressed_bytes: int = _key(
        8 * GIB, "largest decoded size of a file; larger files are quarantined", ge=1, le=TIB
    )
    on_changed_file: Literal["skip", "read"] = _key(
        "skip", "whether to skip or read a file that changed after its manifest was written"
    )
    max_rejected_lines: int = _key(
        100_000, "most rejected lines of a file; see on_too_many_rejects", ge=1, le=1_000_000_000
    )
    on_too_many_rejects: Literal["quarantine", "keep_rows"] = _key(
        "quarantine", '"quarantine" the file and keep samples; "keep_rows" keeps its rows and the first rejects'
    )
    hive_keys: bool = _key(False, "whether folders such as country=DE give their files a column country")
    exclude: Exclusions = _key((), "patterns of files to pass over: of a name, such as *.csv, or of a whole path")


class Schema(Section):
    """How JSON keys become columns."""

    file: FilePlace = _key("", 'TOML file of columns and types; empty: all columns are strings; required by "declared"')
    names: Literal["safe", "exact"] = _key(
        "safe", '"safe" makes column names that Athena and Glue accept; "exact" keeps the JSON keys'
    )
    max_columns: int = _key(2000, "most columns; values of further keys go to _rescued_data", ge=1, le=10_000)
    max_new_columns_per_day: int = _key(
        1000,
        "most columns added on a UTC day, half of them by one manifest, except by the first of a new table; further "
        "keys wait in _rescued_data",
        ge=0,
        le=20_000,
    )
    metadata_columns: MetadataColumns = _key(
        ("file_date",), "columns with the origin of each row; the folders of `compact` have none by default"
    )
    table: CatalogName = _key("", "Glue table, as database.table, that gets each new column at once; empty: none")


class Output(Section):
    """The Parquet files."""

    target_file_bytes: int = _key(128 * MIB, "target size of an output file", ge=MIB, le=TIB)
    folder: FolderTemplate = _key(
        "merged-parquet-{date}", 'folder of a date below paths.output; "date={date}" for Hive'
    )
    compression: Literal["snappy", "zstd"] = _key("snappy", "Parquet codec")
    partition_by: PartitionBy = _key(
        (), 'what divides the files of a date, as folders: ["event_day = day(event_time)"]; empty: nothing'
    )


class Table(Section):
    """The Iceberg table that lists the output files. There is none unless it has a name."""

    catalog: Literal["rest", "glue", "s3tables", "sql"] = _key("rest", "kind of the catalog")
    uri: CatalogUri = _key("", "where the catalog is: the endpoint for rest and s3tables, a database URL for sql")
    warehouse: Warehouse = _key("", "warehouse as the catalog names it: a place, or an ARN for s3tables")
    name: CatalogName = _key("", "name of the table, as namespace.table; empty: no table")
    commit_seconds: Seconds = _key(60, "time that files wait to be committed together")
    keep_snapshot_days: int = _key(
        1, "days that `compactor table maintain` keeps a snapshot after a later one took its place", ge=1, le=3660
    )
    merged_originals: Literal["keep", "remove"] = _key(
        "keep", '"remove": it removes files of rows that were merged, a day later, once no snapshot has them'
    )
    maintain_hours: float = _key(
        24.0, "hours until the job does what `compactor table maintain` does; 0: never", ge=0, le=8784
    )
    merge_hours: float = _key(
        0.0, "hours until the job does what `compactor table merge` does; 0: never", ge=0, le=8784
    )


class Convert(Section):
    """The engine that turns lines into rows."""

    engine: Literal["auto", "spark", "native"] = _key(
        "auto", '"native" is faster and not in every wheel; "auto" takes native if it is installed'
    )


MANIFESTS_FOR_A_SLOT = 4
"""Manifests of one micro-batch for each one that is processed at the same time."""


class Stream(Section):
    """How the streaming job processes manifests."""

    source: Literal["auto", "spark", "listing"] = _key(
        "auto",
        '"spark" streams manifests with Spark; "listing" lists them, without Spark and Java, in one process; '
        '"auto" takes spark if pyspark and Java are installed',
    )
    trigger_interval_seconds: Seconds = _key(10, "time between the starts of two micro-batches")
    manifests_in_flight: int = _key(2, "manifests processed at the same time", ge=1, le=1000)
    max_attempts: int = _key(3, "failed attempts after which a manifest becomes a dead letter", ge=2, le=1000)

    @property
    def manifests_per_trigger(self) -> int:
        """The most manifests in one micro-batch: some wait for each slot, so that none is idle until the next one."""
        return MANIFESTS_FOR_A_SLOT * self.manifests_in_flight


class Builder(Section):
    """How the builder claims files and groups them into manifests."""

    claims: TableName = _key(
        "", 'DynamoDB table; empty: SQLite in a local paths.state; "@journal": objects in paths.state'
    )
    target_manifest_bytes: int = _key(GIB, "total size of the files in one manifest", ge=1, le=TIB)
    max_wait_seconds: Seconds = _key(120, "longest time an announced file waits before its manifest is written")


class Control(Section):
    """What the control plane watches, when it runs the job, and where it sends notifications."""

    shards: int = _key(
        1, "jobs side by side that share the manifests, each of which is kept running", ge=1, le=MAX_SHARDS
    )
    job_name: Dimension = _key("compactor", "name of the Glue job, or of the runs; a dimension of every metric")
    queue_url: QueueUrl = _key("", "SQS queue of S3 events")
    dead_letter_queue_url: QueueUrl = _key("", "its dead-letter queue")
    topic_arn: TopicArn = _key("", "SNS topic for notifications")
    mode: Literal["always", "on_work", "never"] = _key(
        "always",
        '"always" keeps the job running; "on_work" runs it only while work waits, and for half an hour after; "never" drains it',
    )
    sla_seconds: Seconds = _key(900, "alert when a manifest waits longer; processing one should take less than half")
    maintenance_window: Window = _key("", "maintenance window of the Glue job, in UTC")


class Emr(Section):
    """The application of EMR Serverless that runs the job. Without it, the job runs on Glue."""

    application_id: ApplicationId = _key("", "id of the application; empty: the job runs on Glue")
    role_arn: RoleArn = _key("", "role of the job")
    entry_point: FilePlace = _key("", "glue_entry.py on S3")
    archive: FilePlace = _key("", "archive of the job's Python packages on S3")
    log_group: LogGroup = _key("", "log group of CloudWatch for the job; empty: none")
    spark_conf: SparkConf = Field(default_factory=dict, description="Spark properties that a run is submitted with")


class Retention(Section):
    """What `compactor clean`, and the job once a day, deletes by age, and when dates are closed."""

    archive_days: int = _key(
        30, "days until archived manifests, redriven lines and landed records are deleted", ge=1, le=36_600
    )
    rejects_days: int = _key(0, "days until rejects are deleted; 0: never", ge=0, le=36_600)
    close_after_days: int = _key(
        2, "days without a new record after which `compactor close` closes a date", ge=1, le=3660
    )


class Aws(Section):
    """The AWS endpoint. Empty values are taken from the environment."""

    region: Region = _key("", "AWS region")
    endpoint_url: Endpoint = _key("", "endpoint to use instead of AWS")
    timeout_seconds: float = _key(60, "time-out of one request", ge=1, le=3600, allow_inf_nan=False)


class Metrics(Section):
    """Where metrics go."""

    namespace: Namespace = _key("Compactor", "CloudWatch namespace")
    environment: Dimension = _key("local", 'such as "prod"; a dimension of every metric')
    sink: Literal["cloudwatch", "log", "none"] = _key("log", "where metrics go")


class Spark(Section):
    """The Spark session."""

    conf: SparkConf = Field(default_factory=dict, description="Spark properties, passed through; quote names with dots")


class Kafka(Section):
    """The Kafka clusters that input may come from."""

    clusters: KafkaProperties = Field(
        default_factory=dict,
        description="by name, the properties of its clients; secrets as env:NAME, file:/path or secretsmanager:ARN",
    )
    record_columns: RecordColumns = _key(
        (), 'columns of what records have beside their values: "key", "timestamp", "headers", "offset"'
    )
    values: KafkaValues = _key(
        "record", 'what the value of a record is: one "record", or NDJSON "lines"; these need the column "offset"'
    )


class Kinesis(Section):
    """The Kinesis streams that input may come from."""

    sources: KinesisSources = Field(
        default_factory=dict, description="by name, where streams are: region, consumer, strays, endpoint_url"
    )
