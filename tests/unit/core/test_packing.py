"""Dividing and grouping: nothing is lost, nothing is doubled, the order stays."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from compactor.core.rules.packing import spread
from compactor.sources.packing import cut, layered

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
def test_cut(items: list[int], target: int) -> None:
    """The runs and the rest are the items in their order; each run ends where it is closest to the target."""
    runs, rest = cut(items, target, lambda item: item)
    assert [item for run in [*runs, rest] for item in run] == items
    assert all(runs)
    assert sum(rest) < target
    for run, following in itertools.pairwise([*runs, rest] if rest else runs):
        total = sum(run)
        with_next, without_last = total + following[0], total - run[-1]
        assert following[0] >= target or abs(total - target) <= abs(with_next - target)
        assert len(run) == 1 or abs(total - target) <= abs(without_last - target)
        assert len(run) == 1 or max(run) < target


def test_cut_by_example() -> None:
    """A run is closed by the item that brings it closest; what is as heavy as the target stands alone."""
    assert cut([4, 4, 4, 50, 1, 9], 10, lambda item: item) == ([[4, 4, 4], [50], [1, 9]], [])
    assert cut([5, 4, 9], 10, lambda item: item) == ([[5, 4]], [9])
    assert cut([50, 1], 10, lambda item: item) == ([[50]], [1])
    assert cut([1, 12, 1], 10, lambda item: item) == ([[1], [12]], [1])


@given(items=st.lists(st.sets(st.sampled_from("abcd"), min_size=1), max_size=20))
def test_layered(items: list[set[str]]) -> None:
    """Every item is in one layer, in order, and no name comes twice in a layer."""
    layers = layered(list(enumerate(items)), lambda item: item[1])
    assert sorted(number for layer in layers for number, _ in layer) == list(range(len(items)))
    for layer in layers:
        assert layer == sorted(layer, key=lambda item: item[0])
        names = [name for _, own in layer for name in own]
        assert len(names) == len(set(names))
