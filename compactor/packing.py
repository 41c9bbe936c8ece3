"""Divides things among a few takers, or into groups of a size. Decisions, no I/O."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def spread(items: Sequence[T], takers: int, weight: Callable[[T], int]) -> list[list[T]]:
    """Divide items among at most so many takers, so that the heaviest share is as light as a greedy choice makes it.

    Args:
        items: What to divide; the order within each share is kept.
        takers: How many shares at most.
        weight: What an item weighs.

    Returns:
        Shares with at least one item each.
    """
    shares: list[list[int]] = [[] for _ in range(min(takers, len(items)))]
    heap = [(0, number) for number in range(len(shares))]
    for index in sorted(range(len(items)), key=lambda index: weight(items[index]), reverse=True):
        load, number = heapq.heappop(heap)
        shares[number].append(index)
        # Every item costs something, so that a thousand empty files are spread as well.
        heapq.heappush(heap, (load + max(1, weight(items[index])), number))
    return [[items[index] for index in sorted(share)] for share in shares]


def fill(items: Iterable[T], target_weight: int, weight: Callable[[T], int]) -> list[list[T]]:
    """Cut a sequence into runs, each closed by the item that brings it closest to the target weight.

    An item that is heavier than the target is a run of its own. The order is kept.

    Args:
        items: What to cut.
        target_weight: What a run should weigh.
        weight: What an item weighs.
    """
    runs: list[list[T]] = []
    current: list[T] = []
    total = 0
    for item in items:
        item_weight = weight(item)
        overshoot = total + item_weight - target_weight
        if current and overshoot > 0 and overshoot > target_weight - total:
            runs.append(current)
            current, total = [], 0
        current.append(item)
        total += item_weight
        if total >= target_weight:
            runs.append(current)
            current, total = [], 0
    if current:
        runs.append(current)
    return runs
