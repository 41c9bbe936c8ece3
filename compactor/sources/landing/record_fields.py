"""Puts what a record of Kafka has beside its value into its line, so that any reader of lines finds ordinary fields."""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import orjson

from compactor.core.logs.ports import LogRecord
from compactor.core.logs.record_columns import KEYS, RecordColumn
from compactor.ndjson.inspection import BLANK

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fields_of(record: LogRecord, columns: Sequence[RecordColumn]) -> bytes:
    """The fields of a record, as JSON without its braces."""
    values: dict[RecordColumn, object] = {
        "offset": record.position - 1,
        "timestamp": _time(record.timestamp_ms),
        "key": None if record.key is None else _text(record.key),
        "headers": _headers(record),
    }
    return orjson.dumps({KEYS[each]: values[each] for each in columns})[1:-1]


def with_fields(line: bytes, fields: bytes) -> bytes:
    """A line with the fields of its record.

    The fields come last, and of a key that is in a line twice the last value counts: no value can pass for what its
    record has beside it. A line that is not one JSON object is none with the fields either.
    """
    found = line.strip(BLANK)
    if not (found.startswith(b"{") and found.endswith(b"}")):
        return line
    before = found[:-1]
    return before + (b"," if before[1:].strip(BLANK) else b"") + fields + b"}"


def _headers(record: LogRecord) -> object:
    """A list, for a record may have headers of one name; and no object, so that its names are no keys."""
    if isinstance(record.headers, bytes):
        return {"unreadable": _text(record.headers)}
    return [[name, None if value is None else _text(value)] for name, value in record.headers]


def _time(milliseconds: int | None) -> str | None:
    """A timestamp as text; of one that no calendar has, which a producer may write, its number."""
    if milliseconds is None:
        return None
    try:
        found = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return found.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _text(data: bytes) -> str:
    """Bytes as text; those that are no UTF-8 in base 64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(data).decode()
