"""Decodes snappy's framing format in bounded memory: splits it into chunks, which cramjam decompresses and checks."""

import re
from collections.abc import Iterable, Iterator

import cramjam

from compactor.core.errors import FileError

_START = b"\xff\x06\x00\x00sNaPpY"
_HEADER_BYTES = 4
_MAX_CHUNK_BYTES = 4 + 32 + 65536 + 65536 // 6  # a checksum, and snappy's upper bound for 64 KiB of data
_GROUP_CHUNKS = 64  # of at most 64 KiB each: 4 MiB
_DATA = (0x00, 0x01)
_IDENTIFIER = 0xFF
_FIRST_SKIPPABLE = 0x80
# Many short chunks to skip at once: one at a time, a file of them would take its thread two seconds a megabyte.
_SHORT = b"|".join(b"\\x%02x\\0\\0[\\s\\S]{%d}" % (length, length) for length in range(16))
_SKIPPABLE_RUN = re.compile(rb"(?:[\x80-\xfe](?:" + _SHORT + rb"))+")


def decode(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decode into pieces of at most 4 MiB.

    Args:
        pieces: The bytes as stored, split anywhere. Memory use grows with the size of a piece.

    Raises:
        FileError: `unreadable`: the bytes are corrupt or truncated.
    """
    group: list[bytes] = []
    group_offset = 0
    for offset, kind, chunk in _chunks(pieces):
        if offset == 0 and kind != _IDENTIFIER:
            raise _unreadable(0, f"chunk of type {kind:#04x}, expected the stream identifier")
        if kind == _IDENTIFIER and chunk != _START:
            raise _unreadable(offset, "a stream identifier that does not read sNaPpY")
        if kind in _DATA:
            group_offset = group_offset if group else offset
            group.append(chunk)
            if len(group) == _GROUP_CHUNKS:
                yield from _decompressed(group, group_offset)
                group = []
    yield from _decompressed(group, group_offset)


def _decompressed(group: list[bytes], offset: int) -> Iterator[bytes]:
    try:
        output = bytes(cramjam.snappy.decompress(_START + b"".join(group)))
    except cramjam.DecompressionError as exc:
        raise _unreadable(offset, exc) from exc
    if output:
        yield output


def _chunks(pieces: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Every chunk: its offset, its type, and its bytes including the header. Skippable chunks have only the header."""
    held = bytearray()
    offset, skip = 0, 0
    for piece in pieces:
        held += piece
        while True:
            dropped = min(skip, len(held))
            del held[:dropped]
            skip -= dropped
            offset += dropped
            if skip or len(held) < _HEADER_BYTES:
                break
            if offset and (run := _SKIPPABLE_RUN.match(held)):
                skip = run.end()
                continue
            kind, length = held[0], int.from_bytes(held[1:4], "little")
            if _FIRST_SKIPPABLE <= kind < _IDENTIFIER:
                yield offset, kind, bytes(held[:_HEADER_BYTES])
                skip = _HEADER_BYTES + length
                continue
            if kind not in _DATA and kind != _IDENTIFIER:
                raise _unreadable(offset, f"chunk of unknown type {kind:#04x}")
            if length > _MAX_CHUNK_BYTES:
                raise _unreadable(offset, f"chunk of {length} bytes, expected at most 64 KiB of data")
            if len(held) < _HEADER_BYTES + length:
                break
            skip = _HEADER_BYTES + length
            yield offset, kind, bytes(held[:skip])
    if held or skip:
        raise _unreadable(offset, "ends within a chunk: truncated")


def _unreadable(offset: int, what: object) -> FileError:
    return FileError("unreadable", f"snappy data at about byte {offset}: {what}")
