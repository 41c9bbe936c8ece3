"""Splits decoded bytes into lines, passes them to a judge, and counts them. Rejects lines that are too long."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError
from compactor.core.inputs.record_place import RecordPlace
from compactor.ndjson.lines import Limits, LineCounts, Receiver, Reject, Splitter, behind

BOM = b"\xef\xbb\xbf"
"""The UTF-8 byte order mark, with which a file may start."""

MIN_HOLE_BYTES = 8
"""Fewer NUL bytes at the start of a file may be text in UTF-32, or the header of a schema registry."""


class Splitting(ABC):
    """Splits the pieces of one file into lines or elements: the state between two pieces, and the counts.

    Attributes:
        lines: The lines or elements passed on or rejected so far.
        rejects: How many of these were rejected, by reason.
        place: Where the records are in the file's JSON; None for lines.
    """

    place: RecordPlace | None = None

    def __init__(self, receiver: Receiver) -> None:
        self.lines = 0
        self.rejects: Counter[str] = Counter()
        self._receiver = receiver
        self._limits = receiver.limits
        self._decoded_bytes = 0
        self._blank_lines = 0
        self._bom_bytes = 0
        # The first bytes until they are known to be a mark or not; None afterwards.
        self._head: bytes | None = b""

    def run(self, pieces: Iterable[bytes]) -> LineCounts:
        """Split a whole file.

        Raises:
            FileError: `too_large`: more decoded bytes than `max_decompressed_bytes`; or an error raised by the judge.
        """
        for piece in pieces:
            self._split(self._without_bom(piece))
        self._split(self._head or b"")  # held back: the start of an incomplete mark
        self._finish()
        return LineCounts(
            decoded_bytes=self._decoded_bytes,
            lines=self.lines,
            blank_lines=self._blank_lines,
            rejects=dict(self.rejects),
            has_bom=bool(self._bom_bytes),
            hole_bytes=0,
            place=self.place,
        )

    @abstractmethod
    def _split(self, piece: bytes) -> None:
        """Pass on the lines that the piece completes; keep the rest."""

    @abstractmethod
    def _finish(self) -> None:
        """Pass on the rest at the end of the file."""

    def _without_bom(self, piece: bytes) -> bytes:
        """Count the next piece; return it without the mark, or empty while it is unknown whether the file has one."""
        self._decoded_bytes += len(piece)
        _check_size(self._decoded_bytes, self._limits)
        if self._head is None:
            return piece
        piece = self._head + piece
        if len(piece) < len(BOM) and BOM.startswith(piece):
            self._head = piece
            return b""
        self._head = None
        self._bom_bytes = len(BOM) if piece.startswith(BOM) else 0
        return piece[self._bom_bytes :]

    def _reject(self, line_number: int, offset: int, reason: str, raw: bytes, fields: bytes = b"") -> None:
        """Report a reject; the offset counts from the first byte after the mark."""
        self._receiver.on_reject(Reject(line_number, self._bom_bytes + offset, reason, raw, fields))


def _check_size(found_bytes: int, limits: Limits) -> None:
    if found_bytes > limits.max_decompressed_bytes:
        expected = f"expected at most max_decompressed_bytes = {limits.max_decompressed_bytes}"
        raise FileError(FileStatus.TOO_LARGE, f"at least {found_bytes} bytes after decoding; {expected}")


def split_behind_hole(pieces: Iterable[bytes], receiver: Receiver, *, split: Splitter) -> LineCounts:
    """Split a file without the NUL bytes at its beginning.

    They take the place of lines that were copied elsewhere before the file was truncated: a writer that does not append
    goes on at its old offset. Memory does not grow with their number.

    Raises:
        FileError: `not_ndjson`: there is nothing else; or as `split`, with the same limit for these bytes alone.
    """
    pieces, hole_bytes, first = iter(pieces), 0, b""
    for piece in pieces:
        first = piece.lstrip(b"\0")
        hole_bytes += len(piece) - len(first)
        _check_size(hole_bytes, receiver.limits)
        if first:
            break
    if hole_bytes < MIN_HOLE_BYTES:
        return split(chain([bytes(hole_bytes) + first], pieces), receiver)
    if not first:
        raise FileError(FileStatus.NOT_NDJSON, f"looks like {hole_bytes} NUL bytes; expected NDJSON")
    receiver = replace(receiver, on_reject=behind(0, hole_bytes, receiver.on_reject))
    counts = split(chain([first], pieces), receiver)
    return replace(counts, decoded_bytes=hole_bytes + counts.decoded_bytes, hole_bytes=hole_bytes)


_LARGE_BYTES = 64 * 1024  # parts of a line of at least this size are kept as they arrive


def split_lines(pieces: Iterable[bytes], receiver: Receiver) -> LineCounts:
    """Pass on every line of a file. The pieces may be split anywhere.

    Holds at most three pieces and about twice `max_line_bytes` of the file.

    Raises:
        FileError: `too_large`: more decoded bytes than `max_decompressed_bytes`; or an error raised by the judge.
    """
    return _LineSplitting(receiver).run(pieces)


class _LineSplitting(Splitting):
    """Splits a file at line feeds.

    `_tail` holds a line whose end has not arrived, in parts: large parts as they arrive, small ones joined, because a
    line may have a million of them. `_offset`, counted from the first byte after the byte order mark, is the position
    of the next line, or of the next part of an over-long one.
    """

    def __init__(self, receiver: Receiver) -> None:
        super().__init__(receiver)
        self._tail: list[bytes | bytearray | memoryview] = []
        self._tail_bytes = 0
        self._over_long = False
        self._offset = 0

    def _finish(self) -> None:
        if self._tail_bytes or self._over_long:
            self._end_line()

    def _split(self, piece: bytes) -> None:
        start = 0
        if self._tail_bytes or self._over_long:
            end = piece.find(b"\n")
            if end < 0:
                self._keep(piece)
                return
            start = end + 1
            if self._over_long:
                self._keep(piece[:end])
                self._end_line()
            else:
                self._take(self._held(memoryview(piece)[:start]))  # `piece[:start]` would be another copy
        most = self._receiver.block_bytes
        while start < len(piece):
            end = piece.rfind(b"\n", start, start + most)
            if end < 0:
                end = piece.find(b"\n", start + most)
            if end < 0:
                self._keep(memoryview(piece)[start:])
                return
            self._take(piece[start : end + 1])
            start = end + 1

    def _keep(self, part: bytes | memoryview) -> None:
        """Extend the unfinished line, and reject the part beyond the limit."""
        if len(part) >= _LARGE_BYTES:
            self._tail.append(part)
        elif self._tail and isinstance(self._tail[-1], bytearray):
            self._tail[-1] += part
        else:
            self._tail.append(bytearray(part))
        self._tail_bytes += len(part)
        size = self._limits.max_line_bytes
        if self._tail_bytes > size:
            if not self._over_long:
                self._over_long = True
                self.rejects["line_too_long"] += 1
            held = self._held()
            whole = len(held) // size * size
            for at in range(0, whole, size):
                self._reject(self.lines + 1, self._offset + at, "line_too_long", held[at : at + size])
            self._offset += whole
            self._tail, self._tail_bytes = [held[whole:]], len(held) - whole

    def _held(self, end: bytes | memoryview = b"") -> bytes:
        """Take the unfinished line with the bytes after it."""
        held = b"".join((*self._tail, end))
        self._tail, self._tail_bytes = [], 0
        return held

    def _end_line(self) -> None:
        if not self._over_long:
            self._take(self._held(b"\n"))
            return
        if line := self._held():
            self._reject(self.lines + 1, self._offset, "line_too_long", line)
        self._over_long = False
        self._offset += len(line) + 1
        self.lines += 1

    def _take(self, block: bytes) -> None:
        """Pass whole lines to the judge."""
        if _has_longer_line(block, self._limits.max_line_bytes):
            for each in block.split(b"\n")[:-1]:
                self._keep(each)
                self._end_line()
            return
        judged = self._receiver.judge(block)
        on_reject, first, offset = self._receiver.on_reject, self.lines + 1, self._bom_bytes + self._offset
        reasons: list[str] = []  # counted together: there may be many
        for line, start, reason, raw in judged.refused:
            on_reject(Reject(first + line, offset + start, reason, raw))
            reasons.append(reason)
        self.rejects.update(reasons)
        self._blank_lines += judged.blank_lines
        self._offset += len(block)
        self.lines += judged.lines


def _has_longer_line(block: bytes, size: int) -> bool:
    """Whether a line is longer than `size` bytes. Searches the block only around every `size` bytes."""
    start = 0
    while len(block) - start > size:
        end = block.rfind(b"\n", start, start + size + 1)
        if end < 0:
            return True
        start = end + 1
    return False
