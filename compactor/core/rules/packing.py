"""Packs items into a few shares of similar weight, or into groups of a target weight. Decisions, no I/O."""

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def spread(items: Sequence[T], takers: int, weight: Callable[[T], int]) -> list[list[T]]:
    """Divide items into shares, so that the heaviest share is as light as a greedy choice makes it.

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


def cut(items: Iterable[T], target_weight: float, weight: Callable[[T], float]) -> tuple[list[list[T]], list[T]]:
    """Cut a sequence into runs. Each run ends at the item that brings its weight closest to the target.

    An item that is as heavy as the target is a run of its own. The order is kept.

    Returns:
        The full runs, and the remaining items, which do not fill one.
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
    """Divide items greedily into few layers, with no name twice in one layer. The order is kept.

    Args:
        items: In the order of each layer.
        names: Returns the distinct names of an item.
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
