"""What a soak found, as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.soak.comparison import Comparison
from tests.soak.feeder import Record
from tests.soak.supervisor import Chronicle
from tests.soak.throughput import SHARE_MIN, Throughput, share
from tests.soak.verification import Verification

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a soak did and found.

    Attributes:
        minutes: Of the phases.
        measured: The phases whose throughput counts.
        faults: By kind.
        finishing_runs: Runs without passing faults until nothing was left.
        finishing_minutes: How long they took.
        comparison: Input against output, row by row.
        verification: What `compactor verify --deep` says.
    """

    seed: int
    engine: str
    minutes: float
    record: Record
    chronicle: Chronicle
    measured: Sequence[Throughput]
    faults: Mapping[str, int]
    finishing_runs: int
    finishing_minutes: float
    comparison: Comparison
    verification: Verification

    @property
    def is_exact(self) -> bool:
        """Whether nothing differs."""
        return self.comparison.is_exact and self.verification.is_exact and not self.chronicle.hung

    @property
    def is_fast(self) -> bool:
        """Whether trouble left enough of the throughput; true if it was not measured for long enough."""
        found = share(self.measured)
        return found is None or found >= SHARE_MIN

    def lines(self) -> list[str]:
        """The table, and the first differences below it."""
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        shown = [*self.comparison.shown, *self.verification.shown]
        return [*(f"{name.ljust(width)}  {value}" for name, value in rows), *shown]

    def _rows(self) -> list[tuple[str, str]]:
        chronicle, comparison = self.chronicle, self.comparison
        quarter = max(1, len(chronicle.memory) // 4)
        first, last = chronicle.peak_bytes(slice(quarter)), chronicle.peak_bytes(slice(-quarter, None))
        finish = f"{self.finishing_runs} to finish, in {self.finishing_minutes:.1f} minutes"
        return [
            ("seed", str(self.seed)),
            ("engine", self.engine),
            ("minutes", f"{self.minutes:.1f}"),
            ("fed", _counts(self.record.events)),
            ("files", f"{len(self.record.files):,}"),
            ("lines", f"{comparison.good_lines:,} good, {comparison.bad_lines:,} bad"),
            ("starts of the job", f"{chronicle.starts:,}, and {finish}"),
            ("kills", _counts(chronicle.kills)),
            ("ended by itself", _counts({f"exit {code}": number for code, number in chronicle.exits.items()})),
            ("did not end", f"{chronicle.hung} jobs, {chronicle.orphans} processes of killed parents"),
            ("faults", _counts(self.faults)),
            ("peak memory", f"{first / _MIB:,.0f} MiB in the first quarter, {last / _MIB:,.0f} MiB in the last"),
            *((each.span.name, str(each)) for each in self.measured),
            ("trouble to calm", self._share()),
            ("dead letters", _counts(comparison.letters)),
            ("good dead letters", f"{comparison.good_letters:,}"),
            ("denied files", f"{self.verification.forbidden:,} quarantined"),
            ("manifests not to be read", f"{self.verification.closed:,} left where they were"),
            ("lost", f"{comparison.lost:,}"),
            ("doubled", f"{comparison.doubled:,}"),
            ("differences", f"{comparison.differences:,}"),
            ("discrepancies by verify --deep", f"{self.verification.discrepancies:,}"),
        ]

    def _share(self) -> str:
        found = share(self.measured)
        if found is None:
            return "not measured for long enough to tell"
        return f"{found:.0%} of the lines a second, expected at least {SHARE_MIN:.0%}"


def _counts(counts: Mapping[str, int]) -> str:
    parts = ", ".join(f"{name} {number:,}" for name, number in sorted(counts.items()))
    return f"{sum(counts.values()):,} ({parts})" if parts else "none"
