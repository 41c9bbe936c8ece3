"""The types of keys: each checks its value, and describes the expected form."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from compactor.core import layout, partitions
from compactor.core.inputs.record_place import AUTO, PATH_EXPECTED, RecordPlace
from compactor.core.inputs.source_places import EXCLUDED_EXPECTED, exclusion
from compactor.core.logs.names import (
    SOURCE_PATTERN,
    RecordColumn,
)
from compactor.settings import grok, places
from compactor.settings.validation import Expected

RESTART_WITHIN_SECONDS = 3 * 3600
"""Glue restarts a streaming job within three hours of the window's start [Glue developer guide]."""

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WINDOW = re.compile(rf"(?P<day>{'|'.join(_DAYS)}):(?P<hour>[01]?\d|2[0-3])")
_WEEK_SECONDS = 7 * 86_400


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """The weekly maintenance window in which Glue may restart a streaming job; it starts on the hour, in UTC."""

    weekday: int  # 0 for Monday
    hour: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a window in Glue's notation, such as `Sun:10`.

        Raises:
            ValueError: The text is not a window.
        """
        found = _WINDOW.fullmatch(text)
        if found is None:
            raise ValueError("a day and an hour in UTC as Glue writes them, such as Sun:10, or empty")
        return cls(_DAYS.index(found["day"]), int(found["hour"]))

    def covers(self, moment: datetime) -> bool:
        """Whether Glue may be restarting the job at this moment, which is in UTC."""
        since_monday = moment.weekday() * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second
        start = self.weekday * 86_400 + self.hour * 3600
        return (since_monday - start) % _WEEK_SECONDS < RESTART_WITHIN_SECONDS


MIB = 1024 * 1024
GIB = 1024 * MIB
TIB = 1024 * GIB

METADATA_NAMES = frozenset({"_source_file", "_processed_at", "_manifest_id", "file_date"})

JOURNAL_CLAIMS = "@journal"
"""The value of `builder.claims` for a journal of objects in the state instead of a table."""

REFUSED_SPARK_CONF = {
    "spark.sql.caseSensitive": "keys that differ only in case are different columns",
    "spark.sql.files.ignoreCorruptFiles": "the rest of a corrupt file would be lost silently",
    "spark.sql.files.ignoreMissingFiles": "the rows of a missing file would be lost silently",
    "spark.sql.json.enableExactStringParsing": "values must survive exactly as written",
    "spark.sql.columnNameOfCorruptRecord": "the compactor's own column marks lines on which two parsers disagree",
    "spark.sql.adaptive.enabled": "the compactor plans the number of output files and sets this itself",
    "spark.sql.parquet.outputTimestampType": "timestamps are INT64 microseconds in UTC, which all readers understand",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "a date before 1582 would be changed or refused",
    "spark.speculation": "two copies of one task would stage the same rows twice",
    "spark.sql.files.maxRecordsPerFile": "it splits output files; set output.target_file_bytes",
    "spark.sql.parquet.compression.codec": "set output.compression, which also names the output files",
    "spark.sql.streaming.checkpointLocation": "checkpoints are in paths.state",
}
"""Spark properties that would break a guarantee, each with the reason. The names are case-sensitive, as in Spark."""


@dataclass(frozen=True)
class Matching(Expected):
    """Text that fully matches a pattern. Empty text passes, too, unless `may_be_empty` is false."""

    pattern: str
    may_be_empty: bool = True

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Make pydantic call the check."""
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text) and (text or not self.may_be_empty):
            raise ValueError(self.words)
        return text


