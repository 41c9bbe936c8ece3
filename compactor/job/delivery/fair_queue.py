"""Queues of several shares that take turns: first those of different sizes, then those of different sources."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from compactor.core.rules.shares import Share

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items by share. Every operation costs the same, however many wait."""

    def __init__(self) -> None:
        self._classes: OrderedDict[int, OrderedDict[str, deque[T]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        """Go through all items, in no order."""
        for sources in self._classes.values():
            for items in sources.values():
                yield from items

    def push(self, item: T, share: Share) -> None:
        """Add an item behind the others of its share."""
        sources = self._classes.setdefault(share.size_class, OrderedDict())
        sources.setdefault(share.source, deque()).append(item)
        self._count += 1

    def pop(self, *, newest: bool = False) -> T:
        """Take the first item of the share whose turn it is; with `newest`, the last one.

        Raises:
            IndexError: It is empty.
        """
        if not self._count:
            raise IndexError
        size_class, sources = next(iter(self._classes.items()))
        source, items = next(iter(sources.items()))
        item = items.pop() if newest else items.popleft()
        self._count -= 1
        if items:
            sources.move_to_end(source)
        else:
            del sources[source]
        if sources:
            self._classes.move_to_end(size_class)
        else:
            del self._classes[size_class]
        return item

    def clear(self) -> None:
        self._classes.clear()
        self._count = 0
