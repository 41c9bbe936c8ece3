"""Splits decoded bytes into lines and decides about each: a record, a reject with its reason, or blank."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from compactor.errors import FileError

REASONS = {
    "invalid_utf8": "the line is not valid UTF-8",
    "invalid_json": "the line is not exactly one JSON value",
    "too_deep": "arrays and objects are nested more than 1024 levels deep",
    "not_an_object": "the line is a JSON value, but not an object",
    "line_too_long": "the line is longer than max_line_bytes; it is kept in pieces",
    "parsers_disagree": "the JSON reader of the engine could not read what inspection accepted",
}
"""Why a line can be rejected: each reason with its meaning."""

Discovery = Literal["full", "declared"]
"""`full` parses every line. `declared` only looks at how a line begins and how long it is: it finds no keys, takes what
begins with a brace for a record, and leaves it to the engine to prove that it is one."""

MAX_KEYS = 20_000
"""Distinct top-level keys of one file or manifest. More of them are values that were written as keys."""

BLANK = b" \t\r"
"""What a blank line may consist of; also the white space that may stand around a record."""

BLOCK_BYTES = 256 * 1024  # measured: no slower than 8 MiB, and a block of bare line feeds stays under 30 MiB of objects

# A string that never ends is taken whole, or a search from each of its quotes would take time without bound.
_STRING_OR_NUMBER = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')
_BOM = b"\xef\xbb\xbf"
_BLANK_LINE = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one input file may ask for.

    Attributes:
        max_line_bytes: A longer line is rejected; at least 1.
        max_decompressed_bytes: A file that decodes to more is set aside whole.
    """

    max_line_bytes: int
    max_decompressed_bytes: int


@dataclass(frozen=True, slots=True)
class Reject:
    """A line that is set aside, or a piece of one that is too long.

    Attributes:
        line_number: From 1; blank lines count.
        byte_offset: Where `raw` begins in the decoded bytes of the file.
        reason: One of `REASONS`.
        raw: The exact bytes, without the line feed.
    """

    line_number: int
    byte_offset: int
    reason: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Inspected:
    """What was found in a file: `records + rejected_lines + blank_lines == lines`.

    Attributes:
        decoded_bytes: Length of the decoded bytes.
        lines: All lines; a last one without line feed counts.
        blank_lines: Lines of nothing but spaces, tabs and carriage returns.
        records: Lines that are one JSON object.
        rejected_lines: All others.
        rejects: Number of rejected lines by reason.
        reject_rows: Number of `Reject` values; more than `rejected_lines` where a line was too long.
        keys: Top-level keys of all records, as first seen.
        has_bom: The file begins with a UTF-8 byte order mark, which is no part of the first line.
    """

    decoded_bytes: int
    lines: int
    blank_lines: int
    records: int
    rejected_lines: int
    rejects: dict[str, int]
    reject_rows: int
    keys: tuple[str, ...]
    has_bom: bool


def inspect_lines(
    pieces: Iterable[bytes],
    limits: Limits,
    *,
    on_reject: Callable[[Reject], None],
    on_good: Callable[[bytes], object] | None = None,
    refused: frozenset[bytes] = frozenset(),
    discovery: Discovery = "full",
) -> Inspected:
    """Look at every line of a file. Holds no more of it than one piece and `max_line_bytes`.

    Args:
        pieces: The decoded bytes, cut anywhere.
        limits: What is too long or too large.
        on_reject: Gets every reject, in the order of the file.
        on_good: Gets all records byte for byte, in blocks of whole lines, each line with its line feed. No blank lines,
            no byte order mark; a last line without line feed gets one.
        refused: Records, without white space around them, that are to be rejected as `parsers_disagree`.
        discovery: How closely to look.

    Raises:
        FileError: `too_large`: more decoded bytes than `max_decompressed_bytes`; `too_many_keys`: more than `MAX_KEYS`.
    """
    inspection = _Inspection(limits, on_reject, on_good, refused, discovery)
    for piece in pieces:
        inspection.feed(piece)
    return inspection.finish()


