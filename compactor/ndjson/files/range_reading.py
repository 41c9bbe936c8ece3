"""Reads a range of a Kafka partition as lines: one for each offset, unless values hold several lines."""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileReport, FileStatus, RangeReport
from compactor.core.errors import StagingError
from compactor.core.kafka.ports import KafkaLog, OpenKafka, RangeEnd, Record
from compactor.core.kafka.ranges import KafkaRange, is_kafka
from compactor.core.kafka.value_lines import further_lines, part_offsets
from compactor.core.map_ordered import one_ahead
from compactor.ndjson.files.line_fields import RecordValues
from compactor.ndjson.files.object_reading import InputStore

_PADDING = b"\n" * 65_536
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class OpenedRange:
    """A range that is about to be read; the counterpart of `Opened`, which is a file.

    Attributes:
        size_bytes: Of its lines, once they have been read; before that, what its manifest says.
        etag: The id of its topic.
        first: No bytes: the codec of a range is never guessed.
        read: What is particular to it, once it has been read to its end.
        values: What its lines get from their records beside the values; None for nothing.
        has_lines: Whether its values may hold several lines.
        start: 0: all of it is read.
        is_part: False.
        digest: None: the id of the topic and the offsets tell contents apart.
    """

    uri: str
    size_bytes: int
    etag: str
    first: bytes
    wanted: KafkaRange
    kafka: OpenKafka
    read: RangeReport | None = None
    values: RecordValues | None = None
    has_lines: bool = False
    start: int = 0
    is_part: bool = False
    digest: None = None
    _begun: Generator[bytes, None, None] | None = field(default=None, init=False)

    def begin(self, pool: ThreadPoolExecutor) -> None:
        """Begin to read: its client takes a while to connect, and may do so while other ranges are read."""
        self._begun = one_ahead(pool, self._read())

    def pieces(self, _store: InputStore, pool: ThreadPoolExecutor) -> Generator[bytes, None, None]:
        """Read all lines, one piece ahead.

        May be called again; compaction of the topic may have removed more records by then.

        Raises:
            FileError: `missing`: some of it is gone.
            StoreUnavailable: The brokers fail for now.
        """
        begun, self._begun = self._begun, None
        return begun or one_ahead(pool, self._read())

    def _read(self) -> Generator[bytes, None, None]:
        lines = RangeLines(self.wanted, has_lines=self.has_lines)
        if self.values is not None:
            self.values.begin()
        end = yield from _lines(lines, self.kafka.open(), self.etag, self.values)
        self.size_bytes = lines.length_bytes
        self.read = end


