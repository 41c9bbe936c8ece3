"""Digests of files' stored bytes, which identify copies and touched files.

A digest is the first 128 bits of BLAKE3, with a prefix. BLAKE3 takes a quarter of the CPU time of SHA-256; the digest
is the second largest cost of reading a local file.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from blake3 import blake3

from compactor.core.versions import AskedBeginnings, Beginning

_HEX_DIGITS = 32  # 128 bits


class ContentDigest:
    """A file's digest, computed while its bytes are read.

    Args:
        pool: Its threads hash each piece while the caller reads the next one. None to hash in the caller's thread.
    """

    def __init__(self, pool: ThreadPoolExecutor | None = None) -> None:
        self._pool = pool
        self._hash = blake3()
        self._length_bytes = 0
        self._adding: Future[object] | None = None
        self._has_first = False

    def begin(self, first: bytes) -> None:
        """Add the first piece of a file at once, while the CPU cache holds it; `passing` then skips it."""
        self._hash.update(first)
        self._length_bytes = len(first)
        self._has_first = bool(first)

    def passing(self, stored: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a file from its start, and add each one to the digest."""
        self._added()
        has_first, self._has_first = self._has_first, False
        if not has_first:
            self._hash, self._length_bytes = blake3(), 0
        for number, piece in enumerate(stored):
            if number or not has_first:
                self._add(piece)
            yield piece

    def of_whole(self, size_bytes: int) -> str:
        """The digest; empty if not all bytes of the file were passed."""
        self._added()
        return _digest(self._hash) if self._length_bytes == size_bytes else ""

    def _add(self, piece: bytes) -> None:
        self._added()
        self._length_bytes += len(piece)
        if self._pool is None:
            self._hash.update(piece)
        else:
            self._adding = self._pool.submit(self._hash.update, piece)

    def _added(self) -> None:
        if self._adding is not None:
            self._adding.result()
            self._adding = None


def beginnings(stored: Iterable[bytes], asked: AskedBeginnings) -> set[Beginning]:
    """The given beginnings that a file has.

    Args:
        stored: The pieces of the file, from its start; read only as far as needed.
        asked: Digests by length. Lengths beyond the end of the file never match.
    """
    hashed = blake3()
    left = sorted(asked, reverse=True)
    found: set[Beginning] = set()
    position = 0
    if not left:
        return found
    for piece in stored:
        rest = memoryview(piece)
        while left and left[-1] - position <= len(rest):
            length = left.pop()
            hashed.update(rest[: length - position])
            rest, position = rest[length - position :], length
            if (digest := _digest(hashed)) in asked[length]:
                found.add((length, digest))
        if not left:
            break
        hashed.update(rest)
        position += len(rest)
    return found


def digests_up_to(stored: Iterable[bytes], start: int, end: int) -> tuple[str, str]:
    """The digests of a file's first `end` bytes, and of those of them from `start` on."""
    of_all, position = blake3(), 0
    within = blake3() if start else of_all  # the same bytes are hashed once
    for piece in stored:
        taken = memoryview(piece)[: end - position]
        of_all.update(taken)
        if start:
            within.update(taken[max(start - position, 0) :])
        position += len(taken)
        if position == end:
            break
    return _digest(of_all), _digest(within)


def _digest(hashed: blake3) -> str:
    return f"b3-{hashed.hexdigest()[:_HEX_DIGITS]}"
