"""The space of shapes that is searched: dimensions, their levels, and which shapes are neighbours. No I/O.

Two shapes are neighbours if they differ in one dimension: by one level where levels are ordered, by any two otherwise.
"""

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

Level = str | int

LEVELS: Mapping[str, tuple[Level, ...]] = {
    "keys": (2, 20, 200, 700, 2000),
    "present": ("all", "half", "four"),
    "kind": ("text", "number", "boolean", "time", "nested", "any"),
    "mix": (
        "plain",
        "escape in 1 %",
        "escape in 30 %",
        "escapes throughout",
        "null in 30 %",
        "empty in 30 %",
        "other kind in 30 %",
        "all of these",
    ),
    "characters": (4, 40, 1_000, 30_000, 1_000_000),
    "levels": (1, 30, 900),
    "distinct": ("one", "hundred", "all"),
    "order": ("same", "shuffled"),
    "columns": ("text", "typed"),
    "codec": ("", "gzip", "zstd"),
    "rejects": (0, 1, 20),
    "file": ("20 kB", "1 MB", "one"),
}
"""By dimension, in the order of `Point`."""

ORDERED = frozenset({"keys", "present", "characters", "levels", "distinct", "rejects", "file"})
FILE_BYTES: Mapping[str, int | None] = {"20 kB": 20_000, "1 MB": 1_000_000, "one": None}
FEW = 4
"""The keys of a line of which few are present."""

_LONGEST_LINE_BYTES = 4_000_000
_PLAIN_CHARACTERS = 40
_OF_TEXT = {"escape in 1 %", "escape in 30 %", "escapes throughout", "empty in 30 %", "all of these"}


@dataclass(frozen=True, slots=True)
class Point:
    """One shape; as it is by default, it is a plain log.

    Attributes:
        keys: The keys of all lines.
        present: How many of them a line has.
        kind: The kind of their values.
        mix: How some values differ from the others.
        characters: The length of texts; of other kinds, the default.
        levels: How deep values are nested; 1 if they are not.
        distinct: How many values there are.
        order: Whether all lines have their keys in the same order.
        columns: `typed`: of the type of the kind, by a schema file.
        codec: Empty for plain files.
        rejects: Percent of the lines that are not JSON.
        file: The size of a file; `one` is all in one.
    """

    keys: int = 20
    present: str = "all"
    kind: str = "text"
    mix: str = "plain"
    characters: int = _PLAIN_CHARACTERS
    levels: int = 1
    distinct: str = "all"
    order: str = "same"
    columns: str = "text"
    codec: str = ""
    rejects: int = 0
    file: str = "one"

    @property
    def name(self) -> str:
        """What it differs in from a plain log."""
        said = [f"{name}={value}" for name, value in self.differences().items()]
        return ", ".join(said) or "plain log"

    @property
    def keys_of_a_line(self) -> int:
        """The keys that a line has."""
        return {"all": self.keys, "half": max(1, self.keys // 2), "four": min(self.keys, FEW)}[self.present]

    def differences(self) -> dict[str, Level]:
        """The dimensions in which it differs from a plain log, with its levels."""
        return {name: value for name, value in asdict(self).items() if value != getattr(_PLAIN, name)}

    def is_valid(self) -> bool:
        """Whether there is such a shape, and no other point that stands for the same one."""
        is_text = self.kind in {"text", "any"}
        return (
            self.keys_of_a_line * (self.characters + self.levels * 8) <= _LONGEST_LINE_BYTES
            and (self.present == "all" or self.keys > 2 * FEW)
            and (is_text or (self.characters == _PLAIN_CHARACTERS and self.mix not in _OF_TEXT))
            and (self.kind == "nested" or self.levels == 1)
            and (self.kind not in {"text", "any", "nested"} or self.columns == "text")
            and (self.kind != "boolean" or self.distinct == "all")
        )

    def neighbours(self, dimension: str) -> list["Point"]:
        """Those that differ from it in this dimension."""
        levels = LEVELS[dimension]
        at = levels.index(getattr(self, dimension))
        near = range(max(0, at - 1), at + 2) if dimension in ORDERED else range(len(levels))
        found = [self._with(dimension, levels[number]) for number in near if number != at and number < len(levels)]
        return [point for point in found if point.is_valid()]

    def _with(self, dimension: str, level: Level) -> "Point":
        changes: dict[str, Any] = {dimension: level}
        return replace(self, **changes)


_PLAIN = Point()
DIMENSIONS = tuple(each.name for each in fields(Point))


def random_point(rng: random.Random) -> Point:
    """Any valid point: most of its dimensions as a plain log has them, for cliffs need few causes."""
    while True:
        changes: dict[str, Any] = {name: rng.choice(LEVELS[name]) for name in rng.sample(DIMENSIONS, rng.randint(0, 5))}
        point = Point(**changes)
        if point.is_valid():
            return point
