"""Detects the compression of a file from its content, never from its name, and decodes it."""

import bz2
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import cramjam
import pyarrow as pa
from zlib_ng import zlib_ng

from compactor.core.errors import FileError

CODECS = ("none", "gzip", "bzip2", "xz", "zstd", "zlib", "snappy")
"""Every codec that `sniff` detects. `snappy` is the framing format."""

MAX_PIECE_BYTES = 4 * 1024 * 1024
"""The longest decoded piece, whatever the compression ratio."""

SNIFF_BYTES = 64 * 1024
"""How much of a file `sniff` should get. Less suffices unless the file is long text that resembles zlib."""

_FEED_BYTES = 64 * 1024
_XZ_MEMORY_BYTES = 256 * 1024 * 1024  # xz -9 needs 65 MiB to decode
_GZIP_WINDOW = 31  # zlib's parameter: 16 for a gzip header and trailer, plus 15, the largest window
_ZLIB_WINDOW = 15
_INFLATE_ERROR: type[Exception] = zlib_ng.error  # type: ignore[assignment]  # declared as if it were an instance

_PADDING_BYTES = {"gzip": 1, "xz": 4}
"""Zero bytes may follow a member, in multiples of this. The gzip program ignores any number of them."""

_ZLIB_FIRST_BYTES = tuple(bytes([window << 4 | 8]) for window in range(8))  # deflate, with windows up to 32 KiB
_ZLIB_PRESET_DICTIONARY = 0x20
_ZLIB_USUAL_BYTE = b"\x78"  # a window of 32 KiB
_ZLIB_HEADER_BYTES = 2
_ZLIB_NO_BLOCK = 3  # the invalid one of the four types
_ZLIB_START_BYTES = 64  # of compressed data, hardly ever text

_MAGIC = {
    b"\x1f\x8b\x08": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xff\x06\x00\x00sNaPpY": "snappy",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BZIP2_BLOCKS = (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90")  # first block; end of an empty stream


def sniff(head: bytes) -> str:
    """Detect a file's codec: one of `CODECS`.

    Args:
        head: The first `SNIFF_BYTES` of the file, or all of a shorter one.
    """
    for magic, codec in _MAGIC.items():
        if head.startswith(magic):
            return codec
    if head[:3] == b"BZh" and head[3:4] in b"123456789" and head[4:10] in _BZIP2_BLOCKS:
        return "bzip2"
    if b"\x50" <= head[:1] <= b"\x5f" and head[1:4] == b"\x2a\x4d\x18":  # a skippable zstd frame
        return "zstd"
    return "zlib" if _is_zlib(head) else "none"


def _is_zlib(head: bytes) -> bool:
    """Whether the header is valid, the rest inflates, and the head is not text.

    Text may start with a valid header such as `x^`, and the next few characters may inflate.
    """
    if head[:1] not in _ZLIB_FIRST_BYTES or len(head) == 1:
        return False
    if int.from_bytes(head[:2], "big") % 31 or head[1] & _ZLIB_PRESET_DICTIONARY:
        return False
    inflater = zlib.decompressobj(_ZLIB_WINDOW)
    try:
        started = inflater.decompress(head, MAX_PIECE_BYTES)
    except zlib.error:
        return _is_corrupt_zlib(head)
    return inflater.eof or (bool(started) and not _is_text(head))


def _is_corrupt_zlib(head: bytes) -> bool:
    """Whether bytes that do not inflate look like encoder output: a header, a valid block, no text."""
    is_block = len(head) > _ZLIB_HEADER_BYTES and head[_ZLIB_HEADER_BYTES] >> 1 & 3 != _ZLIB_NO_BLOCK
    return head[:1] == _ZLIB_USUAL_BYTE and is_block and not _is_text(head[:_ZLIB_START_BYTES])


