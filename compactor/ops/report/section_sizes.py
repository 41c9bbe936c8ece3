"""The section about the sizes of output files. HTML, no I/O."""

from compactor.core.formatting import DASH, count, percent
from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ops.report.bar_charts import MIB, sizes_chart
from compactor.ops.report.frame import in_both_sizes
from compactor.ops.report.markup import Markup, joined
from compactor.ops.report.parts import Table, beside, folded_table, legend, numbers, prose, section
from compactor.ops.report.report import Report


def sizes(report: Report) -> Markup:
    """How large the output files are."""
    found = report.figures.sizes
    files = sum(each.counted + each.of_small_manifests for each in found.bins)
    small = files - found.counted
    words = (
        f"{percent(found.hits, found.counted)} of the {count(found.counted, 'output file')} that could be sized are "
        f"within {100 * SIZE_TOLERANCE:g} % of the target of {found.target_bytes / MIB:,.4g} MiB "
        f"({found.hits:,} of {found.counted:,}). "
        if found.counted
        else f"No manifest held enough to fill a file of the target, {found.target_bytes / MIB:,.4g} MiB. "
    )
    if small:
        words += f"{count(small, 'file')} came of manifests that could not fill one, and count on neither side."
    chart = in_both_sizes(lambda canvas: sizes_chart(canvas, "Output files by size", words, found))
    return section(
        "sizes",
        "Sizes of output files",
        beside(
            prose(words),
            joined([legend(("in", "could be sized"), ("small", "of manifests too small to fill a file")), chart]),
            folded_table(_sizes_table(report)),
        ),
    )


def _sizes_table(report: Report) -> Table:
    found = report.figures.sizes
    return Table(
        "sizes",
        "Output files by size: above the one size, up to the other",
        ("above, MiB", "up to, MiB", "could be sized", "of small manifests"),
        [
            (
                f"{each.from_bytes / MIB:,.4g}",
                DASH if each.to_bytes is None else f"{each.to_bytes / MIB:,.4g}",
                *numbers(each.counted, each.of_small_manifests),
            )
            for each in found.bins
        ],
        ("all", "", *numbers(found.counted, sum(each.of_small_manifests for each in found.bins))),
    )
