"""Working ahead: in order, several at once, no further than needed."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from compactor.core.map_ordered import calls_ahead, map_ordered

ITEMS = 200
THREADS = 4


def test_in_order_and_no_further_than_needed() -> None:
    """Results come in the order of the items, whichever call is done first, and only a few items are read early."""
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(ITEMS):
            read.append(number)
            yield number

    def work(number: int) -> int:
        time.sleep(0.002 if number % 3 == 0 else 0)
        return number * 2

    results = []
    for result in map_ordered(work, items(), threads=THREADS):
        results.append(result)
        assert len(read) - len(results) <= 2 * THREADS
    assert results == [number * 2 for number in range(ITEMS)]


def test_several_at_once() -> None:
    """As many items as there are threads are in work at the same time."""
    together = threading.Barrier(THREADS, timeout=20)
    assert len([*map_ordered(lambda _: together.wait(), range(2 * THREADS), threads=THREADS)]) == 2 * THREADS


def test_an_error_comes_in_its_turn() -> None:
    """What the work on an item raises is raised after the results before it, and nothing further is begun."""
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 5:
            raise KeyError(number)
        return number

    results = map_ordered(work, range(1_000), threads=THREADS)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError):
        next(results)
    assert max(begun) < 5 + 2 * THREADS + 1


@pytest.mark.parametrize("items", [0, 1])
def test_a_single_item_needs_no_other_thread(items: int) -> None:
    """Most calls have one item or none, and a thread takes longer than many a piece of work."""
    assert [*map_ordered(lambda _: threading.current_thread(), range(items))] == [threading.current_thread()] * items


def test_who_stops_early_waits_for_little() -> None:
    """Leaving the results early leaves no thread behind."""
    before = set(threading.enumerate())
    results = map_ordered(lambda number: number, range(1_000), threads=THREADS)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert not set(threading.enumerate()) - before


def test_calls_that_do_not_wait_are_made_by_the_caller_one_at_a_time() -> None:
    """An error is raised in its turn, in whichever thread the call ran."""
    made: list[tuple[int, threading.Thread]] = []
    waits = False

    def work(number: int) -> int:
        made.append((number, threading.current_thread()))
        if number == 1:
            raise KeyError(number)
        return number

    with ThreadPoolExecutor(2) as pool:
        calls = calls_ahead(pool, work, range(8), depth=3, waits=lambda: waits)
        assert next(calls).result() == 0
        assert made == [(0, threading.current_thread())]
        with pytest.raises(KeyError):
            next(calls).result()
        waits = True
        assert next(calls).result() == 2
        waits = False
        assert [call.result() for call in calls] == [3, 4, 5, 6, 7]
    others = [number for number, thread in made if thread is not threading.current_thread()]
    assert sorted(others) == [2, 3, 4, 5, 6], (
        "the first one that waits, the three behind it, and one more until they have ended"
    )
