"""The table of metrics in `docs/reference-metrics.md`."""

from compactor.telemetry.metrics import CATALOGUE
from tools.document_tables import with_tables


def with_table(document: str) -> str:
    """A document with the current catalogue between its marks; a ValueError if a mark is missing."""
    rows = (f"| {name} | {each.unit} | {each.meaning} | {each.advice} |" for name, each in CATALOGUE.items())
    table = "\n".join(["| metric | unit | meaning | when it moves |", "|---|---|---|---|", *rows])
    return with_tables(document, {"metrics": table})
