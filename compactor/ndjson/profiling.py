"""Profiles the records of files."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from compactor.ndjson.inspection import BLANK_LINE, refusals
from compactor.ndjson.line_splitting import split_lines
from compactor.ndjson.lines import Judged, Limits, Receiver, Reject, Splitter
from compactor.ndjson.rawjson import Source, elements, fields, values
from compactor.schema.column_profile import ColumnProfile, Place, TableProfile

_BLOCK_BYTES = 64 * 1024  # small, because a sample ends with a block


MOST_KEYS = 64
"""How many keys of an object are profiled by themselves. Objects with more are maps rather than structs."""

MOST_PARTS = 20_000
"""How many parts of a file's arrays and objects are profiled by themselves, to limit memory."""


class _EnoughRead(Exception):
    pass


def profile_file(
    pieces: Iterable[bytes],
    limits: Limits,
    profile: TableProfile,
    *,
    split: Splitter = split_lines,
    file: int,
    max_records: int | None = None,
    max_bytes: int | None = None,
    path_values: Mapping[str, str] | None = None,
    levels: int = 0,
) -> int:
    """Add the records of a file to a profile.

    Args:
        pieces: The decoded bytes, split anywhere.
        limits: The longest line and the largest file.
        profile: Receives the records.
        split: Splits the file.
        file: The file's number, for the places of examples.
        max_records: How many to read; None for all.
        max_bytes: Stop after this many bytes of lines; None for no limit.
        path_values: Values from its path, added to each record that lacks the key.
        levels: How deep to profile the parts of arrays and objects, too.

    Returns:
        The number of bytes of lines read.

    Raises:
        FileError: It cannot be read completely; the profile has the records before the fault.
    """
    reading = _Reading(profile, file, max_records, max_bytes, path_values or {}, levels)
    with suppress(_EnoughRead):
        split(pieces, Receiver(limits, reading.judge, reading.note_over_long, _BLOCK_BYTES))
    return reading.read_bytes


class _Reading:
    def __init__(
        self,
        profile: TableProfile,
        file: int,
        max_records: int | None,
        max_bytes: int | None,
        path_values: Mapping[str, str],
        levels: int,
    ) -> None:
        self.read_bytes = 0
        self._records = 0
        self._profile = profile
        self._file = file
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._of_path: dict[str, tuple[Source, str]] = {key: ("string", text) for key, text in path_values.items()}
        self._levels = levels
        self._parts_left = MOST_PARTS
        self._line = 0  # the last one
        self._over_long = 0  # the last over-long line

    def judge(self, block: bytes) -> Judged:
        lines = block.split(b"\n")[:-1]
        reasons = dict(refusals(lines))
        for index, line in enumerate(lines):
            if self._max_bytes is not None and self.read_bytes >= self._max_bytes:
                raise _EnoughRead
            self._line += 1
            self.read_bytes += len(line)
            if index in reasons:
                self._profile.other_lines += reasons[index] != BLANK_LINE
                continue
            place, found = Place(self._file, self._line), self._of_path | values(line)
            self._profile.add(place, found)
            if self._levels:
                for key, (source, text) in found.items():
                    if source == "nested" and key in self._profile.columns:
                        self._add_parts(self._profile.columns[key], place, text, self._levels)
            self._records += 1
            if self._records == self._max_records:
                raise _EnoughRead
        return Judged(len(lines), 0, ())

    def _add_parts(self, column: ColumnProfile, place: Place, text: str, levels: int) -> None:
        """Add the parts of an array or object to its column, and theirs down to some levels."""
        is_array = text[0] == "["
        column.arrays += is_array
        column.parts = {} if column.parts is None else column.parts
        found: Iterable[tuple[str | None, Source, str]] = (
            ((None, *element) for element in elements(text)) if is_array else fields(text)
        )
        for key, source, each in found:
            has_room = key in column.parts or (self._parts_left > 0 and len(column.parts) < MOST_KEYS)
            self._parts_left -= has_room and key not in column.parts
            part = column.parts.setdefault(key if has_room else None, ColumnProfile())
            part.add(place, source, each)
            if source == "nested" and levels > 1:
                self._add_parts(part, place, each, levels - 1)

    def note_over_long(self, reject: Reject) -> None:
        """Count a line that is too long. It is rejected in pieces, and no block contains it."""
        if reject.line_number != self._over_long:
            self._over_long = self._line = reject.line_number
            self._profile.other_lines += 1
