"""The names of topics and of ranges of offsets: `kafka://cluster/topic/partition?from=0&to=100`. No I/O."""

import re
from dataclasses import dataclass
from typing import Self

SCHEME = "kafka://"
MAX_OFFSET = 2**63 - 1

RANGE_EXPECTED = "kafka://cluster/topic/partition?from=F&to=T with F < T, in digits without leading zeros"
TOPIC_EXPECTED = "kafka://cluster/topic"

CLUSTER_PATTERN = r"[a-z][a-z0-9-]{0,31}"
_TOPIC_PATTERN = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]{1,249}"  # what brokers accept
_NUMBER = r"0|[1-9][0-9]{0,18}"
_PLACE = re.compile(rf"kafka://(?P<cluster>{CLUSTER_PATTERN})(?:/(?P<topic>{_TOPIC_PATTERN}))?/?")
_PARTITION = rf"kafka://(?P<cluster>{CLUSTER_PATTERN})/(?P<topic>{_TOPIC_PATTERN})/(?P<partition>{_NUMBER})"
_RANGE = re.compile(rf"{_PARTITION}\?from=(?P<first>{_NUMBER})&to=(?P<end>{_NUMBER})")
_RECORD = re.compile(rf"{_PARTITION}\?offset=(?P<offset>{_NUMBER})")
_MAX_PARTITION = 2**31 - 1


def is_kafka(uri: str) -> bool:
    """Return whether a URI names something in Kafka, well-formed or not."""
    return uri.startswith(SCHEME)


@dataclass(frozen=True, slots=True, order=True)
class Topic:
    """A topic by its name, which a later topic may get again."""

    cluster: str
    name: str

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse `kafka://cluster/topic`.

        Raises:
            ValueError: It is none; the message says what was expected.
        """
        found = _PLACE.fullmatch(uri)
        if found is None or found["topic"] is None:
            raise ValueError(TOPIC_EXPECTED)
        return cls(found["cluster"], found["topic"])

    @property
    def uri(self) -> str:
        """Its name with that of the cluster."""
        return f"{SCHEME}{self.cluster}/{self.name}"

    def __str__(self) -> str:
        return self.uri


@dataclass(frozen=True, slots=True, order=True)
class KafkaRange:
    """The offsets of a partition from `first` up to and without `end`.

    One line stands for each offset, so line number n is offset `first + n - 1`.
    """

    topic: Topic
    partition: int
    first: int
    end: int

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse the one spelling that a range has.

        Raises:
            ValueError: It is none; the message says what was expected.
        """
        found = _RANGE.fullmatch(uri)
        if found is None:
            raise ValueError(RANGE_EXPECTED)
        partition, first, end = (int(found[name]) for name in ("partition", "first", "end"))
        if not (partition <= _MAX_PARTITION and first < end <= MAX_OFFSET):
            raise ValueError(RANGE_EXPECTED)
        return cls(Topic(found["cluster"], found["topic"]), partition, first, end)

    @property
    def offsets(self) -> int:
        """How many offsets it has."""
        return self.end - self.first

    def has(self, offset: int) -> bool:
        """Return whether an offset of its partition is in it."""
        return self.first <= offset < self.end

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}?from={self.first}&to={self.end}"


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """One offset of a partition: `kafka://cluster/topic/partition?offset=17`."""

    topic: Topic
    partition: int
    offset: int

    @classmethod
    def parse(cls, uri: str) -> Self | None:
        """The place that a URI names; None for anything else."""
        found = _RECORD.fullmatch(uri)
        if found is None:
            return None
        return cls(Topic(found["cluster"], found["topic"]), int(found["partition"]), int(found["offset"]))


def is_range(uri: str) -> bool:
    """Return whether a URI names a range or one offset."""
    try:
        return RecordPlace.parse(uri) is not None or bool(KafkaRange.parse(uri))
    except ValueError:
        return False


def input_place(text: str) -> str:
    """`kafka://cluster` or `kafka://cluster/topic`, which input may come from, without a slash at its end.

    Raises:
        ValueError: It is neither.
    """
    if _PLACE.fullmatch(text) is None:
        raise ValueError(f"kafka://cluster or {TOPIC_EXPECTED}")
    return text.rstrip("/")
