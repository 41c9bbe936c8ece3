"""Exponential back-off with jitter. A decision, no I/O."""


def pause_seconds(failures: int, *, first_seconds: float, longest_seconds: float, chance: float) -> float:
    """A pause that doubles with each failure, up to a bound. Half of it is random, so that retries spread out.

    Args:
        failures: How often it failed so far; from 1.
        first_seconds: The longest pause after the first failure.
        longest_seconds: The longest pause after any number of failures.
        chance: A random number from 0 to 1.
    """
    whole = min(longest_seconds, first_seconds * 2.0 ** min(failures - 1, 64))
    return whole * (0.5 + 0.5 * chance)
