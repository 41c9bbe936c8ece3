"""The catalogue of metrics as a table: `python -m tools.metrics_table FILE` puts it into a document."""

import sys
from pathlib import Path

from compactor.telemetry.metrics import CATALOGUE
from tools import document_tables

BEGIN = "<!-- metrics: made by python -m tools.metrics_table docs/reference-metrics.md -->"
END = "<!-- metrics end -->"


def table() -> str:
    """The catalogue in Markdown."""
    rows = (f"| {each.name} | {each.unit} | {each.meaning} | {each.advice} |" for each in CATALOGUE.values())
    return "\n".join(["| metric | unit | meaning | when it moves |", "|---|---|---|---|", *rows])


def with_table(document: str) -> str:
    """A document with the table of today between its two marks.

    Raises:
        ValueError: The marks are not there.
    """
    return document_tables.with_table(document, BEGIN, END, table())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(with_table(Path(name).read_text()))
