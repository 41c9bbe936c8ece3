"""What the kernel in Rust writes beside the rows: minima and maxima by which readers skip, and checksums."""

import io
import math
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.adapters.local.native.kernel import NativeKernel
from tests.support import extras
from tests.support.native_rows import ended, feed, plan_of, schema_of

extras.NATIVE.need()


def written(kind: str, *values: str) -> bytes:
    """A Parquet file with one column of a type."""
    kernel = NativeKernel(plan_of(schema_of({"v": kind})))
    kernel.begin_file("file")
    feed(kernel, b"".join(b'{"v": %s}\n' % value.encode() for value in values))
    kernel.end_file()
    return ended(kernel)


def statistics_of(data: bytes) -> pq.Statistics:
    return pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).statistics


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        (("1.5", "-2.25", "null"), (-2.25, 1.5)),
        (("1e308", "5e-324"), (5e-324, 1e308)),
        (("0.0", "3"), (-0.0, 3.0)),
        (("-0.0", "-3"), (-3.0, 0.0)),
        (("-0.0", "0.0"), (-0.0, 0.0)),
    ],
)
def test_bounds_of_doubles_are_in_the_order_that_readers_know(values, bounds):
    """Readers ignore bounds in an order of columns that they do not know. Both zeros are equal in this one."""
    found = statistics_of(written("double", *values))
    assert found.has_min_max
    assert (found.min, found.max) == bounds
    assert [math.copysign(1, each) for each in (found.min, found.max)] == [math.copysign(1, each) for each in bounds]


def test_a_column_without_doubles_has_no_bounds():
    """Nulls, and what is none (NaN is no number of JSON), are in no bounds."""
    data = written("double", "null", '"NaN"', "1e999")
    assert not statistics_of(data).has_min_max
    assert statistics_of(data).null_count == 3


@pytest.mark.parametrize(
    ("kind", "values", "bounds"),
    [
        ("long", ("3", "-4"), (-4, 3)),
        ("string", ('"a"', '"b"'), ("a", "b")),
        ("boolean", ("true", "false"), (False, True)),
    ],
)
def test_bounds_of_other_types_are_known_beside_doubles(kind, values, bounds):
    """The order of each column is declared, however many there are."""
    assert (statistics_of(written(kind, *values)).min, statistics_of(written(kind, *values)).max) == bounds
    columns = {f"d{number}": "double" for number in range(20)} | {"v": kind}
    kernel = NativeKernel(plan_of(schema_of(columns)))
    kernel.begin_file("file")
    feed(kernel, b"".join(b'{"v": %s, "d19": 7}\n' % value.encode() for value in values))
    kernel.end_file()
    group = pq.ParquetFile(io.BytesIO(ended(kernel))).metadata.row_group(0)
    assert (group.column(20).statistics.min, group.column(20).statistics.max) == bounds
    assert (group.column(19).statistics.min, group.column(19).statistics.max) == (7.0, 7.0)


@pytest.mark.parametrize("last", ["\U0010ffff", "\uffff", "\x7f", "~", "\U0010ffff\uffff\x7f"])
def test_a_footer_is_small_whatever_the_values_are(last):
    """Long values of which no character can be counted up have no maximum; what is known of them stays."""
    data = written("string", f'"{last * 100_000}"', "null")
    file = pq.ParquetFile(io.BytesIO(data))
    assert file.metadata.serialized_size < 2_000
    statistics = file.metadata.row_group(0).column(0).statistics
    assert statistics.null_count == 1
    assert file.read().column(0).to_pylist() == [last * 100_000, None]


EVERY_KIND = (
    ("string", lambda number: f'"{number % 500} of few"'),
    ("string", lambda number: f'"{number:x} of many"'),
    ("long", str),
    ("double", lambda number: f"{number / 4}"),
    ("decimal(9,2)", lambda number: f"{number}.25"),
    ("boolean", lambda number: "true" if number % 3 else "false"),
    ("date", lambda number: f'"2026-01-{number % 28 + 1:02}"'),
    ("timestamp", lambda number: f'"2026-01-01T00:{number % 60:02}:00Z"'),
    ("long", lambda number: f'"rescued {number}"'),
)
"""The type of each column, and the JSON of its value in a row."""


def every_kind(rows: int) -> bytes:
    """A Parquet file with a column of each kind, and rescued data."""
    kernel = NativeKernel(plan_of(schema_of({f"k{number}": kind for number, (kind, _) in enumerate(EVERY_KIND)})))
    kernel.begin_file("file")
    values = [value for _, value in EVERY_KIND]
    lines = (",".join(f'"k{number}":{value(row)}' for number, value in enumerate(values)) for row in range(rows))
    feed(kernel, "".join(f"{{{line}}}\n" for line in lines).encode())
    kernel.end_file()
    return ended(kernel)


def test_each_column_has_an_index_of_its_pages():
    """Readers skip pages by it. One of texts in maps would consist of whole texts."""
    group = pq.ParquetFile(io.BytesIO(every_kind(25_000))).metadata.row_group(0)
    for number in range(group.num_columns):
        column = group.column(number)
        is_in_map = "." in column.path_in_schema
        assert (column.has_offset_index, column.has_column_index) == (True, not is_in_map), column.path_in_schema


def test_a_flipped_bit_is_noticed():
    """Each page has the checksum of its bytes: readers that check them never give other values."""
    data, drawn = every_kind(3_000), random.Random(5)
    file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
    expected, group = file.read(), file.metadata.row_group(0)
    for number in range(group.num_columns):
        column = group.column(number)
        start = column.dictionary_page_offset or column.data_page_offset
        noticed = 0
        for _ in range(30):
            damaged = bytearray(data)
            damaged[drawn.randrange(start, start + column.total_compressed_size)] ^= 1 << drawn.randrange(8)
            try:
                found = pq.ParquetFile(io.BytesIO(damaged), page_checksum_verification=True).read()
            except (OSError, pa.ArrowInvalid):
                noticed += 1
            else:  # only a bit of a header that says nothing about values
                assert found.equals(expected)
        assert noticed > 20, column.path_in_schema
