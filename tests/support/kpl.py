"""Packs records as the Kinesis Producer Library does: see `compactor.core.logs.aggregation`."""

from collections.abc import Sequence
from hashlib import md5

from compactor.core.logs.aggregation import MAGIC


def aggregated(records: Sequence[tuple[str, bytes]], *, hashes: Sequence[int] = (), tags: bool = False) -> bytes:
    """One record with several, each with its partition key.

    Args:
        records: Partition keys and data.
        hashes: The explicit hash of each record, or none.
        tags: Whether each record has a tag, which the KPL writes for no one yet.
    """
    keys = list(dict.fromkeys(key for key, _ in records))
    body = b"".join(_bytes(1, key.encode()) for key in keys)
    body += b"".join(_bytes(2, str(each).encode()) for each in hashes)
    for number, (key, data) in enumerate(records):
        packed = _number(1, keys.index(key)) + (_number(2, number) if hashes else b"") + _bytes(3, data)
        packed += _bytes(4, _bytes(1, b"tag") + _bytes(2, b"value")) if tags else b""
        body += _bytes(3, packed)
    return sealed(body)


def sealed(body: bytes) -> bytes:
    """A message with the magic bytes before it and its MD5 behind."""
    return MAGIC + body + md5(body, usedforsecurity=False).digest()


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
