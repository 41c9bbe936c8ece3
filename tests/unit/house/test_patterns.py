"""Regular expressions of the product match alike in every Python that it may run on.

Before 3.11.5, Python does not go back if a try of a possessive group fails amid the group, and goes on behind it
(https://github.com/python/cpython/issues/106052). Debian 12 has 3.11.2. A try that cannot fail is matched right, so
each such group ends with an empty alternative.
"""

import re
from collections.abc import Iterator
from re import _parser  # type: ignore[attr-defined]  # no other way to a pattern's structure
from typing import Any

import pytest

import compactor
from tests.support.housekeeping import module_constants

ONE_CHARACTER = {"LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY"}


def patterns_of_the_product() -> dict[str, re.Pattern[Any]]:
    """All patterns that modules have, by name."""
    return {name: value for name, value in module_constants(compactor) if isinstance(value, re.Pattern)}


def groups_that_may_fail(pattern: re.Pattern[Any]) -> list[str]:
    """Possessive and atomic groups of which a try can fail."""
    return [str(body) for body in _possessive(_parser.parse(pattern.pattern, pattern.flags)) if not _ends_empty(body)]


def _possessive(node: Any) -> Iterator[Any]:
    if isinstance(node, _parser.SubPattern):
        for operator, argument in node:
            if str(operator) in {"POSSESSIVE_REPEAT", "ATOMIC_GROUP"}:
                body = argument[2] if str(operator) == "POSSESSIVE_REPEAT" else argument
                if len(body) != 1 or str(body[0][0]) not in ONE_CHARACTER:
                    yield body
            yield from _possessive(argument)
    elif isinstance(node, list | tuple):
        for each in node:
            yield from _possessive(each)


def _ends_empty(body: Any) -> bool:
    """Whether it is a choice whose last alternative is empty."""
    return len(body) == 1 and str(body[0][0]) == "BRANCH" and len(body[0][1][1][-1]) == 0


def test_no_try_of_a_possessive_group_can_fail() -> None:
    patterns = patterns_of_the_product()
    assert "compactor.ndjson.kinds.element_splitting._IN_STRING" in patterns
    wrong = {name: found for name, pattern in patterns.items() if (found := groups_that_may_fail(pattern))}
    assert wrong == {}, "give each of these groups an empty last alternative"


@pytest.mark.parametrize("pattern", [r"(?:ab)*+", r"(?:a++|b)*+", r"(?>ab)", r"x(?:y(?:ab)*+|)*+", r"(?:(?>ab)|)*+"])
def test_a_group_that_may_fail_is_found(pattern: str) -> None:
    assert groups_that_may_fail(re.compile(pattern))


@pytest.mark.parametrize("pattern", [r"a*+b++", r"[^ab]*+.?+\s++", r"(?:ab|)*+", r"(?:a++|(?:b\d|)*+c|)*+", r"(?:ab)*"])
def test_a_group_that_cannot_fail_is_passed_over(pattern: str) -> None:
    assert groups_that_may_fail(re.compile(pattern)) == []
