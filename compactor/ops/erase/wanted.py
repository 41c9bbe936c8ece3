"""The values to erase: tests whether JSON, or a line that is not JSON, contains one of them. No I/O."""

import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import itemgetter
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from compactor.schema.column_types import ColumnType, Value, value_of
from compactor.schema.schema import Column

_READINGS = 4  # as written, and unescaped up to three times: strings may hold JSON text, whose strings may again
_MAX_ESCAPED_BYTES = 12  # of one character: two halves of a surrogate pair
_UNICODE_RUN = re.compile(rb"(?:\\u[0-9a-fA-F]{4})+")
_ESCAPE = re.compile(rb'\\(["\\/bfnrt])')
_PLAIN = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_WORDS = re.compile(rb"[A-Za-z0-9_]+")
_BLANKED = bytes(byte if byte in _WORD else ord(" ") for byte in range(256))
_SPECIAL = r"\\u[0-9a-fA-F]{4}|\\[bfnrt][A-Za-z0-9_]|\x00"  # other readings of such a line have other words
_UTF_16 = ("utf-16-le", "utf-16-be")


class BrokenLines:
    """Finds values in bytes that are not JSON, but not inside longer words or numbers: `7` is not in `17`.

    Each word of a value is then a word of the line. So one pass over the words finds all values: each value is looked
    up by its rarest word.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self.values = frozenset(data for value in values for data in _encoded(value) if data)
        """The bytes of the values: in UTF-8, and in Latin-1, which lines that are not UTF-8 may have."""
        shared = Counter(word for data in self.values for word in set(_WORDS.findall(data)))
        places: dict[bytes, set[tuple[int, int]]] = defaultdict(set)
        wordless = list[bytes]()
        for data in self.values:
            rarest = min(_WORDS.finditer(data), key=lambda word: (shared[word[0]], -len(word[0])), default=None)
            if rarest is None:
                wordless.append(data)
            else:
                places[rarest[0]].add((rarest.start(), len(data)))
        self._places = dict(places)
        self._wordless = sorted({len(data) for data in wordless})
        self._shortest = min(self._wordless, default=1)
        self._starts = frozenset(data[: self._shortest] for data in wordless)
        self._gaps = re.compile(rb"[^A-Za-z0-9_]{%d,}" % self._shortest)
        self.overlap_bytes = _MAX_ESCAPED_BYTES * max(map(len, self.values), default=0)
        """Bytes at the end of a piece of a line that must be searched again with the next piece."""

    def holds(self, raw: bytes) -> bool:
        """Whether a line, or a piece of one, contains a value anywhere."""
        if len(raw) > _LONG_BYTES and not self.candidates(pa.array([raw], pa.binary())):
            return False
        return any(map(self._is_in, _readings(raw)))

    def candidates(self, lines: pa.BinaryArray) -> list[int]:
        """The numbers of the lines that may contain a value. A pass in C++, far quicker than `holds` for each."""
        if self._wordless:
            return list(range(len(lines)))
        offsets, data = lines.buffers()[1:]
        blanked = pa.py_buffer((data.to_pybytes() if data is not None else b"").translate(_BLANKED))
        text = pa.Array.from_buffers(pa.string(), len(lines), [None, offsets, blanked], offset=lines.offset)
        words = pc.ascii_split_whitespace(text)
        special: list[int] = pc.indices_nonzero(pc.match_substring_regex(lines, _SPECIAL)).to_pylist()
        different = words.flatten().dictionary_encode()
        rarest = [at for at, word in enumerate(different.dictionary.to_pylist()) if word in self._rarest]
        if not rarest:
            return special
        hits = pc.is_in(different.indices, value_set=pa.array(rarest, pa.int32()))
        return sorted({*special, *pc.list_parent_indices(words).filter(hits).to_pylist()})

    @cached_property
    def _rarest(self) -> frozenset[str]:
        return frozenset(word.decode() for word in self._places)

    def _is_in(self, text: bytes) -> bool:
        is_empty = self._places.keys().isdisjoint(text.translate(_BLANKED).split())
        for word in () if is_empty else _WORDS.finditer(text):
            for before, length in self._places.get(word[0], ()):
                if (start := word.start() - before) >= 0 and self._is_at(text, start, length):
                    return True
        if not self._wordless:
            return False
        gaps = self._gaps.finditer(text)
        starts = (at for gap in gaps for at in range(gap.start(), gap.end() - self._shortest + 1))
        return any(
            text[at : at + length] in self.values
            for at in starts
            if text[at : at + self._shortest] in self._starts
            for length in self._wordless
        )

    def _is_at(self, text: bytes, start: int, length: int) -> bool:
        end = start + length
        return text[start:end] in self.values and _is_edge(text, start) and _is_edge(text, end)


_LONG_BYTES = 16 * 1024  # the fixed cost of `candidates` is about that of a scan of these


def _encoded(value: str) -> Iterator[bytes]:
    yield value.encode(errors="surrogatepass")
    with suppress(UnicodeEncodeError):
        yield value.encode("latin-1")


def _is_edge(text: bytes, at: int) -> bool:
    return not 0 < at < len(text) or text[at] not in _WORD or text[at - 1] not in _WORD


def _readings(raw: bytes) -> Iterator[bytes]:
    yield from _unescapings(raw)
    if b"\0" in raw:  # lines of a file in UTF-16 begin or end in the middle of a character
        for codec, data in product(_UTF_16, (raw, b"\0" + raw, raw[1:])):
            yield from _unescapings((data + b"\0" * (len(data) % 2)).decode(codec, "replace").encode())


def _unescapings(text: bytes) -> Iterator[bytes]:
    for _ in range(_READINGS):
        yield text
        plain = _unescaped(text)
        if plain == text:
            return
        text = plain


def _unescaped(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    plain = _UNICODE_RUN.sub(_characters, text)
    return _ESCAPE.sub(lambda found: _PLAIN.get(found[1], found[1]), plain)


def _characters(found: re.Match[bytes]) -> bytes:
    characters: str = json.loads(b'"' + found[0] + b'"')
    return characters.encode(errors="surrogatepass")


_BRACKETS = ("{", "[")
BLANKS = "\t\n\r "
_FEW = 64  # up to this many values, searching the bytes is quicker than parsing


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of a JSON object, including repeated keys."""


