"""Shows several streams, one line each."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compactor.cli.ui.output import print_table
from compactor.cli.ui.terminal import echo
from compactor.core.text.formatting import size
from compactor.core.text.safe_text import quoted
from compactor.ops.report.report import Report
from compactor.ops.verify.report import VerifyReport


def show_verifications(found: Mapping[str, VerifyReport]) -> None:
    """Print the figures of each stream and of all, and where to find what does not add up."""
    total = VerifyReport()
    figures = (
        *("manifests", "lines", "rows", "rejected_lines", "blank_lines", "tombstones", "erased_lines"),
        "dead_letters",
    )
    for each in found.values():
        for figure in figures:
            setattr(total, figure, getattr(total, figure) + getattr(each, figure))
        total.files_by_status += each.files_by_status
        total.discrepancies += each.discrepancies
    of_blank: dict[str, Callable[[tuple[str, VerifyReport]], str]] = {}
    erased: dict[str, Callable[[tuple[str, VerifyReport]], str]] = {}
    if total.erased_lines:
        erased["erased"] = lambda each: f"{each[1].erased_lines:,}"
    if total.tombstones:
        of_blank["tombstones"] = lambda each: f"{each[1].tombstones:,}"
    print_table(
        {
            "stream": lambda each: each[0],
            "manifests": lambda each: f"{each[1].manifests:,}",
            "files": lambda each: f"{each[1].input_files:,}",
            "lines": lambda each: f"{each[1].lines:,}",
            "rows": lambda each: f"{each[1].rows:,}",
            "rejects": lambda each: f"{each[1].rejected_lines:,}",
            "blank": lambda each: f"{each[1].blank_lines:,}",
            **of_blank,
            **erased,
            "dead letters": lambda each: f"{each[1].dead_letters:,}",
            "discrepancies": lambda each: f"{len(each[1].discrepancies):,}",
        },
        [*found.items(), ("all", total)],
        names=1,
    )
    for name, each in found.items():
        if each.needs_operator:
            echo(f"compactor verify --stream {quoted(name)} shows what needs a person")


def show_reports(found: Mapping[str, Report]) -> None:
    """Print the figures and the verdict of each stream."""
    print_table(
        {
            "stream": lambda each: each[0],
            "verdict": lambda each: each[1].verdict.headline,
            "manifests": lambda each: f"{each[1].figures.totals.manifests:,}",
            "in": lambda each: size(each[1].figures.totals.input_bytes),
            "out": lambda each: size(each[1].figures.totals.output_bytes),
            "rows": lambda each: f"{each[1].figures.totals.rows:,}",
            "rejects": lambda each: f"{each[1].figures.totals.rejected_lines:,}",
        },
        found.items(),
        names=2,
    )
    for name, each in found.items():
        if each.verdict.points:
            echo(f"{name}: {each.verdict.points[0].text}")


def stream_documents(documents: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The documents of all streams as one."""
    return {"streams": [{"stream": name, **each} for name, each in documents]}