def _is_text(head: bytes) -> bool:
    if _CONTROL.search(head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as exc:
        return exc.reason == "unexpected end of data"  # the head ends inside a character
    return True


def decode(codec: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Decode a file into pieces of at most `MAX_PIECE_BYTES`. Consecutive members, streams or frames form one file.

    Args:
        codec: One of `CODECS`.
        chunks: The bytes as stored, split anywhere. Errors raised by the iterable pass through unchanged.

    Raises:
        FileError: `unreadable`: the bytes are corrupt, truncated, or followed by other data.
    """
    if codec == "none":
        return _slices(chunks, MAX_PIECE_BYTES)
    if codec == "zstd":
        return _zstd(chunks)
    if codec == "snappy":
        return _snappy(_slices(chunks, _FEED_BYTES))
    return _members(codec, chunks)


def _slices(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    for chunk in chunks:
        for at in range(0, len(chunk), size):
            yield chunk[at : at + size]


def _unreadable(codec: str, offset: int, what: object) -> FileError:
    return FileError("unreadable", f"{codec} data at about byte {offset}: {what}")


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Inflater:
    """Adapts zlib-ng to the decompressor interface of `bz2` and `lzma`; takes 60 % of zlib's time."""

    def __init__(self, window: int) -> None:
        self._inflater = zlib_ng.decompressobj(window)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflater.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflater.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        output = self._inflater.decompress(self._inflater.unconsumed_tail + data, max_length)
        self.needs_input = not self._inflater.unconsumed_tail and len(output) < max_length
        return output


_START_BYTES = 16  # of a member, which identify its codec
_FOLLOWED = "other data follows its end; expected nothing, or another member"

_MEMBER: dict[str, Callable[[], _Decompressor]] = {
    "gzip": lambda: _Inflater(_GZIP_WINDOW),
    "zlib": lambda: _Inflater(_ZLIB_WINDOW),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES),
}


def _members(codec: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    member: _Decompressor | None = None
    offset, members, padding, start = 0, 0, 0, b""
    for fed in _slices(chunks, _FEED_BYTES):
        data = fed
        offset += len(data)
        while data or (member and not member.needs_input):
            if member is None:
                if codec in _PADDING_BYTES and members:
                    rest = data.lstrip(b"\x00")
                    padding += len(data) - len(rest)
                    data = rest
                    if not data:
                        break
                    _check_padding(codec, padding, offset - len(data))
                member, padding, start = _MEMBER[codec](), 0, b""
            start += data[: _START_BYTES - len(start)]
            try:
                output = member.decompress(data, MAX_PIECE_BYTES)
            except (_INFLATE_ERROR, lzma.LZMAError, OSError) as exc:
                what = _FOLLOWED if members and sniff(start) != codec else exc
                raise _unreadable(codec, offset - len(data), what) from exc
            data = b""
            if output:
                yield output
            if member.eof:
                data, member, members = member.unused_data, None, members + 1
    if member is not None:
        raise _truncated(codec, offset, members)
    _check_padding(codec, padding, offset)


def _truncated(codec: str, offset: int, members: int) -> FileError:
    if members:  # otherwise something other than a member follows
        return _unreadable(codec, offset, "ends before its end marker: truncated")
    return FileError("unreadable", f"truncated {codec}: ends at about byte {offset:,} without an end marker")


def _check_padding(codec: str, padding: int, offset: int) -> None:
    if padding % _PADDING_BYTES.get(codec, 1):
        raise _unreadable(codec, offset, f"{padding} zero bytes after a stream, expected a multiple of 4")


class _ChunkReader(io.RawIOBase):
    """Presents chunks to Arrow as a file. Keeps a source error, so that it is not reported as corrupt data."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        super().__init__()
        self._chunks = _slices(chunks, _FEED_BYTES)
        self._rest = b""
        self.offset = 0
        self.failure: BaseException | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            while not self._rest:
                self._rest = next(self._chunks, b"")
                if not self._rest:
                    return b""
        except BaseException as exc:
            self.failure = exc
            raise
        data = self._rest if size < 0 else self._rest[:size]
        self._rest = self._rest[len(data) :]
        self.offset += len(data)
        return data


def _zstd(chunks: Iterable[bytes]) -> Iterator[bytes]:
    reader = _ChunkReader(chunks)
    with pa.CompressedInputStream(pa.PythonFile(reader, "r"), "zstd") as stream:
        while True:
            try:
                piece = stream.read(MAX_PIECE_BYTES)
            except (pa.ArrowException, OSError) as exc:
                if reader.failure is not None:
                    raise reader.failure from None
                raise _unreadable("zstd", reader.offset, exc) from exc
            if not piece:
                return
            yield piece


_SNAPPY_START = b"\xff\x06\x00\x00sNaPpY"
_CHUNK_HEADER_BYTES = 4
_MAX_CHUNK_BYTES = 4 + 32 + 65536 + 65536 // 6  # a checksum, and snappy's upper bound for 64 KiB of data
_GROUP_CHUNKS = 64  # of at most 64 KiB each: 4 MiB
_DATA = (0x00, 0x01)
_IDENTIFIER = 0xFF
_FIRST_SKIPPABLE = 0x80
# Many short chunks to skip at once: one at a time, a file of them would cost its thread two seconds per megabyte.
_SHORT = b"|".join(b"\\x%02x\\0\\0[\\s\\S]{%d}" % (length, length) for length in range(16))
_SKIPPABLE_RUN = re.compile(rb"(?:[\x80-\xfe](?:" + _SHORT + rb"))+")


def _snappy(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decode snappy's framing format: split it into chunks, which cramjam decompresses and checks."""
    group: list[bytes] = []
    group_offset = 0
    for offset, kind, chunk in _chunks(pieces):
        if offset == 0 and kind != _IDENTIFIER:
            raise _unreadable("snappy", 0, f"chunk of type {kind:#04x}, expected the stream identifier")
        if kind == _IDENTIFIER and chunk != _SNAPPY_START:
            raise _unreadable("snappy", offset, "a stream identifier that does not read sNaPpY")
        if kind in _DATA:
            group_offset = group_offset if group else offset
            group.append(chunk)
            if len(group) == _GROUP_CHUNKS:
                yield from _decompressed(group, group_offset)
                group = []
    yield from _decompressed(group, group_offset)


def _decompressed(group: list[bytes], offset: int) -> Iterator[bytes]:
    try:
        output = bytes(cramjam.snappy.decompress(_SNAPPY_START + b"".join(group)))
    except cramjam.DecompressionError as exc:
        raise _unreadable("snappy", offset, exc) from exc
    if output:
        yield output


def _chunks(pieces: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the offset, type and bytes of every chunk, including the header. Skippable chunks have only the header."""
    held = bytearray()
    offset, skip = 0, 0
    for piece in pieces:
        held += piece
        while True:
            dropped = min(skip, len(held))
            del held[:dropped]
            skip -= dropped
            offset += dropped
            if skip or len(held) < _CHUNK_HEADER_BYTES:
                break
            if offset and (run := _SKIPPABLE_RUN.match(held)):
                skip = run.end()
                continue
            kind, length = held[0], int.from_bytes(held[1:4], "little")
            if _FIRST_SKIPPABLE <= kind < _IDENTIFIER:
                yield offset, kind, bytes(held[:_CHUNK_HEADER_BYTES])
                skip = _CHUNK_HEADER_BYTES + length
                continue
            if kind not in _DATA and kind != _IDENTIFIER:
                raise _unreadable("snappy", offset, f"chunk of unknown type {kind:#04x}")
            if length > _MAX_CHUNK_BYTES:
                raise _unreadable("snappy", offset, f"chunk of {length} bytes, expected at most 64 KiB of data")
            if len(held) < _CHUNK_HEADER_BYTES + length:
                break
            skip = _CHUNK_HEADER_BYTES + length
            yield offset, kind, bytes(held[:skip])
    if held or skip:
        raise _unreadable("snappy", offset, "ends within a chunk: truncated")
