"""Packs items into a few shares of similar weight. Decisions, no I/O."""

import heapq
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def spread(items: Sequence[T], takers: int, weight: Callable[[T], int]) -> list[list[T]]:
    """Divide items into shares; a greedy choice keeps the heaviest share light.

    Args:
        items: Each share keeps their order.
        takers: The largest number of shares.
        weight: Returns the weight of an item.

    Returns:
        Shares with at least one item each.
    """
    shares: list[list[int]] = [[] for _ in range(min(takers, len(items)))]
    heap = [(0, number) for number in range(len(shares))]
    for index in sorted(range(len(items)), key=lambda index: weight(items[index]), reverse=True):
        load, number = heapq.heappop(heap)
        shares[number].append(index)
        # An item weighs at least 1, so that a thousand empty files are spread as well.
        heapq.heappush(heap, (load + max(1, weight(items[index])), number))
    return [[items[index] for index in sorted(share)] for share in shares]
