"""Turns a partition's records into lines: Kafka values, and records packed by Kinesis producers."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

import orjson
import pyarrow as pa

from compactor.core.logs.aggregation import user_records
from compactor.core.logs.names import RECORD_KEYS, LogName, RecordColumn
from compactor.core.logs.ports import LogRecord, Partition
from compactor.ndjson.inspection import BLANK

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fields_of(record: LogRecord, columns: Sequence[RecordColumn]) -> bytes:
    """A record's fields, as JSON without its braces."""
    values: dict[RecordColumn, object] = {
        "offset": record.position - 1,
        "timestamp": _time(record.timestamp_ms),
        "key": None if record.key is None else _text(record.key),
        "headers": _headers(record),
    }
    return orjson.dumps({RECORD_KEYS[each]: values[each] for each in columns})[1:-1]


def with_fields(line: bytes, fields: bytes) -> bytes:
    """A line with its record's fields.

    The fields come last, and with duplicate keys the last value counts: no value in the line can pass for a field of
    its record. A line that is not one JSON object stays invalid.
    """
    found = line.strip(BLANK)
    if not (found.startswith(b"{") and found.endswith(b"}")):
        return line
    before = found[:-1]
    return before + (b"," if before[1:].strip(BLANK) else b"") + fields + b"}"


def _headers(record: LogRecord) -> object:
    """A list, as a record may have several headers with one name, and so that header names do not become keys."""
    if isinstance(record.headers, bytes):
        return {"unreadable": _text(record.headers)}
    return [[name, None if value is None else _text(value)] for name, value in record.headers]


def _time(milliseconds: int | None) -> str | None:
    """A timestamp as text; the plain number if it is outside the calendar, which a producer may write."""
    if milliseconds is None:
        return None
    try:
        found = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return found.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _text(data: bytes) -> str:
    """Bytes as text, in base64 if they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(data).decode()


Strays = Literal["keep", "drop"]
"""What to do with packed records that hash to another shard."""

FIELDS_BYTES = 64 * 1024 * 1024
"""The most bytes that one record's fields may take in all of its lines: a value of 1 MB can be 300,000 lines."""

_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class RecordLines(ABC):
    """Collects the lines of records.

    Attributes:
        records: Records as the log counts them.
        tombstones: How many of these have no value, hence no line.
        packed: How many of these contain packed records.
        strays: Packed records left out.
        taken_bytes: The length of all records, including those left out.
    """

    records: int = 0
    tombstones: int = 0
    packed: int = 0
    strays: int = 0
    lines: int = 0
    taken_bytes: int = 0
    _text: bytearray = field(default_factory=bytearray, init=False)  # a record may have very many short lines

    @abstractmethod
    def lines_of(self, record: LogRecord, data: bytes) -> Iterable[bytes]:
        """The lines of one record, without line ends. They may contain line feeds."""

    def add(self, records: Iterable[LogRecord]) -> None:
        for record in records:
            self.records += 1
            if record.data is None:
                self.tombstones += 1
                continue
            self.taken_bytes += len(record.data)
            for data in self.lines_of(record, record.data):
                self.lines += 1
                self._text += data.replace(b"\n", b"\r") if b"\n" in data else data  # JSON treats them alike
                self._text += b"\n"

    @property
    def length_bytes(self) -> int:
        return len(self._text)

    @property
    def weight_bytes(self) -> int:
        """The amount of work in the lines: their length, or that of the records if few of these were kept."""
        return max(self.length_bytes, self.taken_bytes)

    def to_bytes(self) -> bytes:
        """The content of an object with these lines. The first record may start with a byte order mark."""
        text = bytes(self._text)
        packed: bytes = pa.compress(b" " + text if text.startswith(_BOM) else text, codec="zstd", asbytes=True)
        return packed


NewLines = Callable[[LogName, Partition], RecordLines]
"""Creates the collector for a partition's lines."""


@dataclass(slots=True, kw_only=True)
class ShardLines(RecordLines):
    """The lines of a Kinesis shard: one per record, or per record packed into it.

    Attributes:
        stray_rule: See `Strays`. "drop" leaves out everything packed with a stray record, as the Kinesis Client Library
            does: the KPL sends all of it again.
    """

    shard: Partition
    stray_rule: Strays = "keep"

    def lines_of(self, record: LogRecord, data: bytes) -> Iterable[bytes]:  # noqa: ARG002 - all is in the data
        packed = user_records(data)
        if packed is None:
            return [data]
        self.packed += 1
        shard = self.shard
        if self.stray_rule == "drop" and any(
            not shard.first_hash <= each.hash_key <= shard.last_hash for each in packed
        ):
            self.strays += len(packed)
            return []
        return [each.data for each in packed]


@dataclass(slots=True, kw_only=True)
class ValueLines(RecordLines):
    """The lines of a Kafka partition: values, with fields from their records.

    Attributes:
        columns: The fields to add, from `compactor.core.logs.names.RECORD_KEYS`.
        has_lines: Whether a value consists of lines, one record each. A line feed terminates a line, also at the end.
    """

    columns: Sequence[RecordColumn] = ()
    has_lines: bool = False

    def lines_of(self, record: LogRecord, data: bytes) -> Iterable[bytes]:
        lines = data.removesuffix(b"\n").split(b"\n") if self.has_lines else [data.replace(b"\n", b"\r")]
        if not self.columns:
            return lines
        fields = fields_of(record, self.columns)
        if len(lines) > 1 and len(lines) * len(fields) > FIELDS_BYTES:
            return [data]  # as one line it is rejected as a whole; separate lines would not show their record
        return [with_fields(line, fields) for line in lines]
