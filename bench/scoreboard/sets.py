"""The sets of data. Each has a key that no two lines share, and a late key, in its last hundredth only."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path

from bench import shape_lines
from bench.scoreboard.bluesky import bluesky
from bench.shapes import MB, Shape, Written, write_shape
from compactor.demo.events import BAD_LINES, FILE_BYTES

LATE_KEY = "late_key"
BAD_EVERY = 100
"""In a dirty set, every so many-th line is no JSON."""

BAD_KINDS = {name: made for name, made in BAD_LINES.items() if name != "array"}
"""An array is JSON, and where one is a line, readers that infer may take each line as one value: no fair test."""

_LATE_SHARE = 0.01
_LATE_BYTES = 65_536  # of a small set, for which a hundredth may be less than a line
_SMALL_FILE_BYTES = 15_400  # 300 MiB make 20,000 files
_WIDE_COLUMNS = 500
_LEVELS = 20


@dataclass(frozen=True, slots=True)
class DataSet:
    """A kind of input.

    Attributes:
        name: The name in the table and for `--only`.
        lines: Makes endless blocks of good lines from a seed.
        file_bytes: Size of a file before compression.
        codec: Empty for plain files, else `gzip` or `zstd`.
        key: The key on top whose value no two lines share.
        late: Where the late key is: its own name last.
        is_dirty: Whether every hundredth line is bad.
    """

    name: str
    lines: Callable[[int], Iterator[bytes]]
    file_bytes: int = FILE_BYTES
    codec: str = ""
    key: str = "id"
    late: tuple[str, ...] = (LATE_KEY,)
    is_dirty: bool = False

    def write(self, folder: Path, total_bytes: int, seed: int) -> Written:
        """Write the files into a new folder.

        Raises:
            OSError: The disk is full, or the folder is there.
        """
        shape = Shape(self.name, self.lines, total_bytes, self.file_bytes, self.codec)
        return write_shape(replace(shape, lines=lambda given: self._all_lines(given, total_bytes)), folder, seed)

    def _all_lines(self, seed: int, total_bytes: int) -> Iterator[bytes]:
        late_bytes = max(_LATE_BYTES, int(total_bytes * _LATE_SHARE))
        parent = f'"{self.late[-2]}":{{' if len(self.late) > 1 else "{"
        blocks = with_late_key(self.lines(seed), total_bytes - late_bytes, parent.encode())
        return with_bad_lines(blocks) if self.is_dirty else blocks


def with_late_key(blocks: Iterator[bytes], begin_bytes: int, parent: bytes) -> Iterator[bytes]:
    """Add a late key to every line behind so many bytes.

    Args:
        blocks: Whole lines.
        begin_bytes: Lines that begin earlier stay as they are.
        parent: The text that opens the object that gets the key; a line without it stays as it is.
    """
    passed = 0
    for block in blocks:
        if passed + len(block) <= begin_bytes:
            passed += len(block)
            yield block
            continue
        lines = []
        for line in block.splitlines(keepends=True):
            late = parent + b'"%s":"late-%d",' % (LATE_KEY.encode(), passed)
            lines.append(line.replace(parent, late, 1) if passed >= begin_bytes else line)
            passed += len(line)
        yield b"".join(lines)


def with_bad_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Make every hundredth line into one that is no JSON, in each of the known ways in turn."""
    kinds = cycle(BAD_KINDS.values())
    number = 0
    for block in blocks:
        lines = block.splitlines()
        for at in range(len(lines)):
            number += 1
            if number % BAD_EVERY == 0:
                lines[at] = next(kinds)(lines[at])
        yield b"\n".join([*lines, b""])


SETS = (
    DataSet("events", shape_lines.events),
    DataSet("bluesky", bluesky, key="time_us", late=("commit", "record", LATE_KEY)),
    DataSet("wide", partial(shape_lines.wide, columns=_WIDE_COLUMNS), file_bytes=16 * MB),
    DataSet("nested", partial(shape_lines.deep, levels=_LEVELS), file_bytes=16 * MB),
    DataSet("dirty", shape_lines.events, is_dirty=True),
    DataSet("small files", shape_lines.events, file_bytes=_SMALL_FILE_BYTES),
    DataSet("gzip", shape_lines.events, codec="gzip"),
    DataSet("zstd", shape_lines.events, codec="zstd"),
)
