"""The figures of one contender on one set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from bench.measure import Measurement
from bench.scoreboard.account import Account

GB = 10**9


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the scoreboard. What was not measured is None.

    Attributes:
        megabytes_per_second: Millions of bytes of input before compression, by the clock, in the median run.
        cpu_seconds_per_gb: Of all its processes, for 10^9 such bytes, in the median run.
        peak_memory_mib: Of all its processes together, in the median run.
        seconds: The timed pass of each run, in the order of the runs.
        account: What became of the lines, in a run that was not timed; None if there is no output to read.
        recorded: Lines that the contender rejected and recorded; None if it keeps no record of them.
        reason: Why it was not timed, or failed; empty if neither.
    """

    data_set: str
    contender: str
    megabytes_per_second: float | None = None
    cpu_seconds_per_gb: float | None = None
    peak_memory_mib: float | None = None
    seconds: tuple[float, ...] = ()
    account: Account | None = None
    recorded: int | None = None
    reason: str = ""


def timed(proved: Figure, runs: Sequence[Measurement], input_bytes: int) -> Figure:
    """A figure with the medians of the runs.

    Args:
        proved: The figure without them.
        runs: Each with two passes, of which the second counts.
        input_bytes: Length of the input before compression.
    """
    failure = next((each.failure for each in runs if each.failure), "") or _other_rows(proved, runs)
    if failure:
        return replace(proved, reason=failure)
    steady = [each.passes[-1] for each in runs]
    return replace(
        proved,
        megabytes_per_second=input_bytes / 1e6 / median(each.seconds for each in steady),
        cpu_seconds_per_gb=median(each.cpu_seconds for each in steady) / (input_bytes / GB),
        peak_memory_mib=median(each.peak_memory_bytes for each in runs) / 2**20,
        seconds=tuple(each.seconds for each in steady),
    )


def _other_rows(proved: Figure, runs: Sequence[Measurement]) -> str:
    """Whether a pass wrote other rows than the one whose rows were read, in words."""
    expected = proved.account.rows if proved.account else 0
    rows = [one.rows for each in runs for one in each.passes]
    other = next((each for each in rows if each != expected), expected)
    return "" if other == expected else f"a timed pass wrote {other:,} rows, the one before {expected:,}"
