"""What the tests of faults on S3 tried and found, as a table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults.fault_rules import FaultKind, Operation

TITLES = ("level", "fault", "calls", "cases", "injected", "restarts", "lost", "doubled")


@dataclass(slots=True)
class Findings:
    """Counts by level and kind of fault.

    Attributes:
        counts: Of what the titles name.
        operations: The kinds of calls that such a fault befell.
    """

    counts: dict[tuple[str, FaultKind], Counter[str]] = field(default_factory=dict)
    operations: dict[tuple[str, FaultKind], set[Operation]] = field(default_factory=dict)

    def add(self, level: str, kind: FaultKind, operations: Iterable[Operation], **counts: int) -> None:
        """Put one case on record.

        Args:
            level: What was looked at: the store, or a job.
            kind: What went wrong.
            operations: In which calls.
            counts: By title.
        """
        self.counts.setdefault((level, kind), Counter()).update({"cases": 1, **counts})
        self.operations.setdefault((level, kind), set()).update(operations)

    def merge(self, counted: Iterable[Sequence[Any]]) -> None:
        """Add what `counted` gave in another process."""
        for level, kind, operations, counts in counted:
            self.counts.setdefault((level, FaultKind(kind)), Counter()).update(counts)
            self.operations.setdefault((level, FaultKind(kind)), set()).update(map(Operation, operations))

    def counted(self) -> list[list[Any]]:
        """Everything on record as lists, texts and numbers: level, kind, operations and counts of each line."""
        return [
            [level, str(kind), [str(operation) for operation in self.operations[level, kind]], dict(counts)]
            for (level, kind), counts in self.counts.items()
        ]

    def table(self) -> list[str]:
        """The lines of the table."""
        rows: list[tuple[str, ...]] = [TITLES]
        for (level, kind), counts in sorted(self.counts.items()):
            shown = [len(self.operations[level, kind]), *(counts[title] for title in TITLES[3:])]
            rows.append((level, kind, *(f"{number:,}" for number in shown)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


FINDINGS = Findings()
"""What the tests of this process found; the process that sums up merges those of all."""