class _Number(str):
    """The text of a number. As a value it equals a string with this text; in a wanted object it does not."""

    __slots__ = ()


def compared_type(column: Column | None, path: Sequence[str]) -> ColumnType | None:
    """The type by which values of a key are compared, given its column; None to compare text.

    It is that of the column's part at the path, or of the elements there.
    """
    found, rest = _typed_part(column, path)
    return None if found is None or rest or found.parts or found.kind == "string" else found


def beyond_value(column: Column | None, path: Sequence[str]) -> bool:
    """Whether a path goes on after a typed value without parts: extended JSON, whose wrapping the column lacks."""
    found, rest = _typed_part(column, path)
    return bool(rest) and found is not None and not found.parts and found.kind != "string"


def _typed_part(column: Column | None, path: Sequence[str]) -> tuple[ColumnType | None, Sequence[str]]:
    """The type of a column's part as far down a path as there are parts, None without one; and the rest of the path."""
    found, rest = column.column_type if column is not None and column.is_typed else None, path[1:]
    while found is not None:
        while found.kind == "list":
            found = found.parts[0]
        if not rest or not found.parts:
            break
        found, rest = found.part(rest[0]), rest[1:]
    return found, rest


@dataclass(frozen=True)
class Wanted:
    """Values of a key.

    Arrays are searched element by element, and so is JSON text in strings, both on the path to the key and below it.

    Attributes:
        path: The key; or the keys of nested objects, the outermost first.
        values: The decoded text of strings; numbers and booleans as written.
        column_type: From `compared_type`. If it is not None, equal values count as well, such as 7.0 for 7.
    """

    path: tuple[str, ...]
    values: frozenset[str]
    column_type: ColumnType | None = None

    @property
    def key(self) -> str:
        return self.path[0]

    def has(self, text: str) -> bool:
        """Whether the value of the top-level key, as in the output, is or contains a wanted one."""
        return self._in_text(text, self.path[1:])

    def in_line(self, line: bytes) -> bool:
        """Whether a line contains a value: of the key, or anywhere if the line is not a JSON object."""
        if not self.may_be_in(line):
            return False
        try:
            parsed = _parsed(line)
            if isinstance(parsed, _Pairs):
                return self._in_value(parsed, self.path)
        except (ValueError, RecursionError):
            pass
        return self.broken.holds(line)

    def may_be_in(self, data: bytes) -> bool:
        """Whether lines may contain a value. For few values, this quick test often avoids parsing."""
        # Without a backslash, and but for UTF-16, each text is written as its own bytes.
        is_other = self.few is None or b"\\" in data or b"\0" in data
        return is_other or any(value in data for value in self.broken.values)

    def candidates(self, lines: pa.BinaryArray) -> list[int]:
        """The numbers of the lines that may contain a value."""
        found = self.broken.candidates(lines)
        if not self._is_free:
            return found
        objects = pc.indices_nonzero(pc.match_substring_regex(lines, r"^[\t\n\r ]*\{"))
        return sorted({*found, *objects.to_pylist()})

    def in_names(self, names: Sequence[str]) -> set[int]:
        """The numbers of the names of files that contain a value as a word, percent-encoded or not."""
        texts = [text.encode(errors="surrogateescape") for name in names for text in (name, unquote(name))]
        found = self.broken.candidates(pa.array(texts, pa.binary()))
        return {at // 2 for at in found if self.broken.holds(texts[at])}

    def is_between(self, lowest: str, highest: str) -> bool:
        """Whether a text between `lowest` and `highest`, by code points, may be or contain a wanted one."""
        if lowest <= " \U0010ffff" and highest >= BLANKS[0]:
            return True  # JSON text behind blanks
        if any(lowest <= f"{bracket}\U0010ffff" and highest >= bracket for bracket in _BRACKETS):
            return True
        if len(self.path) > 1:
            return False
        at = bisect_left(self._sorted, lowest)
        return at < len(self._sorted) and self._sorted[at] <= highest

    @cached_property
    def broken(self) -> BrokenLines:
        return BrokenLines(self.values)

    @cached_property
    def meant(self) -> frozenset[Value]:
        """The values in the type of the column; empty for text."""
        if self.column_type is None:
            return frozenset()
        found = (value_of(text, self.column_type) for text in self.values)
        return frozenset(value for value in found if value is not None)

    @property
    def has_containers(self) -> bool:
        """Whether an object or array is wanted."""
        return bool(self._containers)

    @cached_property
    def _containers(self) -> frozenset[Any]:
        """The wanted objects and arrays."""
        return frozenset(filter(None, map(self._container, self.values)))

    def _container(self, text: str) -> Any:
        """An object or an array, whatever the order of its keys; None for any other text."""
        if not text.lstrip(BLANKS).startswith(_BRACKETS):
            return None
        try:
            return _frozen(_parsed(text))
        except (ValueError, RecursionError):
            return None

    @cached_property
    def few(self) -> tuple[str, ...] | None:
        """The values, if they are few and each can be written in only one way.

        Then JSON text without a backslash and without any of these texts contains no value.
        """
        return None if len(self.values) > _FEW or self._is_free else tuple(self.values)

    @cached_property
    def _is_free(self) -> bool:
        """Whether a value can be written in several ways, apart from escapes."""
        return self.column_type is not None or self.has_containers

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.values)

    def _in_text(self, text: str, path: tuple[str, ...]) -> bool:
        if not path and text in self.values:
            return True
        if not path and self.column_type is not None and value_of(text, self.column_type) in self.meant:
            return True
        if not text.lstrip(BLANKS).startswith(_BRACKETS):
            return False
        try:
            return self._in_value(_parsed(text), path)
        except (ValueError, RecursionError):
            return self.broken.holds(text.encode(errors="surrogatepass"))

    def _in_value(self, value: Any, path: tuple[str, ...]) -> bool:
        if not path and isinstance(value, list) and self._containers and _frozen(value) in self._containers:
            return True
        if isinstance(value, _Pairs):
            return bool(path) and any(self._in_value(each, path[1:]) for key, each in value if key == path[0])
        if isinstance(value, list):
            return any(self._in_value(each, path) for each in value)
        if isinstance(value, bool):
            return self._in_value(str(value).lower(), path)
        return isinstance(value, str) and self._in_text(value, path)


