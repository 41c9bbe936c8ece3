"""Replaces tables in documents. A table is between two marks, and the first mark names the command that writes it."""


def with_table(document: str, begin: str, end: str, table: str) -> str:
    """A document with a new table between two marks.

    Raises:
        ValueError: A mark is missing.
    """
    before, found_begin, rest = document.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"expected a line {begin} and a later one {end}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"
