"""The guards that keep the promises: how each is taken out of the code where it is marked, and who must notice."""

from tests.guards.entries import GUARDED
from tests.guards.marks import Guard, marks, without

__all__ = ["GUARDS", "Guard", "marks", "without"]

GUARDS = tuple(
    Guard(name, instead, tuple(tests.split())) for tests, guards in GUARDED.items() for name, instead in guards.items()
)
