"""What a guard is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard.

    Attributes:
        name: What it keeps from happening, or makes sure of.
        module: Where it is, below the package.
        text: The code that is it; it is there exactly once.
        without: The same code without it.
        tests: Where at least one test must fail without it.
    """

    name: str
    module: str
    text: str
    without: str
    tests: tuple[str, ...]
