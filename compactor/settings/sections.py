"""The sections of the settings: every key with its type, its default and its one line of meaning.

The meaning is what `docs/reference-settings.md` and the comments of the settings files say;
`tools.settings_reference` puts it there.
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
    OwnPlaceOrNothing,
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
    """One table of the settings. Strict: a value of another type is a fault, never converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Paths(Section):
    """Where the compactor keeps what is its own: all on S3, or all local, and none inside another."""

    manifests: OwnPlace = Field(description="watched prefix: one object a manifest that is to do")
    output: OwnPlace = Field(description="prefix of the Parquet folders")
    state: OwnPlace = Field(description="prefix of ledger, staging, rejects, schemas and checkpoints")


class Input(Section):
    """What may be read, and how."""

    allowed_prefixes: Places = Field(description="folders that input may be in; apart from those in paths")
    discovery: Literal["full", "declared"] = Field(
        default="full", description='"full" inspects every line for its keys; "declared" goes by schema.file'
    )
    max_line_bytes: int = Field(
        default=16 * MIB, ge=1, le=GIB, description="bytes of a line, at most; a longer one is a reject"
    )
    max_decompressed_bytes: int = Field(
        default=8 * GIB, ge=1, le=TIB, description="bytes a file may decode to; one that holds more is set aside"
    )
    on_changed_file: Literal["skip", "read"] = Field(
        default="skip", description='a file that is not the version its manifest names: "skip" or "read"'
    )


class Schema(Section):
    """How JSON keys become columns."""

    file: FilePlace = Field(
        default="",
        description='schema file (TOML): columns with their types; nothing means strings only; "declared" needs one',
    )
    names: Literal["safe", "exact"] = Field(
        default="safe", description='"safe" makes column names that Athena and Glue take; "exact" keeps the keys'
    )
    max_columns: int = Field(default=2000, ge=1, le=10_000, description="columns; further keys go to _rescued_data")
    metadata_columns: MetadataColumns = Field(default=(), description="columns about a row's origin; may be empty")


class Output(Section):
    """What the Parquet files are like."""

    target_file_bytes: int = Field(default=128 * MIB, ge=MIB, le=TIB, description="bytes an output file should have")
    folder: FolderTemplate = Field(
        default="merged-parquet-{date}", description='a day\'s folder below paths.output; "date={date}" for Hive'
    )
    compression: Literal["snappy", "zstd"] = Field(default="snappy", description='Parquet codec: "snappy" or "zstd"')


class Convert(Section):
    """What turns lines into rows."""

    engine: Literal["auto", "spark", "native"] = Field(
        default="auto",
        description='"native" takes one pass, where its wheel is installed; "spark" needs none; "auto" takes what '
        "there is",
    )


class Stream(Section):
    """How the streaming job works through manifests."""

    max_manifests_per_trigger: int = Field(
        default=8, ge=1, le=10_000, description="manifests in one micro-batch, at most"
    )
    trigger_interval_seconds: Seconds = Field(default=10, description="seconds between the starts of two micro-batches")
    manifests_in_flight: int = Field(default=2, ge=1, le=1000, description="manifests worked on at once")
    max_attempts: int = Field(
        default=3, ge=1, le=1000, description="failed attempts after which a manifest is a dead letter"
    )


class Builder(Section):
    """How files are claimed and grouped into manifests."""

    claims: TableName = Field(
        default="",
        description='DynamoDB table; nothing: SQLite in a local paths.state; "@journal": objects there',
    )
    pending: OwnPlaceOrNothing = Field(
        default="",
        description='prefix of parts that wait to be sealed into manifests; nothing means "pending" below paths.state',
    )
    target_manifest_bytes: int = Field(default=GIB, ge=1, le=TIB, description="bytes of files that make one manifest")
    max_wait_seconds: Seconds = Field(
        default=120, description="seconds an announced file may wait for others before its manifest is written"
    )
    claim_lease_seconds: Seconds = Field(
        default=300, description="seconds a claim is left alone while its manifest is not seen"
    )
    claim_ttl_days: int = Field(default=30, ge=1, le=3660, description="days a claim is remembered")


