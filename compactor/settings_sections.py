"""The sections of the settings: every key with its type, its bounds and its default."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from compactor import layout, places
from compactor.control.policy import MaintenanceWindow

MIB = 1024 * 1024
GIB = 1024 * MIB
TIB = 1024 * GIB

REFUSED_SPARK_CONF = {
    "spark.sql.caseSensitive": "keys that differ in case only are different columns",
    "spark.sql.files.ignoreCorruptFiles": "the rest of a corrupt file would be lost without a word",
    "spark.sql.files.ignoreMissingFiles": "the rows of a file that vanished would be lost without a word",
    "spark.sql.json.enableExactStringParsing": "values survive exactly as written",
    "spark.sql.columnNameOfCorruptRecord": "the compactor tells by its own column on which lines two parsers disagree",
    "spark.sql.adaptive.enabled": "the number of output files is planned, and the compactor switches this itself",
    "spark.sql.parquet.outputTimestampType": "timestamps are INT64 microseconds in UTC, which all read alike",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "a date before 1582 would be written as another one, or not at all",
    "spark.speculation": "two copies of one task would stage the same rows twice",
    "spark.sql.files.maxRecordsPerFile": "it splits output files; output.target_file_bytes sizes them",
    "spark.sql.parquet.compression.codec": "set output.compression, which is part of the names of output files",
    "spark.sql.streaming.checkpointLocation": "checkpoints are below paths.state",
}
"""Spark properties that would break a promise, each with the reason. Spark's own names, which are case-sensitive."""

JOURNAL_CLAIMS = "@journal"
"""Of `builder.claims`: no table, but a journal of objects below the state."""

_TABLE_NAME = re.compile(rf"[A-Za-z0-9_.-]{{3,255}}|{JOURNAL_CLAIMS}")  # DynamoDB's rule, which takes no @
_REGION = re.compile(r"[a-z]{2,}(-[a-z0-9]+)+")
_ENDPOINT = re.compile(r"https?://[^\s/?#]+/?")
_QUEUE_URL = re.compile(r"https?://[^\s?#]+/[A-Za-z0-9_-]{1,80}(\.fifo)?")
_TOPIC_ARN = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}")
_DIMENSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAMESPACE = re.compile(r"(?!AWS/)[A-Za-z0-9._/#-][A-Za-z0-9._/#: -]{0,254}")  # CloudWatch's rule; AWS/ is taken


def _matching(pattern: re.Pattern[str], expected: str) -> AfterValidator:
    def check(text: str) -> str:
        if text and not pattern.fullmatch(text):
            raise ValueError(expected)
        return text

    return AfterValidator(check)


