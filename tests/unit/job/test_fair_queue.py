"""Queues of several shares: none waits for more than the turns of the others."""

from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.rules.shares import Share
from compactor.job.lanes import FairQueue

SHARES = st.lists(st.builds(Share, st.integers(0, 3), st.sampled_from("abc")), max_size=40)


@given(SHARES)
def test_turns(shares: list[Share]) -> None:
    """Everything comes once; in a share in order; and between two turns of a share others have one turn each."""
    queue: FairQueue[int] = FairQueue()
    for number, share in enumerate(shares):
        queue.push(number, share)
    assert sorted(queue) == list(range(len(shares)))
    order = [queue.pop() for _ in range(len(queue))]
    by_class, by_share = defaultdict(list), defaultdict(list)
    for turn, number in enumerate(order):
        by_class[shares[number].size_class].append(turn)
        by_share[shares[number]].append(number)
    assert sorted(order) == list(range(len(shares)))
    assert all(numbers == sorted(numbers) for numbers in by_share.values())
    for turns in by_class.values():
        assert all(after - before <= len(by_class) for before, after in pairwise(turns))
    for size_class, turns in by_class.items():
        sources = [shares[order[turn]].source for turn in turns]
        for source in set(sources):
            places = [place for place, each in enumerate(sources) if each == source]
            assert all(b - a <= len(set(sources)) for a, b in pairwise(places)), size_class


def test_the_newest_first() -> None:
    """The newest of the share whose turn it is."""
    queue: FairQueue[str] = FairQueue()
    for item, share in (("a1", Share(1)), ("a2", Share(1)), ("b1", Share(2))):
        queue.push(item, share)
    assert [queue.pop(newest=True) for _ in range(3)] == ["a2", "b1", "a1"]


def test_nothing_left() -> None:
    """An empty queue has no next item, however it was emptied."""
    queue: FairQueue[str] = FairQueue()
    queue.push("a", Share())
    queue.clear()
    with pytest.raises(IndexError):
        queue.pop()