@dataclass(slots=True)
class RangeLines:
    """The lines of a range, from its records.

    The value of a record is one line. A line feed in it becomes a carriage return, which is the same to JSON: white
    space between tokens, and forbidden within a string. An offset without a value has an empty line.

    Attributes:
        has_lines: Values are lines instead: a line feed ends one, also at the end of a value.
        further: Lines of values beside the first ones, by the part of the range that they are in.
    """

    wanted: KafkaRange
    has_lines: bool = False
    tombstones: int = 0
    absent: int = 0
    length_bytes: int = 0
    further: Counter[int] = field(default_factory=Counter)
    next_offset: int = field(init=False)
    _part_offsets: int = field(init=False)

    def __post_init__(self) -> None:
        self.next_offset = self.wanted.first
        self._part_offsets = part_offsets(self.wanted)

    def of(self, records: Sequence[Record]) -> bytes:
        """The lines of the next records, and of the offsets before them that have none.

        Raises:
            StagingError: A record is out of order or of another range, which no broker delivers.
        """
        if piece := self._whole(records):
            return self._counted(piece)
        lines: list[bytes] = []
        for offset, value, *_ in records:
            if not self.next_offset <= offset < self.wanted.end:
                raise StagingError(
                    f"{self.wanted}: got offset {offset}, expected one from {self.next_offset} below {self.wanted.end}"
                )
            if offset > self.next_offset:
                # guard: each offset without a record has its line
                lines.append(b"\n" * (offset - self.next_offset - 1))
                self.absent += offset - self.next_offset
            self.next_offset = offset + 1
            if value is None:
                self.tombstones += 1
                lines.append(b"")
            else:
                lines.append(self._line(offset, value) if b"\n" in value else value)
        return self._counted(b"\n".join(lines) + b"\n" if lines else b"")

    def _line(self, offset: int, value: bytes) -> bytes:
        """A value with line feeds as one line, or as its lines."""
        if not self.has_lines:
            return value.replace(b"\n", b"\r")
        if further := further_lines(value):
            self.further[(offset - self.wanted.first) // self._part_offsets] += further
        return value.removesuffix(b"\n")

    def _whole(self, records: Sequence[Record]) -> bytes:
        """The lines of records that follow each other and are one line each, as most do: half the time of the others.

        Empty for any other records.
        """
        first, end = self.next_offset, self.next_offset + len(records)
        if end > self.wanted.end or [each[0] for each in records] != list(range(first, end)):
            return b""
        values = [each[1] for each in records if each[1] is not None]
        piece = b"\n".join([*values, b""])
        if not len(values) == len(records) == piece.count(b"\n"):
            return b""
        self.next_offset = end
        return piece

    def rest(self) -> Iterator[bytes]:
        """The lines of the offsets behind the last record."""
        left = self.wanted.end - self.next_offset
        self.absent += left
        self.next_offset = self.wanted.end
        while left:
            step = min(left, len(_PADDING))
            yield self._counted(_PADDING[:step])
            left -= step

    def report(self, end: RangeEnd) -> RangeReport:
        """What is particular to the range, once it was read to its end."""
        parts = -(-self.wanted.offsets // self._part_offsets) if self.further else 0
        return RangeReport(
            tombstones=self.tombstones,
            absent=self.absent,
            position=end.position,
            high_watermark=end.high_watermark,
            further_lines=self.further.total(),
            part_offsets=self._part_offsets if self.further else 0,
            further_by_part=tuple(self.further[part] for part in range(parts)),
        )

    def _counted(self, piece: bytes) -> bytes:
        if not self.length_bytes and piece.startswith(_BOM):
            piece = b" " + piece  # else the first record alone might have a byte order mark
        self.length_bytes += len(piece)
        return piece


def _lines(
    lines: RangeLines, log: KafkaLog, topic_id: str, values: RecordValues | None
) -> Generator[bytes, None, RangeReport]:
    reading = log.read(lines.wanted, topic_id, with_columns=values is not None)
    try:
        while True:
            try:
                records = next(reading)
            except StopIteration as stop:
                end = stop.value
                break
            if values is not None:
                values.note(lines.wanted.first, records)
            if piece := lines.of(records):
                yield piece
        yield from lines.rest()
    finally:
        reading.close()
    return lines.report(end)


def open_range(kafka: OpenKafka, file: ManifestFile) -> OpenedRange:
    """Open a range that a manifest names. Its topic is asked for when it is read."""
    has_lines = file.kafka_values == "lines"
    return OpenedRange(
        uri=file.uri,
        size_bytes=file.size_bytes or 0,
        etag=file.etag or "",
        first=b"",
        wanted=KafkaRange.parse(file.uri),
        kafka=kafka,
        values=RecordValues(file.record_columns, has_lines) if file.record_columns else None,
        has_lines=has_lines,
    )


def range_fault(report: FileReport) -> str:
    """What does not add up in the report on a range; empty if all does, and for any other file."""
    if not is_kafka(report.uri) or report.status is not FileStatus.COMPACTED:
        return ""
    wanted, read = KafkaRange.parse(report.uri), report.kafka
    if read is None:
        return "no proof of its end"
    if fault := _lines_fault(report, wanted, read):
        return fault
    if read.position < wanted.end:  # guard: a range without proof of its end is no result
        return f"read to offset {read.position}"
    least = read.tombstones + read.absent
    return f"{report.blank_lines} blank lines for {least} offsets" if report.blank_lines < least else ""


def _lines_fault(report: FileReport, wanted: KafkaRange, read: RangeReport) -> str:
    """Why a range has other lines than one for each offset, and the further ones of values that are lines."""
    further, of_parts = read.further_lines, sum(read.further_by_part)
    if further and report.kafka_values != "lines":
        return f"{further} further lines of values that are one record each"
    if further != of_parts:
        return f"{further} further lines, of which its parts have {of_parts}"
    if report.lines == wanted.offsets + further:  # guard: lines of a range that do not add up are no result
        return ""
    return f"{report.lines} lines for {wanted.offsets} offsets" + (f" and {further} further lines" if further else "")
