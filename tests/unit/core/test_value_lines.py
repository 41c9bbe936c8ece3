"""Which lines the offsets of a range have, if its values are lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.kafka.ports import Record
from compactor.core.kafka.ranges import KafkaRange, Topic
from compactor.core.kafka.value_lines import MAX_PARTS, ValueLines, further_lines, part_offsets
from compactor.ndjson.files.range_reading import RangeLines


def of(offsets: int, first: int = 100) -> KafkaRange:
    return KafkaRange(Topic("main", "events"), 0, first, first + offsets)


@pytest.mark.parametrize(
    ("value", "expected"), [(b"", 0), (b"a", 0), (b"a\n", 0), (b"\n", 0), (b"a\nb", 1), (b"a\n\nb\n", 2), (b"\n\n", 1)]
)
def test_lines_of_a_value(value: bytes, expected: int) -> None:
    """As a file of these bytes has, and one where that has none."""
    assert further_lines(value) == expected
    lines = RangeLines(of(1), has_lines=True)
    assert lines.of([Record(100, value)]).count(b"\n") == expected + 1


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 9))
def test_no_line_is_given_to_another_offset(further: list[int], part: int) -> None:
    """Both ways, for parts of any length; exactly where it is said to be exact."""
    wanted = of(len(further))
    lines = ValueLines(wanted, part, [sum(further[at : at + part]) for at in range(0, len(further), part)])
    line = 1
    for offset, more in enumerate(further, wanted.first):
        first, last = lines.lines_of(offset)
        assert first <= line <= line + more <= last
        if part == 1 or lines.is_exact(offset):
            assert lines.is_exact(offset)
            assert (first, last) == (line, line + more)
        for each in range(line, line + more + 1):
            low, high = lines.offsets_of(each)
            assert low <= offset <= high
            assert part > 1 or low == high
        line += more + 1


def test_ranges_without_further_lines_are_exact() -> None:
    """Line n is the offset n - 1 behind the first."""
    lines = ValueLines(of(5_000))
    assert (lines.lines_of(1_100), lines.offsets_of(1_001), lines.is_exact(1_100)) == (
        (1_001, 1_001),
        (1_100, 1_100),
        True,
    )


def test_the_report_on_a_range_is_bounded() -> None:
    """However many offsets it has; a part says how many further lines its offsets have together."""
    wanted = of(MAX_PARTS * 2 + 1)
    lines = RangeLines(wanted, has_lines=True)
    lines.of([Record(offset, b"{}\n{}\n{}") for offset in range(wanted.first, wanted.end)])
    assert part_offsets(wanted) == 3
    assert lines.further.total() == 2 * wanted.offsets
    assert len(lines.further) <= MAX_PARTS
