"""Decides how to read a file: as lines, as elements, or not at all."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError
from compactor.core.inputs.record_place import DOCUMENTS, RecordPlace
from compactor.core.layout import is_within
from compactor.core.text.safe_text import quoted
from compactor.ndjson.codecs import sniff
from compactor.ndjson.grok import GrokSplitter, MatchingTime, OpenDecoder
from compactor.ndjson.kinds.binary_kinds import Kind, archive, binary_kind
from compactor.ndjson.kinds.element_splitting import ElementScanner, ElementSplitter, NewScanner
from compactor.ndjson.kinds.recognition import MIN_LINES, begins_with_record, known_path, recognise
from compactor.ndjson.line_splitting import split_behind_hole, split_lines
from compactor.ndjson.lines import LineCounts, Receiver, Splitter

LOOK_BYTES = 64 * 1024
"""How much of a file to examine."""

LONG_LOOK_BYTES = 1024 * 1024
"""How much of a file to examine if its first lines are longer."""

MAX_FIRST_LINE_BYTES = 16 * 1024 * 1024
"""How far to search for the end of a first line that may be the whole file."""


def recorded_splitter(place: RecordPlace | None, grok: OpenDecoder | None, *, may_have_hole: bool) -> Splitter:
    """The splitter with which a file was read when its manifest was compacted.

    Args:
        place: Where its records are, by the file's report.
        grok: The decoder of its lines; None if they are JSON.
        may_have_hole: Whether NUL bytes at its beginning were skipped; not for ranges and redriven lines.
    """
    split = Formats("recorded", grok=grok).recorded(place)
    return partial(split_behind_hole, split=split) if may_have_hole else split


@dataclass(frozen=True, slots=True)
class Formats:
    """Which files are read, and how.

    Attributes:
        accepted: `ndjson`: every other kind is quarantined. `json`: JSON arrays and documents are also read. `grok`:
            lines are any text; only archives and other binary files are quarantined. `recorded`: nothing is recognised;
            files are read as they were before.
        places: With `recorded`, where the records of the files are that were read as JSON, by URI.
        place: With `json`, where records are in documents. Without a path, a document is a record.
        finds_place: With `json`, whether to look for the path of each file; see `known_path`.
        lines_folder: Files in this folder hold lines, whatever they look like. Empty for none.
        grok: The decoder of lines; None if they are JSON.
        new_scanner: Makes what finds records in documents.
        matching: Counts the time that `grok` takes for the files of a task.
    """

    accepted: Literal["ndjson", "json", "grok", "recorded"] = "ndjson"
    places: Mapping[str, RecordPlace] = field(default_factory=dict)
    place: RecordPlace = DOCUMENTS
    finds_place: bool = False
    lines_folder: str = ""
    grok: OpenDecoder | None = None
    new_scanner: NewScanner = ElementScanner
    matching: MatchingTime = field(default_factory=MatchingTime, compare=False)

    @property
    def recognises(self) -> bool:
        """Whether files of other kinds are quarantined."""
        return self.accepted != "recorded"

    @property
    def lines(self) -> Splitter:
        """The splitter for a file that is known to hold lines."""
        return split_lines if self.grok is None else GrokSplitter(self.grok, self.matching if self.recognises else None)

    def has_lines(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes holds lines, which can be read while others are appended."""
        head = head.lstrip(b"\0")
        if self.grok is not None:
            return sniff(head) == "none" and not (archive(head) or binary_kind(head))
        path = known_path(head) if self.finds_place else self.place.path
        return not path and begins_with_record(head)

    def recorded(self, place: RecordPlace | None) -> Splitter:
        """The splitter for a file whose records are at a known place; None if they are lines."""
        return self.lines if place is None else ElementSplitter(place, self.new_scanner)

    def splitter(self, uri: str) -> Splitter:
        """The splitter for a file. Raises a `FileError` if this kind of file is not accepted."""
        if self.lines_folder and is_within(uri, self.lines_folder):
            return self.lines
        split: Splitter = partial(_split_recognised, formats=self)
        if self.accepted == "recorded":
            split = self.recorded(self.places.get(uri))
        elif self.accepted == "grok":
            split = partial(_split_text, split=self.lines)
        return partial(split_behind_hole, split=split)


