"""Searches lines that are no JSON for values, as whole words: written plainly, or with the escapes of JSON."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

_READINGS = 4
"""As written, and unescaped so often less one: JSON text may stand in a string, which may stand in another one."""

_MAX_ESCAPED_BYTES = 12  # of one character: two halves of a surrogate pair
_UNICODE_RUN = re.compile(rb"(?:\\u[0-9a-fA-F]{4})+")
_ESCAPE = re.compile(rb'\\(["\\/bfnrt])')
_PLAIN = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_WORD_EDGE = re.compile(rb"(?<![A-Za-z0-9_])|(?![A-Za-z0-9_])")
_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class BrokenLines:
    """Finds values in bytes.

    Args:
        values: Any text. One that is inside a longer word or number does not count: `7` is not in `17`.
    """

    def __init__(self, values: Iterable[str]) -> None:
        by_length: dict[int, set[bytes]] = defaultdict(set)
        for value in values:
            data = value.encode(errors="surrogatepass")
            by_length[len(data)].add(data)
        self._by_length = {length: frozenset(found) for length, found in by_length.items() if length}
        self.overlap_bytes = _MAX_ESCAPED_BYTES * max(self._by_length, default=0)
        """How much of the end of one piece of a line has to be searched with the next one."""

    def holds(self, raw: bytes) -> bool:
        """Return whether a line, or a piece of one, has a value anywhere."""
        return any(map(self._is_in, _readings(raw)))

    def _is_in(self, text: bytes) -> bool:
        for match in _WORD_EDGE.finditer(text):
            start = match.start()
            for length, values in self._by_length.items():
                end = start + length
                if text[start:end] in values and _is_edge(text, end):
                    return True
        return False


def _is_edge(text: bytes, at: int) -> bool:
    return at >= len(text) or text[at] not in _WORD or text[at - 1] not in _WORD


def _readings(raw: bytes) -> Iterator[bytes]:
    text = raw
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
