"""The lines of a range whose values may hold several lines each: which of them an offset has. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from compactor.core.kafka.ranges import KafkaRange

KafkaValues = Literal["record", "lines"]
"""What a value is: one record, or lines, of which each is a record."""

KAFKA_VALUES: tuple[KafkaValues, ...] = get_args(KafkaValues)

MAX_PARTS = 1024
"""Into how many parts a range is divided at most, to count the further lines of each."""


def further_lines(value: bytes) -> int:
    """How many lines a value has beside its first one. A line feed at its end ends a line, and begins none."""
    return value.count(b"\n") - value.endswith(b"\n") if value else 0


def part_offsets(wanted: KafkaRange) -> int:
    """How many offsets each part of a range has, but for the last one, which may have fewer."""
    return -(-wanted.offsets // MAX_PARTS)


@dataclass(frozen=True, slots=True)
class ValueLines:
    """Which lines the offsets of a range have.

    Each offset has one line at least. So all is exact where a part has one offset, or no further lines.

    Attributes:
        part_offsets: How many offsets a part has.
        further: The further lines of each part; empty if there are none at all.
    """

    wanted: KafkaRange
    part_offsets: int = 1
    further: Sequence[int] = ()

    def lines_of(self, offset: int) -> tuple[int, int]:
        """The first and the last line, from 1, that an offset may have; no other line can be one of its lines."""
        at = offset - self.wanted.first
        if not self.further:
            return at + 1, at + 1
        part = at // self.part_offsets
        first = at + sum(self.further[:part]) + 1
        return first, first + self.further[part]

    def is_exact(self, offset: int) -> bool:
        """Whether the lines that an offset may have are all its own."""
        part = (offset - self.wanted.first) // self.part_offsets
        begin = part * self.part_offsets
        return (
            not self.further
            or not self.further[part]
            or min(begin + self.part_offsets, self.wanted.offsets) == begin + 1
        )

    def offsets_of(self, line: int) -> tuple[int, int]:
        """The first and the last offset that a line may be of."""
        at, start = line - 1, 0
        for part, further in enumerate(self.further):
            begin = part * self.part_offsets
            offsets = min(self.part_offsets, self.wanted.offsets - begin)
            if at < start + offsets + further:
                within = at - start
                first = self.wanted.first + begin
                return first + max(0, within - further), first + min(within, offsets - 1)
            start += offsets + further
        return self.wanted.first + at, self.wanted.first + at
