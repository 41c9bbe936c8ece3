"""Writes hostile lines and texts as seeds for the fuzz targets: python -m tests.support.fuzz_seeds FOLDER."""

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.support.hostile_texts import HOSTILE_TEXTS
from tests.support.torture_lines import BAD_LINES, DEEP_LINES, GOOD_LINES

_DECIMAL = bytes((17, 2))
"""What is before the text of a value: the digits of a decimal from 1 on, and how many of them are behind the point."""

_DOCUMENT = b'{"k": "v", "a": [{"b": [1, "\\\\\\""]},\n{}, [], null]} {"a": {"b": 2}, "k": [3]} [{"a": []}, 4]'
"""Documents with records at each of the paths of the target."""


def main(folder: Path) -> None:
    lines = [*GOOD_LINES, *(line for line, _ in BAD_LINES), *DEEP_LINES]
    _write(folder / "lines", (*lines, b"\n".join(GOOD_LINES[:20]), b"\n".join(line for line, _ in BAD_LINES[:60])))
    _write(folder / "values", (_DECIMAL + text.encode() for text in HOSTILE_TEXTS))
    _write(folder / "elements", (bytes((drawn, 5)) + _DOCUMENT for drawn in range(16)))


def _write(folder: Path, seeds: Iterable[bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (folder / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
