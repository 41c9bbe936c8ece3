"""Counts what the crash tests did and found, for the table at their end."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

TITLES = ("kind", "cases", "died", "died twice", "stopped", "not reached", "lines", "lost", "doubled")


class Kind(StrEnum):
    """What a case does to the job."""

    SINGLE = "single deaths"
    PAIRS = "pairs of deaths"
    PLANNER = "planner"
    TWO_DRIVERS = "two drivers"
    CLUSTER_KILLS = "cluster kills"
    ANY_MOMENT = "killed at any moment"


@dataclass(slots=True)
class Case:
    """One lake, and what happened on it.

    Attributes:
        died: Drivers, planners, or workers with their executors that ended by SIGKILL.
        stopped: Drivers and planners that stopped at a step.
        not_reached: Those that ended without ever coming to the step that was named to them.
        lines: Lines that were put in and looked for.
        lost: Of these, neither in the output nor in the rejects.
        doubled: Lines that are there once too often.
    """

    kind: Kind
    died: int = 0
    stopped: int = 0
    not_reached: int = 0
    lines: int = 0
    lost: int = 0
    doubled: int = 0


@dataclass(slots=True)
class Tally:
    """Every case of this run of the tests."""

    cases: list[Case] = field(default_factory=list)

    def case(self, kind: Kind) -> Case:
        """Begin a case; the caller counts in it."""
        self.cases.append(Case(kind))
        return self.cases[-1]

    def rows(self) -> list[tuple[str, ...]]:
        """One row for each kind that there was a case of, and their sum."""
        by_kind = [_row(kind, [case for case in self.cases if case.kind is kind]) for kind in Kind]
        return [TITLES, *(row for row in by_kind if row[1] != "0"), _row("all", self.cases)]

    def table(self) -> list[str]:
        """The rows as lines of text."""
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        ]


def _row(name: str, cases: Iterable[Case]) -> tuple[str, ...]:
    cases = list(cases)
    counts = (
        len(cases),
        sum(case.died for case in cases),
        sum(case.died > 1 for case in cases),
        sum(case.stopped for case in cases),
        sum(case.not_reached for case in cases),
        sum(case.lines for case in cases),
        sum(case.lost for case in cases),
        sum(case.doubled for case in cases),
    )
    return (name, *(f"{count:,}" for count in counts))


TALLY = Tally()
"""Of this process; the end of the test run shows it."""
