"""The names of logs, single records and gaps, and the columns of records. No I/O.

A log is a Kafka topic, `kafka://cluster/topic`, or a Kinesis stream, `kinesis://source/stream`. Its records have
positions, which increase within a partition: in Kinesis the sequence number, in Kafka the offset plus one, so that 0
precedes all records of either.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Self, get_args

KAFKA, KINESIS = "kafka", "kinesis"

SOURCE_PATTERN = r"[a-z][a-z0-9-]{0,31}"
_NAME = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]"
_OFFSET = r"0|[1-9][0-9]{0,18}"
_SEQUENCE = r"[1-9][0-9]{0,128}"
MAX_OFFSET = 2**63 - 1
_MAX_PARTITION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Spelling:
    """The naming rules for one kind of log, and the messages for names that break them.

    Attributes:
        name: The pattern of a log's name, as brokers or AWS accept it.
        partition: The pattern of a partition. AWS also accepts dots, and assigns names such as shardId-000000000000.
        record, gap: The patterns of the part after the partition.
    """

    name: str
    partition: str
    record: str
    gap: str
    log_expected: str
    record_expected: str
    gap_expected: str

    def match(self, scheme: str, ending: str, uri: str) -> re.Match[str] | None:
        return re.fullmatch(rf"{scheme}://(?P<source>{SOURCE_PATTERN})/(?P<name>{self.name}){ending}", uri)

    def in_partition(self, scheme: str, ending: str, uri: str) -> re.Match[str] | None:
        return self.match(scheme, rf"/(?P<partition>{self.partition})\?{ending}", uri)


_SPELLINGS = {
    KAFKA: _Spelling(
        name=_NAME + "{1,249}",
        partition=_OFFSET,
        record=rf"offset=(?P<at>{_OFFSET})",
        gap=rf"from=(?P<after>{_OFFSET})&to=(?P<before>{_OFFSET})",
        log_expected="kafka://cluster/topic",
        record_expected="kafka://cluster/topic/partition?offset=N",
        gap_expected="kafka://cluster/topic/partition?from=F&to=T with F < T, in digits without leading zeros",
    ),
    KINESIS: _Spelling(
        name=_NAME + "{1,128}",
        partition=r"[A-Za-z0-9_-]{1,128}",
        record=rf"sequence=(?P<at>{_SEQUENCE})",
        gap=rf"after=(?P<after>0|{_SEQUENCE})(?:&before=(?P<before>{_SEQUENCE}))?",
        log_expected="kinesis://source/stream",
        record_expected="kinesis://source/stream/shard?sequence=N",
        gap_expected="kinesis://source/stream/shard?after=N&before=M with N < M, or without before",
    ),
}

TOPIC_EXPECTED, STREAM_EXPECTED = _SPELLINGS[KAFKA].log_expected, _SPELLINGS[KINESIS].log_expected


def _spelling(uri: str) -> tuple[str, _Spelling]:
    scheme, _, rest = uri.partition("://")
    if not rest or scheme not in _SPELLINGS:
        raise ValueError(f"{TOPIC_EXPECTED} or {STREAM_EXPECTED}")
    return scheme, _SPELLINGS[scheme]


def is_log(uri: str) -> bool:
    """Whether a URI names a log or part of one, well-formed or not, rather than an object in a store."""
    return uri.startswith(("kafka://", "kinesis://"))


@dataclass(frozen=True, slots=True, order=True)
class LogName:
    """A log's name, which a later log may reuse.

    Attributes:
        scheme: `kafka` or `kinesis`.
        source: The name in `kafka.clusters` or `kinesis.sources` of the settings.
        name: The name in the brokers or in AWS.
    """

    scheme: str
    source: str
    name: str

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse `kafka://cluster/topic` or `kinesis://source/stream`.

        Raises:
            ValueError: It is neither; the message says what was expected.
        """
        scheme, spelling = _spelling(uri)
        found = spelling.match(scheme, "/?", uri)
        if found is None:
            raise ValueError(spelling.log_expected)
        return cls(scheme, found["source"], found["name"])

    @property
    def path(self) -> str:
        """Its name with the source's name."""
        return f"{self.source}/{self.name}"

    def __str__(self) -> str:
        """The URI that `parse` reads."""
        return f"{self.scheme}://{self.path}"


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """One record: `kafka://cluster/topic/partition?offset=16` or `kinesis://source/stream/shard?sequence=17`."""

    log: LogName
    partition_id: str
    position: int

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse the name of a record.

        Raises:
            ValueError: It is malformed; the message says what was expected.
        """
        scheme, spelling = _spelling(uri)
        found = spelling.in_partition(scheme, spelling.record, uri)
        if found is None:
            raise ValueError(spelling.record_expected)
        position = int(found["at"]) + (scheme == KAFKA)
        return cls(LogName(scheme, found["source"], found["name"]), found["partition"], position)

    @property
    def words(self) -> str:
        """What the log calls its positions."""
        return f"offset {self.position - 1}" if self.log.scheme == KAFKA else f"sequence number {self.position}"


@dataclass(frozen=True, slots=True)
class LogGap:
    """A range of a partition whose records are lost, or may be.

    Kafka reports exact offsets: `kafka://cluster/topic/partition?from=16&to=42` covers 16 to 41. Kinesis only reveals
    that records may be lost: `kinesis://source/stream/shard?after=17&before=42`.

    Attributes:
        after: The position of the last record before it; 0 at the beginning of the partition.
        before: The position of the first record after it; 0 if it extends to the next record, or to the end of the
            partition.
    """

    log: LogName
    partition_id: str
    after: int
    before: int = 0

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse the canonical spelling of a gap.

        Raises:
            ValueError: It is malformed; the message says what was expected.
        """
        scheme, spelling = _spelling(uri)
        found = spelling.in_partition(scheme, spelling.gap, uri)
        if found is None:
            raise ValueError(spelling.gap_expected)
        after, before = int(found["after"]), int(found["before"] or 0)
        is_too_far = scheme == KAFKA and (before > MAX_OFFSET or int(found["partition"]) > _MAX_PARTITION)
        if is_too_far or (before <= after and (before or scheme == KAFKA)):
            raise ValueError(spelling.gap_expected)
        before += scheme == KAFKA
        return cls(LogName(scheme, found["source"], found["name"]), found["partition"], after, before)

    @property
    def offsets(self) -> int:
        """The number of offsets; 0 for a stream, whose sequence numbers are not consecutive."""
        return self.before - 1 - self.after if self.log.scheme == KAFKA else 0

    @property
    def words(self) -> str:
        """Describe the range of records."""
        if self.log.scheme == KAFKA:
            return f"offsets {self.after} to {self.before - 2}"
        after = f"after sequence number {self.after}" if self.after else "from the beginning"
        return f"{after}, {f'before {self.before}' if self.before else 'to its end, or its next record'}"

    def __str__(self) -> str:
        """The URI that `parse` reads."""
        place = f"{self.log}/{self.partition_id}"
        if self.log.scheme == KAFKA:
            return f"{place}?from={self.after}&to={self.before - 1}"
        return f"{place}?after={self.after}" + (f"&before={self.before}" if self.before else "")


