"""Passes the elements of JSON arrays and documents to a judge, each as one line, and counts them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable

from compactor.core.errors import FileError
from compactor.ndjson.decoded_pieces import DecodedPieces
from compactor.ndjson.kinds.json_elements import Element, ElementScanner
from compactor.ndjson.line_splitting import BLOCK_BYTES
from compactor.ndjson.lines import Judge, Limits, LineCounts, Reject

_MAX_HELD = 16_384  # elements of a block, each of which is an object in memory
_LINE_FEEDS_ARE_SPACE = re.compile(rb'(?:[^"]++|"(?:[^"\\\n]++|\\[^\n]|)*+"|)*+')


def split_elements(
    pieces: Iterable[bytes],
    limits: Limits,
    judge: Judge,
    *,
    on_reject: Callable[[Reject], None],
    block_bytes: int = BLOCK_BYTES,
) -> LineCounts:
    """Pass every element of a file to a judge. Holds at most one piece, one block and one element of the file.

    Args:
        pieces: The decoded bytes, split anywhere.
        limits: The longest element and the largest file.
        judge: Classifies blocks of elements, each as a line: its line feeds are spaces, or carriage returns if one of
            them is in a string, which makes it no JSON.
        on_reject: Receives every reject, in the order of the file. Its line number is that of the element.
        block_bytes: The length at which a block is passed on.

    Raises:
        FileError: `too_large`: more decoded bytes than `max_decompressed_bytes`; `unreadable`: the file ends within an
            element or an array; or what `judge` raises.
    """
    splitting = _Splitting(limits, judge, on_reject, block_bytes)
    for piece in pieces:
        splitting.feed(piece)
    return splitting.finish()


class _Splitting:
    """The state between two pieces."""

    def __init__(self, limits: Limits, judge: Judge, on_reject: Callable[[Reject], None], block_bytes: int) -> None:
        self._limits = limits
        self._judge = judge
        self._on_reject = on_reject
        self._block_bytes = block_bytes
        self._scanner = ElementScanner(limits.max_line_bytes)
        self._pieces = DecodedPieces(limits)
        self._elements = 0
        self._over_long = False
        self._block: list[Element] = []
        self._held_bytes = 0
        self._rejects: Counter[str] = Counter()
        self._reject_rows = 0

    def feed(self, piece: bytes) -> None:
        for element in self._scanner.feed(self._pieces.without_bom(piece)):
            self._add(element)

    def finish(self) -> LineCounts:
        for element in (*self._scanner.feed(self._pieces.rest()), *self._scanner.finish()):
            self._add(element)
        self._pass_on()
        if self._scanner.is_open:
            raise FileError(
                "unreadable", f"it ends within an array or element after element {self._elements}: truncated"
            )
        rejected = self._rejects.total()
        return LineCounts(
            decoded_bytes=self._pieces.decoded_bytes,
            lines=self._elements,
            blank_lines=0,
            records=self._elements - rejected,
            rejected_lines=rejected,
            rejects=dict(self._rejects),
            reject_rows=self._reject_rows,
            has_bom=bool(self._pieces.bom_bytes),
            format="json",
        )

    def _add(self, element: Element) -> None:
        if element.ends and not self._over_long and len(element.data) <= self._limits.max_line_bytes:
            self._block.append(element)
            self._held_bytes += len(element.data) + 1
            if self._held_bytes >= self._block_bytes or len(self._block) == _MAX_HELD:
                self._pass_on()
            return
        self._pass_on()
        if not self._over_long:
            self._elements += 1
            self._rejects["line_too_long"] += 1
        size = self._limits.max_line_bytes
        for at in range(0, len(element.data), size):
            raw = element.data[at : at + size].replace(b"\n", b"\r")
            self._reject(self._elements, element.offset + at, "line_too_long", raw)
        self._over_long = not element.ends

    def _pass_on(self) -> None:
        """Pass the held elements to the judge."""
        block, self._block, self._held_bytes = self._block, [], 0
        if not block:
            return
        judged = self._judge(b"".join(_line(element.data) for element in block))
        for line, _, reason, raw in judged.refused:
            self._rejects[reason] += 1
            self._reject(self._elements + line + 1, block[line].offset, reason, raw)
        self._elements += len(block)

    def _reject(self, number: int, offset: int, reason: str, raw: bytes) -> None:
        self._reject_rows += 1
        self._on_reject(Reject(number, self._pieces.bom_bytes + offset, reason, raw))


def _line(element: bytes) -> bytes:
    """The element on one line. It is JSON if and only if the element is."""
    if b"\n" in element:
        element = element.replace(b"\n", b" " if _LINE_FEEDS_ARE_SPACE.fullmatch(element) else b"\r")
    return element + b"\n"
