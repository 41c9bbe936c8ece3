"""The shapes of input that are profiled."""

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from bench import shape_lines
from bench.shapes import MB, SHAPES, Shape

_LINES = 20_000
_MICRO = 10**6


def numbers(seed: int) -> Iterator[bytes]:
    """Objects of twelve numbers: ids, counts, prices, shares and coordinates."""
    rng = random.Random(f"numbers/{seed}")
    template = (
        '{"id":%d,"user":%d,"count":%d,"step":%d,"bytes":%d,"price":%d.%02d,"tax":%d.%02d,"share":0.%06d,'
        '"latitude":%.6f,"longitude":%.6f,"change":%d,"load_ms":%.3f}\n'
    )
    bounds = (10**9, 1000, 60, 10**7, 900, 100, 90, 100, _MICRO)
    for first in count(0, _LINES):
        lines = []
        for number in range(first, first + _LINES):
            whole = [int(rng.random() * bound) for bound in bounds]
            real = rng.uniform(-90, 90), rng.uniform(-180, 180), rng.randrange(-500, 500), rng.expovariate(0.01)
            lines.append(template % (number, *whole, *real))
        yield "".join(lines).encode()


def _shape(name: str) -> Shape:
    return next(shape for shape in SHAPES if shape.name == name)


PROFILED = (
    Shape("events", shape_lines.events, file_bytes=3_670_016),
    _shape("gzip"),
    _shape("wide rows"),
    _shape("sparse rows"),
    _shape("deep nesting"),
    _shape("huge values"),
    Shape("numbers", numbers, file_bytes=64 * MB),
    _shape("tiny rows"),
)
"""The reference events, the same compressed, and six shapes that each make another stage work."""

OPTIONS = {"numbers": ("--schema", str(Path(__file__).with_name("numbers.toml")))}
"""By shape, further options of `compact`: numbers are to become columns of numbers."""
