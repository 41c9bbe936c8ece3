"""Digests of the stored bytes of files, by which a copy or a touched file is known to be the same."""

import hashlib
from collections.abc import Collection, Iterable, Iterator

_HEX_DIGITS = 32  # 128 bits


class ContentDigest:
    """The digest of a file whose bytes pass by."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._length_bytes = 0

    def passing(self, stored: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a file from its start, and add each."""
        self._hash, self._length_bytes = hashlib.sha256(), 0
        for piece in stored:
            self._hash.update(piece)
            self._length_bytes += len(piece)
            yield piece

    def of_whole(self, size_bytes: int) -> str:
        """The digest as hexadecimal digits; empty if not all bytes of the file have passed."""
        return self._hash.hexdigest()[:_HEX_DIGITS] if self._length_bytes == size_bytes else ""


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
