"""Cuts a piece out of a line that may be long and hold anything, with a mark below one place of it."""

from collections.abc import Iterable, Iterator

from rich.cells import cell_len

from compactor.core.text.safe_text import visible

_CUT = "..."
_MOST_BYTES = 4  # of a character in UTF-8
_CONTINUES = range(0x80, 0xC0)  # bytes that are not the first of their character


def excerpt(line: bytes, offset: int | None, *, width: int) -> tuple[str, str]:
    r"""Show a part of a line.

    Args:
        line: Any bytes. Those that are not UTF-8, and all that acts on a terminal, become escapes such as `\xe9`.
        offset: The byte that is in the part and gets a mark; None for the beginning of the line, without a mark.
        width: The most columns of a terminal.

    Returns:
        The part, and the mark with its indentation; empty without one.
    """
    at = min(offset or 0, len(line))
    start, end = _characters_from(line, max(0, at - width)), min(len(line), at + _MOST_BYTES * width)
    room = width - 2 * len(_CUT)
    before, is_begin = _fitting(reversed(list(_shown(line[start:at]))), room // 2 if len(line) > at else room)
    indent = sum(map(cell_len, before))
    after, is_end = _fitting(_shown(line[at:end]), room - indent)
    head = "" if is_begin and start == 0 else _CUT
    tail = "" if is_end and end == len(line) else _CUT
    text = head + "".join(reversed(before)) + "".join(after) + tail
    return text, "" if offset is None else " " * (len(head) + indent) + "^"


def _characters_from(line: bytes, start: int) -> int:
    """The first byte of the character that a byte belongs to."""
    for at in range(start, max(start - _MOST_BYTES, -1), -1):
        if at >= len(line) or line[at] not in _CONTINUES:
            return at
    return start


def _shown(part: bytes) -> Iterator[str]:
    """Each character as it is shown."""
    return map(visible, part.decode(errors="backslashreplace"))


def _fitting(characters: Iterable[str], room: int) -> tuple[list[str], bool]:
    """As many characters as there is room for; and whether that is all of them."""
    found: list[str] = []
    for character in characters:
        room -= cell_len(character)
        if room < 0:
            return found, False
        found.append(character)
    return found, True
