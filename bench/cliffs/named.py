"""The named shapes: those that were a cliff once."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from bench.cliffs.points import LEVELS, Level, Point
from bench.cliffs.search import Cliff

NAMED = Path(__file__).with_name("named.toml")


@dataclass(frozen=True, slots=True)
class Named:
    """A named shape.

    Attributes:
        beside: The dimension of the neighbours that are measured, too; empty if none are.
    """

    point: Point
    beside: str = ""


def named_shapes(file: Path = NAMED) -> dict[str, Named]:
    """The shapes of a file, by their names.

    Raises:
        ValueError: A shape is none.
    """
    found = {}
    for entry in tomllib.loads(file.read_text())["shapes"]:
        name, beside = str(entry.pop("name")), str(entry.pop("beside", ""))
        is_known = all(level in LEVELS.get(key, ()) for key, level in entry.items()) and beside in {"", *LEVELS}
        point = Point(**entry) if is_known else None
        if point is None or not point.is_valid():
            raise ValueError(f"{file}: {name}: expected levels of bench/cliffs/points.py, found {entry}")
        found[name] = Named(point, beside)
    return found


def keep(cliff: Cliff, file: Path = NAMED) -> bool:
    """Add the shape of a cliff to a file, unless it is there."""
    if any(cliff.point == each.point for each in named_shapes(file).values()):
        return False
    levels = {**cliff.point.differences(), **({"beside": cliff.beside} if cliff.beside else {})}
    lines = "".join(f"{name} = {_written(level)}\n" for name, level in levels.items())
    with file.open("a") as end:
        end.write(f'\n[[shapes]]\nname = "{cliff.point.name}"\n{lines}')
    return True


def _written(level: Level) -> str:
    return f'"{level}"' if isinstance(level, str) else f"{level}"
