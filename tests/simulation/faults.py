"""What goes wrong in a run: which kinds of faults a seed has, and where each one falls."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from random import Random

RATES = {
    "refused": (0.0, 0.002, 0.02),  # 503: nothing happened
    "lost": (0.0, 0.002, 0.02),  # it happened, and the answer was lost
    "late": (0.0, 0.002, 0.02),  # reported as failed, and happens later
    "death": (0.0, 0.0005, 0.004),  # the process dies before, after or while it happens
    "pause": (0.0, 0.0005, 0.003),  # the process stands still
    "slow": (0.0, 0.01, 0.05),  # takes seconds
}
"""Shares of the calls. A seed draws one of each."""

WEIGHTS = {"death": 2.0, "pause": 8.0}
"""Where a process writes it dies and stands still more often: there it matters."""

SELDOM_DEATH = 0.03
"""The share of the writes of commands that they die at: these run so seldom, and people interrupt them."""

READING_WEIGHTS = {"refused": 0.1, "lost": 0.1, "late": 0.1}
"""Of commands: they read so much that they would hardly ever come to their writes."""

SHAKEN_CALLS = 6
SHAKEN_WEIGHTS = {"refused": 8.0, "late": 8.0, "death": 40.0, "pause": 80.0}
"""Trouble seldom comes alone: these hold for so many calls of a process that has stood still."""

LATEST_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one call."""

    kind: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class Faults:
    """Draws the faults of a run.

    Attributes:
        refused: Share of the calls, as the others.
        until_fault: Only so many faults happen: the shortest number that still breaks something tells what did.
    """

    chance: Random
    refused: float = 0.0
    lost: float = 0.0
    late: float = 0.0
    death: float = 0.0
    pause: float = 0.0
    slow: float = 0.0
    until_fault: int | None = None
    drawn: int = 0
    is_over: bool = False

    @classmethod
    def of(cls, chance: Random, until_fault: int | None, *, is_harsh: bool = False, is_long: bool = False) -> "Faults":
        """The faults of a seed: many kinds in some, few in others, none in a few; if it is harsh, many of all kinds.

        In a long run they are rarer: with the highest shares little work would get done over days.
        """
        rates = {
            kind: shares[-1] if is_harsh else chance.choice(shares[:2] if is_long else shares)
            for kind, shares in RATES.items()
        }
        if is_harsh:  # with more deaths there would be no driver most of the time
            rates["death"] = RATES["death"][1]
        return cls(chance, **rates, until_fault=until_fault)

    def describe(self) -> str:
        """The rates of this run."""
        shown = [f"{each.name} {getattr(self, each.name):g}" for each in fields(self) if each.name in RATES]
        return ", ".join(shown)

    def draw(self, *, writes: bool, is_shaken: bool, is_seldom: bool = False) -> Fault:
        """The fault of the next call.

        Args:
            writes: Whether the call changes something.
            is_shaken: Whether the process stood still just before.
            is_seldom: Whether it is a command, and nothing that AWS starts again and again.
        """
        value, extent, where = self.chance.random(), self.chance.random(), self.chance.random()
        if self.is_over:
            return Fault()
        weights = SHAKEN_WEIGHTS if is_shaken else WEIGHTS if writes else READING_WEIGHTS if is_seldom else {}
        if is_seldom and writes and self.death:
            weights = {**weights, "death": SELDOM_DEATH / self.death}
        kind = self._kind(value, weights)
        if kind == "late" and not writes:
            kind = "refused"
        if kind == "death":
            kind = ("death before", "death after", "death late" if writes else "death before")[int(where * 3)]
        if not kind:
            return Fault()
        if kind != "slow":
            self.drawn += 1
            if self.until_fault is not None and self.drawn > self.until_fault:
                return Fault()
        longest = {"pause": LONGEST_PAUSE_SECONDS, "slow": 20.0}.get(kind, LATEST_SECONDS)
        return Fault(kind, extent * extent * longest)

    def _kind(self, value: float, weights: Mapping[str, float]) -> str:
        for kind in RATES:
            share = getattr(self, kind) * weights.get(kind, 1.0)
            if value < share:
                return kind
            value -= share
        return ""
