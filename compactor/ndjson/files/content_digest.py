"""Digests of the stored bytes of files, by which a copy or a touched file is known to be the same."""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

_HEX_DIGITS = 32  # 128 bits


class ContentDigest:
    """The digest of a file whose bytes pass by.

    Args:
        pool: Its threads do the work, while the caller reads on, one piece behind at most. None to do it at once.
    """

    def __init__(self, pool: ThreadPoolExecutor | None = None) -> None:
        self._pool = pool
        self._hash = hashlib.sha256()
        self._length_bytes = 0
        self._adding: Future[None] | None = None

    def passing(self, stored: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a file from its start, and add each."""
        self._added()
        self._hash, self._length_bytes = hashlib.sha256(), 0
        for piece in stored:
            self._add(piece)
            yield piece

    def of_whole(self, size_bytes: int) -> str:
        """The digest as hexadecimal digits; empty if not all bytes of the file have passed."""
        self._added()
        return self._hash.hexdigest()[:_HEX_DIGITS] if self._length_bytes == size_bytes else ""

    def _add(self, piece: bytes) -> None:
        self._added()
        self._length_bytes += len(piece)
        if self._pool is None:
            self._hash.update(piece)
        else:
            self._adding = self._pool.submit(self._hash.update, piece)

    def _added(self) -> None:
        """Wait until every piece is in the digest."""
        if self._adding is not None:
            self._adding.result()
            self._adding = None


def digests_of_beginnings(stored: Iterable[bytes], lengths: Collection[int]) -> dict[int, str]:
    """The digests of the first bytes of a file, by their number.

    Args:
        stored: The pieces of the file, from its start; read only as far as needed.
        lengths: The numbers of bytes; those beyond the end of the file are left out.
    """
    hashed, position = hashlib.sha256(), 0
    left = sorted(lengths, reverse=True)
    found: dict[int, str] = {}
    for piece in stored:
        rest = memoryview(piece)
        while left and left[-1] - position <= len(rest):
            length = left.pop()
            hashed.update(rest[: length - position])
            rest, position = rest[length - position :], length
            found[length] = hashed.hexdigest()[:_HEX_DIGITS]
        hashed.update(rest)
        position += len(rest)
        if not left:
            break
    return found
