"""Names the functions and sources at addresses, by `addr2line` and `nm`, which come with cargo's linker."""

import re
import subprocess
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from bench.profile.samples import Address
from bench.profile.stages import Place

_SYMBOL = re.compile(r"(\w+) (\w+) [TWi] ([^@]+).*")
_AT_ONCE = 4_000  # addresses of one call of addr2line


def places(addresses: Iterable[Address], kernel: Path) -> Mapping[Address, Sequence[Place]]:
    """Name addresses.

    Args:
        addresses: In any order.
        kernel: The library that was built with the names of inlined functions.

    Returns:
        For each, the functions there: those that the compiler has inlined come first, the innermost at the beginning.

    Raises:
        OSError: `addr2line` or `nm` is not installed.
        CalledProcessError: One of them failed.
    """
    found: dict[Address, Sequence[Place]] = {}
    inside: list[Address] = []
    for address in set(addresses):
        if Path(address.file).name == kernel.name:
            inside.append(address)
        else:
            found[address] = [Place(Path(address.file).name, _exported(address.file, address.offset))]
    rest = iter(inside)
    while some := list(islice(rest, _AT_ONCE)):
        command = ["addr2line", "--addresses", "--functions", "--inlines", "--demangle", f"--exe={kernel}"]
        given = "\n".join(f"{address.offset:#x}" for address in some)
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        found.update(zip(some, parsed(done.stdout, kernel.name), strict=True))
    return found


def parsed(printed: str, module: str) -> Sequence[Sequence[Place]]:
    """What `addr2line` has printed for each address: a line with it, then two lines for each function."""
    stacks: list[list[Place]] = []
    lines = iter(printed.splitlines())
    for line in lines:
        if line.startswith("0x"):
            stacks.append([])
        else:
            source = next(lines, "").rpartition(":")[0]
            stacks[-1].append(Place(module, line.replace("??", ""), source.replace("??", "")))
    return stacks


def _exported(file: str, offset: int) -> str:
    """The exported function at an offset; empty if there is none, as inside of a function that is not exported."""
    starts, symbols = _symbols(file)
    at = bisect_right(starts, offset) - 1
    if at < 0 or offset >= starts[at] + symbols[at][0]:
        return ""
    return symbols[at][1]


@cache
def _symbols(file: str) -> tuple[Sequence[int], Sequence[tuple[int, str]]]:
    """The exported functions of a library: where each begins, in order; and its length and name."""
    command = ["nm", "--dynamic", "--defined-only", "--print-size", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # a program may export nothing
    rows = map(_SYMBOL.fullmatch, done.stdout.splitlines())
    found = sorted((int(row[1], 16), int(row[2], 16), row[3]) for row in rows if row)
    return [start for start, _, _ in found], [(length, name) for _, length, name in found]
