"""Divides things among a few takers, or into groups of a size. Decisions, no I/O."""

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
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


def cut(items: Iterable[T], target_weight: float, weight: Callable[[T], float]) -> tuple[list[list[T]], list[T]]:
    """Cut a sequence into runs, each closed by the item that brings it closest to the target weight.

    An item that is as heavy as the target is a run of its own. The order is kept.

    Args:
        items: What to cut.
        target_weight: What a run should weigh.
        weight: What an item weighs.

    Returns:
        The full runs, and the items behind them that do not fill one.
    """
    runs: list[list[T]] = []
    current: list[T] = []
    total = 0.0
    for item in items:
        item_weight = weight(item)
        overshoot = total + item_weight - target_weight
        if current and (item_weight >= target_weight or overshoot > max(0, target_weight - total)):
            runs.append(current)
            current, total = [], 0.0
        current.append(item)
        total += item_weight
        if total >= target_weight:
            runs.append(current)
            current, total = [], 0.0
    return runs, current


def layered(items: Iterable[T], names: Callable[[T], Collection[str]]) -> list[list[T]]:
    """Divide items among as few layers as a greedy choice makes them, no name twice in one layer. The order is kept.

    Args:
        items: What to divide.
        names: What an item is called; no two of them alike.
    """
    layers: list[tuple[set[str], list[T]]] = []
    for item in items:
        own = set(names(item))
        layer = next((each for each in layers if own.isdisjoint(each[0])), None)
        if layer is None:
            layer = (set(), [])
            layers.append(layer)
        layer[0].update(own)
        layer[1].append(item)
    return [items_of_layer for _, items_of_layer in layers]
