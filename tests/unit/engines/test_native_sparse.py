"""Rows with few of many keys in the kernel in Rust: it counts long runs of nulls, and no reader sees a difference."""

import io
import random
from collections.abc import Sequence

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.local.native.kernel import NativeKernel
from compactor.schema.schema import COUNTED_KEYS, KeyLimits
from tests.support import extras
from tests.support.native_rows import by_inspection, ended, feed, parquet_rows, plan_of, schema_of

extras.NATIVE.need()

RUN = 32
"""Nulls that are counted; fewer are stored: `MIN_RUN` of the kernel."""

MAX_NULLS = 16 * 1024
"""Nulls that are written at once: `MAX_NULLS` of the kernel."""

EMPTY = b"{}\n"

VALUES = {
    "string": b'"x"',
    "long": b"-7",
    "double": b"2.5",
    "decimal(30,2)": b"1.25",
    "boolean": b"true",
    "date": b'"2026-01-02"',
    "timestamp": b'"2026-01-02T03:04:05Z"',
}
"""A value of each type, as it stands in a line."""


def written(schema, *files: bytes, rescues: bool = False) -> bytes:
    """One Parquet file with the rows of all files."""
    kernel = NativeKernel(plan_of(schema, rescues=rescues))
    for number, data in enumerate(files):
        kernel.begin_file(f"file {number}")
        feed(kernel, data)
        kernel.end_file()
    return ended(kernel)


def values_of(data: bytes, name: str = "c0") -> dict[int, object]:
    """The values of a column by row."""
    values = pq.read_table(io.BytesIO(data), columns=[name]).column(name).to_pylist()
    return {row: value for row, value in enumerate(values) if value is not None}


@pytest.mark.parametrize("before", [0, 1, RUN - 1, RUN, RUN + 1, MAX_NULLS - 1, MAX_NULLS, 2 * MAX_NULLS + 1])
@pytest.mark.parametrize("behind", [0, 1, RUN, MAX_NULLS + 1])
def test_a_value_stands_in_its_row(before, behind):
    """Whether what is before and behind it is stored, is a run, or is more than is written at once."""
    data = written(schema_of({"late": "string"}), EMPTY * before + b'{"late":1}\n{"late":2}\n' + EMPTY * behind)
    assert pq.read_metadata(io.BytesIO(data)).num_rows == before + 2 + behind
    assert values_of(data) == {before: "1", before + 1: "2"}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_each_type_stand_in_their_rows(kind):
    """Between runs of any length; with a misfit at the end of a run, which is rescued."""
    schema = schema_of({"v": kind, "other": "string"}, rescued=True)
    value = b'{"v":%s}\n' % VALUES[kind]
    lines = EMPTY * 5 + value + EMPTY * (RUN + 3) + b'{"v":[1]}\n' + EMPTY * RUN * 3 + value * 2 + EMPTY * RUN
    rows = parquet_rows(written(schema, lines), schema)
    assert len(rows) == lines.count(b"\n")
    (first,) = rows[5].values()
    assert {number: row for number, row in enumerate(rows) if row} == {
        5: {"v": first},
        RUN + 9: {"v": "[1]"},
        RUN * 4 + 10: {"v": first},
        RUN * 4 + 11: {"v": first},
    }
    misfit = dict(values_of(written(schema, lines), "_rescued_data"))
    assert misfit == ({} if kind == "string" else {RUN + 9: [("v", "[1]")]})


@pytest.mark.parametrize("kind", VALUES)
def test_a_column_without_a_value_is_nulls_in_each_row(kind):
    """Its statistics count them, and it has neither a minimum nor a maximum; so has one with a value have its own."""
    data = written(schema_of({"a": "string", "none": kind}), EMPTY * RUN * 2, b'{"a":1}\n' + EMPTY * RUN)
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    with_value, without = group.column(0), group.column(1)
    assert (with_value.num_values, without.num_values) == (RUN * 3 + 1, RUN * 3 + 1)
    assert (with_value.statistics.null_count, without.statistics.null_count) == (RUN * 3, RUN * 3 + 1)
    assert (with_value.statistics.min, with_value.statistics.max) == ("1", "1")
    assert not without.statistics.has_min_max
    assert values_of(data, "c1") == {}


def test_a_column_may_be_absent_over_many_row_groups():
    """Each has as many nulls as rows, until a value comes late in the last one."""
    chance = random.Random(1)
    schema = schema_of({"text": "string", "late": "long"})
    kernel = NativeKernel(plan_of(schema))
    kernel.begin_file("long")
    parts, rows = [], 0
    for _ in range(75):
        lines = [b'{"text":"%s"}\n' % chance.randbytes(500_000).hex().encode(), EMPTY * RUN]
        feed(kernel, b"".join(lines))
        parts.append(kernel.take())
        rows += 1 + RUN
    feed(kernel, b'{"late":5}\n')
    kernel.end_file()
    data = b"".join(parts) + ended(kernel)
    metadata = pq.read_metadata(io.BytesIO(data))
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    assert len(groups) >= 2
    nulls = [group.column(1).statistics.null_count for group in groups]
    assert nulls == [*[group.num_rows for group in groups[:-1]], groups[-1].num_rows - 1]
    assert values_of(data, "c1") == {rows: 5}


