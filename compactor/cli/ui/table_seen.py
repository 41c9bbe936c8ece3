"""Shows how far the table of the output is."""

from datetime import datetime

from compactor.table.standing import TableSeen


def table_lines(table: TableSeen, now: datetime) -> list[str]:
    """The last batch, what waits, and why commits fail if they do."""
    return [f"{table.name}: {table.last_words(now)}", table.words, *([table.error] if table.error else [])]
