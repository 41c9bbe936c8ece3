"""Reads what the sampler has written: for each sample the stack of addresses in programs and libraries.

The top of a stack is a row of words. Those that point behind a call instruction are taken for return addresses; others
are data. So the stack is found without frame pointers, as in the kernel that users get.
"""

import platform
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SAMPLE_WORDS = 192
"""Words of 8 bytes of a sample, as `sampler.c` says."""

_DEPTH = 8
"""Places of a stack, from the innermost. The stage of a sample is told by the first of them, nearly always."""

_LONGEST_CALL = 7

_CALLS = {
    # a call with a distance of 4 bytes; or by a register, or by memory in each of its forms
    "x86_64": re.compile(
        rb"(?s:\xe8.{4}|\xff(?:[\x10-\x17\xd0-\xd7]|[\x14\x50-\x57].|\x54..|[\x15\x90-\x97].{4}|\x94.{5}))\Z"
    ),
    "aarch64": re.compile(rb"(?s:.{3}[\x94-\x97]|[\x00\x20\x40\x60\x80\xa0\xc0\xe0][\x00-\x03]\x3f\xd6)\Z"),
}
"""By processor, as `platform.machine` calls it, the code of a call."""


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a program or library.

    Attributes:
        file: The path of the program or library.
        offset: Bytes from the address where the file begins in memory.
    """

    file: str
    offset: int


@dataclass(frozen=True, slots=True)
class _Mapped:
    """Executable memory that holds a part of a file."""

    start: int
    end: int
    base: int
    file_offset: int
    file: str


class Maps:
    """The executable memory of a process, from the text of `/proc/<pid>/maps`."""

    def __init__(self, text: str) -> None:
        bases: dict[str, int] = {}
        self._parts: list[_Mapped] = []
        for line in text.splitlines():
            span, mode, offset, _, _, *rest = line.split(maxsplit=5)
            if not rest or not rest[0].startswith("/"):
                continue
            start, end = (int(each, 16) for each in span.split("-"))
            base = bases.setdefault(rest[0], start)
            if "x" in mode:
                self._parts.append(_Mapped(start, end, base, int(offset, 16), rest[0]))
        self._parts.sort(key=lambda part: part.start)
        self._starts = [part.start for part in self._parts]

    def address(self, word: int) -> Address | None:
        """The place of an instruction; None if it is in no file."""
        part = self._part(word)
        return Address(part.file, word - part.base) if part else None

    def caller(self, word: int) -> Address | None:
        """The place of the call that returns to this word; None if that is no return address."""
        part = self._part(word)
        if part is None or not follows_call(_code(part.file, part.file_offset + word - part.start)):
            return None
        return Address(part.file, word - part.base - 1)

    def _part(self, word: int) -> _Mapped | None:
        at = bisect_right(self._starts, word) - 1
        return self._parts[at] if at >= 0 and word < self._parts[at].end else None


@cache
def _code(file: str, offset: int) -> bytes:
    """The bytes before a place in a file; none if the file is gone."""
    try:
        with Path(file).open("rb") as code:
            code.seek(max(0, offset - _LONGEST_CALL))
            return code.read(min(_LONGEST_CALL, offset))
    except OSError:
        return b""


def follows_call(code: bytes, machine: str = platform.machine()) -> bool:
    """Whether the last instruction of some code may be a call.

    Args:
        code: The last 7 bytes before an address, or fewer.
        machine: The processor.
    """
    return _CALLS[machine].search(code) is not None


def read_samples(folder: Path) -> Iterator[Sequence[Address]]:
    """The stacks of all samples of a run, each from its innermost address outwards.

    Args:
        folder: Where the sampler has written its files.

    Raises:
        OSError: The process was not sampled, or did not end by itself.
    """
    maps = Maps((folder / "maps").read_text())
    with (folder / "samples").open("rb") as file:
        while (words := array("Q", file.read(8 * SAMPLE_WORDS))) and words[0]:
            innermost = maps.address(words[0])
            stack = [] if innermost is None else [innermost]
            for word in words[1:]:
                if word and len(stack) < _DEPTH and (caller := maps.caller(word)) is not None:
                    stack.append(caller)
            yield stack
