"""The table of shapes: the figures of each engine for each kind of input, and every broken promise in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.ledger.sizing import sizing_hits
from compactor.settings.types import MIB

TASK_BYTES = 512 * MIB
"""The most memory that a task may use, for any input."""

HEADINGS = (
    "shape",
    "contender",
    "input MB",
    "MB/s",
    "CPU s/GB",
    "all MiB",
    "worker MiB",
    f"<= {TASK_BYTES // MIB}",
    "rows",
    "files",
    "file MB",
    "right-sized",
    "compared MB",
    "differences",
)
TEXT_COLUMNS = 2
REFERENCE = "reference"
REFERENCE_S3 = "reference, s3:// over TLS"
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison with the input.

    Attributes:
        value_bytes: The decoded bytes of input whose values were compared.
        differences: Each difference in words.
    """

    value_bytes: int
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """One line of the table.

    Attributes:
        decoded_bytes: Size of the input before compression.
        seconds: Time of the timed pass; 0 if it failed.
        cpu_seconds: CPU time of all processes in that pass, in user and kernel mode.
        peak_memory_bytes: Peak memory of all processes together.
        peak_worker_bytes: Peak memory of the largest Python worker of Spark; 0 if there was none.
        is_promised: Whether the memory of this contender has a promised limit.
        rows: Rows that it wrote.
        expected_rows: Lines of the input.
        output_files: Sizes of the output files.
        target_file_bytes: Target size of the output files.
        compared: The comparison; None if only rows were counted.
        failure: The error; empty if there was none.
    """

    shape: str
    contender: str
    decoded_bytes: int
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    peak_worker_bytes: int
    is_promised: bool
    rows: int
    expected_rows: int
    output_files: tuple[int, ...]
    target_file_bytes: int
    compared: Compared | None
    failure: str = ""

    @property
    def cpu_seconds_per_gb(self) -> float:
        """CPU time for 10^9 bytes of input before compression."""
        return self.cpu_seconds / (self.decoded_bytes / 1e9)

    @property
    def is_too_large(self) -> bool:
        """Whether a task used more memory than promised."""
        return self.is_promised and self.peak_worker_bytes > TASK_BYTES

    def faults(self) -> list[str]:
        """The broken promises, in words."""
        if self.failure:
            return [self.failure] if self.is_promised else []
        found = list(self.compared.differences) if self.compared else []
        if self.rows != self.expected_rows:
            found.append(f"wrote {self.rows:,} rows, expected {self.expected_rows:,}")
        if self.is_too_large:
            found.append(f"a worker took {self.peak_worker_bytes / MIB:,.0f} MiB, expected {TASK_BYTES // MIB} at most")
        return found

    def cells(self) -> tuple[str, ...]:
        """The cells of the row, one for each of `HEADINGS`."""
        start = (self.shape, self.contender, f"{self.decoded_bytes / 1e6:,.0f}")
        if self.failure:
            return (*start, *[_NOTHING] * (len(HEADINGS) - len(start)))
        hits, counted = sizing_hits(self.output_files, self.target_file_bytes)
        sizes = sorted(size / 1e6 for size in self.output_files) or [0.0]
        return (
            *start,
            f"{self.decoded_bytes / 1e6 / self.seconds:,.0f}",
            f"{self.cpu_seconds_per_gb:,.2f}",
            f"{self.peak_memory_bytes / MIB:,.0f}",
            f"{self.peak_worker_bytes / MIB:,.0f}" if self.peak_worker_bytes else _NOTHING,
            ("NO" if self.is_too_large else "yes") if self.is_promised else _NOTHING,
            f"{self.rows:,}",
            f"{len(self.output_files)}",
            f"{sizes[0]:,.0f} to {sizes[-1]:,.0f}" if len(sizes) > 1 else f"{sizes[0]:,.0f}",
            f"{hits} of {counted}" if counted else _NOTHING,
            f"{self.compared.value_bytes / 1e6:,.0f}" if self.compared else _NOTHING,
            f"{len(self.compared.differences)}" if self.compared else _NOTHING,
        )


def verdicts(rows: Sequence[ShapeRow]) -> list[str]:
    """The broken promises, or that there are none, if anything was run; and the failures of peers."""
    faults = [f"NOT AS PROMISED: {row.shape}, {row.contender}: {fault}" for row in rows for fault in row.faults()]
    peers = [
        f"{row.shape}: {row.contender} cannot: {row.failure}" for row in rows if row.failure and not row.is_promised
    ]
    kept = ["As promised: no difference, and no task took more than it may."] if rows else []
    return [*(faults or kept), *peers]
