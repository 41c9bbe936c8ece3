"""Unpacks records that the Kinesis Producer Library (KPL) aggregated. Pure.

Such a record is four magic bytes, a protobuf message, and the MD5 of that message. The message has a table of partition
keys (field 1), a table of explicit hashes (field 2) and the user records (field 3): the index of a partition key (1),
optionally that of an explicit hash (2), the data (3) and tags (4).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from typing import TypeVar

MAGIC = b"\xf3\x89\x9a\xc2"

_DIGEST_BYTES = 16
_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED_64: 8, _FIXED_32: 4}
_VARINT_MAX_BYTES = 10
_HASH_DIGITS = 39  # length of the largest hash

T = TypeVar("T")
_Field = tuple[int, int | bytes]  # field number, and a varint or the bytes of any other type


class _NotAMessageError(ValueError):
    """The bytes are not such a message."""


@dataclass(frozen=True, slots=True)
class UserRecord:
    """One of the records that a producer passed to the KPL.

    Attributes:
        hash_key: Determines its shard.
    """

    data: bytes
    hash_key: int


def user_records(data: bytes) -> list[UserRecord] | None:
    """The records in an aggregated one; None if it is not one or is damaged."""
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + _DIGEST_BYTES:
        return None
    body, digest = data[len(MAGIC) : -_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if _md5(body) != digest:
        return None
    try:
        return _parsed(body)
    except _NotAMessageError:
        return None


def _parsed(body: bytes) -> list[UserRecord]:
    keys, hashes, packed = list[bytes](), list[bytes](), list[bytes]()
    tables = {1: keys, 2: hashes, 3: packed}
    for number, value in _fields(body):
        if number in tables:
            tables[number].append(_bytes(value))
    hash_keys = [int.from_bytes(_md5(key)) for key in keys]  # hashed once: many records may share a long key
    return [_user_record(each, hash_keys, hashes) for each in packed]


def _user_record(packed: bytes, hash_keys: list[int], hashes: list[bytes]) -> UserRecord:
    found = dict(_fields(packed))
    hash_key, explicit, data = _entry(hash_keys, found.get(1)), _entry(hashes, found.get(2)), found.get(3)
    if data is None or hash_key is None:
        raise _NotAMessageError("a user record without data or partition key")
    if explicit is None:
        return UserRecord(_bytes(data), hash_key)
    if len(explicit) > _HASH_DIGITS or not explicit.isdigit():  # `int` rejects very long numbers
        raise _NotAMessageError("an explicit hash that is not a 128-bit number")
    return UserRecord(_bytes(data), int(explicit))


def _entry(table: list[T], index: int | bytes | None) -> T | None:
    if index is None:
        return None
    if not isinstance(index, int) or index >= len(table):
        raise _NotAMessageError("an index outside its table")
    return table[index]


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise _NotAMessageError("a number instead of bytes")
    return value


def _fields(message: bytes) -> Iterator[_Field]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == _LENGTH:
            length, at = _varint(message, at)
        elif kind in _FIXED_BYTES:
            length = _FIXED_BYTES[kind]
        else:
            raise _NotAMessageError(f"wire type {kind}")
        if at + length > len(message):
            raise _NotAMessageError("it ends inside a field")
        yield number, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Read a number; return it and the offset after it."""
    value = 0
    for place in range(_VARINT_MAX_BYTES):
        if at + place >= len(message):
            break
        byte = message[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the sign that more bytes follow
            return value, at + place + 1
    raise _NotAMessageError("an unterminated number")


def _md5(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).digest()
