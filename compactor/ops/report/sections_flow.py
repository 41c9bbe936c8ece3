"""The sections about work over time: throughput, times of manifests and of files. HTML, no I/O."""

from collections.abc import Sequence

from compactor.core.formatting import DASH, count, duration, percent, rate, size
from compactor.ops.report.figures import Bucket, Spread
from compactor.ops.report.frame import in_both_sizes
from compactor.ops.report.markup import Markup, joined
from compactor.ops.report.parts import Table, beside, folded_table, legend, numbers, piece, prose, section
from compactor.ops.report.period import Period
from compactor.ops.report.report import Report
from compactor.ops.report.time_charts import rates_chart, times_chart


def throughput(report: Report) -> Markup:
    """What came in and went out over time."""
    found, totals = report.figures, report.figures.totals
    average = rate(totals.input_bytes, found.period.seconds)
    busiest = max(found.buckets, key=lambda each: each.input_bytes / each.seconds)
    words = (
        f"{size(totals.input_bytes)} in {count(totals.input_files, 'file')} came in, and {size(totals.output_bytes)} "
        f"of Parquet in {count(totals.output_files, 'file')} went out: {average} of "
        f"input on average, {rate(busiest.input_bytes, busiest.seconds)} in the busiest "
        f"{duration(busiest.seconds)}, from {_when(busiest, found.step_seconds)}. "
    )
    if totals.input_bytes:
        words += f"A byte of input makes {totals.output_bytes / totals.input_bytes:.3f} bytes of Parquet. "
    words += (
        f"At least one manifest was in work for {percent(totals.at_work_seconds, found.period.seconds)} of the time."
    )
    chart = in_both_sizes(
        lambda canvas: rates_chart(canvas, "Bytes in and out over time", words, found.period, found.buckets)
    )
    note = "Both count from when the rows could be seen. Input is as stored, compressed or not."
    return section(
        "throughput",
        "Throughput",
        beside(
            joined([prose(words), prose(note)]),
            joined([legend(("in", "input"), ("out", "Parquet output")), chart]),
            folded_table(_rates_table(report)),
        ),
    )


def _when(bucket: Bucket, step_seconds: int) -> str:
    return f"{piece(Period(bucket.since, bucket.until), step_seconds)} UTC"


def _rates_table(report: Report) -> Table:
    found, totals = report.figures, report.figures.totals
    return Table(
        "throughput",
        f"What became visible, in pieces of {duration(found.step_seconds)}; times are UTC",
        (
            *("from", "manifests", "input files", "input bytes", "rows", "rejected lines"),
            *("Parquet files", "Parquet bytes", "in, MB/s", "out, MB/s"),
        ),
        [
            (
                piece(Period(each.since, each.until), found.step_seconds),
                *numbers(each.manifests, each.input_files, each.input_bytes, each.rows, each.rejected_lines),
                *numbers(each.output_files, each.output_bytes),
                f"{each.input_bytes / each.seconds / 1e6:,.3f}",
                f"{each.output_bytes / each.seconds / 1e6:,.3f}",
            )
            for each in found.buckets
        ],
        (
            "all",
            *numbers(totals.manifests, totals.input_files, totals.input_bytes, totals.rows, totals.rejected_lines),
            *numbers(totals.output_files, totals.output_bytes),
            f"{totals.input_bytes / found.period.seconds / 1e6:,.3f}",
            f"{totals.output_bytes / found.period.seconds / 1e6:,.3f}",
        ),
    )


def durations(report: Report) -> Markup:
    """How long manifests took, against half of the SLA."""
    half = report.sla_seconds / 2
    whole = report.figures.totals.durations
    words = _spread_words("manifest", whole)
    if whole:
        is_kept = whole.p99_seconds <= half
        words += f" Half the SLA, which one may take, is {duration(half)}: {'kept' if is_kept else 'not kept'}."
    note = (
        "From the begin of the attempt that won to its rows being visible. Several are in work at once; how long whole "
        "batches take is the metric BatchDurationSeconds, which is not in the ledger."
    )
    return _times_section(report, "durations", "Time for a manifest", words, note, ("half the SLA", half))


def arrivals(report: Report) -> Markup:
    """How long files took from their arrival to being visible, against the SLA."""
    whole = report.figures.totals.arrivals
    words = _spread_words("file", whole)
    if whole:
        is_kept = whole.p99_seconds <= report.sla_seconds
        words += f" The SLA is {duration(report.sla_seconds)}: {'kept' if is_kept else 'not kept'}."
    note = (
        "From a file's event, else from its manifest's creation, to its rows being visible; one value a file. Old "
        "files that were put back count with their full age."
    )
    return _times_section(report, "arrivals", "From arrival to visible", words, note, ("SLA", report.sla_seconds))


def _spread_words(thing: str, whole: Spread | None) -> str:
    if whole is None:
        return f"No {thing} became visible."
    if whole.values == 1:
        return f"The only {thing} took {duration(whole.longest_seconds)}."
    return (
        f"Half of the {whole.values:,} {thing}s took {duration(whole.p50_seconds)} or less, all but one in a hundred "
        f"{duration(whole.p99_seconds)} or less, and the longest {duration(whole.longest_seconds)}."
    )


def _times_section(report: Report, key: str, heading: str, words: str, note: str, limit: tuple[str, float]) -> Markup:
    found = report.figures
    spreads = [
        (Period(each.since, each.until), each.durations if key == "durations" else each.arrivals)
        for each in found.buckets
    ]
    whole = found.totals.durations if key == "durations" else found.totals.arrivals
    chart = in_both_sizes(
        lambda canvas: times_chart(canvas, key, f"{heading}, over time", words, found.period, spreads, limit)
    )
    return section(
        key,
        heading,
        beside(
            joined([prose(words), prose(note)]),
            joined(
                [legend(("p50", "half take this or less (p50)"), ("p99", "99 of 100 take this or less (p99)")), chart]
            ),
            folded_table(_times_table(report, key, heading, spreads, whole)),
        ),
    )


def _times_table(
    report: Report, key: str, heading: str, spreads: Sequence[tuple[Period, Spread | None]], whole: Spread | None
) -> Table:
    step_seconds = report.figures.step_seconds
    return Table(
        key,
        f"{heading}, in pieces of {duration(step_seconds)}; times are UTC",
        ("from", "manifests" if key == "durations" else "files", "p50, s", "p99, s", "longest, s"),
        [(piece(span, step_seconds), *_spread_cells(each)) for span, each in spreads],
        ("all", *_spread_cells(whole)),
    )


def _spread_cells(each: Spread | None) -> tuple[str, ...]:
    if each is None:
        return ("0", DASH, DASH, DASH)
    times = (each.p50_seconds, each.p99_seconds, each.longest_seconds)
    return (f"{each.values:,}", *(f"{seconds:,.1f}" for seconds in times))