def _at_least_one(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        raise ValueError("at least one place")
    return values


def _no_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise ValueError("each of them once")
    return values


def _folder_template(text: str) -> str:
    faults = layout.output_folder_faults(text)
    if faults:
        raise ValueError(f"a folder such as merged-parquet-{{date}}: {'; '.join(faults)}")
    return text


def _named(text: str) -> str:
    if not text:
        raise ValueError("a name")
    return text


def _file_place(text: str) -> str:
    place = places.parse_place(text) if text else ""
    if text.endswith("/") or (layout.is_s3(place) and place.count("/") < 3):  # noqa: PLR2004 - s3://bucket/key
        raise ValueError("s3://bucket/key, file:///file or a path, or nothing")
    return place


def _conf_key(key: str) -> str:
    if key in REFUSED_SPARK_CONF:
        raise ValueError(f"this property to be left out: {REFUSED_SPARK_CONF[key]}")
    return key


def _conf_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    hint = '; a name with dots needs quotes, as in "spark.ui.enabled" = false' if isinstance(value, dict) else ""
    raise ValueError(f"a string, a number or a boolean{hint}")


def _own_place_or_nothing(text: str) -> str:
    return places.parse_own_place(text) if text else ""


def _window_or_nothing(text: str) -> str:
    if text:
        MaintenanceWindow.parse(text)
    return text


Place = Annotated[str, AfterValidator(places.parse_place)]
OwnPlace = Annotated[str, AfterValidator(places.parse_own_place)]
MetadataColumn = Literal["_source_file", "_processed_at", "_manifest_id"]
Seconds = Annotated[float, Field(gt=0, le=10 * 366 * 86400, allow_inf_nan=False)]


class Section(BaseModel):
    """One table of the settings. Strict: a value of another type is a fault, never converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Paths(Section):
    """Where the compactor keeps what is its own: `s3://bucket/prefix`, or absolute local paths.

    Attributes:
        manifests: The watched prefix.
        output: The prefix of the Parquet folders.
        state: The prefix of ledger, staging, rejects and the rest.
    """

    manifests: OwnPlace = Field(description=places.EXPECTED)
    output: OwnPlace = Field(description=places.EXPECTED)
    state: OwnPlace = Field(description=places.EXPECTED)


class Input(Section):
    """What may be read, and how.

    Attributes:
        allowed_prefixes: Folders that input may be in.
        discovery: `full` inspects every line for its keys; `declared` trusts those of the schema file.
        max_line_bytes: A longer line is a reject.
        max_decompressed_bytes: A file that decodes to more is set aside.
        on_changed_file: Whether a file that is not the version its manifest names is skipped or read all the same.
    """

    # A document holds lists, and strict models take tuples only.
    allowed_prefixes: Annotated[tuple[Place, ...], Field(strict=False), AfterValidator(_at_least_one)] = Field(
        description=f"a list of places, each {places.EXPECTED}"
    )
    discovery: Literal["full", "declared"] = "full"
    max_line_bytes: int = Field(default=16 * MIB, ge=1, le=GIB)
    max_decompressed_bytes: int = Field(default=8 * GIB, ge=1, le=TIB)
    on_changed_file: Literal["skip", "read"] = "skip"


class Schema(Section):
    """How JSON keys become columns.

    Attributes:
        file: The schema file (TOML), which declares columns and their types; nothing where there is none.
        names: `safe` makes names that Athena and Glue take; `exact` keeps the keys.
        max_columns: Further keys go to `_rescued_data`.
        metadata_columns: Columns about a row's origin that are written beside the data.
    """

    file: Annotated[str, AfterValidator(_file_place)] = ""
    names: Literal["safe", "exact"] = "safe"
    max_columns: int = Field(default=2000, ge=1, le=10_000)
    metadata_columns: Annotated[tuple[MetadataColumn, ...], Field(strict=False), AfterValidator(_no_repeats)] = ()


class Output(Section):
    """What the Parquet files are like.

    Attributes:
        target_file_bytes: The size to aim at.
        folder: Template of a day's folder below `paths.output`.
        compression: Parquet codec.
    """

    target_file_bytes: int = Field(default=128 * MIB, ge=MIB, le=TIB)
    folder: Annotated[str, AfterValidator(_folder_template)] = "merged-parquet-{date}"
    compression: Literal["snappy", "zstd"] = "snappy"


class Convert(Section):
    """What turns lines into rows.

    Attributes:
        engine: `native` takes one pass and needs its own wheel wherever tasks run; `spark` needs Spark only; `auto` is
            `native` where this process finds the wheel.
    """

    engine: Literal["auto", "spark", "native"] = "auto"


class Stream(Section):
    """How the streaming job works through manifests.

    Attributes:
        max_manifests_per_trigger: The most manifests in one micro-batch.
        trigger_interval_seconds: Time between the starts of two micro-batches.
        manifests_in_flight: How many manifests are worked on at once.
        max_attempts: Failed attempts after which a manifest is a dead letter.
    """

    max_manifests_per_trigger: int = Field(default=8, ge=1, le=10_000)
    trigger_interval_seconds: Seconds = 10
    manifests_in_flight: int = Field(default=2, ge=1, le=1000)
    max_attempts: int = Field(default=3, ge=1, le=1000)


class Builder(Section):
    """How files are claimed and grouped into manifests.

    Attributes:
        claims: A DynamoDB table; nothing means SQLite below a local `paths.state`; `@journal` means objects below
            `paths.state`, which every planner reads to the end: for back-fills, not for a builder.
        pending: The prefix of parts that wait to be sealed into manifests; nothing means `pending` below `paths.state`.
        target_manifest_bytes: The size of one manifest's files together to aim at.
        max_wait_seconds: How long an announced file may wait for others before its manifest is written.
        claim_lease_seconds: How long a claim is left alone while its manifest is not seen.
        claim_ttl_days: How long a claim is remembered.
    """

    claims: Annotated[
        str, _matching(_TABLE_NAME, "3 to 255 letters, digits, '_', '.' or '-', or @journal, or nothing")
    ] = ""
    pending: Annotated[str, AfterValidator(_own_place_or_nothing)] = ""
    target_manifest_bytes: int = Field(default=GIB, ge=1, le=TIB)
    max_wait_seconds: Seconds = 120
    claim_lease_seconds: Seconds = 300
    claim_ttl_days: int = Field(default=30, ge=1, le=3660)


class Retention(Section):
    """What `clean`, and a run once a day, removes by age.

    Attributes:
        archive_days: Age from which archived manifests, and rejected lines that were put back, may go.
    """

    archive_days: int = Field(default=30, ge=1, le=36_600)


class Aws(Section):
    """Which AWS is spoken to; nothing leaves it to the surroundings.

    Attributes:
        region: As in `eu-central-1`.
        endpoint_url: A stand-in for AWS.
        timeout_seconds: How long to wait for the answer to one request.
    """

    region: Annotated[str, _matching(_REGION, "a region such as eu-central-1, or nothing")] = ""
    endpoint_url: Annotated[str, _matching(_ENDPOINT, "http://host:port or https://host, or nothing")] = ""
    timeout_seconds: Annotated[float, Field(ge=1, le=3600, allow_inf_nan=False)] = 60


class Control(Section):
    """What the control plane watches and whom it tells.

    Attributes:
        job_name: The Glue job; a dimension of every metric.
        queue_url: The queue of S3 events; nothing where there is none.
        dead_letter_queue_url: Where events go that nobody could read; nothing where there is none.
        topic_arn: The SNS topic that is told of changes; nothing where there is none.
        mode: `always` keeps the job up; `on_work` stops it when idle and starts it on a backlog; `never` drains it.
        sla_seconds: How long a manifest may wait, before people are told; half of it is what one may take.
        start_grace_seconds: How long a run may be up before it gives signs of life.
        hang_seconds: How long a run may give no sign of life while work waits, before it is stopped.
        stall_seconds: How long a run may commit nothing while work waits, before it is drained.
        drain_seconds: How long a run that was asked to end may take, before it is stopped.
        expired_grace_seconds: How long to wait for Glue to restart a run that it let expire.
        backoff_first_seconds: The pause after one failed run; it doubles with each further one.
        backoff_longest_seconds: The longest such pause.
        breaker_failures: Failed runs within the window that open the breaker.
        breaker_window_seconds: That window.
        breaker_cooldown_seconds: How long an open breaker waits before one trial.
        idle_stop_seconds: For `on_work`: how long there must be nothing to do.
        backlog_start_manifests: For `on_work`: how many waiting manifests are worth a start.
        maintenance_window: The Glue job's MaintenanceWindow, such as `Sun:10`; nothing where it has none.
    """

    job_name: Annotated[str, _matching(_DIMENSION, "1 to 64 letters, digits, '_' or '-'")] = "compactor"
    queue_url: Annotated[str, _matching(_QUEUE_URL, "an URL of SQS, or nothing")] = ""
    dead_letter_queue_url: Annotated[str, _matching(_QUEUE_URL, "an URL of SQS, or nothing")] = ""
    topic_arn: Annotated[str, _matching(_TOPIC_ARN, "arn:aws:sns:region:account:name, or nothing")] = ""
    mode: Literal["always", "on_work", "never"] = "always"
    sla_seconds: Seconds = 900
    start_grace_seconds: Seconds = 600
    hang_seconds: Annotated[float, Field(ge=60, le=7 * 86_400, allow_inf_nan=False)] = 300
    stall_seconds: Seconds = 3600
    drain_seconds: Seconds = 900
    expired_grace_seconds: Seconds = 600
    backoff_first_seconds: Seconds = 60
    backoff_longest_seconds: Seconds = 900
    breaker_failures: int = Field(default=5, ge=1, le=1000)
    breaker_window_seconds: Seconds = 3600
    breaker_cooldown_seconds: Seconds = 3600
    idle_stop_seconds: Seconds = 1800
    backlog_start_manifests: int = Field(default=1, ge=1, le=1_000_000)
    maintenance_window: Annotated[str, AfterValidator(_window_or_nothing)] = ""


class Metrics(Section):
    """Where measurements go.

    Attributes:
        namespace: What they are filed under.
        environment: Such as `prod`; a dimension of every metric.
        sink: `cloudwatch` sends them to CloudWatch, `log` writes one line a measurement, `none` drops them.
    """

    namespace: Annotated[
        str, AfterValidator(_named), _matching(_NAMESPACE, "1 to 255 letters, digits or . _ / # : -, not below AWS/")
    ] = "Compactor"
    environment: Annotated[str, _matching(_DIMENSION, "1 to 64 letters, digits, '_' or '-'")] = "local"
    sink: Literal["cloudwatch", "log", "none"] = "log"


class Spark(Section):
    """Which Spark does the work.

    Attributes:
        master: Nothing leaves it to spark-submit or Glue, else `local[*]`.
        conf: Properties that are passed through, as Spark takes them: strings.
    """

    master: str = ""
    conf: dict[Annotated[str, AfterValidator(_conf_key)], Annotated[str, BeforeValidator(_conf_value)]] = Field(
        default_factory=dict
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
