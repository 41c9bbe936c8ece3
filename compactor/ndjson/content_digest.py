"""Digests of the stored bytes of files, by which a copy or a touched file is known to be the same."""

import hashlib
from collections.abc import Iterable, Iterator

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
