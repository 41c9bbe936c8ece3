"""The table of metrics: `python -m tools.metrics_table FILE` writes it into a document."""

import sys
from pathlib import Path

from compactor.telemetry.metrics import CATALOGUE
from tools import document_tables

BEGIN = "<!-- metrics: made by python -m tools.metrics_table docs/reference-metrics.md -->"
END = "<!-- metrics end -->"


def table() -> str:
    """The catalogue in Markdown."""
    rows = (f"| {name} | {each.unit} | {each.meaning} | {each.advice} |" for name, each in CATALOGUE.items())
    return "\n".join(["| metric | unit | meaning | when it moves |", "|---|---|---|---|", *rows])


def with_table(document: str) -> str:
    """A document with the current table between its marks.

    Raises:
        ValueError: A mark is missing.
    """
    return document_tables.with_table(document, BEGIN, END, table())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(with_table(Path(name).read_text()))
