"""Exponential back-off with jitter. A decision, no I/O."""


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
