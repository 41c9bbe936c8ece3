"""A dirty folder, and what happens to it on the days after: made the same way for each tool."""

import gzip
import json
import os
import shutil
import time
from itertools import count
from pathlib import Path

LINES = 5_000
"""In each good file."""

FILES = 20
DAYS = (1, 2, 3)
DIRTY = ("broken.ndjson", "cut.ndjson.gz", "report.ndjson", "2026-01-20.ndjson")
"""The files that a tool has to say something about."""

_HALF = 500
_HOURS = 3600.0


class DirtyFolder:
    """The folder `raw`, with the numbers of all lines that should be rows.

    Attributes:
        raw: Where the files are.
        good: The ids of all lines that are JSON objects in files that can be read to their end.
    """

    def __init__(self, place: Path) -> None:
        self.raw = place / "raw"
        self.good: set[int] = set()
        self._numbers = count(1)
        self._torn = b""
        shutil.rmtree(place, ignore_errors=True)
        self.raw.mkdir(parents=True)

    def live(self, day: int) -> None:
        """What producers do on a day."""
        (self._first, self._second, self._third)[day - 1]()

    def _first(self) -> None:
        """Good files, one with a broken line, a truncated one, and a CSV file under another name."""
        for number in range(1, FILES + 1):
            self._write(f"2026-01-{number:02}.ndjson", b"".join(self._lines(LINES)), day=1)
        lines = self._lines(2 * _HALF)
        broken = b'{"id": 1, "amount": \n'
        self._write("broken.ndjson", b"".join([*lines[:_HALF], broken, *lines[_HALF:]]), day=1)
        self._torn = gzip.compress(b"".join(self._lines(2 * _HALF, good=False)), mtime=0)
        self._write("cut.ndjson.gz", self._torn[: len(self._torn) * 4 // 5], day=1)
        self._write("report.ndjson", b"id,amount\n1,2.5\n2,3.5\n3,4.5\n", day=1)

    def _second(self) -> None:
        """The truncated file comes whole, a file is delivered again, one has grown, one is new."""
        self._write("cut.ndjson.gz", self._torn, day=2)
        self.good.update(json.loads(line)["id"] for line in gzip.decompress(self._torn).splitlines())
        again, grown = self.raw / "2026-01-10.ndjson", self.raw / "2026-01-20.ndjson"
        self._write(again.name, again.read_bytes(), day=2)
        self._write(grown.name, grown.read_bytes() + b"".join(self._lines(10)), day=2)
        self._write("2026-01-21.ndjson", b"".join(self._lines(LINES)), day=2)

    def _third(self) -> None:
        """A file is delivered once more under another name."""
        self._write("2026-01-11 (1).ndjson", (self.raw / "2026-01-11.ndjson").read_bytes(), day=3)

    def _lines(self, number: int, *, good: bool = True) -> list[bytes]:
        lines = []
        for _ in range(number):
            each = next(self._numbers)
            if good:
                self.good.add(each)
            row = {
                "id": each,
                "at": f"2026-01-01T{each % 24:02}:00:00Z",
                "amount": round(each * 1.1, 2),
                "user": {"name": f"user-{each % 97}"},
                "text": "of an order " * 5,
            }
            lines.append(json.dumps(row).encode() + b"\n")
        return lines

    def _write(self, name: str, content: bytes, *, day: int) -> None:
        """A file that was written some hours ago, on a later day later."""
        (self.raw / name).write_bytes(content)
        written = time.time() - (len(DAYS) + 1 - day) * _HOURS
        os.utime(self.raw / name, (written, written))