class _Inspection:
    """The state between two pieces.

    `_head` holds the first bytes until they are seen to be a byte order mark or not; `_tail` a line whose end was not
    seen yet; `_offset` and `_line` say where the next line (or the next piece of one that is too long) begins.
    """

    def __init__(
        self,
        limits: Limits,
        on_reject: Callable[[Reject], None],
        on_good: Callable[[bytes], object] | None,
        refused: frozenset[bytes],
        discovery: Discovery,
    ) -> None:
        self._limits = limits
        self._on_reject = on_reject
        self._on_good = on_good
        self._refused = refused
        self._look = self._parse if discovery == "full" else self._count
        self._head: bytes | None = b""
        self._tail = bytearray()
        self._over_long = False
        self._has_bom = False
        self._decoded_bytes = 0
        self._offset = 0
        self._line = 1
        self._blank_lines = 0
        self._rejects: Counter[str] = Counter()
        self._reject_rows = 0
        self._known: set[str] = set()
        self._keys: dict[str, None] = {}

    def feed(self, piece: bytes) -> None:
        self._decoded_bytes += len(piece)
        if self._decoded_bytes > self._limits.max_decompressed_bytes:
            raise FileError(
                "too_large",
                f"at least {self._decoded_bytes} bytes after decoding, expected at most "
                f"max_decompressed_bytes = {self._limits.max_decompressed_bytes}",
            )
        if self._head is not None:
            piece = self._head + piece
            if len(piece) < len(_BOM) and _BOM.startswith(piece):
                self._head = piece
                return
            self._head = None
            if piece.startswith(_BOM):
                self._has_bom = True
                self._offset = len(_BOM)
                piece = piece[len(_BOM) :]
        self._split(piece)

    def finish(self) -> Inspected:
        if self._head:
            self._split(self._head)
        if self._tail or self._over_long:
            self._end_line()
        lines, rejected = self._line - 1, self._rejects.total()
        return Inspected(
            decoded_bytes=self._decoded_bytes,
            lines=lines,
            blank_lines=self._blank_lines,
            records=lines - rejected - self._blank_lines,
            rejected_lines=rejected,
            rejects=dict(self._rejects),
            reject_rows=self._reject_rows,
            keys=tuple(self._keys),
            has_bom=self._has_bom,
        )

    def _split(self, piece: bytes) -> None:
        """Cut a piece into blocks of whole lines; keep the rest."""
        start = 0
        if self._tail or self._over_long:
            end = piece.find(b"\n")
            if end < 0:
                self._keep(piece)
                return
            self._keep(piece[:end])
            self._end_line()
            start = end + 1
        while start < len(piece):
            end = piece.rfind(b"\n", start, start + BLOCK_BYTES)
            if end < 0:
                end = piece.find(b"\n", start + BLOCK_BYTES)
            if end < 0:
                self._keep(piece[start:])
                return
            self._inspect_block(piece[start : end + 1])
            start = end + 1

    def _keep(self, part: bytes) -> None:
        """Add to the unfinished line, and hand on what of it is already known to be too long."""
        self._tail += part
        size = self._limits.max_line_bytes
        if len(self._tail) > size:
            if not self._over_long:
                self._over_long = True
                self._rejects["line_too_long"] += 1
            held = bytes(self._tail)
            whole = len(held) // size * size
            for at in range(0, whole, size):
                self._reject(self._line, self._offset + at, "line_too_long", held[at : at + size])
            self._offset += whole
            self._tail = bytearray(held[whole:])

    def _end_line(self) -> None:
        """The unfinished line is complete."""
        line, self._tail = bytes(self._tail), bytearray()
        if not self._over_long:
            self._inspect_block(line + b"\n")
            return
        if line:
            self._reject(self._line, self._offset, "line_too_long", line)
        self._over_long = False
        self._offset += len(line) + 1
        self._line += 1

    def _inspect_block(self, block: bytes) -> None:
        """Decide about whole lines."""
        lines = block.split(b"\n")
        lines.pop()
        size = self._limits.max_line_bytes
        if len(block) > size and max(map(len, lines)) > size:
            self._inspect_singly(lines)
            return
        faults = self._look(lines)
        if faults:
            self._set_aside(lines, faults)
        elif self._on_good:
            self._on_good(block)
        self._offset += len(block)
        self._line += len(lines)

    def _parse(self, lines: list[bytes]) -> list[tuple[int, str]]:
        """What is wrong with which lines. Nothing in the loop may cost more than it must: the time goes here."""
        loads, refused, known = orjson.loads, self._refused, self._known
        learn = known.update
        known_count = len(known)
        faults: list[tuple[int, str]] = []
        for index, line in enumerate(lines):
            if not line:
                faults.append((index, _BLANK_LINE))
                continue
            try:
                document = loads(line)
            except orjson.JSONDecodeError as exc:
                document = _with_numbers_beyond_double(line, exc)
                if document is None:
                    faults.append((index, _fault(line, exc)))
                    continue
            if type(document) is not dict:
                faults.append((index, "not_an_object"))
                continue
            if refused and line.strip(BLANK) in refused:
                faults.append((index, "parsers_disagree"))
                continue
            # Measured: learning all keys and comparing the counts is faster than asking whether all are known.
            learn(document)
            if len(known) != known_count:
                known_count = len(known)
                if known_count > MAX_KEYS:
                    raise FileError("too_many_keys", f"more than {MAX_KEYS} different top-level keys, expected columns")
                self._keys.update(dict.fromkeys(document))
        return faults

    def _count(self, lines: list[bytes]) -> list[tuple[int, str]]:
        """The blank lines, those that cannot be an object, and those that were refused."""
        faults = [
            (index, fault)
            for index, line in enumerate(lines)
            if line[:1] != b"{" and (fault := _fault_of_start(line)) is not None
        ]
        if self._refused:
            stripped = ((index, line.strip(BLANK)) for index, line in enumerate(lines))
            known = {index for index, _ in faults}
            faults += [
                (index, "parsers_disagree") for index, line in stripped if line in self._refused and index not in known
            ]
            faults.sort()
        return faults

    def _inspect_singly(self, lines: list[bytes]) -> None:
        for line in lines:
            if len(line) > self._limits.max_line_bytes:
                self._keep(line)
                self._end_line()
            else:
                self._inspect_block(line + b"\n")

    def _set_aside(self, lines: list[bytes], faults: list[tuple[int, str]]) -> None:
        """Hand on the rejects of a block, and what remains of it."""
        offset, done = self._offset, 0
        good: list[bytes] = []
        for index, reason in faults:
            before = lines[done:index]
            good += before
            offset += sum(map(len, before)) + len(before)
            if reason == _BLANK_LINE:
                self._blank_lines += 1
            else:
                self._rejects[reason] += 1
                self._reject(self._line + index, offset, reason, lines[index])
            offset += len(lines[index]) + 1
            done = index + 1
        good += lines[done:]
        if good and self._on_good:
            self._on_good(b"\n".join(good) + b"\n")

    def _reject(self, line_number: int, byte_offset: int, reason: str, raw: bytes) -> None:
        self._reject_rows += 1
        self._on_reject(Reject(line_number, byte_offset, reason, raw))


