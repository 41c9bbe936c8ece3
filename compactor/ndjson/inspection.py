"""Classifies each line of a file: a record, a reject with its reason, or blank."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from compactor.ndjson.line_splitting import split_lines
from compactor.ndjson.lines import BLOCK_BYTES, Judged, Limits, LineCounts, Receiver, Refused, Reject, Splitter
from compactor.schema.schema import NO_NEW_KEYS, KeyLimits

MAX_DEPTH = 1024
"""The most levels of arrays and objects in a line: orjson's limit."""


class NewKeys:
    """Collects keys without a column, and notes which keys with a column occur.

    Args:
        columns: The keys that have a column.
        limits: Which other keys to collect.

    Attributes:
        known: The keys that need no closer check. The caller adds each record's keys, and calls `collect` if any is
            new, until `is_complete`.
        has_further: Whether some keys were not collected: too long for a column, or too many.
    """

    def __init__(self, columns: frozenset[str], limits: KeyLimits) -> None:
        self.known: set[str] = set()
        self.has_further = False
        self._columns = columns
        self._limits = limits
        self._collected: dict[str, None] = {}

    @property
    def collected(self) -> tuple[str, ...]:
        """The collected keys, in first-seen order."""
        return tuple(self._collected)

    @property
    def present(self) -> frozenset[str]:
        """The keys with a column that some record may have."""
        return self._columns if self.is_complete else self._columns & self.known

    @property
    def is_complete(self) -> bool:
        """Whether further records add nothing: the key limit is reached, and there are more keys."""
        return self.has_further and len(self._collected) >= self._limits.max_keys

    def collect(self, keys: Iterable[str]) -> None:
        """Collect the keys of a record that may become columns; ignore the others."""
        for key in keys:
            if key in self._columns or key in self._collected:
                continue
            if len(self._collected) < self._limits.max_keys and len(key) <= self._limits.max_key_characters:
                self._collected[key] = None
            else:
                self.has_further = True
                self.known.discard(key)


REASONS = {
    "invalid_utf8": "the line is not valid UTF-8",
    "invalid_json": "the line is not exactly one JSON value",
    "too_deep": "arrays and objects are nested more than 1,024 levels deep",
    "not_an_object": "the line is a JSON value, but not an object",
    "no_records": "no array of records is where input.records leads",
    "line_too_long": "the line is longer than max_line_bytes; it is kept in pieces",
    "no_match": "the line does not match the pattern in input.grok",
    "match_too_costly": "matching takes more steps than input.grok.max_steps, or the line or its record is too long",
    "parsers_disagree": "Spark and inspection read the line differently",
}
"""The reasons for rejecting a line, with their meaning."""

Discovery = Literal["full", "declared"]
"""`full` parses every line. `declared` checks only the start and the length of a line: it finds no keys, treats a line
that starts with a brace as a record, and leaves the proof to the engine."""

BLANK = b" \t\r"
"""The characters of a blank line, which may also surround a record."""

# An unterminated string is matched to the end of the line: a new search from each of its quotes would be quadratic.
_STRING_OR_NUMBER = re.compile(rb'"(?:[^"\\]++|\\.?|)*+(?:"|\Z)|(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')
BLANK_LINE = ""
"""Used instead of a reason for a blank line."""


@dataclass(frozen=True, slots=True)
class Inspected(LineCounts):
    """The counts and keys of a file.

    Attributes:
        keys: Top-level keys without a column that may become one, in first-seen order.
        has_further_keys: Some keys without a column were not collected: too long, or too many.
        present_keys: The keys with a column that some record may have.
    """

    keys: tuple[str, ...]
    has_further_keys: bool
    present_keys: frozenset[str]


def inspect_lines(
    pieces: Iterable[bytes],
    limits: Limits,
    *,
    on_reject: Callable[[Reject], None],
    on_good: Callable[[bytes], object] | None = None,
    refused: frozenset[bytes] = frozenset(),
    discovery: Discovery = "full",
    known_keys: frozenset[str] = frozenset(),
    key_limits: KeyLimits = KeyLimits(),  # noqa: B008 - it is frozen
    split: Splitter = split_lines,
    block_bytes: int = BLOCK_BYTES,
) -> Inspected:
    """Classify every line of a file. Memory is bounded by the splitter and by the number of keys.

    Args:
        pieces: The decoded bytes, split anywhere.
        limits: The longest line and the largest file.
        on_reject: Receives every reject, in file order.
        on_good: Receives all records byte for byte, in blocks of whole lines, each with its line feed. A last line
            without a line feed gets one; blank lines and the byte order mark are omitted.
        refused: Records, stripped of white space, to reject as `parsers_disagree`.
        discovery: Whether to parse every line.
        known_keys: The keys that have a column.
        key_limits: Which other keys to collect.
        split: Splits the file into lines or elements.
        block_bytes: How much is inspected at once.

    Raises:
        FileError: `too_large`: more decoded bytes than `max_decompressed_bytes`; or an error raised by `split`.
    """
    inspection = _Inspection(on_good, refused, discovery, NewKeys(known_keys, key_limits))
    counts = split(pieces, Receiver(limits, inspection.judge, on_reject, block_bytes))
    return Inspected(
        **{name: getattr(counts, name) for name in LineCounts.__slots__},
        keys=inspection.keys.collected,
        has_further_keys=inspection.keys.has_further,
        present_keys=inspection.keys.present if discovery == "full" else known_keys,
    )


