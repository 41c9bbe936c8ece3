"""Statements of the product work in each SQLite that a supported Python may use.

Python takes the SQLite of the system. RHEL 8 [3.26] and RHEL 9 [3.34], among others, offer Python 3.11 and later.
"""

import re

import pytest

from compactor.adapters.local import sqlite
from tests.support.housekeeping import module_constants

OLDEST = (3, 26)
SINCE = {  # https://www.sqlite.org/changes.html
    r"\bRETURNING\b": (3, 35),
    r"\bMATERIALIZED\b": (3, 35),
    r"\bDROP COLUMN\b": (3, 35),
    r"\)\s*STRICT\b": (3, 37),
    r"\bIS (?:NOT )?DISTINCT FROM\b": (3, 39),
    r"\b(?:RIGHT|FULL)(?: OUTER)? JOIN\b": (3, 39),
    r"\bGENERATED ALWAYS\b": (3, 31),
    r"\bNULLS (?:FIRST|LAST)\b": (3, 30),
    r"\bFILTER\s*\(": (3, 30),
    r"\biif\s*\(": (3, 32),
    r"->": (3, 38),
    r"\bunixepoch\s*\(": (3, 38),
    r"\bstring_agg\s*\(": (3, 44),
}
STATEMENT = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH|CREATE|DROP|ALTER|PRAGMA)\s", re.IGNORECASE)


def statements_of_the_product() -> list[str]:
    """The texts of all statements that modules have in constants."""
    found = []
    for _, value in module_constants(sqlite):
        texts = value if isinstance(value, tuple | list) else [value]
        found += [text for text in texts if isinstance(text, str) and STATEMENT.match(text)]
    return found


def too_new(statement: str) -> list[str]:
    """What a statement has that the oldest SQLite lacks."""
    return [word for word, since in SINCE.items() if since > OLDEST and re.search(word, statement, re.IGNORECASE)]


def test_no_statement_needs_a_newer_sqlite() -> None:
    statements = statements_of_the_product()
    assert any("ON CONFLICT" in each for each in statements)
    assert {each: found for each in statements if (found := too_new(each))} == {}


@pytest.mark.parametrize("statement", ["DELETE FROM a RETURNING b", "CREATE TABLE a (b) STRICT", "SELECT a -> 'b'"])
def test_what_is_too_new_is_found(statement: str) -> None:
    assert too_new(statement)
