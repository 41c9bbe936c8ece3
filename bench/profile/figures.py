"""From what was measured to figures a gigabyte, and the table of them. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from bench.profile.limits import MEANING
from bench.profile.runs import Spent
from bench.profile.stages import Stage

_GB = 1e9
_CERTAIN = 2  # standard deviations: about 95 %


@dataclass(frozen=True, slots=True)
class Profile:
    """What one shape of input takes.

    Attributes:
        input_bytes: Its length before compression.
        spent: By the whole program.
        start: By the program with one line of input, which any call takes.
        limits: Seconds of each stage at best, for all the input.
    """

    shape: str
    input_bytes: int
    spent: Spent
    start: Spent
    limits: Mapping[Stage, float]

    @property
    def taken(self) -> Mapping[Stage, float]:
        """CPU seconds a gigabyte of each stage, without the start of the program: none is below 0."""
        start = self.start.by_stage
        return {
            stage: max(0.0, seconds - start[stage]) * _GB / self.input_bytes
            for stage, seconds in self.spent.by_stage.items()
        }

    @property
    def at_best(self) -> Mapping[Stage, float]:
        """CPU seconds a gigabyte that each stage would take at best; without stages that have no limit."""
        return {stage: seconds * _GB / self.input_bytes for stage, seconds in self.limits.items()}

    def document(self) -> dict[str, object]:
        """The figures as JSON."""
        return {
            "shape": self.shape,
            "input_bytes": self.input_bytes,
            "samples": sum(self.spent.samples.values()),
            "cpu_seconds": self.spent.seconds,
            "start_cpu_seconds": self.start.seconds,
            "cpu_seconds_a_gb": dict(self.taken),
            "limit_cpu_seconds_a_gb": dict(self.at_best),
            "unknown": dict(self.spent.unknown),
        }


def table(profiles: Sequence[Profile]) -> str:
    """The table: a row for each stage, a column for each shape, and the limit of the first shape."""
    names = [profile.shape for profile in profiles]
    first = profiles[0]
    rows = [["stage", *names, f"limit, {names[0]}", "the limit is"]]
    rows.append(["---"] * len(rows[0]))
    taken, limits = [profile.taken for profile in profiles], first.at_best
    for stage in Stage:
        limit = f"{limits[stage]:.2f}" if stage in limits else ""
        rows.append([stage, *(f"{each[stage]:.2f}" for each in taken), limit, MEANING.get(stage, "")])
    totals = (f"**{sum(each.values()):.2f}**" for each in taken)
    rows.append(["**all**", *totals, f"{sum(limits.values()):.2f}", ""])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def closing(profiles: Sequence[Profile]) -> str:
    """What the figures were measured with."""
    sizes = ", ".join(f"{profile.shape} {profile.input_bytes / 1e6:,.0f} MB" for profile in profiles)
    least = min(sum(profile.spent.samples.values()) for profile in profiles)
    start = profiles[0].start.seconds
    chance = 100 * _CERTAIN * 0.5 / sqrt(least)
    return (
        f"A call takes {start:.2f} CPU seconds more, to start. Input: {sizes}; {least:,} samples or more of each, so a "
        f"figure may be off by {chance:.0f} % of its column by chance, start included."
    )