def is_gap(uri: str) -> bool:
    """Whether a URI is spelled like a gap."""
    try:
        return bool(LogGap.parse(uri))
    except ValueError:
        return False


def record_or_gap(uri: str) -> RecordPlace | LogGap:
    """Parse the name of a record or a gap.

    Raises:
        ValueError: It is neither; the message says what was expected.
    """
    _, spelling = _spelling(uri)
    try:
        return LogGap.parse(uri) if is_gap(uri) else RecordPlace.parse(uri)
    except ValueError:
        raise ValueError(f"{spelling.record_expected}, or {spelling.gap_expected}") from None


def input_place(text: str) -> str:
    """Parse an input place: a log, or all logs of a source, without a final slash.

    Raises:
        ValueError: It is neither.
    """
    scheme, spelling = _spelling(text)
    is_source = re.fullmatch(rf"{scheme}://{SOURCE_PATTERN}/?", text) is not None
    if not is_source and spelling.match(scheme, "/?", text) is None:
        raise ValueError(f"{spelling.log_expected.rpartition('/')[0]} or {spelling.log_expected}")
    return text.rstrip("/")


def logs_among(places: Iterable[str]) -> tuple[LogName, ...]:
    """The logs that places of the input name. Folders, and sources whose logs are not named, are passed over."""
    whole = STREAM_EXPECTED.count("/")
    return tuple(LogName.parse(each) for each in dict.fromkeys(places) if is_log(each) and each.count("/") == whole)


RecordColumn = Literal["key", "timestamp", "headers", "offset"]
"""A part of a record that becomes a column."""

KafkaValues = Literal["record", "lines"]
"""How a value is read: as one record, or as lines that are one record each."""

RECORD_COLUMNS: tuple[RecordColumn, ...] = get_args(RecordColumn)

RECORD_KEYS: Mapping[RecordColumn, str] = MappingProxyType({each: f"_kafka_{each}" for each in RECORD_COLUMNS})
"""The keys of the added fields."""

RECORD_TYPES: Mapping[RecordColumn, str] = MappingProxyType(
    {"key": "string", "timestamp": "timestamp", "headers": "string", "offset": "long"}
)
"""The types of the added columns."""
