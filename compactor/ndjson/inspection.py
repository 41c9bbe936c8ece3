"""Decides about each line of a file: a record, a reject with its reason, or blank."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from compactor.core.errors import FileError, ManifestError
from compactor.ndjson.line_splitting import BLOCK_BYTES, split_lines
from compactor.ndjson.lines import Judged, Limits, LineCounts, Refused, Reject

REASONS = {
    "invalid_utf8": "the line is not valid UTF-8",
    "invalid_json": "the line is not exactly one JSON value",
    "too_deep": "arrays and objects are nested more than 1024 levels deep",
    "not_an_object": "the line is a JSON value, but not an object",
    "key_too_long": "a top-level key has more than 10,000 characters, so that it can name no column",
    "line_too_long": "the line is longer than max_line_bytes; it is kept in pieces",
    "parsers_disagree": "the JSON reader of the engine could not read what inspection accepted",
}
"""Why a line can be rejected: each reason with its meaning."""

Discovery = Literal["full", "declared"]
"""`full` parses every line. `declared` only looks at how a line begins and how long it is: it finds no keys, takes what
begins with a brace for a record, and leaves it to the engine to prove that it is one."""

MAX_KEYS = 20_000
"""Distinct top-level keys of one file or manifest. More of them are values that were written as keys."""

MAX_KEY_CHARACTERS = 10_000
"""Of a top-level key. A longer one is a value that was written as a key; keys are held in memory and in every schema
version, so that their length has to be bounded. The native kernel has the same number."""

BLANK = b" \t\r"
"""What a blank line may consist of; also the white space that may stand around a record."""

# A string that never ends is taken whole, or a search from each of its quotes would take time without bound.
_STRING_OR_NUMBER = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')
BLANK_LINE = ""
"""What stands for the reason where a line is blank."""


@dataclass(frozen=True, slots=True)
class Inspected(LineCounts):
    """What was found in a file.

    Attributes:
        keys: Top-level keys of all records, as first seen.
    """

    keys: tuple[str, ...]


def inspect_lines(
    pieces: Iterable[bytes],
    limits: Limits,
    *,
    on_reject: Callable[[Reject], None],
    on_good: Callable[[bytes], object] | None = None,
    refused: frozenset[bytes] = frozenset(),
    discovery: Discovery = "full",
    block_bytes: int = BLOCK_BYTES,
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
        block_bytes: How much is looked at together.

    Raises:
        FileError: `too_large`: more decoded bytes than `max_decompressed_bytes`; `too_many_keys`: more than `MAX_KEYS`.
    """
    inspection = _Inspection(on_good, refused, discovery)
    counts = split_lines(pieces, limits, inspection.judge, on_reject=on_reject, block_bytes=block_bytes)
    return Inspected(**{name: getattr(counts, name) for name in LineCounts.__slots__}, keys=inspection.keys)


def too_many_keys() -> FileError:
    """The error of a file with more than `MAX_KEYS` different keys."""
    return FileError("too_many_keys", f"more than {MAX_KEYS} different top-level keys, expected columns")


def check_keys(manifest_id: str, keys: Collection[str]) -> None:
    """Make sure that the keys of a manifest may be columns.

    Args:
        manifest_id: The manifest.
        keys: Of all its files, in first-seen order.

    Raises:
        ManifestError: `too_many_keys`: more than `MAX_KEYS`.
    """
    if len(keys) > MAX_KEYS:
        *_, last = keys
        raise ManifestError(
            "too_many_keys",
            f"manifest {manifest_id}: {len(keys)} different keys, expected at most {MAX_KEYS}; "
            f"the last is {last[:100]!r}",
        )


def refusals(lines: Sequence[bytes]) -> Iterator[tuple[int, str]]:
    """Which of some lines are no records: the number of each, and why: one of `REASONS`, or `BLANK_LINE`."""
    return iter(_Inspection(None, frozenset(), "full").faults(list(lines)))


class _Inspection:
    """Judges the lines of a file, and collects their keys."""

    def __init__(
        self, on_good: Callable[[bytes], object] | None, refused: frozenset[bytes], discovery: Discovery
    ) -> None:
        self._on_good = on_good
        self._refused = refused
        self.faults = self._parse if discovery == "full" else self._count
        self._known: set[str] = set()
        self._keys: dict[str, None] = {}

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys so far, as first seen."""
        return tuple(self._keys)

    def judge(self, block: bytes) -> Judged:
        """Decide about whole lines."""
        lines = block.split(b"\n")
        lines.pop()
        faults = self.faults(lines)
        if faults:
            return self._set_aside(lines, faults)
        if self._on_good:
            self._on_good(block)
        return Judged(len(lines), 0, ())

    def _parse(self, lines: list[bytes]) -> list[tuple[int, str]]:
        """What is wrong with which lines. Nothing in the loop may cost more than it must: the time goes here."""
        loads, refused, known = orjson.loads, self._refused, self._known
        learn = known.update
        known_count = len(known)
        faults: list[tuple[int, str]] = []
        for index, line in enumerate(lines):
            if not line:
                faults.append((index, BLANK_LINE))
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
                if max(map(len, document)) > MAX_KEY_CHARACTERS:
                    known.difference_update([key for key in document if key not in self._keys])
                    faults.append((index, "key_too_long"))
                    continue
                known_count = len(known)
                if known_count > MAX_KEYS:
                    raise too_many_keys()
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

    def _set_aside(self, lines: list[bytes], faults: list[tuple[int, str]]) -> Judged:
        """Tell the lines with faults from the others, which are handed on."""
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
                refused.append(Refused(index, start, reason, lines[index]))
            start += len(lines[index]) + 1
            done = index + 1
        good += lines[done:]
        if good and self._on_good:
            self._on_good(b"\n".join(good) + b"\n")
        return Judged(len(lines), blank_lines, refused)


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
        return BLANK_LINE
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        return _fault(line, exc) if _with_numbers_beyond_double(line, exc) is None else "not_an_object"
    return "not_an_object"


def _fault(line: bytes, error: orjson.JSONDecodeError) -> str:
    """Why a line could not be parsed."""
    if not line.strip(BLANK):
        return BLANK_LINE
    try:
        line.decode()
    except UnicodeDecodeError:
        return "invalid_utf8"
    return "too_deep" if "recursion" in error.msg else "invalid_json"
