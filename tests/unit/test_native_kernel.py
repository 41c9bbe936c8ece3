"""The kernel in Rust: it takes the lines that inspection takes, and the values that they hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native_rows import by_inspection, by_kernel, schema_of
from tests.torture_lines import BAD_LINES, DEEP_LINES, FRAGMENTS, GOOD_LINES, mutated

pytest.importorskip("compactor_native", reason="the native kernel is not installed: no cargo")


SOUP = st.one_of(st.binary(max_size=120), st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(b"".join))


def check(data: bytes, *, block_bytes: int = 1 << 20) -> None:
    expected = by_inspection(data)
    first = by_kernel(data, schema_of({}), block_bytes=block_bytes)
    assert first.rejects == expected.rejects
    assert first.keys == expected.keys
    if expected.keys:
        assert (
            by_kernel(data, schema_of(dict.fromkeys(expected.keys, "string")), block_bytes=block_bytes).rows
            == expected.rows
        )


@given(SOUP, st.integers(1, 60))
def test_any_bytes_are_taken_as_inspection_takes_them(data, block_bytes):
    """Rows, rejects, line numbers, offsets, reasons and the order of keys are the same for any bytes."""
    check(data, block_bytes=block_bytes)


@given(st.lists(mutated(), min_size=1, max_size=30).map(b"\n".join))
def test_lines_that_are_nearly_records_are_taken_as_inspection_takes_them(data):
    """A byte more, less or other: both see the same."""
    check(data)


def test_torture_lines_are_taken_as_inspection_takes_them():
    """All at once, so that each is read with the expectations that the others left; and each alone."""
    lines = [*GOOD_LINES, *(line for line, _ in BAD_LINES), *DEEP_LINES, *GOOD_LINES]
    check(b"\n".join(lines))
    for line in lines:
        check(line)
