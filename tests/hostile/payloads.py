"""Bytes that a hostile producer may write: bombs of each codec, and damaged files."""

import bz2
import gzip
import lzma
import random
import struct
import zlib
from collections.abc import Callable, Iterator

import cramjam
import zstandard

MIB = 1024 * 1024
LINE = b'{"id": "a"}\n'
BAD = b"x\n"

_STREAM_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
_PIECE = 65_536  # decoded bytes of a frame of the framing format


def noise(length: int, seed: int = 1) -> bytes:
    """Bytes that do not compress; the same for the same seed."""
    return random.Random(seed).randbytes(length)


def _pieces(line: bytes, length: int) -> Iterator[bytes]:
    piece = line * (MIB // len(line))
    for _ in range(length // len(piece) + 1):
        yield piece


def _bomb(compress: Callable[[bytes], bytes], flush: Callable[[], bytes], line: bytes, length: int) -> bytes:
    return b"".join([*map(compress, _pieces(line, length)), flush()])


def gzip_bomb(line: bytes, length: int) -> bytes:
    """At least so many bytes of one line, in one gzip member."""
    coder = zlib.compressobj(9, wbits=31)
    return _bomb(coder.compress, coder.flush, line, length)


def zlib_bomb(line: bytes, length: int) -> bytes:
    coder = zlib.compressobj(9)
    return _bomb(coder.compress, coder.flush, line, length)


def bzip2_bomb(line: bytes, length: int) -> bytes:
    """Streams of 1 MiB each: one long stream takes minutes to write."""
    return bz2.compress(next(_pieces(line, MIB))) * (length // MIB + 1)


def xz_bomb(line: bytes, length: int) -> bytes:
    return lzma.compress(next(_pieces(line, MIB))) * (length // MIB + 1)


def zstd_bomb(line: bytes, length: int) -> bytes:
    coder = zstandard.ZstdCompressor(level=3).compressobj()
    return _bomb(coder.compress, coder.flush, line, length)


def snappy_bomb(line: bytes, length: int) -> bytes:
    piece = line * (_PIECE // len(line))
    framed = bytes(cramjam.snappy.compress(piece)).removeprefix(_STREAM_IDENTIFIER)
    return _STREAM_IDENTIFIER + framed * (length // len(piece) + 1)


BOMBS = {
    "gzip": gzip_bomb,
    "zlib": zlib_bomb,
    "bzip2": bzip2_bomb,
    "xz": xz_bomb,
    "zstd": zstd_bomb,
    "snappy": snappy_bomb,
}
"""A bomb of each codec."""


def zstd_window(log: int, data: bytes) -> bytes:
    """A zstd frame that asks for a window of 2**log bytes."""
    window = struct.pack("<B", (log - 10) << 3)
    blocks = [data[at : at + 100_000] for at in range(0, len(data), 100_000)]
    raw = b"".join(
        struct.pack("<I", len(block) << 3 | (number == len(blocks) - 1))[:3] + block
        for number, block in enumerate(blocks)
    )
    return b"\x28\xb5\x2f\xfd\x00" + window + raw


def xz_dictionary(length: int) -> bytes:
    """An xz file that asks for a dictionary of so many bytes."""
    made = bytearray(lzma.compress(LINE, preset=0, check=lzma.CHECK_NONE))
    # The block header: its size, its flags, then the filter: id 0x21, one byte of properties, the dictionary.
    assert made[12 + 2 : 12 + 4] == b"\x21\x01"
    made[12 + 4] = next(bits for bits in range(41) if (2 | bits & 1) << (bits // 2 + 11) >= length)
    header = made[12 : 12 + (made[12] + 1) * 4]
    made[12 : 12 + len(header)] = header[:-4] + struct.pack("<I", zlib.crc32(header[:-4]))
    return bytes(made)


def gzip_members(lines: int, line: bytes = LINE) -> bytes:
    """Many small members one after the other."""
    return gzip.compress(line, 1, mtime=0) * lines


def gzip_with_name(length: int) -> bytes:
    """A gzip file whose header has a name of so many bytes."""
    member = gzip.compress(LINE, mtime=0)
    return member[:3] + b"\x08" + member[4:10] + b"n" * length + b"\0" + member[10:]


def cut(data: bytes, by: int = 5) -> bytes:
    """The data without its end."""
    return data[:-by]
