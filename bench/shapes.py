"""The shapes of input of the scale benchmark. Their files are streamed to disk, never held in memory."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from bench import shape_lines

MB = 10**6
GB = 10**9
_GZIP_LEVEL = 1  # what is measured is reading
_GZIP_FORM = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of input.

    Attributes:
        name: The name in the table and for `--only`.
        lines: Makes endless blocks of whole lines from a seed.
        total_bytes: Size of the input before compression.
        file_bytes: Size of a file before compression; it ends with the first whole line that reaches it.
        codec: Empty for plain files, else `gzip` or `zstd`.
        sample_bytes: Size of the sample whose values are compared.
        spark_bytes: Size of the input of the Spark engine, which takes minutes for more.
    """

    name: str
    lines: Callable[[int], Iterator[bytes]]
    total_bytes: int = GB
    file_bytes: int = 64 * MB
    codec: str = ""
    sample_bytes: int = 32 * MB
    spark_bytes: int | None = None

    def scaled(self, total_bytes: int) -> "Shape":
        """This shape, scaled to another size per gigabyte."""
        scaled_bytes = self.total_bytes * total_bytes // GB
        is_one_file = self.file_bytes == self.total_bytes
        return replace(self, total_bytes=scaled_bytes, file_bytes=scaled_bytes if is_one_file else self.file_bytes)

    def beginning(self, total_bytes: int) -> "Shape":
        """This shape, cut to its first `total_bytes` at most."""
        return replace(self, total_bytes=min(self.total_bytes, total_bytes))


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a shape.

    Attributes:
        folder: Holds the files and nothing else.
        decoded_bytes: Their size before compression.
        stored_bytes: Their size on disk.
    """

    folder: Path
    files: int
    lines: int
    decoded_bytes: int
    stored_bytes: int


SHAPES = (
    Shape("wide rows", shape_lines.wide, spark_bytes=128 * MB),
    Shape("sparse rows", shape_lines.sparse, total_bytes=GB // 4, sample_bytes=4 * MB, spark_bytes=64 * MB),
    Shape("tiny rows", shape_lines.tiny, sample_bytes=8 * MB),
    Shape("huge values", shape_lines.huge),
    Shape("deep nesting", shape_lines.deep),
    Shape("small files", shape_lines.events, file_bytes=52_000, sample_bytes=16 * MB),
    Shape("one file", shape_lines.events, total_bytes=5 * GB, file_bytes=5 * GB),
    Shape("gzip", shape_lines.events, file_bytes=16 * MB, codec="gzip"),
    Shape("zstd", shape_lines.events, file_bytes=16 * MB, codec="zstd"),
)


def write_shape(shape: Shape, folder: Path, seed: int) -> Written:
    """Write the files of a shape into a new folder; memory does not grow with their size.

    Raises:
        OSError: The disk is full, or the folder is there.
    """
    folder.mkdir(parents=True)
    pieces = _Pieces(shape.lines(seed))
    suffix = {"gzip": ".gz", "zstd": ".zst"}.get(shape.codec, "")
    files = 0
    while pieces.taken_bytes < shape.total_bytes:
        room = min(shape.file_bytes, shape.total_bytes - pieces.taken_bytes)
        with _open(folder / f"part-{files:06d}.ndjson{suffix}", shape.codec) as file:
            for piece in pieces.take(room):
                file.write(piece)
        files += 1
    stored_bytes = sum(path.stat().st_size for path in folder.iterdir())
    return Written(folder, files, pieces.lines, pieces.taken_bytes, stored_bytes)


class _Pieces:
    """Cuts blocks of lines into files, and counts what was taken."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.lines = self.taken_bytes = 0
        self._blocks = blocks
        self._rest = b""

    def take(self, room: int) -> Iterator[bytes]:
        """Take whole lines until they have this many bytes, or up to one line more."""
        while room > 0:
            block = self._rest or next(self._blocks)
            end = len(block) if len(block) <= room else block.index(b"\n", room - 1) + 1
            piece, self._rest = block[:end], block[end:]
            room -= len(piece)
            self.taken_bytes += len(piece)
            self.lines += piece.count(b"\n")
            yield piece


def _open(path: Path, codec: str) -> AbstractContextManager[Any]:
    if codec == "zstd":
        stream: AbstractContextManager[Any] = pa.CompressedOutputStream(str(path), "zstd")
        return stream
    return _GzipFile(path) if codec == "gzip" else path.open("wb")


class _GzipFile(AbstractContextManager["_GzipFile"]):
    """A gzip file without name and time, so that the same seed gives the same bytes."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._encoder = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORM)

    def __enter__(self) -> Self:
        return self

    def write(self, data: bytes) -> None:
        """Compress more bytes."""
        self._file.write(self._encoder.compress(data))

    def __exit__(self, *exception: object) -> None:
        with self._file:
            self._file.write(self._encoder.flush())