class Pieces:
    """Searches lines that may come in pieces, each with the end of the one before."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._line: Hashable = None
        self._before = b""

    def holds(self, line: Hashable, piece: bytes) -> bool:
        """Whether a line, or the next piece of it, contains a value; pieces are searched as if not JSON."""
        broken, is_next = self._wanted.broken, line == self._line
        searched = self._before + piece if is_next else piece
        self._line, self._before = line, searched[-broken.overlap_bytes :]
        return broken.holds(searched) if is_next else self._wanted.in_line(searched)


def _frozen(value: Any) -> Any:
    """A hashable copy of a parsed value, with the pairs of objects sorted by key."""
    if isinstance(value, _Pairs):
        return frozenset, tuple(sorted(((key, _frozen(each)) for key, each in value), key=itemgetter(0)))
    if isinstance(value, list):
        return list, tuple(map(_frozen, value))
    return (_Number, str(value)) if isinstance(value, _Number) else value


def path_of(key: str) -> tuple[str, ...]:
    """The keys that lead to a value: a top-level key, or those of a JSON Pointer (RFC 6901), such as `/user/id`."""
    if not key.startswith("/"):
        return (key,)
    parts = key.removeprefix("/").split("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _parsed(text: str | bytes) -> Any:
    """Parse JSON, keeping the text of numbers and all pairs of objects."""
    return json.loads(text, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=str)
