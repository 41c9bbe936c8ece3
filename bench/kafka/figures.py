"""The table of the benchmark, from its measurements."""

from dataclasses import dataclass
from statistics import median

from bench.measure import Measurement
from bench.table import speed

HEADINGS = ("contender", "ratio", "MB/s", "CPU s/GB", "seconds per pass", "peak memory MiB", "files", "rows")


@dataclass(frozen=True, slots=True)
class Figures:
    """One line of the table. What a failed contender has no figures for is 0.

    Attributes:
        ratio: Its speed divided by that of the first contender.
        megabytes_per_second: Millions of bytes of values a second, by the clock, in the median of the steady passes.
        cpu_seconds_per_gigabyte: Of its processes, without the broker, in the median of the steady passes.
        seconds: Time of each pass, in order.
        peak_memory_mib: Of its processes together.
        files: Of the last pass.
        note: What is wrong; empty if nothing is.
    """

    contender: str
    ratio: float
    megabytes_per_second: float
    cpu_seconds_per_gigabyte: float
    seconds: tuple[float, ...]
    peak_memory_mib: float
    files: int
    rows: int
    note: str = ""


def figures_of(measured: Measurement, first: Measurement, records: int) -> Figures:
    """The line of a contender.

    Args:
        measured: The contender.
        first: The one to compare with.
        records: How many rows each pass has to make.
    """
    own, base = speed(measured), speed(first)
    seconds = tuple(each.seconds for each in measured.passes)
    if own is None:
        return Figures(measured.name, 0, 0, 0, seconds, 0, 0, 0, measured.failure)
    steady = measured.passes[1:] or measured.passes
    last = measured.passes[-1]
    wrong = sorted({each.rows for each in measured.passes} - {records})
    return Figures(
        contender=measured.name,
        ratio=own / base if base else 0,
        megabytes_per_second=own / 1e6,
        cpu_seconds_per_gigabyte=median(each.cpu_seconds for each in steady) / last.input_bytes * 1e9,
        seconds=seconds,
        peak_memory_mib=measured.peak_memory_bytes / 2**20,
        files=len(last.output_files),
        rows=last.rows,
        note=f"wrote {wrong[0]:,} rows, expected {records:,}" if wrong else "",
    )


def cells(row: Figures) -> tuple[str, ...]:
    """The cells of a line, one for each of `HEADINGS`."""
    return (
        row.contender,
        f"{row.ratio:.2f}x",
        f"{row.megabytes_per_second:.0f}",
        f"{row.cpu_seconds_per_gigabyte:.1f}",
        " ".join(f"{seconds:.1f}" for seconds in row.seconds) or "-",
        f"{row.peak_memory_mib:,.0f}",
        f"{row.files:,}",
        f"{row.rows:,}",
    )
