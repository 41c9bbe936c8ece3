"""The names of Kinesis streams and of single records: `kinesis://source/stream/shard?sequence=17`. No I/O."""

import re
from dataclasses import dataclass
from typing import Self

SCHEME = "kinesis://"

STREAM_EXPECTED = "kinesis://source/stream"
RECORD_EXPECTED = "kinesis://source/stream/shard?sequence=N"

SOURCE_PATTERN = r"[a-z][a-z0-9-]{0,31}"
_STREAM_PATTERN = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]{1,128}"  # what AWS accepts
_SHARD_PATTERN = r"[A-Za-z0-9_-]{1,128}"  # AWS takes dots as well, and gives out shardId-000000000000
_PLACE = re.compile(rf"kinesis://(?P<source>{SOURCE_PATTERN})(?:/(?P<stream>{_STREAM_PATTERN}))?/?")
_RECORD = re.compile(
    rf"kinesis://(?P<source>{SOURCE_PATTERN})/(?P<stream>{_STREAM_PATTERN})/(?P<shard>{_SHARD_PATTERN})"
    r"\?sequence=(?P<sequence>[1-9][0-9]{0,128})"
)


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

    def __str__(self) -> str:
        return f"{SCHEME}{self.source}/{self.name}"


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


def input_place(text: str) -> str:
    """`kinesis://source` or `kinesis://source/stream`, which input may come from, without a slash at its end.

    Raises:
        ValueError: It is neither.
    """
    if _PLACE.fullmatch(text) is None:
        raise ValueError(f"kinesis://source or {STREAM_EXPECTED}")
    return text.rstrip("/")
