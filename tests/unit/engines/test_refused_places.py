"""Places of refused lines are kept as they are, and in little memory."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from compactor.engines.native.bin_task import RefusedPlaces

COUNTS = st.integers(0, 2**32 - 1)
PLACES = st.lists(st.tuples(st.integers(0, 2**20), COUNTS, COUNTS, st.sampled_from(["", "not_json", "ĝ"])))


@given(st.lists(st.tuples(PLACES, st.integers(0, 2**31))))
def test_what_is_added_is_there_in_order(blocks: list[tuple[list[tuple[int, int, int, str]], int]]) -> None:
    """With the numbers of lines in the piece."""
    places = RefusedPlaces()
    for found, before in blocks:
        places.add(found, before)
    expected = [(before + number, *rest) for found, before in blocks for number, *rest in found]
    assert list(places) == expected
    assert bool(places) == bool(expected)


def test_a_million_takes_few_bytes_each() -> None:
    """A hostile file has two million in a piece of 4 MiB; as tuples they took 450 MB. A tenth shows what each takes."""
    places = RefusedPlaces()
    tracemalloc.start()
    try:
        for block in range(10):
            places.add(((line, 2 * line, 2 * line + 1, "not_json") for line in range(10_000)), block * 10_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 20 * 100_000
