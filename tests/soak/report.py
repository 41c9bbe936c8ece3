"""What a soak found, as a table."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.soak.comparison import Comparison
from tests.soak.feeder import Record
from tests.soak.supervisor import Chronicle

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a soak did and found.

    Attributes:
        faults: By kind.
        finishing_runs: Runs without faults until nothing was left.
        discrepancies: What `verify --deep` found.
    """

    seed: int
    engine: str
    minutes: float
    record: Record
    chronicle: Chronicle
    faults: Mapping[str, int]
    finishing_runs: int
    comparison: Comparison
    discrepancies: int

    @property
    def is_exact(self) -> bool:
        """Whether nothing differs."""
        return self.comparison.is_exact and not self.discrepancies and not self.chronicle.hung

    def lines(self) -> list[str]:
        """The table, and the first differences below it."""
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return [*(f"{name.ljust(width)}  {value}" for name, value in rows), *self.comparison.shown]

    def _rows(self) -> list[tuple[str, str]]:
        chronicle, comparison = self.chronicle, self.comparison
        quarter = max(1, len(chronicle.memory) // 4)
        first, last = chronicle.peak_bytes(slice(quarter)), chronicle.peak_bytes(slice(-quarter, None))
        return [
            ("seed", str(self.seed)),
            ("engine", self.engine),
            ("minutes", f"{self.minutes:.1f}"),
            ("fed", _counts(self.record.events)),
            ("files", f"{len(self.record.files):,}"),
            ("lines", f"{comparison.good_lines:,} good, {comparison.bad_lines:,} bad"),
            ("starts of the job", f"{chronicle.starts:,}, and {self.finishing_runs} to finish"),
            ("kills", _counts(chronicle.kills)),
            ("ended by itself", _counts({f"exit {code}": number for code, number in chronicle.exits.items()})),
            ("did not end", f"{chronicle.hung} jobs, {chronicle.orphans} processes of killed parents"),
            ("faults", _counts(self.faults)),
            ("peak memory", f"{first / _MIB:,.0f} MiB in the first quarter, {last / _MIB:,.0f} MiB in the last"),
            ("lost", f"{comparison.lost:,}"),
            ("doubled", f"{comparison.doubled:,}"),
            ("differences", f"{comparison.differences:,}"),
            ("discrepancies by verify --deep", f"{self.discrepancies:,}"),
        ]


def _counts(counts: Mapping[str, int]) -> str:
    parts = ", ".join(f"{name} {number:,}" for name, number in sorted(counts.items()))
    return f"{sum(counts.values()):,} ({parts})" if parts else "none"
