"""The space of attacks on cost that `tests.hostile.search` goes through: what a producer may choose to write.

A genome is text, such as `keys=2000, codec=xz, files=30`; what it leaves out is as in a plain log. The lines are
those of `bench.cliffs`, so that both searches make the same shapes.
"""

import bz2
import gzip
import json
import lzma
import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import partial
from itertools import cycle
from typing import Any

import cramjam
import zstandard

from bench.cliffs import points
from bench.cliffs.lines import blocks, schema_file
from bench.cliffs.points import Level, Point
from tests.hostile.attack import MIB, Attack
from tests.hostile.neighbours import GROK, RECORDS
from tests.hostile.scene import ATTACK, Scene

SENT_BYTES = MIB
"""The most bytes that an attack sends, in one of its `times`."""

DECODED_BYTES = 32 * MIB
"""The most bytes of its lines after decompression, in one of its `times`."""

SEED = 7
"""Of the values in its lines: a genome has the same bytes in every run."""

_FOLDER = "mallory"
_OWN: Mapping[str, tuple[Level, ...]] = {
    "names": ("plain", "long", "escaped", "cased", "new"),
    "value": ("none", "distinct", "digits", "exponents", "escapes", "surrogates", "times", "brackets", "quotes"),
    "type": ("text", "double", "decimal(38,9)", "long", "timestamp", "date"),
    "partition": ("none", "identity", "bucket", "day"),
    "between": ("nothing", "blank lines", "spaces"),
    "form": ("lines", "records", "grok"),
    "repeats": (1, 30, 1000),
    "codec": ("none", "gzip", "zlib", "bzip2", "xz", "zstd", "snappy"),
    "members": (1, 50, 2000),
    "files": (1, 30, 500),
    "manifests": (1, 20, 200),
    "dates": ("one", "many"),
    "times": (1, 4),
}
_OF_POINT = {name: levels for name, levels in points.LEVELS.items() if name not in _OWN and name != "file"}
LEVELS: Mapping[str, tuple[Level, ...]] = {**_OF_POINT, **_OWN}
"""By gene. The first level of a gene of its own is that of a plain log."""

_SEARCHED = [name for name in LEVELS if name != "times"]
Genes = Mapping[str, Level]


def genes_of(genome: str) -> dict[str, Level]:
    """The genes of a genome, the named ones and all others.

    Raises:
        ValueError: A gene or a level is unknown, or there is no such input.
    """
    genes = _plain()
    for part in filter(None, genome.split(", ")):
        name, _, text = part.partition("=")
        level = next((each for each in LEVELS.get(name, ()) if str(each) == text), None)
        if level is None:
            raise ValueError(f"{part}: expected one of {', '.join(LEVELS)} with one of its levels")
        genes[name] = level
    if not _is_valid(genes):
        raise ValueError(f"{genome}: no input is like that")
    return genes


def genome_of(genes: Genes) -> str:
    """The text of some genes."""
    plain = _plain()
    return ", ".join(f"{name}={genes[name]}" for name in LEVELS if genes[name] != plain[name])


def mutated(genome: str, rng: random.Random) -> str:
    """A genome that differs from another one in up to three genes."""
    genes = genes_of(genome)
    while True:
        changed = rng.sample(_SEARCHED, rng.choice((1, 1, 2, 3)))
        made = {**genes, **{name: rng.choice(LEVELS[name]) for name in changed}}
        if made != genes and _is_valid(made):
            return genome_of(made)


def attack_of(genome: str) -> Attack:
    """The attack of a genome. Its neighbours are compared with those beside an honest file of as many bytes."""
    genes = genes_of(genome)
    sections: dict[str, dict[str, Any]] = {"input": {}, "output": {}}
    if genes["form"] == "grok":
        sections["input"] = {"format": "grok", "grok": {"pattern": GROK}}
    if genes["form"] == "records":
        sections["input"] = {"format": "json", "records": RECORDS}
    if genes["partition"] != "none":
        sections["output"] = {"partition_by": [_PARTITIONS[str(genes["partition"])]]}
    return Attack(
        name=genome,
        kind="found",
        make=partial(_deliver, genes),
        expected=None,
        sections=sections,
        columns=_schema(genes),
        form=str(genes["form"]),
        instead=partial(_deliver_honest, genes),
        engines=("native",),
    )


def _plain() -> dict[str, Level]:
    own = {name: levels[0] for name, levels in _OWN.items()}
    return {name: own.get(name) or getattr(Point(), name) for name in LEVELS}


def _point(genes: Genes) -> Point:
    changes: dict[str, Any] = {name: genes[name] for name in _OF_POINT}
    return Point(**changes)


def _is_valid(genes: Genes) -> bool:
    """Whether there is such an input, and no other genes that stand for the same one."""
    return (
        _point(genes).is_valid()
        and (genes["value"] != "none" or (genes["type"] == "text" and genes["partition"] == "none"))
        and (genes["codec"] != "none" or (genes["repeats"] == 1 and genes["members"] == 1))
        and (genes["codec"] != "zlib" or genes["members"] == 1)
        and int(genes["manifests"]) <= int(genes["files"])
        and (genes["dates"] == "one" or genes["manifests"] != 1)
    )


def _schema(genes: Genes) -> str:
    x = "" if genes["type"] == "text" else f'[[columns]]\nname = "x"\ntype = "{genes["type"]}"\n'
    return x + (schema_file(_point(genes)) if genes["columns"] == "typed" else "")


