"""The binary form of a VARIANT: written in one way for each value, and read back. No I/O.

The native kernel writes the same bytes. What other writers may choose, such as the order of a dictionary, is fixed: the
keys are sorted, the values of an object keep the order of its text, and each number, length and offset takes the fewest
bytes that the form has for it.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import accumulate, pairwise

from compactor.core.text.json_numbers import MAX_PRECISION
from compactor.schema.variants.json_values import MAX_DEPTH, Node

_VERSION, _SORTED = 1, 1 << 4
_PRIMITIVE, _SHORT_STRING, _OBJECT, _ARRAY = range(4)
_NULL, _TRUE, _FALSE, _INT8, _INT16, _INT32, _INT64, _DOUBLE, _DECIMAL4, _DECIMAL8, _DECIMAL16 = range(11)
_STRING = 16
_INTEGER_BYTES = {_INT8: 1, _INT16: 2, _INT32: 4, _INT64: 8}
_DECIMAL_DIGITS = {_DECIMAL4: 9, _DECIMAL8: 18, _DECIMAL16: 38}  # the most places, too: Spark reads no more
_DECIMAL_BYTES = {_DECIMAL4: 4, _DECIMAL8: 8, _DECIMAL16: 16}
_SHORT_STRING_BYTES = 63
_FEW = 255
"""Elements whose number takes one byte; more take four."""
_CONSTANTS: dict[int, Node] = {_NULL: None, _TRUE: True, _FALSE: False}
_CONTEXT = Context(prec=MAX_PRECISION)
"""Digits of a decimal, whatever the caller has set for its own."""


def encode(node: Node) -> tuple[bytes, bytes]:
    """The binary form of a value.

    Args:
        node: As `parse` returns it.

    Returns:
        The metadata, which has the keys, and the value.
    """
    keys = sorted({*_keys(node)})
    return _metadata([key.encode() for key in keys]), _value(node, {key: at for at, key in enumerate(keys)})


def decode(metadata: bytes, value: bytes) -> Node:
    """Read a value back, also as other writers may have written it, as long as JSON has values of its types.

    Args:
        metadata: The keys.
        value: The value.

    Raises:
        ValueError: The bytes are no VARIANT, or one of a type that JSON does not have, such as a date.
    """
    try:
        return _Reader(_dictionary(metadata), value).node(0, MAX_DEPTH)
    except (IndexError, OverflowError, ArithmeticError) as exc:
        raise ValueError("not the binary form of a VARIANT") from exc


def _keys(node: Node) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node
    if isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            yield from _keys(each)


def _metadata(keys: Sequence[bytes]) -> bytes:
    size = _bytes_for(max(len(keys), sum(map(len, keys))))
    offsets = accumulate(map(len, keys), initial=0)
    header = bytes([_VERSION | _SORTED | size - 1 << 6])
    return b"".join((header, _unsigned(len(keys), size), *(_unsigned(each, size) for each in offsets), *keys))


def _value(node: Node, ids: Mapping[str, int]) -> bytes:
    if isinstance(node, list):
        return _several(_ARRAY, [_value(each, ids) for each in node])
    if isinstance(node, dict):
        return _several(_OBJECT, [_value(each, ids) for each in node.values()], [ids[key] for key in node])
    return _string(node) if isinstance(node, str) else _scalar(node)


def _string(text: str) -> bytes:
    data = text.encode()
    if len(data) <= _SHORT_STRING_BYTES:
        return bytes([len(data) << 2 | _SHORT_STRING]) + data
    return _primitive(_STRING, _unsigned(len(data), 4) + data)


def _scalar(node: bool | float | Decimal | None) -> bytes:
    match node:
        case None:
            return _primitive(_NULL)
        case bool():
            return _primitive(_TRUE if node else _FALSE)
        case int():
            kind = next(
                kind for kind, size in _INTEGER_BYTES.items() if -(1 << 8 * size - 1) <= node < 1 << 8 * size - 1
            )
            return _primitive(kind, node.to_bytes(_INTEGER_BYTES[kind], "little", signed=True))
        case float():
            return _primitive(_DOUBLE, struct.pack("<d", node))
    return _decimal(node)


def _primitive(kind: int, data: bytes = b"") -> bytes:
    return bytes([kind << 2 | _PRIMITIVE]) + data


def _decimal(number: Decimal) -> bytes:
    scale = -int(number.as_tuple().exponent)
    unscaled = int(number.scaleb(scale, _CONTEXT))
    kind = next(kind for kind, digits in _DECIMAL_DIGITS.items() if abs(unscaled) < 10**digits and scale <= digits)
    return _primitive(kind, bytes([scale]) + unscaled.to_bytes(_DECIMAL_BYTES[kind], "little", signed=True))


def _several(kind: int, values: Sequence[bytes], ids: Sequence[int] = ()) -> bytes:
    """The elements of an array, or of an object, with the ids of its keys, by which readers search them."""
    offset_bytes = _bytes_for(sum(map(len, values)))
    is_large = len(values) > _FEW
    id_bytes = _bytes_for(max(ids, default=0))
    header = (
        is_large << 4 | id_bytes - 1 << 2 | offset_bytes - 1 if kind == _OBJECT else is_large << 2 | offset_bytes - 1
    )
    head = bytes([header << 2 | kind]) + _unsigned(len(values), 4 if is_large else 1)
    *starts, end = accumulate(map(len, values), initial=0)
    if kind == _OBJECT:
        starts = [start for _, start in sorted(zip(ids, starts, strict=True))]
    numbers = (
        *(_unsigned(each, id_bytes) for each in sorted(ids)),
        *(_unsigned(each, offset_bytes) for each in (*starts, end)),
    )
    return b"".join((head, *numbers, *values))


def _bytes_for(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _unsigned(number: int, size: int) -> bytes:
    return number.to_bytes(size, "little")


def _dictionary(metadata: bytes) -> list[str]:
    version, size = metadata[0] & 0xF, (metadata[0] >> 6) + 1
    if version != _VERSION:
        raise ValueError(f"VARIANT of version {version}: expected {_VERSION}")
    count = _number(metadata, 1, size)
    starts = [_number(metadata, 1 + size * (1 + at), size) for at in range(count + 1)]
    data = 1 + size * (count + 2)
    return [_slice(metadata, data + a, data + b).decode() for a, b in pairwise(starts)]


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(_slice(data, at, at + size), "little")


def _slice(data: bytes, start: int, end: int) -> bytes:
    if not 0 <= start <= end <= len(data):
        raise IndexError(start)
    return data[start:end]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads values out of one piece of bytes."""

    keys: Sequence[str]
    data: bytes

    def node(self, at: int, depth: int) -> Node:
        """The value that begins at a byte."""
        kind, header = self.data[at] & 3, self.data[at] >> 2
        if kind == _SHORT_STRING:
            return _slice(self.data, at + 1, at + 1 + header).decode()
        if kind == _PRIMITIVE:
            return self._primitive(header, at + 1)
        if not depth:
            raise ValueError("nested too deep")
        if kind == _ARRAY:
            _, starts = self._elements(at + 1, header & 3, 0, bool(header >> 2 & 1))
            return [self.node(each, depth - 1) for each in starts]
        ids, starts = self._elements(at + 1, header & 3, (header >> 2 & 3) + 1, bool(header >> 4 & 1))
        return {self.keys[each]: self.node(start, depth - 1) for each, start in zip(ids, starts, strict=True)}

    def _elements(self, at: int, offset_size: int, id_bytes: int, is_large: bool) -> tuple[list[int], list[int]]:
        """The ids of keys, and where the values begin."""
        count_bytes, offset_bytes = 4 if is_large else 1, offset_size + 1
        count = _number(self.data, at, count_bytes)
        ids_at = at + count_bytes
        offsets_at = ids_at + count * id_bytes
        values_at = offsets_at + (count + 1) * offset_bytes
        _slice(self.data, at, values_at)  # a false number would be that of many elements
        ids = [_number(self.data, ids_at + n * id_bytes, id_bytes) for n in range(count)] if id_bytes else []
        return ids, [values_at + _number(self.data, offsets_at + n * offset_bytes, offset_bytes) for n in range(count)]

    def _primitive(self, kind: int, at: int) -> Node:
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if size := _INTEGER_BYTES.get(kind):
            return int.from_bytes(_slice(self.data, at, at + size), "little", signed=True)
        if kind == _DOUBLE:
            return float(struct.unpack("<d", _slice(self.data, at, at + 8))[0])
        if size := _DECIMAL_BYTES.get(kind):
            scale = self.data[at]
            unscaled = int.from_bytes(_slice(self.data, at + 1, at + 1 + size), "little", signed=True)
            if abs(unscaled) >= 10**MAX_PRECISION or scale > MAX_PRECISION:
                raise ValueError(f"a decimal of more than {MAX_PRECISION} digits or places")
            return Decimal(unscaled).scaleb(-scale, _CONTEXT)
        if kind == _STRING:
            return _slice(self.data, at + 4, at + 4 + _number(self.data, at, 4)).decode()
        raise ValueError(f"a VARIANT with a value of type {kind}, which JSON does not have")
