"""Puts the values of a file's path, and what a Kafka record has beside its value, into lines as ordinary fields."""

import base64
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

import orjson

from compactor.core.documents.manifest import ManifestFile
from compactor.core.kafka.ports import Record
from compactor.core.kafka.ranges import KafkaRange, is_kafka
from compactor.core.kafka.record_columns import KEYS, RecordColumn
from compactor.core.kafka.value_lines import further_lines
from compactor.ndjson.inspection import BLANK
from compactor.ndjson.lines import Judge, Judged, LineCounts, Receiver, Refused, Reject, Splitter

_START = re.compile(rb"([ \t\r]*)\{([ \t\r]*\})?")


class PathValues:
    """The fields that the path of a file gives to each of its lines.

    They come first, and of a key that is in a line twice the last value counts: so a line that has the key itself keeps
    its own value, also if that is null. A line that is not one JSON object stays as it is in all that matters: it is
    no object with the fields either.

    Args:
        columns: The values by key; at least one.
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.keys = tuple(columns)
        self._alone = b"{" + orjson.dumps(dict(columns))[1:-1]
        self._before = self._alone + b","

    def lines(self, block: bytes) -> bytes:
        """The lines of a block with the fields. Each line has its line feed."""
        # Measured: replacing all at once is many times faster than going through the lines.
        if block.startswith(b'{"') and block.count(b'\n{"') == block.count(b"\n") - 1:
            return self._before + block[1:].replace(b'\n{"', b"\n" + self._before + b'"')
        return b"".join(self._line(line) + b"\n" for line in block.split(b"\n")[:-1])

    def original(self, line: bytes) -> bytes:
        """A line as the file has it, without white space around it, from what `lines` made of it."""
        before = self._before if line.startswith(self._before) else self._alone
        return b"{" + line.removeprefix(before) if line.startswith(before) else line

    def _line(self, line: bytes) -> bytes:
        found = _START.match(line)
        if found is None:
            return line
        if found[2] is None:
            return found[1] + self._before + line[found.end() :]
        return found[1] + self._alone + line[found.start(2) :]


def places_in(block: bytes, places: Iterable[tuple[int, int, int, str]]) -> Iterator[tuple[int, int, int, str]]:
    """The places of lines in the block itself: for each its number, its first byte, its line feed and its fault.

    Args:
        block: Whole lines.
        places: What a reader of `PathValues.lines` says of some of them, in order; only numbers and faults count.
    """
    line = start = 0
    for number, _, _, fault in places:
        while line < number:
            start = block.index(b"\n", start) + 1
            line += 1
        yield number, start, block.index(b"\n", start), fault


RECORD_FIELDS_BYTES = 64 * 1024 * 1024
"""The most that the fields of one record may take in all of its lines: a value of 1 MB can be 300,000 lines."""

PIECE_BYTES = 8 * 1024 * 1024
"""About how many bytes of lines with their fields are in memory at a time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LineFields(Protocol):
    """The fields that each line of an input gets from its record."""

    def of_line(self, number: int) -> bytes | None:
        """The fields of a line, as JSON without its braces; empty for none, None for more than lines may have.

        Args:
            number: From 0. It is asked for in order, at most once.
        """


@dataclass(slots=True)
class RecordValues:
    """The fields that the records of one range give to their lines.

    They are noted as the range is read, and taken as its lines are judged, both in order.

    Attributes:
        columns: What to put into lines, of `compactor.core.kafka.record_columns.KEYS`; at least one.
        has_lines: Whether values may hold several lines, which all get the fields of their record.
    """

    columns: Sequence[RecordColumn]
    has_lines: bool = False
    _noted: deque[tuple[int, int, bytes | None]] = field(default_factory=deque, init=False)  # first and last line
    _further: int = field(default=0, init=False)  # lines of values so far, beside the first ones

    def begin(self) -> None:
        """Forget all: the range is read from its start."""
        self._noted.clear()
        self._further = 0

    def note(self, first: int, records: Iterable[Record]) -> None:
        """Note what the next records have.

        Args:
            first: The first offset of the range.
            records: Those without a value have no fields, for their lines are blank.
        """
        for each in records:
            if each.value is not None:
                line = each.offset - first + self._further
                further = further_lines(each.value) if self.has_lines else 0
                self._further += further
                fields = self._fields(each)
                is_bounded = not further or (further + 1) * len(fields) <= RECORD_FIELDS_BYTES
                self._noted.append((line, line + further, fields if is_bounded else None))

    def of_line(self, number: int) -> bytes | None:
        """See `LineFields`."""
        noted = self._noted
        while noted and noted[0][1] < number:
            noted.popleft()
        return b"" if not noted or noted[0][0] > number else noted[0][2]

    def _fields(self, record: Record) -> bytes:
        values: dict[RecordColumn, object] = {
            "offset": record.offset,
            "timestamp": _time(record.timestamp_ms),
            "key": None if record.key is None else _text(record.key),
            "headers": _headers(record),
        }
        return _dumped(values, self.columns)


