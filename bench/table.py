"""Turns measurements into the table: ratios first, fastest on top."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.measure import Measurement
from bench.protocol import Pass

HEADINGS = (
    "contender",
    "ratio",
    "MB/s",
    "CPU s/GB",
    "cores in use",
    "seconds per pass",
    "peak memory MiB",
    "files",
    "median file MB",
    "rows",
)
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. What a failed contender has no figures for is None.

    Attributes:
        ratio: Its speed divided by that of the baseline; None if the baseline did not run.
        megabytes_per_second: Millions of input bytes a second in the median of the steady passes.
        cpu_seconds_per_gigabyte: CPU time of all its processes for 1e9 input bytes in the median of the steady passes.
        cores: How many cores it kept busy on average in the median of the steady passes.
        seconds: Time of each pass, in order.
        peak_memory_mib: Peak memory of all processes together.
        files: Files of the last pass.
        median_file_megabytes: Median size of these files in millions of bytes.
        rows: Rows of the last pass.
        note: What is wrong; empty if nothing is.
    """

    contender: str
    ratio: float | None
    megabytes_per_second: float | None
    cpu_seconds_per_gigabyte: float | None
    cores: float | None
    seconds: tuple[float, ...]
    peak_memory_mib: float | None
    files: int | None
    median_file_megabytes: float | None
    rows: int | None
    note: str = ""


def speed(measurement: Measurement) -> float | None:
    """Input bytes a second in the median of pass 2 and later (of pass 1 if there is no other); None if it failed."""
    if measurement.failure or not measurement.passes:
        return None
    return measurement.passes[0].input_bytes / median(each.seconds for each in steady(measurement))


def steady(measurement: Measurement) -> Sequence[Pass]:
    """All passes but the first; that one if there is no other."""
    return measurement.passes[1:] or measurement.passes


def make_rows(measurements: Sequence[Measurement], *, baseline: str, expected_rows: int) -> list[Row]:
    """Compare the contenders.

    Args:
        measurements: One for each contender.
        baseline: The name of the contender with the ratio 1.
        expected_rows: Lines of the input; a contender with another number of rows gets a note.

    Returns:
        The fastest first, the failed ones last.
    """
    base = next((speed(each) for each in measurements if each.name == baseline), None)
    rows = [_row(each, base, expected_rows) for each in measurements]
    return sorted(rows, key=lambda row: -(row.megabytes_per_second or 0))


def _row(measurement: Measurement, base: float | None, expected_rows: int) -> Row:
    own = speed(measurement)
    if own is None:
        seconds = tuple(each.seconds for each in measurement.passes)
        return Row(measurement.name, None, None, None, None, seconds, None, None, None, None, measurement.failure)
    counted, last = steady(measurement), measurement.passes[-1]
    wrong = sorted({each.rows for each in measurement.passes} - {expected_rows})
    return Row(
        contender=measurement.name,
        ratio=own / base if base else None,
        megabytes_per_second=own / 1e6,
        cpu_seconds_per_gigabyte=median(each.cpu_seconds for each in counted) / last.input_bytes * 1e9,
        cores=median(each.cpu_seconds / each.seconds for each in counted),
        seconds=tuple(each.seconds for each in measurement.passes),
        peak_memory_mib=measurement.peak_memory_bytes / 2**20,
        files=len(last.output_files),
        median_file_megabytes=median(last.output_files) / 1e6 if last.output_files else None,
        rows=last.rows,
        note=f"wrote {wrong[0]:,} rows, expected {expected_rows:,}" if wrong else "",
    )


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row, one for each of `HEADINGS`."""
    return (
        row.contender,
        _number(row.ratio, ".2f", "x"),
        _number(row.megabytes_per_second, ".0f"),
        _number(row.cpu_seconds_per_gigabyte, ".2f"),
        _number(row.cores, ".2f"),
        " ".join(f"{seconds:.1f}" for seconds in row.seconds) or _NOTHING,
        _number(row.peak_memory_mib, ",.0f"),
        _number(row.files, ","),
        _number(row.median_file_megabytes, ".1f"),
        _number(row.rows, ","),
    )


def plain(rows: Sequence[Row]) -> str:
    """The table as text."""
    return aligned([HEADINGS, *map(cells, rows)])


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text: names to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if at == 0 else text.rjust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def notes(rows: Sequence[Row]) -> list[str]:
    """The lines below the table."""
    return [f"{row.contender}: {row.note}" for row in rows if row.note]


def _number(value: float | None, form: str, unit: str = "") -> str:
    return _NOTHING if value is None else f"{value:{form}}{unit}"
