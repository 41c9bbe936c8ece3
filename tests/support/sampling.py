"""Which cases of a matrix `make test` tries; `make test-full` tries all of them."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def few(cases: Iterable[Any], number: int) -> list[Any]:
    """Leave all but some cases of one argument to `make test-full`.

    Args:
        cases: The values of the argument.
        number: How many `make test` tries: the first one, and others at even distances.
    """
    return _few([(case,) for case in cases], number)


def few_rows(cases: Iterable[Sequence[Any]], number: int) -> list[Any]:
    """Likewise, for cases of several arguments."""
    return _few([tuple(case) for case in cases], number)


def _few(cases: Sequence[tuple[Any, ...]], number: int) -> list[Any]:
    kept = {place * len(cases) // number for place in range(number)}
    return [pytest.param(*case, marks=() if at in kept else pytest.mark.full) for at, case in enumerate(cases)]