def _split_recognised(pieces: Iterable[bytes], receiver: Receiver, *, formats: Formats) -> LineCounts:
    look = _Look(iter(pieces))
    head = look.first(LOOK_BYTES)
    path = known_path(head)
    place = replace(formats.place, path=path) if formats.finds_place else formats.place
    if place.path and formats.accepted == "json" and head.startswith(b'{"'):
        # Surely JSON. To tell of which form, by up to all of its first line, took a quarter of the time to read it.
        return ElementSplitter(place, formats.new_scanner)(look.pieces(), receiver)
    kind, pieces = recognised(look.pieces())
    if kind is None and not place.path:
        return split_lines(pieces, receiver)
    if kind is not None and not (formats.accepted == "json" and kind.is_json):
        hint = f", or its elements, into another DST, with --records {quoted(path)}" if path and kind.is_json else ""
        raise FileError(FileStatus.NOT_NDJSON, f"{kind.words}{hint}")
    return ElementSplitter(place if place.path else DOCUMENTS, formats.new_scanner)(pieces, receiver)


def _split_text(pieces: Iterable[bytes], receiver: Receiver, *, split: Splitter) -> LineCounts:
    look = _Look(iter(pieces))
    head = look.first(LOOK_BYTES)
    if kind := archive(head) or binary_kind(head):
        raise FileError(FileStatus.NOT_NDJSON, kind.words)
    return split(look.pieces(), receiver)


def recognised(pieces: Iterable[bytes]) -> tuple[Kind | None, Iterator[bytes]]:
    """Examine the first bytes of a file.

    Returns:
        The kind of the file if it is not NDJSON, else None; and all pieces of the file.
    """
    look = _Look(iter(pieces))
    head = look.first(LOOK_BYTES)
    if begins_with_record(head):
        return None, look.pieces()
    if not look.is_all(head) and head.count(b"\n") < MIN_LINES:
        head = look.first(LONG_LOOK_BYTES)
        if b"\n" not in head:
            head = head[:LOOK_BYTES]
    kind = recognise(head, is_whole=look.is_all(head))
    if kind is not None and kind.is_json and b"\n" not in head and begins_with_record(look.after_first_line()):
        kind = None  # only the first line is not a record
    return kind, look.pieces()


class _Look:
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._is_all = False

    def first(self, size: int) -> bytes:
        """The first bytes of the file; fewer if it is shorter."""
        while self._held_bytes <= size and self._read():
            pass
        if self._held and len(self._held[0]) >= size:
            return self._held[0][:size]
        return b"".join(self._held)[:size]

    def is_all(self, head: bytes) -> bool:
        """Whether the first bytes are the whole file."""
        return self._is_all and len(head) == self._held_bytes

    def after_first_line(self) -> bytes:
        """The first bytes after the first line feed; empty if the first line is the whole file, or too long."""
        while self._held_bytes < MAX_FIRST_LINE_BYTES and b"\n" not in self._held[-1] and self._read():
            pass
        self._read()
        after = b"".join(self._held).partition(b"\n")[2]
        return after[:LOOK_BYTES]

    def pieces(self) -> Iterator[bytes]:
        """Yield all pieces of the file, holding them no longer than needed."""
        while self._held:
            yield self._held.pop(0)
        yield from self._pieces

    def _read(self) -> bool:
        """Read one more piece; return whether there was one."""
        piece = next(self._pieces, None)
        if piece is None:
            self._is_all = True
            return False
        self._held.append(piece)
        self._held_bytes += len(piece)
        return True
