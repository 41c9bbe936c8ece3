"""How long to wait before trying again. A decision, no I/O."""


def pause_seconds(failures: int, *, first_seconds: float, longest_seconds: float, chance: float) -> float:
    """A pause that doubles from failure to failure, up to a bound.

    Half of it is left to chance, so that those that failed together do not come back together.

    Args:
        failures: How often it failed by now; from 1.
        first_seconds: The pause after the first failure, at most.
        longest_seconds: The pause after many, at most.
        chance: A random number from 0 to 1.
    """
    whole = min(longest_seconds, first_seconds * 2.0 ** min(failures - 1, 64))
    return whole * (0.5 + 0.5 * chance)
