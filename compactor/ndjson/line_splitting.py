"""Splits decoded bytes into lines, passes them to a judge, and counts them. Rejects lines that are too long."""

from collections import Counter
from collections.abc import Iterable

from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError
from compactor.ndjson.lines import Limits, LineCounts, Receiver, Reject

BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, with which a file may begin."""


class DecodedPieces:
    """The pieces of one file, one after the other.

    Attributes:
        decoded_bytes: The length of all of them, the mark included.
        bom_bytes: The length of the byte order mark; 0 if the file has none, or it is not known yet.
    """

    def __init__(self, limits: Limits) -> None:
        self.decoded_bytes = 0
        self.bom_bytes = 0
        self._limits = limits
        # The first bytes, until it is known whether they are a mark; None from then on.
        self._head: bytes | None = b""

    def without_bom(self, piece: bytes) -> bytes:
        """Count the next piece; returns what is known to be none of the mark, empty as long as that is not known.

        Raises:
            FileError: `too_large`: more decoded bytes than `max_decompressed_bytes`.
        """
        self.decoded_bytes += len(piece)
        limit = self._limits.max_decompressed_bytes
        if self.decoded_bytes > limit:
            found = f"at least {self.decoded_bytes} bytes after decoding"
            raise FileError(FileStatus.TOO_LARGE, f"{found}, expected at most max_decompressed_bytes = {limit}")
        if self._head is None:
            return piece
        piece = self._head + piece
        if len(piece) < len(BOM) and BOM.startswith(piece):
            self._head = piece
            return b""
        self._head = None
        self.bom_bytes = len(BOM) if piece.startswith(BOM) else 0
        return piece[self.bom_bytes :]

    def rest(self) -> bytes:
        """What is held back at the end of the file: the beginning of a mark that is none."""
        return self._head or b""


_LARGE_BYTES = 64 * 1024  # parts of a line of at least this size are held as they came


def split_lines(pieces: Iterable[bytes], receiver: Receiver) -> LineCounts:
    """Pass every line of a file on. The pieces may be split anywhere.

    Holds at most three pieces and about twice `max_line_bytes` of the file.

    Raises:
        FileError: `too_large`: more decoded bytes than `max_decompressed_bytes`; or what the judge raises.
    """
    splitting = _Splitting(receiver)
    for piece in pieces:
        splitting.feed(piece)
    return splitting.finish()


class _Splitting:
    """The state between two pieces.

    `_tail` holds a line whose end has not arrived, in parts: large ones as they came, of which the first keeps its
    whole piece, and small ones put together, as a line may have a million of them. `_offset`, counted from behind the
    byte order mark, and `_line` are the position of the next line, or of the next part of an over-long one.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._pieces = DecodedPieces(receiver.limits)
        self._tail: list[bytes | bytearray | memoryview] = []
        self._tail_bytes = 0
        self._over_long = False
        self._offset = 0
        self._line = 1
        self._blank_lines = 0
        self._rejects: Counter[str] = Counter()
        self._reject_rows = 0

    def feed(self, piece: bytes) -> None:
        self._split(self._pieces.without_bom(piece))

    def finish(self) -> LineCounts:
        self._split(self._pieces.rest())
        if self._tail_bytes or self._over_long:
            self._end_line()
        lines, rejected = self._line - 1, self._rejects.total()
        return LineCounts(
            decoded_bytes=self._pieces.decoded_bytes,
            lines=lines,
            blank_lines=self._blank_lines,
            records=lines - rejected - self._blank_lines,
            rejected_lines=rejected,
            rejects=dict(self._rejects),
            reject_rows=self._reject_rows,
            has_bom=bool(self._pieces.bom_bytes),
            format="ndjson",
        )

    def _split(self, piece: bytes) -> None:
        """Split a piece into blocks of whole lines; keep the rest."""
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
                self._take(self._held(memoryview(piece)[:start]))  # `piece[:start]` would be one more copy
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
        """Extend the unfinished line, and reject the part of it that exceeds the limit."""
        if len(part) >= _LARGE_BYTES:
            self._tail.append(part)
        elif self._tail and isinstance(self._tail[-1], bytearray):
            self._tail[-1] += part
        else:
            self._tail.append(bytearray(part))
        self._tail_bytes += len(part)
        size = self._receiver.limits.max_line_bytes
        if self._tail_bytes > size:
            if not self._over_long:
                self._over_long = True
                self._rejects["line_too_long"] += 1
            held = self._held()
            whole = len(held) // size * size
            for at in range(0, whole, size):
                self._reject(self._line, self._offset + at, "line_too_long", held[at : at + size])
            self._offset += whole
            self._tail, self._tail_bytes = [held[whole:]], len(held) - whole

    def _held(self, end: bytes | memoryview = b"") -> bytes:
        """The unfinished line with what follows it. No line is unfinished then."""
        held = b"".join((*self._tail, end))
        self._tail, self._tail_bytes = [], 0
        return held

    def _end_line(self) -> None:
        """Complete the unfinished line."""
        if not self._over_long:
            self._take(self._held(b"\n"))
            return
        if line := self._held():
            self._reject(self._line, self._offset, "line_too_long", line)
        self._over_long = False
        self._offset += len(line) + 1
        self._line += 1

    def _take(self, block: bytes) -> None:
        """Pass whole lines to the judge."""
        if _has_longer_line(block, self._receiver.limits.max_line_bytes):
            self._take_singly(block)
            return
        judged = self._receiver.judge(block)
        on_reject, first, offset = self._receiver.on_reject, self._line, self._pieces.bom_bytes + self._offset
        reasons: list[str] = []  # counted at once: there may be many
        for line, start, reason, raw in judged.refused:
            on_reject(Reject(first + line, offset + start, reason, raw))
            reasons.append(reason)
        self._rejects.update(reasons)
        self._reject_rows += len(reasons)
        self._blank_lines += judged.blank_lines
        self._offset += len(block)
        self._line += judged.lines

    def _take_singly(self, block: bytes) -> None:
        for line in block.split(b"\n")[:-1]:
            self._keep(line)
            self._end_line()

    def _reject(self, line_number: int, offset: int, reason: str, raw: bytes) -> None:
        self._reject_rows += 1
        self._receiver.on_reject(Reject(line_number, self._pieces.bom_bytes + offset, reason, raw))


def _has_longer_line(block: bytes, size: int) -> bool:
    """Whether a line is longer than `size` bytes. Searches the block only around every `size` bytes."""
    start = 0
    while len(block) - start > size:
        end = block.rfind(b"\n", start, start + size + 1)
        if end < 0:
            return True
        start = end + 1
    return False