@pytest.mark.parametrize("lines", [1, RUN - 1, RUN, RUN * 3])
def test_a_withdrawn_file_leaves_no_run_behind(lines):
    """Whether its values begin, cut, end or follow a run of the file before."""
    schema = schema_of({"a": "string", "n": "long", "b": "string"})
    first = EMPTY * RUN + b'{"a":1}\n' + EMPTY * lines
    bad = EMPTY * lines + b'{"n":1,"b":2}\n' + EMPTY * RUN + b'{"a":3}\n'
    last = EMPTY * lines + b'{"n":4,"b":"5"}\n'
    kernel = NativeKernel(plan_of(schema))
    for data, is_good in ((bad, False), (first, True), (bad, False), (bad, False), (last, True), (bad, False)):
        kernel.begin_file("file")
        feed(kernel, data)
        assert kernel.end_file() == ([], False) if is_good else kernel.withdraw_file()
    assert ended(kernel) == written(schema, first, last)


def test_a_row_of_which_only_a_part_was_set_leaves_nothing_behind():
    """A key too many ends the building of rows in the middle of one; without the file, rows go on."""
    schema = schema_of({"a": "string", "n": "long", "b": "boolean"})
    limits = KeyLimits(max_new_columns=1 - COUNTED_KEYS, max_key_characters=9)
    good = [b'{"a":1}\n' + EMPTY * RUN * 2, EMPTY * RUN + b'{"a":2,"n":3,"b":true}\n']
    half = [EMPTY * at + b'{"n":9,"a":"lost","new":1,"newer":2,"b":false}\n' for at in (0, 1, RUN, RUN * 2)]
    kernel = NativeKernel(plan_of(schema, key_limits=limits))
    for data in (good[0], *half, good[1]):
        kernel.begin_file("file")
        feed(kernel, data)
        assert kernel.lacks_columns == (data in half)
        if kernel.lacks_columns:
            assert kernel.withdraw_file()
        else:
            kernel.end_file()
    assert ended(kernel) == written(schema, *good)


def test_what_a_later_field_takes_back_leaves_the_run_as_it_was():
    """A null behind a value of the same key, at the end of a run, in it, and behind it."""
    schema = schema_of({"a": "string", "n": "long"})
    taken_back = b'{"a":1,"n":1,"a":null,"n":null}\n'
    lines = taken_back + EMPTY * RUN + taken_back + EMPTY + taken_back + b'{"a":2,"n":5,"a":3}\n' + taken_back
    data = written(schema, lines + EMPTY * RUN + taken_back)
    assert (values_of(data), values_of(data, "c1")) == ({RUN + 4: "3"}, {RUN + 4: 5})


def test_rows_take_no_room_in_columns_that_they_seldom_mention():
    """They are held back for their length alone; where nulls of numbers are stored, each takes the room of a value."""
    decimals = {f"k{number}": "decimal(38,0)" for number in range(2_000)}
    mixed = decimals | {f"k{number}": "string" for number in range(0, 2_000, 2)}
    strings = dict.fromkeys(decimals, "string")
    seldom = [b'{"k%d":1,"k%d":2}\n' % (number % 2_000, number * 7 % 2_000) for number in range(10_000)]
    often = [
        b"{%s}\n" % b",".join(b'"k%d":1' % ((number * 80 + at) % 2_000) for at in range(80)) for number in range(2_500)
    ]
    for columns, lines, is_held in (
        (mixed, seldom, True),
        (decimals, often, False),
        (strings, often, True),
    ):
        kernel = NativeKernel(plan_of(schema_of(columns)))
        kernel.begin_file("sparse")
        feed(kernel, b"".join(lines))
        assert kernel.withdraw_file() == is_held


def test_rows_without_any_key_are_handed_on_at_last():
    """There is a bound of rows, whatever they hold."""
    kernel = NativeKernel(plan_of(schema_of({"a": "string"})))
    kernel.begin_file("empty")
    feed(kernel, EMPTY * 4_500_000)
    assert not kernel.withdraw_file()


GAPS = st.one_of(st.integers(0, 3), st.sampled_from([RUN - 1, RUN, RUN + 1]), st.integers(0, 3 * RUN))
FIELDS = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from([b"1", b"null", b'"\\u00e9"', b"[1, 2]", b'"x"', b"{}"])), max_size=4
)
FILES = st.lists(
    st.tuples(st.lists(st.tuples(GAPS, FIELDS), max_size=8), st.sampled_from(["end", "end", "withdraw", "finish"])),
    min_size=1,
    max_size=5,
)


def lines_of(rows: Sequence[tuple[int, Sequence[tuple[int, bytes]]]]) -> bytes:
    """Lines with the fields of each row, each behind so many lines without a field."""
    fields = ((gap, b",".join(b'"k%d":%s' % field for field in found)) for gap, found in rows)
    return b"".join(EMPTY * gap + b"{%s}\n" % line for gap, line in fields)


@given(FILES, st.sampled_from([1 << 24, 2_000, 300]))
def test_any_sparse_rows_are_taken_as_inspection_takes_them(files, held_bytes):
    """Of files that end, are withdrawn, or end an output, in batches of any length."""
    schema = schema_of({f"k{number}": "string" for number in range(60)}, rescued=True)
    kernel = NativeKernel(plan_of(schema, rescues=True, held_bytes=held_bytes))
    expected, outputs = [], []
    for number, (rows, ends_by) in enumerate(files):
        kernel.begin_file(f"file {number}")
        data = lines_of(rows)
        feed(kernel, data)
        if ends_by == "withdraw" and kernel.withdraw_file():
            continue
        expected += by_inspection(data).rows
        kernel.end_file()
        if ends_by == "finish":
            outputs.append(ended(kernel))
    outputs.append(ended(kernel))
    assert [row for data in outputs for row in parquet_rows(data, schema)] == expected
