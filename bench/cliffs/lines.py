"""Makes endless blocks of lines of a point. The same seed gives the same lines."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from bench.cliffs.points import FILE_BYTES, Point
from bench.shapes import Shape

_BLOCK_BYTES = 500_000
_ORDERS = 32  # in which the keys of lines come
_OVERHEAD_BYTES = 12  # of a key with its quotes, colon and comma
_NO_JSON = " no JSON"  # behind an object: by itself, it is of no other kind of file
_STEP = 6  # characters between escapes
_WORDS = "the order was sent to store and the user came back for more of it in a day or two "
_WORD_REPEATS = 16_000

TYPES = {"number": "double", "boolean": "boolean", "time": "timestamp"}
"""By kind, the type of a typed column."""


def shape_of(point: Point, total_bytes: int) -> Shape:
    """The files of a point."""
    return Shape(
        point.name,
        partial(blocks, point),
        total_bytes=total_bytes,
        file_bytes=FILE_BYTES[point.file] or total_bytes,
        codec=point.codec,
    )


def schema_file(point: Point) -> str:
    """The schema file (TOML) of a point with typed columns."""
    return "".join(f'[[columns]]\nname = "{key}"\ntype = "{TYPES.get(point.kind, "string")}"\n' for key in _keys(point))


def blocks(point: Point, seed: int) -> Iterator[bytes]:
    """Blocks of whole lines."""
    rng = random.Random(f"{point}/{seed}")
    keys = [f'"{key}":' for key in _keys(point)]
    count = point.keys_of_a_line
    lines = max(1, _BLOCK_BYTES // (count * (point.characters + point.levels * 8 + _OVERHEAD_BYTES)))
    orders = [_order(point, keys, rng) for _ in range(_ORDERS if point.order == "shuffled" else 1)]
    values = _Values(point, rng)
    while True:
        made = []
        drawn = iter(values.take(lines * count))
        for _ in range(lines):
            order = orders[0] if len(orders) == 1 else rng.choice(orders)
            chosen = (
                order if count == len(order) else [order[at] for at in sorted(rng.sample(range(len(order)), count))]
            )
            line = "{" + ",".join([key + value for key, value in zip(chosen, drawn, strict=False)]) + "}"
            made.append(line + _NO_JSON if rng.random() * 100 < point.rejects else line)
        yield ("\n".join(made) + "\n").encode()


def _keys(point: Point) -> list[str]:
    return [f"field_{number:04d}" for number in range(point.keys)]


def _order(point: Point, keys: Sequence[str], rng: random.Random) -> list[str]:
    return rng.sample(keys, len(keys)) if point.order == "shuffled" else list(keys)


class _Values:
    """Draws values as they stand in a line."""

    def __init__(self, point: Point, rng: random.Random) -> None:
        self._rng = rng
        self._make = self._mixed(point)
        self._is_fresh = point.distinct == "all"
        self._pool = [] if self._is_fresh else [self._make() for _ in range(1 if point.distinct == "one" else 100)]

    def take(self, count: int) -> list[str]:
        """So many of them."""
        return [self._make() for _ in range(count)] if self._is_fresh else self._rng.choices(self._pool, k=count)

    def _mixed(self, point: Point) -> Callable[[], str]:
        rng, plain = self._rng, self._of(point.kind, point)
        text, other = self._of("text", point), self._of("text" if point.kind != "text" else "number", point)
        rest: dict[str, tuple[float, list[Callable[[], str]]]] = {
            "plain": (0, [plain]),
            "escape in 1 %": (0.01, [lambda: _escaped(text(), 0)]),
            "escape in 30 %": (0.3, [lambda: _escaped(text(), 0)]),
            "escapes throughout": (0.5, [lambda: _escaped(text(), _STEP)]),
            "null in 30 %": (0.3, [lambda: "null"]),
            "empty in 30 %": (0.3, [lambda: '""']),
            "other kind in 30 %": (0.3, [other]),
            "all of these": (0.5, [lambda: _escaped(text(), 0), lambda: "null", lambda: '""', other]),
        }
        share, others = rest[point.mix]
        return plain if not share else lambda: rng.choice(others)() if rng.random() < share else plain()

    def _of(self, kind: str, point: Point) -> Callable[[], str]:
        rng = self._rng
        words = _WORDS * _WORD_REPEATS
        tail = max(0, point.characters - 8)

        def text() -> str:
            at = rng.randrange(len(words) - tail)
            return f'"{rng.getrandbits(32):08x}'[: point.characters + 1] + words[at : at + tail] + '"'

        def nested() -> str:
            deep = point.levels - 1
            return f'{{"n":{rng.getrandbits(16)},"c":' + "[" * deep + f'"{rng.getrandbits(32):x}"' + "]" * deep + "}"

        makers: dict[str, Callable[[], str]] = {
            "text": text,
            "number": lambda: f"{rng.getrandbits(24) / 100}",
            "boolean": lambda: rng.choice(("true", "false")),
            "time": lambda: (
                f'"2025-12-21T{rng.randrange(24):02d}:{rng.randrange(60):02d}:07.{rng.randrange(1000):03d}Z"'
            ),
            "nested": nested,
        }
        every = [*makers.values()]
        return makers.get(kind, lambda: rng.choice(every)())  # noqa: PLW0108 - chosen anew for each value


def _escaped(text: str, step: int) -> str:
    """The text with an escape in its middle, or behind every so many characters."""
    inner = text[1:-1]
    if not step:
        return f'"{inner[: len(inner) // 2]}\\"{inner[len(inner) // 2 :]}"'
    return '"' + '\\"'.join([inner[at : at + step] for at in range(0, len(inner), step)]) + '"'
