"""Writes the torture lines as seeds for the fuzz target: python -m tests.support.fuzz_seeds FOLDER."""

import hashlib
import sys
from pathlib import Path

from tests.support.torture_lines import BAD_LINES, DEEP_LINES, GOOD_LINES


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [*GOOD_LINES, *(line for line, _ in BAD_LINES), *DEEP_LINES]
    for seed in (*lines, b"\n".join(GOOD_LINES[:20]), b"\n".join(line for line, _ in BAD_LINES[:60])):
        (folder / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
