"""The sections of the settings: every key with its type, default and one-line description.

`tools.settings_reference` copies the descriptions into `docs/reference-settings.md` and the
comments of the settings files.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from compactor.settings.types import (
    GIB,
    MIB,
    TIB,
    Dimension,
    Endpoint,
    FilePlace,
    FolderTemplate,
    MetadataColumns,
    Namespace,
    OwnPlace,
    OwnPlaceOrEmpty,
    Places,
    QueueUrl,
    Region,
    Seconds,
    SparkConf,
    TableName,
    TopicArn,
    Window,
)


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

    allowed_prefixes: Places = Field(description="folders that input may come from; must not overlap paths")
    discovery: Literal["full", "declared"] = Field(
        default="full",
        description='"full" inspects every line for new keys; "declared" reads only the columns of schema.file',
    )
    max_line_bytes: int = Field(default=16 * MIB, ge=1, le=GIB, description="longest line; longer ones are rejected")
    max_decompressed_bytes: int = Field(
        default=8 * GIB, ge=1, le=TIB, description="largest decoded size of a file; larger files are quarantined"
    )
    max_rejected_lines: int = Field(
        default=100_000, ge=1, le=1_000_000_000, description="most rejected lines of a file; see on_too_many_rejects"
    )
    max_rejected_bytes: int = Field(
        default=64 * MIB, ge=1, le=TIB, description="most bytes of rejected lines of a file; see on_too_many_rejects"
    )
    on_too_many_rejects: Literal["quarantine", "keep_rows"] = Field(
        default="quarantine",
        description='"quarantine" the file and keep samples; "keep_rows" keeps its rows and the first rejects',
    )
    max_scratch_bytes: int = Field(
        default=10 * GIB,
        ge=MIB,
        le=TIB,
        description="most scratch space of a task; a file that needs more is quarantined",
    )
    on_changed_file: Literal["skip", "read"] = Field(
        default="skip", description="what to do with a file that changed since its manifest was written"
    )


class Schema(Section):
    """How JSON keys become columns."""

    file: FilePlace = Field(
        default="",
        description='schema file (TOML) with columns and types; empty: all columns are strings; required by "declared"',
    )
    names: Literal["safe", "exact"] = Field(
        default="safe", description='"safe" makes column names that Athena and Glue accept; "exact" keeps the JSON keys'
    )
    max_columns: int = Field(
        default=2000, ge=1, le=10_000, description="most columns; further keys go to _rescued_data"
    )
    max_new_columns_per_manifest: int = Field(
        default=500, ge=0, le=10_000, description="most columns that one manifest adds, except the first of a new table"
    )
    max_new_columns_per_day: int = Field(
        default=1000, ge=0, le=10_000, description="most columns added on a UTC day; further keys wait in _rescued_data"
    )
    max_key_characters: int = Field(
        default=256, ge=1, le=1000, description="longest key that becomes a column; longer ones go to _rescued_data"
    )
    metadata_columns: MetadataColumns = Field(default=(), description="columns that record the origin of each row")


class Output(Section):
    """The Parquet files."""

    target_file_bytes: int = Field(default=128 * MIB, ge=MIB, le=TIB, description="target size of an output file")
    folder: FolderTemplate = Field(
        default="merged-parquet-{date}", description='folder of a date below paths.output; "date={date}" for Hive'
    )
    compression: Literal["snappy", "zstd"] = Field(default="snappy", description="Parquet codec")


class Convert(Section):
    """The engine that turns lines into rows."""

    engine: Literal["auto", "spark", "native"] = Field(
        default="auto",
        description='"native" is faster and needs its wheel; "spark" needs none; "auto" prefers native where installed',
    )


class Stream(Section):
    """How the streaming job processes manifests."""

    max_manifests_per_trigger: int = Field(default=8, ge=1, le=10_000, description="most manifests in one micro-batch")
    trigger_interval_seconds: Seconds = Field(default=10, description="time between the starts of two micro-batches")
    manifests_in_flight: int = Field(default=2, ge=1, le=1000, description="manifests processed at the same time")
    max_attempts: int = Field(
        default=3, ge=1, le=1000, description="failed attempts after which a manifest becomes a dead letter"
    )


class Builder(Section):
    """How the builder claims files and groups them into manifests."""

    claims: TableName = Field(
        default="",
        description='DynamoDB table; empty: SQLite in a local paths.state; "@journal": objects in paths.state',
    )
    pending: OwnPlaceOrEmpty = Field(
        default="",
        description='prefix of pending parts; empty: "pending" below paths.state',
    )
    target_manifest_bytes: int = Field(default=GIB, ge=1, le=TIB, description="total size of the files in one manifest")
    max_wait_seconds: Seconds = Field(
        default=120, description="longest time an announced file waits before its manifest is written"
    )
    claim_lease_seconds: Seconds = Field(
        default=300, description="time after which a claim without a manifest may be taken over"
    )
    claim_ttl_days: int = Field(default=30, ge=1, le=3660, description="days until a claim expires")


class Control(Section):
    """What the control plane watches, its limits, and where it sends notifications."""

    job_name: Dimension = Field(default="compactor", description="name of the Glue job; a dimension of every metric")
    queue_url: QueueUrl = Field(default="", description="SQS queue of S3 events; may be empty")
    dead_letter_queue_url: QueueUrl = Field(default="", description="its dead-letter queue; may be empty")
    topic_arn: TopicArn = Field(default="", description="SNS topic for notifications; may be empty")
    mode: Literal["always", "on_work", "never"] = Field(
        default="always",
        description='"always" keeps the job running; "on_work" runs it only while work waits; "never" drains it',
    )
    sla_seconds: Seconds = Field(
        default=900,
        description="alert when a manifest waits longer than this; processing one should take less than half",
    )
    start_grace_seconds: Seconds = Field(default=600, description="time a new run has until its first heartbeat")
    hang_seconds: float = Field(
        default=300,
        ge=60,
        le=7 * 86_400,
        allow_inf_nan=False,
        description="stop a run whose heartbeat is older than this while work waits",
    )
    stall_seconds: Seconds = Field(
        default=3600, description="drain a run that commits nothing for this long while work waits"
    )
    drain_seconds: Seconds = Field(default=900, description="time a draining run has before it is stopped")
    expired_grace_seconds: Seconds = Field(default=600, description="time Glue has to restart an expired run")
    backoff_first_seconds: Seconds = Field(
        default=60, description="first back-off after a failed run; doubles with each further failure"
    )
    backoff_longest_seconds: Seconds = Field(default=900, description="longest back-off")
    breaker_failures: int = Field(
        default=5, ge=1, le=1000, description="failed runs within the window that open the breaker"
    )
    breaker_window_seconds: Seconds = Field(default=3600, description="window in which failed runs are counted")
    breaker_cooldown_seconds: Seconds = Field(
        default=3600, description="time from the last failure until the breaker allows one trial run"
    )
    idle_stop_seconds: Seconds = Field(default=1800, description='for "on_work": stop after this long without work')
    backlog_start_manifests: int = Field(
        default=1, ge=1, le=1_000_000, description='for "on_work": waiting manifests that start the job'
    )
    maintenance_window: Window = Field(
        default="", description='maintenance window of the Glue job in UTC, such as "Sun:10"; may be empty'
    )


class Retention(Section):
    """What `compactor clean`, and the job once a day, deletes by age."""

    archive_days: int = Field(
        default=30,
        ge=1,
        le=36_600,
        description="days until archived manifests and redriven lines are deleted",
    )


class Aws(Section):
    """The AWS endpoint. Empty values are taken from the environment."""

    region: Region = Field(default="", description='AWS region such as "eu-central-1"; empty: from the environment')
    endpoint_url: Endpoint = Field(
        default="", description='another endpoint than AWS, such as "http://127.0.0.1:5000"; may be empty'
    )
    timeout_seconds: float = Field(
        default=60,
        ge=1,
        le=3600,
        allow_inf_nan=False,
        description="time-out of one request",
    )


class Metrics(Section):
    """Where metrics go."""

    namespace: Namespace = Field(default="Compactor", description="CloudWatch namespace")
    environment: Dimension = Field(default="local", description='such as "prod"; a dimension of every metric')
    sink: Literal["cloudwatch", "log", "none"] = Field(
        default="log", description='where metrics go; "log" writes them to the log'
    )


class Spark(Section):
    """The Spark session."""

    master: str = Field(default="", description="Spark master; empty: that of spark-submit or Glue, else local[*]")
    conf: SparkConf = Field(default_factory=dict, description="Spark properties, passed through; quote names with dots")


SECTIONS: dict[str, type[Section]] = {
    "paths": Paths,
    "input": Input,
    "schema": Schema,
    "output": Output,
    "convert": Convert,
    "stream": Stream,
    "builder": Builder,
    "control": Control,
    "retention": Retention,
    "aws": Aws,
    "metrics": Metrics,
    "spark": Spark,
}
