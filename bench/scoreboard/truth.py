"""What the raw text of a set says: its lines, which of them are JSON objects, and the values to compare."""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.scoreboard.sets import DataSet
from bench.scoreboard.values import at_path, identity, raw_members
from bench.shapes import Written

SAMPLED_LINES = 2_000
"""The values of about so many good lines are compared: of every n-th, unless it has the late key."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What has to become of a set.

    Attributes:
        lines: All lines.
        good: By its key, every line that is a JSON object.
        sample: By its key, of every sampled line the raw text of each value.
        late: By its key, of every line with the late key its value.
    """

    lines: int
    good: frozenset[str]
    sample: Mapping[str, Mapping[str, str]]
    late: Mapping[str, str]

    @property
    def bad(self) -> int:
        """Lines that are no JSON object."""
        return self.lines - len(self.good)


def read_truth(chosen: DataSet, given: Written) -> Truth:
    """Read all files of a set with Python's `json`, which decides what a JSON object is.

    Raises:
        ValueError: Two lines have the same key.
    """
    step = max(1, given.lines // SAMPLED_LINES)
    lines = 0
    good: set[str] = set()
    sample: dict[str, dict[str, str]] = {}
    late: dict[str, str] = {}
    for line in _lines(given.folder):
        lines += 1
        found = _parsed(line)
        if found is None:
            continue
        key = identity(found[chosen.key])
        late_value = at_path(found, chosen.late)
        if isinstance(late_value, str):
            late[key] = late_value
        elif len(good) % step == 0:
            sample[key] = dict(raw_members(line.decode()))
        if key in good:
            raise ValueError(f"{chosen.name}: two lines have the {chosen.key} {key}")
        good.add(key)
    return Truth(lines, frozenset(good), sample, late)


def _lines(folder: Path) -> Iterator[bytes]:
    for file in sorted(folder.iterdir()):
        with pa.input_stream(str(file), compression="detect") as stored, io.BufferedReader(stored) as lines:
            yield from lines


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The object; None if the line is not one."""
    try:
        found = json.loads(line.decode(), parse_constant=_refuse)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