def _at_least_one(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        raise ValueError("at least one place")
    return values


def _no_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise ValueError("no duplicates")
    return values


def _exclusions(values: tuple[str, ...]) -> tuple[str, ...]:
    try:
        exclusion(values)
    except re.error as exc:
        raise ValueError(f"valid shell patterns ({exc})") from exc
    if any("/" in each and not layout.canonical(each).startswith(("/", "s3://")) for each in values):
        raise ValueError(EXCLUDED_EXPECTED)
    return values


def _folder_template(text: str) -> str:
    faults = layout.output_folder_faults(text)
    if faults:
        raise ValueError(f"a folder such as merged-parquet-{{date}}: {'; '.join(faults)}")
    return text


def _partition_by(texts: tuple[str, ...]) -> tuple[str, ...]:
    names = [field.name.lower() for field in partitions.parse_fields(texts)]
    if len(names) > partitions.MAX_FIELDS:
        raise ValueError(f"at most {partitions.MAX_FIELDS} of them")
    if len(set(names)) < len(names) or METADATA_NAMES.intersection(names):
        raise ValueError(f"a different folder name for each, none of them {', '.join(sorted(METADATA_NAMES))}")
    return texts


def _file_place(text: str) -> str:
    place = places.parse_place(text) if text else ""
    if text.endswith("/") or (layout.is_s3(place) and place.count("/") < 3):  # noqa: PLR2004 - s3://bucket/key
        raise ValueError(_FILE_EXPECTED)
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


def _source_name(name: str) -> str:
    if not re.fullmatch(SOURCE_PATTERN, name):
        raise ValueError(_NAME_EXPECTED)
    return name


def _cluster_properties(properties: dict[str, str]) -> dict[str, str]:
    for key, value in properties.items():
        if not _CLUSTER_PROPERTY.fullmatch(key):
            raise ValueError(f"only connection properties, such as security.protocol, not {key}")
        if key in _RUNS_CODE:
            raise ValueError(f"properties that run no code, not {key}")
        if _SECRET.search(key) and not _REFERENCE.fullmatch(value):
            raise ValueError(f"{key} as a reference: env:NAME, file:/path or secretsmanager:ARN")
    if not properties.get("bootstrap.servers"):
        raise ValueError("bootstrap.servers among the properties; names with dots need quotes")
    return properties


def _source_keys(keys: dict[str, str]) -> dict[str, str]:
    for key, value in keys.items():
        if key not in _SOURCE_KEYS:
            raise ValueError(f"only {', '.join(_SOURCE_KEYS)}, not {key}")
        expected, pattern = _SOURCE_KEYS[key]
        if value and not re.fullmatch(pattern, value):
            raise ValueError(f"{key} as {expected}")
    return keys


_SOURCE_KEYS = {
    "region": ("a region such as eu-central-1", r"[a-z]{2,}(-[a-z0-9]+)+"),
    "consumer": ("the name of a registered consumer", r"[A-Za-z0-9_.-]{1,128}"),  # the naming rule of Kinesis
    "strays": ("keep or drop", r"keep|drop"),
    "endpoint_url": ("http://host:port or https://host", r"https?://[^\s/?#]+/?"),
}
"""The keys of a source, each with its pattern and the expected form. An empty value counts as unset."""


def _record_path(text: str) -> str:
    if text not in {"", AUTO}:
        RecordPlace.parse(text)
    return text


def _window_or_empty(text: str) -> str:
    if text:
        MaintenanceWindow.parse(text)
    return text


_CLUSTER_PROPERTY = re.compile(r"bootstrap\.servers|security\.protocol|(?:sasl|ssl|socket|reconnect|client)\.[a-z.]+")
_ARN = r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+"
_REFERENCE = re.compile(rf"env:[A-Za-z_][A-Za-z0-9_]*|file:/.+|secretsmanager:{_ARN}(?:#.+)?")
_SECRET = re.compile(r"password|secret|passphrase|key\.pem$|oauthbearer\.config$")
_RUNS_CODE = frozenset({"sasl.kerberos.kinit.cmd", "ssl.engine.location"})
_NAME_EXPECTED = "1 to 32 lower-case letters, digits or '-', beginning with a letter"
_FILE_EXPECTED = "s3://bucket/key, file:///file or a path, or empty"

OwnPlace = Annotated[str, AfterValidator(places.parse_own_place), Expected(places.EXPECTED)]
InputPlace = Annotated[str, AfterValidator(places.parse_input_place), Expected(places.INPUT_EXPECTED)]
# TOML gives lists; strict models accept tuples only.
InputPlaces = Annotated[
    tuple[InputPlace, ...],
    Field(strict=False),
    AfterValidator(_at_least_one),
    Expected(f"a list of places, each {places.INPUT_EXPECTED}"),
]
Exclusions = Annotated[
    tuple[str, ...],
    Field(strict=False),
    AfterValidator(_exclusions),
    Expected(f"a list of patterns, each {EXCLUDED_EXPECTED}; may be empty"),
]
Texts = Annotated[tuple[str, ...], Field(strict=False), Expected("a list of texts; may be empty")]
StagingPlace = Annotated[str, AfterValidator(places.parse_staging), Expected(places.STAGING_EXPECTED)]
FilePlace = Annotated[str, AfterValidator(_file_place), Expected(_FILE_EXPECTED)]
MetadataColumns = Annotated[
    tuple[Literal["_source_file", "_processed_at", "_manifest_id", "file_date"], ...],
    Field(strict=False),
    AfterValidator(_no_repeats),
    Expected("a list of `_source_file`, `_processed_at`, `_manifest_id` and `file_date`, each once; may be empty"),
]
PartitionBy = Annotated[
    tuple[str, ...],
    Field(strict=False),
    AfterValidator(_partition_by),
    Expected(f"a list of {partitions.EXPECTED}; may be empty"),
]
FolderTemplate = Annotated[str, AfterValidator(_folder_template), Expected("a folder such as merged-parquet-{date}")]
SparkConf = Annotated[
    dict[Annotated[str, AfterValidator(_conf_key)], Annotated[str, BeforeValidator(_conf_value)]],
    Expected("a table of strings, numbers and booleans"),
]
KafkaProperties = Annotated[
    dict[
        Annotated[str, AfterValidator(_source_name)],
        Annotated[dict[str, Annotated[str, BeforeValidator(_conf_value)]], AfterValidator(_cluster_properties)],
    ],
    Expected("a table of clusters, each with a table of properties"),
]
RecordPath = Annotated[str, AfterValidator(_record_path), Expected(f"{PATH_EXPECTED}; or auto, or empty")]
KeptKeys = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...],
    Field(strict=False),
    AfterValidator(_no_repeats),
    Expected("a list of keys, each once; may be empty"),
]
RecordColumns = Annotated[
    tuple[RecordColumn, ...],
    Field(strict=False),
    AfterValidator(_no_repeats),
    Expected("a list of `key`, `timestamp`, `headers` and `offset`, each once; may be empty"),
]
KinesisSources = Annotated[
    dict[Annotated[str, AfterValidator(_source_name)], Annotated[dict[str, str], AfterValidator(_source_keys)]],
    Expected("a table of sources, each with a table of keys"),
]
GrokTable = Annotated[dict[str, Any], AfterValidator(grok.checked_table), Expected(f"{grok.EXPECTED}; may be empty")]
Window = Annotated[str, AfterValidator(_window_or_empty), Expected("a day and an hour as in Sun:10, or empty")]
Seconds = Annotated[float, Field(gt=0, le=10 * 366 * 86400, allow_inf_nan=False)]
TableName = Annotated[
    str,
    Matching(
        "3 to 255 letters, digits, '_', '.' or '-', or @journal, or empty",
        rf"[A-Za-z0-9_.-]{{3,255}}|{JOURNAL_CLAIMS}",  # DynamoDB's naming rule, which excludes @
    ),
]
CatalogName = Annotated[
    str,
    Matching(
        "database.table, each of lower-case letters, digits and '_', or empty",
        r"[a-z0-9_]{1,255}\.[a-z0-9_]{1,255}",  # Athena's naming rule
    ),
]
CatalogUri = Annotated[str, Matching("a URL such as https://host/path, or empty", r"[a-z][a-z0-9+.-]*://[^\s]+")]
Warehouse = Annotated[str, Matching("text without spaces, or empty", r"[^\s]+")]
Region = Annotated[str, Matching("a region such as eu-central-1, or empty", r"[a-z]{2,}(-[a-z0-9]+)+")]
Endpoint = Annotated[str, Matching("http://host:port or https://host, or empty", r"https?://[^\s/?#]+/?")]
QueueUrl = Annotated[str, Matching("an SQS queue URL, or empty", r"https?://[^\s?#]+/[A-Za-z0-9_-]{1,80}(\.fifo)?")]
TopicArn = Annotated[
    str,
    Matching("arn:aws:sns:region:account:name, or empty", r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}"),
]
StreamName = Annotated[
    str,
    Matching(
        _NAME_EXPECTED,
        r"[a-z][a-z0-9-]{0,31}",  # it becomes part of paths and of names in AWS
        may_be_empty=False,
    ),
]
Dimension = Annotated[str, Matching("1 to 64 letters, digits, '_' or '-'", r"[A-Za-z0-9_-]{1,64}", may_be_empty=False)]
Namespace = Annotated[
    str,
    Matching(
        "a name of 1 to 255 letters, digits or . _ / # : -, not below AWS/",
        r"(?!AWS/)[A-Za-z0-9._/#-][A-Za-z0-9._/#: -]{0,254}",  # CloudWatch's naming rule; AWS/ is reserved
        may_be_empty=False,
    ),
]
ApplicationId = Annotated[str, Matching("1 to 64 lower-case letters and digits, or empty", r"[0-9a-z]{1,64}")]
ClusterName = Annotated[str, Matching("1 to 255 letters, digits, '_' or '-', or empty", r"[A-Za-z0-9_-]{1,255}")]
RoleArn = Annotated[
    str,
    Matching(
        "arn:aws:iam::account:role/name, or empty", r"arn:aws[a-zA-Z0-9-]*:iam::\d{12}:role(/[!-~]+)?/[\w+=,.@-]+"
    ),
]
LogGroup = Annotated[
    str, Matching("1 to 512 letters, digits or . _ / # -, or empty", r"[A-Za-z0-9._/#-]{1,512}")  # CloudWatch's rule
]