# What it writes


def files(genes: Genes) -> list[bytes]:
    """The files of an attack, as they are stored: as many as its genes say, or as the limits allow."""
    times = int(genes["times"])
    lines, count, made = list(_lines(genes)), int(genes["files"]) * times, list[bytes]()
    sent = decoded = 0
    for number in range(count):
        content = _content(genes, lines[number::count] or [lines[number % len(lines)]], DECODED_BYTES * times // count)
        stored = _stored(genes, content)
        sent, decoded = sent + len(stored), decoded + len(content)
        if made and (sent > SENT_BYTES * times or decoded > DECODED_BYTES * times):
            break
        made.append(stored)
    return made


def _lines(genes: Genes) -> Iterator[bytes]:
    """Lines that are `SENT_BYTES` together, or one that is longer."""
    left = SENT_BYTES * int(genes["times"])
    value, between = _VALUES[str(genes["value"])], _BETWEEN[str(genes["between"])]
    for number, plain in enumerate(line for block in blocks(_point(genes), SEED) for line in block.splitlines()):
        line = _renamed(str(genes["names"]), number, plain)
        if value is not None:
            line = line.replace(b"{", b'{"x":%s,' % value(number).encode(), 1)
        line = line.replace(b",", b"|") if genes["form"] == "grok" else line
        yield line + b"\n" + between
        left -= len(line) + len(between) + 1
        if left <= 0:
            return


def _renamed(names: str, number: int, line: bytes) -> bytes:
    new = {
        "plain": b'"field_',
        "long": b'"' + b"n" * 500 + b"field_",
        "escaped": b'"\\u0066\\u0069\\u0065\\u006c\\u0064_',
        "cased": bytes(c ^ 32 if number >> at & 1 else c for at, c in enumerate(b"field_")),
        "new": b'"f%d_' % number,
    }[names]
    return line.replace(b'"field_', new if new.startswith(b'"') else b'"' + new)


_PARTITIONS = {"identity": "identity(x)", "bucket": "bucket(x, 1000)", "day": "day(x)"}
_DAY = date(2025, 12, 21)
_VALUES: Mapping[str, Callable[[int], str] | None] = {
    "none": None,
    "distinct": lambda number: f'"{number}"',
    "digits": lambda number: f"{number + 1}" + "7" * 3000,
    "exponents": lambda number: f"{number + 1}e{10 ** (number % 300)}",
    "escapes": lambda number: f'"{number}' + "\\u00e9" * 500 + '"',
    "surrogates": lambda number: f'"{number}' + "\\ud83d\\ude00" * 250 + '"',
    "times": lambda number: f'"{_DAY + timedelta(number % 100_000)}T23:59:60.123456789{"-+"[number % 2]}23:59"',
    "brackets": lambda number: json.dumps(f"{number}" + '[{"a":' * 300),
    "quotes": lambda number: json.dumps(json.dumps(json.dumps({f"{number}": '"\\' * 20}))),
}
_BETWEEN = {"nothing": b"", "blank lines": b"\n" * 20, "spaces": b" " * 200 + b"\n"}


def _content(genes: Genes, lines: Iterable[bytes], most_bytes: int) -> bytes:
    """The content of a file before it is compressed."""
    content = b"".join(lines)
    if genes["form"] == "records":
        content = b'{"Records":[' + b",".join(content.split(b"\n")[:-1]) + b"]}\n"
    return content * max(1, min(int(genes["repeats"]), most_bytes // len(content)))


def _stored(genes: Genes, content: bytes) -> bytes:
    """The content of a file in as many members of its codec as its genes say, the last ones of them empty."""
    count, compress = int(genes["members"]), _CODECS[str(genes["codec"])]
    size = -(-len(content) // count)
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    return b"".join(map(compress, pieces)) + compress(b"") * (count - len(pieces))


_CODECS: Mapping[str, Callable[[bytes], bytes]] = {
    "none": lambda data: data,
    "gzip": lambda data: gzip.compress(data, 6, mtime=0),
    "zlib": lambda data: zlib.compress(data, 6),
    "bzip2": lambda data: bz2.compress(data, 9),
    "xz": lambda data: lzma.compress(data, preset=0),
    "zstd": lambda data: zstandard.compress(data, 3),
    "snappy": lambda data: bytes(cramjam.snappy.compress(data)),
}


def _deliver(genes: Genes, scene: Scene) -> None:
    named = [
        scene.named(scene.write(f"{_FOLDER}/{number:04}.ndjson", data)) for number, data in enumerate(files(genes))
    ]
    count = min(int(genes["manifests"]) * int(genes["times"]), len(named))
    days = cycle([_DAY]) if genes["dates"] == "one" else (_DAY - timedelta(number) for number in range(count))
    for number, day in zip(range(count), days, strict=False):
        scene.deliver(f"{ATTACK}-{number:03}", named[number::count], date=f"{day}")


def _deliver_honest(genes: Genes, scene: Scene) -> None:
    """A plain log of as many bytes, in the form that all have to write."""
    length, plain = sum(map(len, files(genes))), genes_of(f"form={genes['form']}" if genes["form"] != "lines" else "")
    lines, taken = list[bytes](), 0
    for line in cycle(_lines(plain)):
        lines.append(line)
        taken += len(line)
        if taken >= length:
            break
    uri = scene.write(f"{_FOLDER}/honest.ndjson", _content(plain, lines, 0))
    scene.deliver(f"{ATTACK}-000", [scene.named(uri)])
