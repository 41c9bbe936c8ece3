"""The hash of Iceberg's buckets: Murmur3 of 32 bits with the seed 0, over the bytes that Iceberg has for a type."""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

_C1, _C2, _MASK = 0xCC9E2D51, 0x1B873593, 0xFFFFFFFF
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def bucket_of(value: object, buckets: int) -> int:
    """The bucket of a value, from 0, as every writer of Iceberg gives it.

    Raises:
        KeyError: Values of its type have no buckets.
    """
    return (murmur3(_BYTES[type(value)](value)) & 0x7FFFFFFF) % buckets


def murmur3(data: bytes) -> int:
    """The hash of some bytes, from 0 to 2**32 - 1."""
    found = 0
    whole = len(data) & ~3
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        found ^= _mixed(block)
        found = ((found << 13 | found >> 19) & _MASK) * 5 + 0xE6546B64 & _MASK
    if rest := data[whole:]:
        found ^= _mixed(int.from_bytes(rest, "little"))
    found ^= len(data)
    found = (found ^ found >> 16) * 0x85EBCA6B & _MASK
    found = (found ^ found >> 13) * 0xC2B2AE35 & _MASK
    return found ^ found >> 16


def _mixed(block: int) -> int:
    block = block * _C1 & _MASK
    return (block << 15 | block >> 17) * _C2 & _MASK


def _of_whole_number(value: int) -> bytes:
    return struct.pack("<q", value)


def _of_decimal(value: Decimal) -> bytes:
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    length = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8
    return unscaled.to_bytes(length, "big", signed=True)


_BYTES: Mapping[type, Callable[[Any], bytes]] = {
    str: str.encode,
    int: _of_whole_number,
    date: lambda value: _of_whole_number((value - _EPOCH.date()).days),
    datetime: lambda value: _of_whole_number((value - _EPOCH) // timedelta(microseconds=1)),
    Decimal: _of_decimal,
}

BUCKETED_TYPES = frozenset({"string", "long", "date", "timestamp", "decimal"})
"""The kinds of columns that have buckets."""
