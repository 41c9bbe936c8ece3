"""Queues of several shares: none waits for more than the turns of the others."""

from collections import defaultdict
from itertools import pairwise

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
    order = [number for _ in range(len(queue)) if (number := queue.pop()) is not None]
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
    assert queue.pop() is None
