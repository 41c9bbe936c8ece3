"""Replaces tables in documents. A table is between two marks, and the first mark names the command that writes it."""

from collections.abc import Mapping


def with_tables(document: str, tables: Mapping[str, str], command: str = "make generate") -> str:
    """A document with new tables, each between the marks that have its name; a `ValueError` if a mark is missing."""
    for name, table in tables.items():
        begin, end = f"<!-- {name}: made by {command} -->", f"<!-- {name} end -->"
        before, found_begin, rest = document.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found_begin or not found_end:
            raise ValueError(f"expected a line {begin} and a later one {end}")
        document = f"{before}{begin}\n\n{table}\n\n{end}{after}"
    return document
