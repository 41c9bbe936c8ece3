"""Exponential back-off with jitter, and when a pause ends. Decisions, no I/O."""

from datetime import datetime, timedelta


def pause_seconds(failures: int, *, first_seconds: float, longest_seconds: float, chance: float) -> float:
    """A pause that doubles with each failure, up to a limit. Half of it is random, to spread retries.

    Args:
        failures: Number of failures so far, at least 1.
        first_seconds: The longest pause after the first failure.
        longest_seconds: The longest pause after any number of failures.
        chance: A random number from 0 to 1.
    """
    whole = min(longest_seconds, first_seconds * 2.0 ** min(failures - 1, 64))
    return whole * (0.5 + 0.5 * chance)


def is_over(until: datetime, now: datetime, *, longest_seconds: float) -> bool:
    """Whether a pause is over. One that ends later than any pause could was set by a fast clock.

    Args:
        until: When it ends.
        now: The present time.
        longest_seconds: The longest pause that may be set.
    """
    return not now < until <= now + timedelta(seconds=longest_seconds)
