"""Lines of the records of a shard."""

import gzip
import tracemalloc
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.logs.aggregation import MAGIC
from compactor.core.logs.ports import LAST_HASH, LogRecord, Partition
from compactor.ndjson.codecs import sniff
from compactor.sources.landing.lines import RecordLines, ShardLines
from tests.support.kpl import aggregated

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def lines_of(*values: bytes, shard: Partition = Partition("one"), drop: bool = False) -> RecordLines:  # noqa: B008 - frozen
    found = ShardLines(shard=shard, stray_rule="drop" if drop else "keep")
    found.add(LogRecord(number, value, NOW) for number, value in enumerate(values, 1))
    return found


def text_of(lines: RecordLines) -> bytes:
    """What an object with these lines holds."""
    with pa.input_stream(pa.BufferReader(lines.to_bytes()), compression="zstd") as stream:
        return bytes(stream.read())


@given(st.lists(st.binary(max_size=60)))
def test_each_record_is_one_line(values: list[bytes]) -> None:
    """Whatever is in it; line feeds become carriage returns, and empty records blank lines."""
    found = lines_of(*values)
    expected = b"".join(value.replace(b"\n", b"\r") + b"\n" for value in values)
    assert text_of(found) in {expected, b" " + expected}
    assert (found.lines, found.records, found.length_bytes) == (
        len(values),
        len(values),
        sum(map(len, values)) + len(values),
    )
    assert sniff(found.to_bytes()) == "zstd"


@pytest.mark.parametrize(
    ("value", "before"),
    [(gzip.compress(b"{}", mtime=0), b""), (b"\x28\xb5\x2f\xfd0", b""), (b"\xef\xbb\xbf{}", b" ")],
    ids=["gzip", "zstd", "bom"],
)
def test_a_first_record_that_looks_like_the_start_of_a_file(value: bytes, before: bytes) -> None:
    """Within the compressed object only a byte order mark could be taken for one. Further records need no change."""
    assert text_of(lines_of(value, b"{}")) == before + value.replace(b"\n", b"\r") + b"\n{}\n"
    assert text_of(lines_of(b"{}", value)).startswith(b"{}\n")


def test_packed_records_are_lines_of_their_own() -> None:
    """One that does not check out is a line as it is."""
    packed = aggregated([("a", b"1"), ("b", b"2\n"), ("a", b"")])
    found = lines_of(b"0", packed, MAGIC + b"nonsense", b"9")
    assert text_of(found) == b"0\n1\n2\r\n\n" + MAGIC + b"nonsense\n9\n"
    assert (found.lines, found.records, found.strays) == (6, 4, 0)


def test_strays() -> None:
    """Packed records of other shards are kept, or left out with all that are packed with them."""
    half = Partition("low", last_hash=LAST_HASH // 2)
    inside = aggregated([("a", b"1"), ("a", b"2")], hashes=[0, LAST_HASH // 2])
    across = aggregated([("a", b"3"), ("a", b"4")], hashes=[0, LAST_HASH // 2 + 1])
    kept = lines_of(inside, across, shard=half)
    assert (kept.lines, kept.strays) == (4, 0)
    dropped = lines_of(inside, across, shard=half, drop=True)
    assert (text_of(dropped), dropped.strays, dropped.records) == (b"1\n2\n", 2, 2)


def test_many_short_lines_take_no_more_memory_than_they_have_bytes() -> None:
    """As a producer can pack over a hundred thousand of them into one record."""
    data = aggregated([("k", b"%d" % number) for number in range(10_000)])
    lines_of(data)
    tracemalloc.start()
    found = lines_of(data)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.lines == 10_000
    assert held < 2 * found.length_bytes
