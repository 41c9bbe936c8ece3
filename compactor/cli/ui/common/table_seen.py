"""Shows how far the table of the output is."""

from datetime import datetime

from compactor.table.standing import TableSeen


def table_lines(table: TableSeen, now: datetime) -> list[str]:
    """The last batch, what waits, what is held back, and why commits fail if they do."""
    head = f"{table.name}: {table.last_words(now)}"
    return [head, table.words, *(each for each in (table.held_words, table.error) if each)]