def _with_numbers_beyond_double(line: bytes, error: orjson.JSONDecodeError) -> Any:
    """What a line holds that orjson refuses only because a number in it, such as 1e400, is infinite as a double.

    The value is text to the compactor, so JSON's grammar decides. None if the line is not JSON all the same.
    """
    if "infinity" not in error.msg:
        return None
    # 0e0 is as little to be continued into another number as what it stands for.
    finite = _STRING_OR_NUMBER.sub(lambda token: b"0e0" if _is_beyond_double(token[0]) else token[0], line)
    try:
        return orjson.loads(finite)
    except orjson.JSONDecodeError:
        return None


def _is_beyond_double(token: bytes) -> bool:
    return token[:1] != b'"' and math.isinf(float(token))


def _fault_of_start(line: bytes) -> str | None:
    """What is wrong with a line that may begin with anything; None if it begins as an object does.

    Spark makes a row of each element of an array, and none of an empty one, so counting its rows would prove nothing.
    """
    start = line.strip(BLANK)[:1]
    if start == b"{":
        return None
    if not start:
        return _BLANK_LINE
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        return _fault(line, exc) if _with_numbers_beyond_double(line, exc) is None else "not_an_object"
    return "not_an_object"


def _fault(line: bytes, error: orjson.JSONDecodeError) -> str:
    """Why a line could not be parsed."""
    if not line.strip(BLANK):
        return _BLANK_LINE
    try:
        line.decode()
    except UnicodeDecodeError:
        return "invalid_utf8"
    return "too_deep" if "recursion" in error.msg else "invalid_json"