def refusals(lines: Sequence[bytes]) -> Iterator[tuple[int, str]]:
    """The lines that are not records: each index, and one of `REASONS` or `BLANK_LINE`."""
    keys = NewKeys(frozenset(), NO_NEW_KEYS)
    return iter(_Inspection(None, frozenset(), "full", keys).faults(list(lines)))


class _Inspection:
    def __init__(
        self,
        on_good: Callable[[bytes], object] | None,
        refused: frozenset[bytes],
        discovery: Discovery,
        keys: NewKeys,
    ) -> None:
        self._on_good = on_good
        self._refused = refused
        self.faults = self._parse if discovery == "full" else self._count
        self.keys = keys

    def judge(self, block: bytes) -> Judged:
        """Classify whole lines."""
        lines = block.split(b"\n")
        lines.pop()
        faults = self.faults(lines)
        if faults:
            return self._separated(lines, faults)
        if self._on_good:
            self._on_good(block)
        return Judged(len(lines), 0, ())

    def _parse(self, lines: list[bytes]) -> list[tuple[int, str]]:
        """The lines with a fault: index and reason. Most of the inspection's time is spent in this loop."""
        loads, refused, known = orjson.loads, self._refused, self.keys.known
        learn = known.update
        known_count, is_complete = len(known), self.keys.is_complete
        faults: list[tuple[int, str]] = []
        for index, line in enumerate(lines):
            if not line:
                faults.append((index, BLANK_LINE))
                continue
            try:
                document = loads(line)
            except orjson.JSONDecodeError as exc:
                document = with_numbers_beyond_double(line, exc)
                if document is None:
                    faults.append((index, _fault(line, exc)))
                    continue
            if type(document) is not dict:
                faults.append((index, "not_an_object"))
                continue
            if refused and line.strip(BLANK) in refused:
                faults.append((index, "parsers_disagree"))
                continue
            if is_complete:
                continue
            # Measured: adding all keys and comparing counts is faster than testing whether all are known.
            learn(document)
            if len(known) != known_count:
                self.keys.collect(document)
                known_count, is_complete = len(known), self.keys.is_complete
        return faults

    def _count(self, lines: list[bytes]) -> list[tuple[int, str]]:
        """The blank lines, those that do not start like an object, and the refused ones: index and reason."""
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

    def _separated(self, lines: list[bytes], faults: list[tuple[int, str]]) -> Judged:
        """Pass the records to `on_good`, and return the lines with faults."""
        start, done, blank_lines = 0, 0, 0
        good: list[bytes] = []
        refused: list[Refused] = []
        for index, reason in faults:
            before = lines[done:index]
            good += before
            start += sum(map(len, before)) + len(before)
            if reason == BLANK_LINE:
                blank_lines += 1
            else:
                refused.append((index, start, reason, lines[index]))
            start += len(lines[index]) + 1
            done = index + 1
        good += lines[done:]
        if good and self._on_good:
            self._on_good(b"\n".join(good) + b"\n")
        return Judged(len(lines), blank_lines, refused)


def with_numbers_beyond_double(line: bytes, error: orjson.JSONDecodeError) -> Any:
    """Parse a line that orjson refused because a number, such as 1e400, is infinite as a double.

    The compactor keeps numbers as text, so only JSON's grammar counts. None if the line is invalid JSON anyway.
    """
    if "infinity" not in error.msg:
        return None
    # `0e0` rather than `0`: JSON allows no fraction after an exponent, so the malformed `1e400.5` stays malformed.
    finite = _STRING_OR_NUMBER.sub(lambda token: b"0e0" if _is_beyond_double(token[0]) else token[0], line)
    try:
        return orjson.loads(finite)
    except orjson.JSONDecodeError:
        return None


def _is_beyond_double(token: bytes) -> bool:
    return token[:1] != b'"' and math.isinf(float(token))


def _fault_of_start(line: bytes) -> str | None:
    """The fault of a line that does not start like an object; None if it does after white space.

    Arrays must be found here: Spark makes one row of each element, so the number of rows would prove nothing.
    """
    start = line.strip(BLANK)[:1]
    if start == b"{":
        return None
    if not start:
        return BLANK_LINE
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        return _fault(line, exc) if with_numbers_beyond_double(line, exc) is None else "not_an_object"
    return "not_an_object"


def _fault(line: bytes, error: orjson.JSONDecodeError) -> str:
    if not line.strip(BLANK):
        return BLANK_LINE
    try:
        line.decode()
    except UnicodeDecodeError:
        return "invalid_utf8"
    return "too_deep" if "recursion" in error.msg else "invalid_json"
