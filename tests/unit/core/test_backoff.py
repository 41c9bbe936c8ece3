"""Pauses before trying again, and their ends."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from compactor.core.rules.backoff import is_over, pause_seconds


@given(failures=st.integers(1, 10_000), first=st.floats(0.01, 10), chance=st.floats(0, 1))
def test_pauses_grow_and_stay_within_bounds(failures: int, first: float, chance: float) -> None:
    """A pause lies between half of its bound and the bound, which doubles until it is the longest."""
    pause = pause_seconds(failures, first_seconds=first, longest_seconds=60, chance=chance)
    bound = min(60.0, first * 2.0 ** min(failures - 1, 64))
    assert bound / 2 <= pause <= bound


def test_chance_spreads_pauses() -> None:
    """Two that failed together come back apart."""
    pauses = {pause_seconds(3, first_seconds=1, longest_seconds=60, chance=chance) for chance in (0.0, 0.5, 1.0)}
    assert pauses == {2.0, 3.0, 4.0}


def test_a_pause_that_a_clock_ahead_has_set_is_over() -> None:
    """No pause is longer than the longest one."""
    until = datetime(2026, 1, 1, tzinfo=UTC)
    ends = {0: True, -1: False, -60: False, -61: True, 1: True}
    found = {each: is_over(until, until + timedelta(seconds=each), longest_seconds=60) for each in ends}
    assert found == ends
