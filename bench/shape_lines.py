"""Makes endless blocks of lines of each shape. The same seed gives the same lines."""

import json
import random
from collections.abc import Iterator
from itertools import count

from compactor.demo.events import make_event_lines

WIDE_COLUMNS = 2_000
HUGE_VALUE_BYTES = 5_000_000
DEEP_LEVELS = 1_000
"""A line may have 1,024 levels."""

_TINY_LINES = 100_000  # lines of a block; blocks of all shapes have some megabytes
_WIDE_LINES = 100
_DEEP_LINES = 200
_EVENT_LINES = 5_000
_WORDS = 50_000
_PIECE_BYTES = 2_000
_TEXT_LINES = 4_000


def tiny(seed: int) -> Iterator[bytes]:
    """Objects of three short values, each 40 bytes long with its line feed."""
    rng = random.Random(f"tiny/{seed}")
    for first in count(0, _TINY_LINES):
        numbers = range(first, first + _TINY_LINES)
        kinds = rng.choices(("view", "open", "shut", "move", "stop"), k=_TINY_LINES)
        amounts = rng.choices(range(10, 100), k=_TINY_LINES)
        lines = map('{"t":1%012d,"k":"%s","v":%d.5}\n'.__mod__, zip(numbers, kinds, amounts, strict=True))
        yield "".join(lines).encode()


def wide(seed: int, columns: int = WIDE_COLUMNS) -> Iterator[bytes]:
    """Objects of so many keys, an even number: an id, and values of a few words or of many in turn."""
    rng = random.Random(f"wide/{seed}")
    many = [f'"{rng.getrandbits(32):08x}"' for _ in range(_WORDS)]
    few = ["true", "false", "null", "0", "1", "17.50", '"none"', '"low"', '"medium"', '"high"']
    keys = [f'"field_{number:04d}":%s' for number in range(1, columns)]
    template = '{"id":%d,' + ",".join(keys) + "}\n"
    for first in count(0, _WIDE_LINES):
        lines = []
        for number in range(first, first + _WIDE_LINES):
            values: list[object] = [number] * columns
            values[1::2] = rng.choices(few, k=columns // 2)
            values[2::2] = rng.choices(many, k=columns // 2 - 1)
            lines.append(template % tuple(values))
        yield "".join(lines).encode()


def sparse(seed: int) -> Iterator[bytes]:
    """Objects with an id and four of `WIDE_COLUMNS` keys, as a table has that holds many kinds of events."""
    rng = random.Random(f"sparse/{seed}")
    keys = [f"field_{number:04d}" for number in range(1, WIDE_COLUMNS)]
    # The first line has all keys, for contenders that take their columns from it.
    yield (json.dumps({"id": 0} | dict.fromkeys(keys, "x")) + "\n").encode()
    for first in count(1, _TINY_LINES):
        lines = []
        for number in range(first, first + _TINY_LINES):
            chosen = rng.sample(keys, 4)
            values = ",".join([f'"{key}":"{rng.getrandbits(16):04x}"' for key in chosen])
            lines.append(f'{{"id":{number},{values}}}\n')
        yield "".join(lines).encode()


def huge(seed: int) -> Iterator[bytes]:
    """Objects with one text of `HUGE_VALUE_BYTES` characters before escapes, of pieces that come in any order."""
    rng = random.Random(f"huge/{seed}")
    text = make_event_lines(f"huge/{seed}", _TEXT_LINES).decode()
    pieces = HUGE_VALUE_BYTES // _PIECE_BYTES
    for number in count():
        starts = [rng.randrange(len(text) - _PIECE_BYTES) for _ in range(pieces)]
        body = "".join([text[start : start + _PIECE_BYTES] for start in starts])
        yield f'{{"id":{number},"kind":"document","body":{json.dumps(body)}}}\n'.encode()


def deep(seed: int, levels: int = DEEP_LEVELS) -> Iterator[bytes]:
    """Objects with a value that is so many levels deep, of objects and arrays in turn."""
    rng = random.Random(f"deep/{seed}")
    pairs = levels // 2 - 1  # the line itself is a level, and so is the last array
    inner = '{"n":%d,"c":[' * pairs
    template = '{"id":%d,"tree":' + inner + "[]" + "]}" * pairs + "}\n"
    for first in count(0, _DEEP_LINES):
        lines = [
            template % (number, *rng.choices(range(1_000_000), k=pairs)) for number in range(first, first + _DEEP_LINES)
        ]
        yield "".join(lines).encode()


def events(seed: int) -> Iterator[bytes]:
    """The events of the reference input."""
    for number in count():
        yield make_event_lines(f"{seed}/{number}", _EVENT_LINES)
