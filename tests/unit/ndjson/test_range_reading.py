"""Ranges of topics as lines: one for each offset."""

from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.memory.store import MemoryStore
from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileReport, FileStatus, RangeReport
from compactor.core.errors import FileError, StagingError
from compactor.core.kafka.ports import Record
from compactor.core.kafka.ranges import KafkaRange, Topic
from compactor.ndjson.files.range_reading import OpenedRange, RangeLines, open_range, range_fault
from tests.support.memory_kafka import MemoryKafka, MemoryPartition

TOPIC = Topic("main", "events")


def opened(log: MemoryKafka, first: int, end: int, topic_id: str = "one") -> OpenedRange:
    file = ManifestFile(uri=str(KafkaRange(TOPIC, 0, first, end)), size_bytes=1, etag=topic_id)
    return open_range(log, file)


def read(found: OpenedRange) -> bytes:
    with ThreadPoolExecutor(1) as pool:
        return b"".join(found.pieces(MemoryStore(), pool))


def partition_of(log: MemoryKafka) -> MemoryPartition:
    [partition] = log.create(TOPIC, "one")
    return partition


def test_a_line_number_tells_its_offset() -> None:
    """Offsets without a value are empty lines, whatever the reason."""
    log = MemoryKafka(batch=2)
    partition = partition_of(log)
    partition.skip(2)
    partition.append(b"2", None, b"4", b"")
    partition.skip(3)
    partition.append(b"9")
    partition.skip(2)
    found = opened(log, 1, 12)
    assert read(found) == b"\n2\n\n4\n\n\n\n\n9\n\n\n"
    assert found.read == RangeReport(tombstones=1, absent=6, position=12, high_watermark=12)
    assert (found.size_bytes, found.etag) == (14, "one")
    assert read(found) == b"\n2\n\n4\n\n\n\n\n9\n\n\n"  # a second pass


def test_reading_begins_ahead() -> None:
    """What was begun is read on by the first pass, and by it alone."""
    log = MemoryKafka(batch=1)
    partition = partition_of(log)
    partition.append(b"0", b"1")
    found = opened(log, 0, 2)
    with ThreadPoolExecutor(1) as pool:
        found.begin(pool)
        pool.submit(lambda: None).result()
        partition.remove_before(2)
        assert b"".join(found.pieces(MemoryStore(), pool)) == b"0\n1\n"
        with pytest.raises(FileError, match="offsets 0 to 1 were removed"):
            b"".join(found.pieces(MemoryStore(), pool))


def test_a_value_of_several_lines_is_one_line() -> None:
    """A carriage return is the same to JSON as the line feed, within strings and without."""
    log = MemoryKafka()
    partition_of(log).append(b'{"a":\n1}\n', b'{"a": "x\ny"}')
    assert read(opened(log, 0, 2)) == b'{"a":\r1}\r\n{"a": "x\ry"}\n'


@pytest.mark.parametrize("first", [0, 1])
def test_no_record_has_a_byte_order_mark(first: int) -> None:
    """Else one would be a row as the first of a range, and a reject as any other."""
    log = MemoryKafka(batch=1)
    partition_of(log).append(b"{}", b"\xef\xbb\xbf{}")
    assert read(opened(log, first, 2)).split(b"\n")[-2].strip() == b"\xef\xbb\xbf{}"
    assert not read(opened(log, 1, 2)).startswith(b"\xef\xbb\xbf")


def test_what_is_gone_is_told() -> None:
    """Removed records, and a topic of the same name."""
    log = MemoryKafka()
    partition = partition_of(log)
    partition.append(*[b"{}"] * 10)
    partition.remove_before(4)
    with pytest.raises(FileError, match="offsets 2 to 3 were removed"):
        read(opened(log, 2, 10))
    assert read(opened(log, 4, 10)) == b"{}\n" * 6
    log.create(TOPIC, "two")[0].append(*[b"{}"] * 10)
    with pytest.raises(FileError) as raised:
        read(opened(log, 4, 10))
    assert raised.value.status == FileStatus.MISSING


