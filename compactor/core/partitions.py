"""Partitions of the output within a date: how settings name them, and the folders of their values."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Transform = Literal["day", "hour", "identity", "bucket"]
Epoch = Literal["seconds", "milliseconds"]

PartitionValues: TypeAlias = tuple[str | None, ...]
"""One value for each field: `2025-09-30` for a day, `2025-09-30-07` for an hour, a number for a bucket; or None."""

EXPECTED = (
    "day(KEY), hour(KEY), identity(KEY) or bucket(KEY, N) with N up to 65,536; a leading NAME = names the folder; "
    "numeric times need their unit, as in day(KEY, milliseconds)"
)

MAX_FIELDS = 4
MAX_BUCKETS = 65_536

MAX_FOLDERS_BYTES = 240
"""The longest folders of one partition: with date and file name within the 1,024 bytes of an S3 key, and each within
the 255 bytes of a file name."""

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder for rows without a value, as in Hive, Spark and Athena."""

FOLDERS = r"(?:[A-Za-z][A-Za-z0-9_]*=[^/]+/)*"
"""A pattern for the folders of any partition."""

_FIELD = re.compile(
    r"(?:(?P<name>[A-Za-z][A-Za-z0-9_]{0,63})\s*=\s*)?(?P<transform>day|hour|identity|bucket)\("
    r"(?P<key>.+?)(?:,\s*(?P<argument>[0-9]{1,9}|seconds|milliseconds))?\)"
)
_NAME_UNSAFE = re.compile(r"[^A-Za-z0-9_]")
_ENDINGS: dict[str, str] = {"day": "_day", "hour": "_hour", "identity": "_value", "bucket": "_bucket"}
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f").union(map(chr, range(32)))  # as Hive and Spark do


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One level of partitions.

    Attributes:
        name: Name of its folders.
        key: The JSON key of its values.
        buckets: Number of buckets for `bucket`; else 0.
        epoch: The unit of numeric times; None if numbers are not times.
    """

    name: str
    transform: Transform
    key: str
    buckets: int = 0
    epoch: Epoch | None = None

    def __str__(self) -> str:
        """The field as `parse_field` reads it."""
        argument = self.buckets or self.epoch
        return f"{self.name} = {self.transform}({self.key}{f', {argument}' if argument else ''})"


def parse_field(text: str) -> PartitionField:
    """Parse a field: `event_day = day(event_time)`. The default name is the key with the transform.

    Raises:
        ValueError: The text is malformed. The message says what was expected.
    """
    found = _FIELD.fullmatch(text.strip())
    if found is None:
        raise ValueError(EXPECTED)
    transform, argument = found["transform"], found["argument"]
    is_number = argument is not None and argument.isdecimal()
    if (transform == "bucket") != is_number or (transform == "identity" and argument is not None):
        raise ValueError(EXPECTED)
    buckets = int(argument) if is_number else 0
    if is_number and not 1 <= buckets <= MAX_BUCKETS:
        raise ValueError(EXPECTED)
    name = found["name"] or _default_name(found["key"], transform)
    return PartitionField(name, transform, found["key"], buckets, None if is_number else argument)  # type: ignore[arg-type]


def parse_fields(texts: Sequence[str]) -> tuple[PartitionField, ...]:
    """Parse the fields in a record; see `parse_field`."""
    return tuple(map(parse_field, texts))


def folders(fields: Sequence[PartitionField], values: PartitionValues) -> str:
    """The folders of a partition, each ending in `/`. Empty text goes to the folder for no value, as in Hive."""
    pairs = zip(fields, values, strict=True)
    return "".join(f"{field.name}={escaped(value) if value else HIVE_NULL}/" for field, value in pairs)


def first_folders(fields: Sequence[PartitionField]) -> str:
    """The folders of a partition that sorts before others and has a valid value on each level."""
    times = {"day": "0001-01-01", "hour": "0001-01-01-00"}
    return folders(fields, tuple(times.get(field.transform, "0") for field in fields))


def escaped(value: str) -> str:
    """A value as part of a path: characters that Hive does not allow there, such as a slash, are percent-encoded."""
    # guard: no value leads out of its folder
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in value)


def fits(fields: Sequence[PartitionField], values: PartitionValues) -> bool:
    """Whether the folders of a partition are short enough."""
    return len(folders(fields, values).encode()) <= MAX_FOLDERS_BYTES


def _default_name(key: str, transform: str) -> str:
    name = _NAME_UNSAFE.sub("_", key.lower())[:50]
    return f"{name if name[0].isalpha() else f'key_{name}'}{_ENDINGS[transform]}"