@dataclass(frozen=True, slots=True)
class RedrivenValues:
    """The fields of lines of a range that were rejected, and are redriven under the numbers that they had there.

    Their records are not read again. So all is null that the number of a line does not tell.

    Attributes:
        columns: As of `RecordValues`.
        first: The first offset of the range; None if values may hold several lines, so that no number tells an offset.
    """

    columns: Sequence[RecordColumn]
    first: int | None

    def of_line(self, number: int) -> bytes:
        """See `LineFields`."""
        offset = None if self.first is None else self.first + number
        return _dumped({"offset": offset, "timestamp": None, "key": None, "headers": None}, self.columns)


def redriven_values(file: ManifestFile) -> RedrivenValues | None:
    """The fields of redriven lines; None for any other file, and for lines that have none."""
    if not file.source_uri or not file.record_columns or not is_kafka(file.source_uri):
        return None
    has_lines = file.kafka_values == "lines"
    return RedrivenValues(file.record_columns, None if has_lines else KafkaRange.parse(file.source_uri).first)


def _dumped(values: Mapping[RecordColumn, object], columns: Sequence[RecordColumn]) -> bytes:
    return orjson.dumps({KEYS[each]: values[each] for each in columns})[1:-1]


def _headers(record: Record) -> object:
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


@dataclass(frozen=True, slots=True)
class WithRecordValues:
    """A `compactor.ndjson.lines.Splitter` whose judge gets the lines of another one with the fields of their records.

    The fields come last in a line, and of a key that is in a line twice the last value counts: no value can pass for
    what its record has beside it. A line that is not one JSON object is none with the fields either.

    Attributes:
        split: The other one.
        values: The fields.
        refused: Lines without white space around them, as the range has them, to reject as `parsers_disagree`.
    """

    split: Splitter
    values: LineFields
    refused: frozenset[bytes] = frozenset()

    def __call__(self, pieces: Iterable[bytes], receiver: Receiver) -> LineCounts:
        """See `compactor.ndjson.line_splitting.split_lines`."""
        judging = _Judging(receiver.judge, self.values, self.refused)

        def rejected(reject: Reject) -> None:
            if reject.reason == "line_too_long":
                judging.pass_over(reject.line_number - 1)
            receiver.on_reject(reject)

        return self.split(pieces, replace(receiver, judge=judging.judged, on_reject=rejected))


@dataclass(slots=True)
class _Judging:
    """Judges the lines of one input with their fields."""

    judge: Judge
    values: LineFields
    refused: frozenset[bytes]
    _next: int = field(default=0, init=False)  # the number of the next line

    def pass_over(self, line: int) -> None:
        """Note that the next line to be judged is behind this one, which was too long."""
        self._next = max(self._next, line + 1)

    def judged(self, block: bytes) -> Judged:
        """Judge whole lines."""
        lines = block.split(b"\n")[:-1]
        places, blank_lines = list[tuple[int, int, int, str]](), 0
        for first, written, own in self._pieces(lines):
            found = self.judge(written)
            blank_lines += found.blank_lines - len(own)
            places += [(number, 0, 0, reason) for number, reason in own]
            places += [(first + number, 0, 0, reason) for number, _, reason, _ in found.refused]
        refused: list[Refused] = [
            (number, start, reason, lines[number]) for number, start, _, reason in places_in(block, sorted(places))
        ]
        return Judged(len(lines), blank_lines, refused)

    def _pieces(self, lines: Sequence[bytes]) -> Iterator[tuple[int, bytes, list[tuple[int, str]]]]:
        """The lines with their fields, some at a time.

        Yields the number of the first line of a piece, its bytes, and the lines that are rejected: blank in the piece.
        """
        first, size_bytes, written, own = 0, 0, list[bytes](), list[tuple[int, str]]()
        for number, line in enumerate(lines):
            with_fields, reason = self._with_fields(line)
            if reason:
                own.append((number, reason))
            written.append(with_fields)
            size_bytes += len(with_fields)
            if size_bytes >= PIECE_BYTES:
                yield first, b"\n".join([*written, b""]), own
                first, size_bytes, written, own = number + 1, 0, [], []
        if written:
            yield first, b"\n".join([*written, b""]), own

    def _with_fields(self, line: bytes) -> tuple[bytes, str]:
        """A line with its fields; or an empty one, and why it is rejected."""
        fields = self.values.of_line(self._next)
        self._next += 1
        record = line.strip(BLANK)
        if record in self.refused:
            return b"", "parsers_disagree"
        if fields is None:
            return (b"", "fields_too_large") if record else (line, "")
        if not fields or not (record.startswith(b"{") and record.endswith(b"}")):
            return line, ""
        before = record[:-1]
        is_empty = not before[1:].strip(BLANK)
        return before + (b"" if is_empty else b",") + fields + b"}", ""