@pytest.mark.parametrize(
    "records", [[Record(4, b"")], [Record(10, b"")], [Record(6, b"")] * 2, [Record(at, b"") for at in range(5, 11)]]
)
def test_records_that_no_broker_delivers(records: list[Record]) -> None:
    """Those of another range, and one twice."""
    with pytest.raises(StagingError, match="got offset"):
        RangeLines(KafkaRange(TOPIC, 0, 5, 10)).of(records)


@given(st.lists(st.one_of(st.none(), st.just(0), st.binary(max_size=5)), min_size=1, max_size=30), st.integers(1, 7))
def test_each_offset_has_its_line(offsets: list[bytes | int | None], batch: int) -> None:
    """With any values, gaps (0) and tombstones, read in any pieces."""
    log = MemoryKafka(batch=batch)
    partition = partition_of(log)
    for each in offsets:
        partition.skip() if isinstance(each, int) else partition.append(each)
    found = opened(log, 0, len(offsets))
    lines = read(found).split(b"\n")
    assert lines.pop() == b""
    expected = [each.replace(b"\n", b"\r") if isinstance(each, bytes) else b"" for each in offsets]
    assert [line.removeprefix(b" ") for line in lines] == [each.removeprefix(b" ") for each in expected]
    assert found.read is not None
    assert (found.read.tombstones, found.read.absent) == (offsets.count(None), offsets.count(0))


def report(**changed: object) -> FileReport:
    found = {"uri": str(KafkaRange(TOPIC, 0, 5, 15)), "status": FileStatus.COMPACTED, "lines": 10, "blank_lines": 3}
    read = RangeReport(tombstones=1, absent=2, position=15, high_watermark=20)
    return FileReport.model_validate({**found, "kafka": read, **changed})


def test_a_report_adds_up() -> None:
    """A line for each offset, the end reached, and no more without a value than blank lines."""
    assert range_fault(report()) == ""
    assert range_fault(report(uri="s3://b/k", kafka=None)) == ""
    assert range_fault(report(status=FileStatus.MISSING, kafka=None)) == ""
    assert range_fault(report(kafka=None)) == "no proof of its end"
    assert range_fault(report(lines=9)) == "9 lines for 10 offsets"
    assert range_fault(report(blank_lines=2)) == "2 blank lines for 3 offsets"
    cut_off = RangeReport(tombstones=1, absent=2, position=14, high_watermark=20)
    assert range_fault(report(kafka=cut_off)) == "read to offset 14"
    further = RangeReport(tombstones=0, absent=0, position=15, high_watermark=15, further_lines=2, further_by_part=(2,))
    assert range_fault(report(kafka=further, kafka_values="lines", lines=12)) == ""
    assert range_fault(report(kafka=further, kafka_values="lines")) == "10 lines for 10 offsets and 2 further lines"
    other = further.model_copy(update={"further_by_part": (1,)})
    fault = range_fault(report(kafka=other, kafka_values="lines", lines=12))
    assert fault == "2 further lines, of which its parts have 1"
    assert range_fault(report(kafka=further, lines=12)) == "2 further lines of values that are one record each"


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=20), st.integers(1, 7))
def test_values_that_are_lines(values: list[bytes], batch: int) -> None:
    """Each value has the lines that a file of its bytes has, and one if it is empty; each gets what its record has."""
    log = MemoryKafka(batch=batch)
    partition_of(log).append(*values)
    uri = str(KafkaRange(TOPIC, 0, 0, len(values)))
    file = ManifestFile(uri=uri, size_bytes=1, etag="one", record_columns=("offset",), kafka_values="lines")
    found = open_range(log, file)
    lines = read(found)
    expected = [(line, at) for at, value in enumerate(values) for line in value.removesuffix(b"\n").split(b"\n")]
    assert [line.removeprefix(b" ") for line in lines.split(b"\n")[:-1]] == [
        each.removeprefix(b" ") for each, _ in expected
    ]
    assert found.read is not None
    assert found.read.further_lines == len(expected) - len(values)
    assert found.values is not None
    fields = [found.values.of_line(number) for number in range(len(expected))]
    told = [orjson.loads(b"{%b}" % each)["_kafka_offset"] for each in fields if each is not None]
    assert told == [at for _, at in expected]
