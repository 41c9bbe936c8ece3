"""Distributions: percentiles as everybody counts them, and coarse values that stay near the true ones."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.distributions import Distribution, distribution_of

SECONDS = st.floats(min_value=0, max_value=1e12, allow_nan=False)

PERCENTILES = [
    ([5.0], 50, 5.0),
    ([1.0, 2.0, 3.0, 4.0], 50, 2.0),
    ([1.0, 2.0, 3.0, 4.0], 51, 3.0),
    ([1.0] * 99 + [9.0], 99, 1.0),
    ([1.0] * 98 + [9.0] * 2, 99, 9.0),
    ([4.0, 1.0, 1.0], 100, 4.0),
    ([4.0, 1.0, 1.0], 0, 1.0),
]


@pytest.mark.parametrize(("values", "percent", "expected"), PERCENTILES)
def test_percentiles(values: list[float], percent: float, expected: float) -> None:
    """The least value that so many percent do not exceed, each value counted as often as it came."""
    assert distribution_of(values).percentile(percent) == expected


def test_percentile_of_nothing() -> None:
    """Nothing has no percentile."""
    with pytest.raises(ValueError, match="no values"):
        Distribution({}).percentile(50)


@given(st.lists(SECONDS, min_size=1), st.integers(3, 200))
def test_few_enough(values: list[float], most: int) -> None:
    """However many values there are, few enough remain, and every one of them is counted."""
    coarse = distribution_of(values).coarsened(most)
    assert len(coarse.counts) <= most
    assert coarse.total == len(values)


@given(st.lists(st.floats(min_value=1, max_value=86_400 * 30), min_size=1, max_size=2000))
def test_near_enough(values: list[float]) -> None:
    """Of arrivals within a month, no value moves by more than half a second or 8 %, and percentiles no further."""
    exact, coarse = distribution_of(values), distribution_of(values).coarsened(150)
    for percent in (50, 99):
        wanted = exact.percentile(percent)
        assert math.isclose(coarse.percentile(percent), wanted, rel_tol=0.08, abs_tol=0.5)


def test_whole_seconds_where_they_are_few() -> None:
    """Seconds are not made coarser than whole ones without need."""
    assert distribution_of([59.6, 60.4, 61.0]).coarsened(150).counts == {60: 2, 61: 1}
