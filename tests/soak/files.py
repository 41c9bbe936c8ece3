"""What is in the input files of a soak: made from a seed and a number, so that a check can make them again."""

import gzip
import json
import random
from dataclasses import dataclass

DAY = "2025-12-21"
MAX_LINE_BYTES = 1024 * 1024
_LONG_AMONG_BAD_LINES = 0.02
_FILES_OF_A_LATE_KEY = 25
_ODD_NAMES = ("", "", "", "", " b", "ü", "%41+", "[x]")
_LONG_KEY = 50_001  # characters: one more than Spark's reader takes

_INVALID = (b'{"id": 1,', b"{'id': 1}", b"NaN", b'{"id": 1} {"id": 2}', b"{broken", b'{"id": 01}')
_NOT_OBJECTS = (b"[1, 2]", b'"text"', b"42", b"null")


@dataclass(frozen=True, slots=True)
class FileSpec:
    """Which file to make.

    Attributes:
        seed: Of the soak.
        number: Of the file.
        version: Of its content.
        with_bad_lines: Whether lines that must be rejected may be in it.
        for_spark: Whether lines may be in it that only Spark cannot read.
    """

    seed: int
    number: int
    version: int = 1
    with_bad_lines: bool = True
    for_spark: bool = False

    @property
    def prefix(self) -> str:
        """What the ids of its lines begin with."""
        return f"f{self.number}v{self.version}"


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that must be rejected.

    Attributes:
        offset: Where it begins in the decoded bytes.
    """

    reason: str
    offset: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class SoakFile:
    """One input file.

    Attributes:
        name: Its last part.
        stored: Its bytes.
        rows: What the output must hold of it, in the order of its lines; the n-th has the id `<prefix>-<n>`, from 0.
        bad: What the rejects must hold of it, by line number.
    """

    name: str
    stored: bytes
    rows: tuple[dict[str, str], ...]
    bad: dict[int, BadLine]


def make_file(spec: FileSpec) -> SoakFile:
    """The file that a spec stands for; the same one each time."""
    chance = random.Random(f"{spec.seed}:{spec.number}:{spec.version}")
    end = b"\r\n" if chance.random() < 0.1 else b"\n"
    decoded = bytearray(b"\xef\xbb\xbf" if chance.random() < 0.1 else b"")
    rows: list[dict[str, str]] = []
    bad: dict[int, BadLine] = {}
    ends_in_row = False
    for line_number in range(1, chance.choice((0, 20, 60, 60, 200)) + 1):
        rows_before = len(rows)
        raw, reason = _line(spec, chance, rows)
        if reason:
            bad[line_number] = BadLine(reason, len(decoded), raw + end[:-1])
        ends_in_row = len(rows) > rows_before
        decoded += raw + end
    if ends_in_row and chance.random() < 0.2:
        del decoded[-len(end) :]
    return _stored(spec, chance, bytes(decoded), rows, bad)


def _stored(
    spec: FileSpec, chance: random.Random, decoded: bytes, rows: list[dict[str, str]], bad: dict[int, BadLine]
) -> SoakFile:
    odd = chance.choice(_ODD_NAMES)
    hidden = "_" if chance.random() < 0.05 else ""
    name = f"{hidden}{DAY}-{spec.number:06d}{odd}.ndjson"
    if chance.random() < 0.25 and decoded:
        named_so = ".gz" if chance.random() < 0.7 else ""  # else its name does not tell
        return SoakFile(name + named_so, gzip.compress(decoded, mtime=0), tuple(rows), bad)
    return SoakFile(name, decoded, tuple(rows), bad)


def _line(spec: FileSpec, chance: random.Random, rows: list[dict[str, str]]) -> tuple[bytes, str]:
    """The next line and why it is rejected; a good one is added to the rows, a blank one is neither."""
    kind = chance.random()
    if kind < 0.03:
        return chance.choice((b"", b"  ", b"\t")), ""
    if kind < 0.1 and spec.with_bad_lines:
        return _bad_line(spec, chance)
    number = len(rows)
    row = {
        "id": f"{spec.prefix}-{number}",
        "amount": f"{chance.randrange(100)}.{chance.randrange(10)}0",
        "big": str(chance.getrandbits(130)),
        "nested": f'{{"a": [{number}, 1e2],"ü":"x"}}',
        "note": chance.choice(("", "plain", "ümläut ✓", "tab\there")),
    }
    if chance.random() < 0.2:
        row[f"late_{spec.number // _FILES_OF_A_LATE_KEY}"] = str(number)
    rows.append(row)
    return _as_json(row), ""


def _as_json(row: dict[str, str]) -> bytes:
    bare = {"amount", "big", "nested"}  # these are written as they are, the others as strings
    values = (f"{json.dumps(key)}: {value if key in bare else json.dumps(value)}" for key, value in row.items())
    return f"{{{', '.join(values)}}}".encode()


def _bad_line(spec: FileSpec, chance: random.Random) -> tuple[bytes, str]:
    if chance.random() < _LONG_AMONG_BAD_LINES:
        return b'{"id": "' + b"x" * (MAX_LINE_BYTES + chance.randrange(9)) + b'"}', "line_too_long"
    if spec.for_spark and chance.random() < _LONG_AMONG_BAD_LINES:
        return b'{"a": {"' + b"k" * _LONG_KEY + b'": 1}}', "parsers_disagree"
    kinds = (
        (chance.choice(_INVALID), "invalid_json"),
        (chance.choice(_NOT_OBJECTS), "not_an_object"),
        (b'{"id": "\xff\xfe"}', "invalid_utf8"),
        (b'{"id": ' + b"[" * 2000 + b"]" * 2000 + b"}", "too_deep"),
    )
    return chance.choice(kinds)
