"""The table of metrics: `python -m tools.metrics_table FILE` writes it into a document."""

import sys
from pathlib import Path

from compactor.telemetry.metrics import CATALOGUE
from tools.document_tables import with_tables


def with_table(document: str) -> str:
    """A document with the current catalogue between its marks; a ValueError if a mark is missing."""
    rows = (f"| {name} | {each.unit} | {each.meaning} | {each.advice} |" for name, each in CATALOGUE.items())
    table = "\n".join(["| metric | unit | meaning | when it moves |", "|---|---|---|---|", *rows])
    return with_tables(document, "tools.metrics_table docs/reference-metrics.md", {"metrics": table})


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(with_table(Path(name).read_text()))
