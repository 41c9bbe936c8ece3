"""Tables in documents that are made from code: each between two marks, the first of which says how to make it."""


def with_table(document: str, begin: str, end: str, table: str) -> str:
    """A document with a table between its two marks, in place of what was there.

    Raises:
        ValueError: The marks are not there.
    """
    before, found_begin, rest = document.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"expected a line {begin} and a later one {end}")
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"
