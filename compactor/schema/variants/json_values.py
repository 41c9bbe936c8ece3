"""Which JSON texts have a VARIANT, and what they mean. No I/O.

A VARIANT keeps values, not texts: it loses blanks, the order of keys and the spelling of numbers. A text has one only
if it would lose nothing else.
"""

import json
import math
from decimal import Decimal
from json.encoder import encode_basestring  # how `json` itself writes a string
from typing import NoReturn, TypeAlias

from compactor.core.text.json_numbers import LONG_BITS, MAX_PRECISION, significant

MAX_DEPTH = 100
"""How deep objects and arrays may be nested: readers walk them with one call inside the other."""

MAX_TEXT_BYTES = 1024 * 1024
"""The most bytes of a text. It becomes about four times as many at most; readers take 16 MiB [Spark 4.0]."""

Node: TypeAlias = bool | int | float | Decimal | str | list["Node"] | dict[str, "Node"] | None
"""A value. A number is an `int` of 64 bits, else a `Decimal` of 38 digits, which keeps its scale, else a `float`."""

_BRACKETS = {"{": "}", "[": "]"}


def parse(text: str) -> Node:
    """The value of a text.

    Args:
        text: The JSON of an object or an array.

    Raises:
        ValueError: The text has no VARIANT: it is not the JSON of an object or an array; an object has a key twice; a
            number is none that `number` keeps; a string has half a surrogate pair; or the text is nested
            too deep, or too long.
    """
    if _BRACKETS.get(text[:1]) != text[-1:] or len(text.encode(errors="surrogatepass")) > MAX_TEXT_BYTES:
        raise ValueError("not the JSON of an object or an array, or too long")
    try:
        node: Node = json.loads(
            text, object_pairs_hook=_object, parse_int=number, parse_float=number, parse_constant=_no_value
        )
        _check(node, MAX_DEPTH)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return node


def number(text: str) -> int | float | Decimal:
    """The value of a number of JSON.

    Raises:
        ValueError: None of the three types has it. A number with an exponent is a double or nothing.
    """
    parts = significant(text)
    if parts is None:
        return _no_value(text)
    sign, digits, _ = parts
    is_negative_zero = bool(sign) and not digits
    if not is_negative_zero and not {"e", "E"} & {*text}:
        _, _, fraction = text.partition(".")
        if len(fraction) <= MAX_PRECISION and len(text.lstrip("-0.").replace(".", "")) <= MAX_PRECISION:
            is_long = not fraction and -(1 << LONG_BITS) <= int(text) < 1 << LONG_BITS
            return int(text) if is_long else Decimal(text)
    nearest = float(text)
    return nearest if math.isfinite(nearest) and significant(repr(nearest)) == parts else _no_value(text)


def canonical(node: Node) -> str:
    """The canonical JSON of a value: that of different values differs, and numbers of all three types are alike."""
    match node:
        case None:
            return "null"
        case bool():
            return "true" if node else "false"
        case str():
            return str(encode_basestring(node))
        case list():
            return f"[{','.join(map(canonical, node))}]"
        case dict():
            return f"{{{','.join(f'{encode_basestring(key)}:{canonical(node[key])}' for key in sorted(node))}}}"
    parts = significant(f"{node:f}" if isinstance(node, Decimal) else repr(node))
    return _no_value(repr(node)) if parts is None else f"{parts[0]}{parts[1] or 0}e{parts[2]}"


def _object(pairs: list[tuple[str, Node]]) -> dict[str, Node]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _check(node: Node, depth: int) -> None:
    """Raise ValueError for half a surrogate pair, which UTF-8 does not have, and for what is nested deeper."""
    if isinstance(node, str):
        node.encode()
    elif isinstance(node, list | dict):
        if not depth:
            raise ValueError("nested too deep")
        for each in node if isinstance(node, list) else (*node, *node.values()):
            _check(each, depth - 1)


def _no_value(text: str) -> NoReturn:
    raise ValueError(
        f"{text[:40]}: expected up to {MAX_PRECISION} digits without an exponent, or the shortest text of a double"
    )
