"""Which shard takes which manifest: always one of those that are there, and few move when one comes or goes."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.rules.sharding import EXPECTED, MAX_SHARDS, Shard, shard_number, taker

PINNED = [1, 3, 3, 1, 3, 2, 1, 2, 2, 2, 2, 1]

numbers = st.integers(1, MAX_SHARDS)
names = st.builds("2026-01-02-{:08x}".format, st.integers(0, 2**32))


@given(names, st.sets(numbers, min_size=1, max_size=8))
def test_each_manifest_has_one_taker_that_is_there(name: str, shards: set[int]) -> None:
    """However the set is ordered, all that know the same shards name the same one of them."""
    found = taker(name, shards)
    assert found in shards
    assert taker(name, sorted(shards)) == taker(name, sorted(shards, reverse=True)) == found


@given(names, st.sets(numbers, min_size=2, max_size=8), st.data())
def test_a_shard_that_goes_moves_its_own_manifests_only(name: str, shards: set[int], data: st.DataObject) -> None:
    """What another one takes stays with it, whichever shard goes; and the same holds for one that comes."""
    gone = data.draw(st.sampled_from(sorted(shards)))
    before, after = taker(name, shards), taker(name, shards - {gone})
    assert before in (after, gone)


def test_shards_take_about_as_much_as_each_other() -> None:
    """Names that differ in a counter alone are spread, and those of a shard that goes are spread over all others."""
    ids = [f"2026-01-02-{number:06}" for number in range(8000)]
    assert all(1840 < taken < 2160 for taken in Counter(taker(each, range(1, 5)) for each in ids).values())
    moved = [each for each in ids if taker(each, range(1, 5)) == 4]
    assert all(550 < taken < 800 for taken in Counter(taker(each, (1, 2, 3)) for each in moved).values())


def test_the_assignment_is_that_of_earlier_releases() -> None:
    """Two releases side by side agree; one that differed would work on the manifests of the other for nothing."""
    assert [taker(f"m-{number}", (1, 2, 3, 4)) for number in range(12)] == PINNED


def test_a_shard_is_read_as_it_is_written() -> None:
    """The second of four."""
    assert (str(Shard.parse("2/4")), Shard.parse("2/4")) == ("2/4", Shard(2, 4))
    assert [shard_number(text) for text in ("2/4", "", "all")] == [2, None, None]
    assert [each for each in range(1, 4) if Shard(each, 3).is_home_of("m-1")] == [taker("m-1", (1, 2, 3))]


@pytest.mark.parametrize("text", ["", "2", "0/4", "2/0", "02/4", "2/65", " 2/4", "2/4\n", "-1/4", "a/b", "2/4/4"])
def test_other_text_is_refused(text: str) -> None:
    """With what is expected."""
    with pytest.raises(ValueError, match="such as") as caught:
        Shard.parse(text)
    assert str(caught.value) == EXPECTED


def test_a_shard_beyond_the_last_is_refused() -> None:
    """With the shards that there are."""
    with pytest.raises(ValueError, match='"1/4" to "4/4", as there are 4 shards'):
        Shard.parse("5/4")
