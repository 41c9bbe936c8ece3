"""Puts what a record of Kafka has beside its value into its line, so that any reader of lines finds ordinary fields."""

import base64
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import orjson

from compactor.core.kafka.ports import Record
from compactor.core.kafka.record_columns import KEYS, RecordColumn
from compactor.core.kafka.value_lines import further_lines
from compactor.ndjson.files.path_values import places_in
from compactor.ndjson.inspection import BLANK
from compactor.ndjson.line_splitting import BLOCK_BYTES
from compactor.ndjson.lines import Judge, Judged, Limits, LineCounts, Refused, Reject, Splitter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class RecordValues:
    """The fields that the records of one range give to their lines, by the numbers of these, from 0.

    They are noted as the range is read, and taken as its lines are judged, both in order. They come last in a line, and
    of a key that is in a line twice the last value counts: no value can pass for what its record has beside it. A line
    that is not one JSON object is none with the fields either.

    Attributes:
        columns: What to put into lines, of `compactor.core.kafka.record_columns.KEYS`; at least one.
        has_lines: Whether values may hold several lines, which all get the fields of their record.
    """

    columns: Sequence[RecordColumn]
    has_lines: bool = False
    _noted: deque[tuple[int, int, bytes]] = field(default_factory=deque, init=False)  # first line, last line, fields
    _further: int = field(default=0, init=False)  # lines of values so far, beside the first ones
    _line: int = field(default=0, init=False)

    def begin(self) -> None:
        """Forget all: the range is read from its start."""
        self._noted.clear()
        self._line = self._further = 0

    def note(self, first: int, records: Iterable[Record]) -> None:
        """Note what the next records have.

        Args:
            first: The first offset of the range.
            records: Those without a value have no fields, for their lines are blank.
        """
        for each in records:
            if each.value is not None:
                line = each.offset - first + self._further
                self._further += further_lines(each.value) if self.has_lines else 0
                self._noted.append((line, each.offset - first + self._further, self._fields(each)))

    def pass_over(self, line: int) -> None:
        """Note that the next line to be judged is behind this one, which was too long."""
        self._line = max(self._line, line + 1)

    def lines(self, block: bytes) -> bytes:
        """The next lines with the fields. Each line has its line feed."""
        return b"".join(self._with_fields(line) + b"\n" for line in block.split(b"\n")[:-1])

    def _with_fields(self, line: bytes) -> bytes:
        number, self._line = self._line, self._line + 1
        noted = self._noted
        while noted and noted[0][1] < number:
            noted.popleft()
        if not noted or noted[0][0] > number:
            return line
        fields = noted[0][2]
        record = line.strip(BLANK)
        if not (record.startswith(b"{") and record.endswith(b"}")):
            return line
        before = record[:-1]
        is_empty = not before[1:].strip(BLANK)
        return before + (b"" if is_empty else b",") + fields + b"}"

    def _fields(self, record: Record) -> bytes:
        values: dict[RecordColumn, object] = {
            "offset": record.offset,
            "timestamp": _time(record.timestamp_ms),
            "key": None if record.key is None else _text(record.key),
            "headers": _headers(record),
        }
        return orjson.dumps({KEYS[each]: values[each] for each in self.columns})[1:-1]


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

    Attributes:
        split: The other one.
        values: The fields.
        refused: Lines without white space around them, as the range has them, to reject as `parsers_disagree`.
    """

    split: Splitter
    values: RecordValues
    refused: frozenset[bytes] = frozenset()

    def __call__(
        self,
        pieces: Iterable[bytes],
        limits: Limits,
        judge: Judge,
        *,
        on_reject: Callable[[Reject], None],
        block_bytes: int = BLOCK_BYTES,
    ) -> LineCounts:
        """See `compactor.ndjson.line_splitting.split_lines`."""

        def judged(block: bytes) -> Judged:
            return self._judged(block, judge)

        def rejected(reject: Reject) -> None:
            if reject.reason == "line_too_long":
                self.values.pass_over(reject.line_number - 1)
            on_reject(reject)

        return self.split(pieces, limits, judged, on_reject=rejected, block_bytes=block_bytes)

    def _judged(self, block: bytes, judge: Judge) -> Judged:
        written = self.values.lines(block)
        lines = block.split(b"\n")
        disagreeing = self._disagreeing(lines) if self.refused else []
        if disagreeing:
            kept = written.split(b"\n")
            for number in disagreeing:
                kept[number] = b""
            written = b"\n".join(kept)
        found = judge(written)
        places = [(number, 0, 0, reason) for number, _, reason, _ in found.refused]
        places = sorted([*places, *((number, 0, 0, "parsers_disagree") for number in disagreeing)])
        refused: list[Refused] = [
            (number, start, reason, lines[number]) for number, start, _, reason in places_in(block, places)
        ]
        return Judged(found.lines, found.blank_lines - len(disagreeing), refused)

    def _disagreeing(self, lines: Sequence[bytes]) -> list[int]:
        return [number for number, line in enumerate(lines) if line.strip(BLANK) in self.refused]