class Control(Section):
    """What the control plane watches and whom it tells."""

    job_name: Dimension = Field(default="compactor", description="the Glue job; a dimension of every metric")
    queue_url: QueueUrl = Field(default="", description="the queue of S3 events; nothing where there is none")
    dead_letter_queue_url: QueueUrl = Field(
        default="", description="where events go that nobody could read; nothing where there is none"
    )
    topic_arn: TopicArn = Field(
        default="", description="the SNS topic that is told of changes; nothing where there is none"
    )
    mode: Literal["always", "on_work", "never"] = Field(
        default="always",
        description='"always" keeps the job up; "on_work" stops it when idle, starts it on a backlog; "never" drains '
        "it",
    )
    sla_seconds: Seconds = Field(
        default=900,
        description="seconds a manifest may wait before people are told; one should take less than half of it",
    )
    start_grace_seconds: Seconds = Field(
        default=600, description="seconds a run may be up before it gives signs of life"
    )
    hang_seconds: float = Field(
        default=300,
        ge=60,
        le=7 * 86_400,
        allow_inf_nan=False,
        description="seconds without a sign of life, while work waits, after which a run is stopped",
    )
    stall_seconds: Seconds = Field(
        default=3600, description="seconds without a commit, while work waits, after which a run is drained"
    )
    drain_seconds: Seconds = Field(
        default=900, description="seconds a run that was asked to end may take before it is stopped"
    )
    expired_grace_seconds: Seconds = Field(
        default=600, description="seconds to wait for Glue to restart a run that it let expire"
    )
    backoff_first_seconds: Seconds = Field(
        default=60, description="seconds to pause after a failed run; doubles with each further one"
    )
    backoff_longest_seconds: Seconds = Field(default=900, description="seconds to pause at most")
    breaker_failures: int = Field(
        default=5, ge=1, le=1000, description="failed runs within the window after which no more are started"
    )
    breaker_window_seconds: Seconds = Field(default=3600, description="seconds in which they count")
    breaker_cooldown_seconds: Seconds = Field(default=3600, description="seconds from the last failure to one trial")
    idle_stop_seconds: Seconds = Field(default=1800, description='for "on_work": seconds without anything to do')
    backlog_start_manifests: int = Field(
        default=1, ge=1, le=1_000_000, description='for "on_work": waiting manifests that are worth a start'
    )
    maintenance_window: Window = Field(
        default="", description='the Glue job\'s own, in UTC, as in "Sun:10"; nothing where it has none'
    )


class Retention(Section):
    """What `clean`, and a run once a day, removes by age."""

    archive_days: int = Field(
        default=30,
        ge=1,
        le=36_600,
        description="days after which archived manifests, and rejected lines that were put back, may go",
    )


class Aws(Section):
    """Which AWS is spoken to; nothing leaves it to the surroundings."""

    region: Region = Field(default="", description='as in "eu-central-1"; nothing leaves it to the surroundings')
    endpoint_url: Endpoint = Field(
        default="", description='a stand-in for AWS, as in "http://127.0.0.1:5000"; nothing means AWS'
    )
    timeout_seconds: float = Field(
        default=60,
        ge=1,
        le=3600,
        allow_inf_nan=False,
        description="seconds to wait for the answer to one request",
    )


class Metrics(Section):
    """Where measurements go."""

    namespace: Namespace = Field(default="Compactor", description="what measurements are filed under")
    environment: Dimension = Field(default="local", description='such as "prod"; a dimension of every metric')
    sink: Literal["cloudwatch", "log", "none"] = Field(
        default="log", description='"cloudwatch", "log" (one line a measurement) or "none"'
    )


class Spark(Section):
    """Which Spark does the work."""

    master: str = Field(default="", description="nothing leaves it to spark-submit or Glue, else local[*]")
    conf: SparkConf = Field(
        default_factory=dict, description="Spark properties, passed through; names with dots in quotes"
    )


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
