"""Dividing and grouping: nothing is lost, nothing is doubled, the order stays."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from compactor.packing import fill, spread

ITEMS = st.lists(st.integers(0, 1000), max_size=60)


@given(items=ITEMS, takers=st.integers(1, 20))
def test_spread(items: list[int], takers: int) -> None:
    """Every item is in exactly one share, shares keep the order, and no share is empty or far too heavy."""
    numbered = list(enumerate(items))
    shares = spread(numbered, takers, lambda item: item[1])
    assert sorted(item for share in shares for item in share) == numbered
    assert all(share == sorted(share) and share for share in shares)
    assert len(shares) == min(takers, len(items))
    if shares:
        loads = [sum(max(1, weight) for _, weight in share) for share in shares]
        assert max(loads) <= sum(loads) / len(shares) + max(*items, 1)


@given(items=ITEMS, target=st.integers(1, 500))
def test_fill(items: list[int], target: int) -> None:
    """The runs are the items in their order, none empty; each but the last ends where it is closest to the target."""
    runs = fill(items, target, lambda item: item)
    assert [item for run in runs for item in run] == items
    assert all(runs)
    for run, following in itertools.pairwise(runs):
        total = sum(run)
        with_next, without_last = total + following[0], total - run[-1]
        assert abs(total - target) <= abs(with_next - target)
        assert len(run) == 1 or abs(total - target) <= abs(without_last - target)


def test_fill_by_example() -> None:
    """A run is closed by the item that brings it closest; what is heavier than the target stands alone."""
    assert fill([4, 4, 4, 50, 1, 9], 10, lambda item: item) == [[4, 4, 4], [50], [1, 9]]
    assert fill([5, 4, 9], 10, lambda item: item) == [[5, 4], [9]]
    assert fill([50, 1], 10, lambda item: item) == [[50], [1]]
