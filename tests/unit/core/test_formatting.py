"""Numbers as people read them: the words at each border between units."""

import pytest

from compactor.core.text.formatting import by_name, count, dollars, duration, percent, rate, shown_seconds, size


@pytest.mark.parametrize(
    ("seconds", "shown", "whole"),
    [
        (0, "0.0 s", "0 s"),
        (0.04, "0.0 s", "0 s"),
        (9.44, "9.4 s", "9 s"),
        (59.4, "59 s", "59 s"),
        (59.6, "1 min", "1 min"),
        (125, "2 min 5 s", "2 min 5 s"),
        (3599.6, "1 h", "1 h"),
        (5_459, "1 h 30 min", "1 h 30 min"),
        (86_400, "24 h", "24 h"),
        (90_000, "1 d 1 h", "1 d 1 h"),
    ],
)
def test_times(seconds: float, shown: str, whole: str) -> None:
    """Two units that say something; what is short has a tenth where it was measured, and none where it is an age."""
    assert (duration(seconds), shown_seconds(seconds)) == (shown, whole)


def test_clocks_that_differ() -> None:
    """An age is never below nothing."""
    assert shown_seconds(-5) == "0 s"


@pytest.mark.parametrize(
    ("length_bytes", "shown"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (45_200_000, "45.2 MB"), (2.5e12, "2.5 TB")],
)
def test_bytes(length_bytes: float, shown: str) -> None:
    """Bytes and rates in the decimal unit that fits: a slow rate is not shown as none."""
    assert (size(length_bytes), rate(10 * length_bytes, 10)) == (shown, f"{shown}/s")


def test_rate_at_its_ends() -> None:
    """What took no time has no rate; a little in a long time is not nothing."""
    assert [rate(5, 0), rate(574, 86_400), rate(0, 5)] == ["\N{EN DASH}", "under 1 byte/s", "0 bytes/s"]


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 0, "\N{EN DASH}"),
        (0, 5, "0.0 %"),
        (1, 20_000, "under 0.01 %"),
        (1, 1_000, "0.10 %"),
        (1, 8, "12.5 %"),
        (2_999, 3_000, "over 99.9 %"),
        (3, 3, "100.0 %"),
    ],
)
def test_shares(part: float, whole: float, shown: str) -> None:
    """What is little is not shown as nothing, and what is nearly all not as all."""
    assert percent(part, whole) == shown


def test_counts() -> None:
    """One thing and several; the most frequent first, without those of which there are none."""
    assert (count(1, "file"), count(2_000, "file"), count(2, "query", "queries")) == (
        "1 file",
        "2,000 files",
        "2 queries",
    )
    assert by_name({"b": 1, "a": 1, "c": 2, "d": 0}) == "2 c, 1 a, 1 b"


def test_dollars() -> None:
    """Less than a cent keeps two digits."""
    assert [dollars(each) for each in (0, 0.00123, 0.01, 1234.5)] == ["$0.00", "$0.0012", "$0.01", "$1,234.50"]
