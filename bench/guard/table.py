"""The table of `make bench-guard`, and what it comes to."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.guard.rule import LIMIT, Judged, Verdict, judged

HEADING = (
    f"{'shape':<13}{'input MB':>9}{'old CPU s/GB':>14}{'new CPU s/GB':>14}{'new/old':>9}"
    f"{'99 % sure':>16}{'pairs':>7}  verdict"
)
PASSED, FAILED, UNDECIDED = 0, 1, 2
"""The exit codes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One shape.

    Attributes:
        input_bytes: Its length before compression.
        pairs: CPU seconds of the old and of the new program.
    """

    shape: str
    input_bytes: int
    pairs: Sequence[tuple[float, float]]

    @property
    def judged(self) -> Judged:
        return judged(self.pairs)

    def line(self) -> str:
        """Its line of the table."""
        found = self.judged
        old, new = (median(each) / (self.input_bytes / 1e9) for each in zip(*self.pairs, strict=True))
        between = f"{found.lowest:.3f} to {found.highest:.3f}" if found.lowest else "-"
        return (
            f"{self.shape:<13}{self.input_bytes / 1e6:>9,.0f}{old:>14.2f}{new:>14.2f}{found.ratio:>9.3f}"
            f"{between:>16}{len(self.pairs):>7}  {found.verdict}"
        )


def closing(rows: Sequence[Row]) -> tuple[int, str]:
    """The exit code, and the sentence that says why."""
    of = {verdict: [row.shape for row in rows if row.judged.verdict is verdict] for verdict in Verdict}
    limit = f"{100 * (LIMIT - 1):.0f} %"
    if slower := of[Verdict.SLOWER]:
        return FAILED, f"FAILED: {', '.join(slower)} take over {limit} more CPU time than before."
    if undecided := of[Verdict.UNDECIDED]:
        return UNDECIDED, (
            f"UNDECIDED: {', '.join(undecided)} may take over {limit} more CPU time or not; the pairs differ too much "
            "to tell. Run it again on a machine that does nothing else, or with a larger --size."
        )
    return PASSED, f"Passed: no shape takes over {limit} more CPU time than before."
