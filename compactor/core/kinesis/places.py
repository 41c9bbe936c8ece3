"""The names of Kinesis streams, of single records and of gaps: `kinesis://source/stream/shard?sequence=17`. No I/O."""

import re
from dataclasses import dataclass
from typing import Self

SCHEME = "kinesis://"

STREAM_EXPECTED = "kinesis://source/stream"
RECORD_EXPECTED = "kinesis://source/stream/shard?sequence=N"
GAP_EXPECTED = "kinesis://source/stream/shard?after=N&before=M with N < M, or without before"

SOURCE_PATTERN = r"[a-z][a-z0-9-]{0,31}"
_STREAM_PATTERN = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]{1,128}"  # what AWS accepts
_SHARD_PATTERN = r"[A-Za-z0-9_-]{1,128}"  # AWS takes dots as well, and gives out shardId-000000000000
_PLACE = re.compile(rf"kinesis://(?P<source>{SOURCE_PATTERN})(?:/(?P<stream>{_STREAM_PATTERN}))?/?")
_SHARD = rf"kinesis://(?P<source>{SOURCE_PATTERN})/(?P<stream>{_STREAM_PATTERN})/(?P<shard>{_SHARD_PATTERN})"
_SEQUENCE = "[1-9][0-9]{0,128}"
_RECORD = re.compile(rf"{_SHARD}\?sequence=(?P<sequence>{_SEQUENCE})")
_GAP = re.compile(rf"{_SHARD}\?after=(?P<after>0|{_SEQUENCE})(?:&before=(?P<before>{_SEQUENCE}))?")


def is_kinesis(uri: str) -> bool:
    """Return whether a URI names something in Kinesis, well-formed or not."""
    return uri.startswith(SCHEME)


@dataclass(frozen=True, slots=True, order=True)
class KinesisStream:
    """A stream by its name, which a later stream may get again.

    Attributes:
        source: The name in `kinesis.sources` of the settings.
        name: As AWS has it.
    """

    source: str
    name: str

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse `kinesis://source/stream`.

        Raises:
            ValueError: It is none; the message says what was expected.
        """
        found = _PLACE.fullmatch(uri)
        if found is None or found["stream"] is None:
            raise ValueError(STREAM_EXPECTED)
        return cls(found["source"], found["stream"])

    @property
    def uri(self) -> str:
        """Its name with that of the source."""
        return f"{SCHEME}{self.source}/{self.name}"

    def __str__(self) -> str:
        return self.uri


@dataclass(frozen=True, slots=True)
class SequencePlace:
    """One record of a shard: `kinesis://source/stream/shard?sequence=17`."""

    stream: KinesisStream
    shard_id: str
    sequence: int

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse the name of a record.

        Raises:
            ValueError: It is none; the message says what was expected.
        """
        found = _RECORD.fullmatch(uri)
        if found is None:
            raise ValueError(RECORD_EXPECTED)
        return cls(KinesisStream(found["source"], found["stream"]), found["shard"], int(found["sequence"]))


@dataclass(frozen=True, slots=True)
class StreamGap:
    """Where records of a shard may be lost to retention: `kinesis://source/stream/shard?after=17&before=42`.

    Attributes:
        after: The sequence number of the last record before it; 0 at the beginning of the shard.
        before: That of the first record behind it; 0 if it goes on to the next record, or to the end of the shard.
    """

    stream: KinesisStream
    shard_id: str
    after: int
    before: int = 0

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse the one spelling that a gap has.

        Raises:
            ValueError: It is none; the message says what was expected.
        """
        found = _GAP.fullmatch(uri)
        if found is None:
            raise ValueError(GAP_EXPECTED)
        after, before = int(found["after"]), int(found["before"] or 0)
        if before and before <= after:
            raise ValueError(GAP_EXPECTED)
        return cls(KinesisStream(found["source"], found["stream"]), found["shard"], after, before)

    @property
    def words(self) -> str:
        """Which records it has."""
        after = f"after sequence number {self.after}" if self.after else "from its beginning"
        return f"{after}, {f'before {self.before}' if self.before else 'to its end, or its next record'}"

    def __str__(self) -> str:
        to = f"&before={self.before}" if self.before else ""
        return f"{self.stream}/{self.shard_id}?after={self.after}{to}"


def is_record_or_gap(uri: str) -> bool:
    """Return whether a URI names a record, or a gap."""
    try:
        return bool(StreamGap.parse(uri) if "?after=" in uri else SequencePlace.parse(uri))
    except ValueError:
        return False


def input_place(text: str) -> str:
    """`kinesis://source` or `kinesis://source/stream`, which input may come from, without a slash at its end.

    Raises:
        ValueError: It is neither.
    """
    if _PLACE.fullmatch(text) is None:
        raise ValueError(f"kinesis://source or {STREAM_EXPECTED}")
    return text.rstrip("/")
