"""Iceberg's bucket hash: 32-bit Murmur3 with seed 0, over the bytes that Iceberg defines for a type."""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Hashes many texts at once for buckets: those of equal length together, one byte position per step.


_FEWEST = 64
"""With fewer texts of equal length, hashing one by one is faster."""

_LONGEST = 256
"""Longer texts are hashed one by one, too."""


def buckets_of(texts: pa.Array, buckets: int) -> pa.Array:
    """The bucket of each text; see `bucket_of`.

    Args:
        texts: Without nulls.
        buckets: Number of buckets.
    """
    lengths = pc.binary_length(texts)
    order = pc.sort_indices(lengths)
    found: list[pa.Array] = []
    for each in lengths.value_counts().sort(order="ascending", by="values") if len(texts) else ():
        length, number = each["values"].as_py(), each["counts"].as_py()
        start = sum(map(len, found))
        same = texts.take(order.slice(start, number))
        if number < _FEWEST or length > _LONGEST:
            found.append(pa.array([bucket_of(text, buckets) for text in same.to_pylist()], pa.uint32()))
        else:
            found.append(_remainders(_hashes(same, length), buckets))
    hashed = pa.concat_arrays(found) if found else pa.array([], pa.uint32())
    return hashed.take(pc.sort_indices(order))


def _hashes(texts: pa.Array, length: int) -> pa.Array:
    """The hashes of texts with this many bytes; follows `murmur3` step by step."""
    data = texts.buffers()[2]
    start = texts.offset * length
    octets = pa.Array.from_buffers(pa.uint8(), len(texts) * length + start, [None, data]).slice(start)
    found = pa.repeat(pa.scalar(0, pa.uint32()), len(texts))
    places = pc.multiply(pa.array(range(len(texts)), pa.int64()), length)
    for at in range(0, length - length % 4, 4):
        found = pc.bit_wise_xor(found, _mixed_all(_block(octets, places, at, 4)))
        found = _added(_multiplied(_rotated(found, 13), 5), 0xE6546B64)
    if rest := length % 4:
        found = pc.bit_wise_xor(found, _mixed_all(_block(octets, places, length - rest, rest)))
    found = pc.bit_wise_xor(found, _number(length))
    found = _multiplied(_folded(found, 16), 0x85EBCA6B)
    found = _multiplied(_folded(found, 13), 0xC2B2AE35)
    return _folded(found, 16)


def _block(octets: pa.Array, places: pa.Array, at: int, size: int) -> pa.Array:
    """The little-endian numbers in given bytes of each text."""
    found = octets.take(pc.add(places, at)).cast(pa.uint32())
    for number in range(1, size):
        octet = octets.take(pc.add(places, at + number)).cast(pa.uint32())
        found = pc.bit_wise_or(found, pc.shift_left(octet, _number(8 * number)))
    return found


def _mixed_all(block: pa.Array) -> pa.Array:
    return _multiplied(_rotated(_multiplied(block, 0xCC9E2D51), 15), 0x1B873593)


def _rotated(values: pa.Array, bits: int) -> pa.Array:
    return pc.bit_wise_or(pc.shift_left(values, _number(bits)), pc.shift_right(values, _number(32 - bits)))


def _folded(values: pa.Array, bits: int) -> pa.Array:
    return pc.bit_wise_xor(values, pc.shift_right(values, _number(bits)))


def _multiplied(values: pa.Array, factor: int) -> pa.Array:
    return pc.multiply(values, _number(factor))  # it wraps around, as the hash requires


def _added(values: pa.Array, number: int) -> pa.Array:
    return pc.add(values, _number(number))


def _remainders(hashes: pa.Array, buckets: int) -> pa.Array:
    positive = pc.bit_wise_and(hashes, _number(0x7FFFFFFF))
    return pc.subtract(positive, _multiplied(pc.divide(positive, _number(buckets)), buckets))


def _number(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint32())


_C1, _C2, _MASK = 0xCC9E2D51, 0x1B873593, 0xFFFFFFFF
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def bucket_of(value: object, buckets: int) -> int:
    """A value's bucket, from 0, identical for every Iceberg writer.

    Raises:
        KeyError: Values of its type have no buckets.
    """
    return (murmur3(_BYTES[type(value)](value)) & 0x7FFFFFFF) % buckets


def murmur3(data: bytes) -> int:
    """The hash of bytes, from 0 to 2**32 - 1."""
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

BUCKETED_TYPES = frozenset({"string", "long", "date", "timestamp", "decimal", "objectid"})
"""The kinds of columns for which Iceberg defines buckets."""
