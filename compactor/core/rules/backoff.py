"""Exponential back-off with jitter, and when a pause is over. Decisions, no I/O."""

from datetime import datetime, timedelta


def pause_seconds(failures: int, *, first_seconds: float, longest_seconds: float, chance: float) -> float:
    """Return a pause that doubles with each failure, up to a bound. Half of the pause is random, to spread retries.

    Args:
        failures: The number of failures so far, at least 1.
        first_seconds: The longest pause after the first failure.
        longest_seconds: The longest pause after any number of failures.
        chance: A random number from 0 to 1.
    """
    whole = min(longest_seconds, first_seconds * 2.0 ** min(failures - 1, 64))
    return whole * (0.5 + 0.5 * chance)


def is_over(until: datetime, now: datetime, *, longest_seconds: float) -> bool:
    """Return whether a pause is over. One that ends later than any pause can was set by a clock that was ahead.

    Args:
        until: When it ends.
        now: The present time.
        longest_seconds: The longest pause that may be set.
    """
    return not now < until <= now + timedelta(seconds=longest_seconds)
