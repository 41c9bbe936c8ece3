"""Digests of the stored bytes of files, by which a copy or a touched file is known to be the same.

They are the first 128 bits of BLAKE3, marked as such: it takes a quarter of the processor's time of SHA-256, and the
digest is the second largest cost of reading a local file. Digests without the mark are SHA-256, of earlier ledgers.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from blake3 import blake3

from compactor.core.versions import DIGEST_MARK, AskedBeginnings, Beginning, mark_of

_HEX_DIGITS = 32  # 128 bits


class _Hash(Protocol):
    """What is used of the objects of hashlib and blake3."""

    def update(self, data: bytes | memoryview, /) -> object: ...

    def hexdigest(self) -> str: ...


class ContentDigest:
    """The digest of a file whose bytes pass by.

    Args:
        pool: Its threads add what passes, while the caller reads on, one piece behind at most. None to do it at once.
        mark: What tells how it is made, see `mark_of`; by default as those of the ledger are.
    """

    def __init__(self, pool: ThreadPoolExecutor | None = None, mark: str = DIGEST_MARK) -> None:
        self._pool = pool
        self._mark = mark
        self._hash = _new_hash(mark)
        self._length_bytes = 0
        self._adding: Future[object] | None = None
        self._has_first = False

    def begin(self, first: bytes) -> None:
        """Add the first piece of a file at once, while it is in the processor's cache; the same piece passes later."""
        self._hash.update(first)
        self._length_bytes = len(first)
        self._has_first = bool(first)

    def passing(self, stored: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a file from its start, and add each; the first one only if it was not added before."""
        self._added()
        has_first, self._has_first = self._has_first, False
        if not has_first:
            self._hash, self._length_bytes = _new_hash(self._mark), 0
        for number, piece in enumerate(stored):
            if number or not has_first:
                self._add(piece)
            yield piece

    def of_whole(self, size_bytes: int) -> str:
        """The digest; empty if not all bytes of the file have passed."""
        self._added()
        return _digest(self._mark, self._hash) if self._length_bytes == size_bytes else ""

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


def beginnings(stored: Iterable[bytes], asked: AskedBeginnings) -> set[Beginning]:
    """Those of some beginnings that a file has.

    Args:
        stored: The pieces of the file, from its start; read only as far as needed.
        asked: Those beyond the end of the file are none of its beginnings.
    """
    hashes = {mark: _new_hash(mark) for mark in {mark_of(digest) for digests in asked.values() for digest in digests}}
    left = sorted(asked, reverse=True)
    found: set[Beginning] = set()
    position = 0
    if not left:
        return found
    for piece in stored:
        rest = memoryview(piece)
        while left and left[-1] - position <= len(rest):
            length = left.pop()
            _update(hashes.values(), rest[: length - position])
            rest, position = rest[length - position :], length
            digests = (_digest(mark, hashed) for mark, hashed in hashes.items())
            found.update((length, digest) for digest in digests if digest in asked[length])
        if not left:
            break
        _update(hashes.values(), rest)
        position += len(rest)
    return found


def digest_of_first(stored: Iterable[bytes], length_bytes: int) -> str:
    """The digest of the first bytes of a file, as those of the ledger are."""
    hashed, left = _new_hash(DIGEST_MARK), length_bytes
    for piece in stored:
        hashed.update(memoryview(piece)[:left])
        left -= min(left, len(piece))
        if not left:
            break
    return _digest(DIGEST_MARK, hashed)


def _update(hashes: Iterable[_Hash], data: memoryview) -> None:
    for each in hashes:
        each.update(data)


def _new_hash(mark: str) -> _Hash:
    new: Callable[[], _Hash] = blake3 if mark else hashlib.sha256
    return new()


def _digest(mark: str, hashed: _Hash) -> str:
    return mark + hashed.hexdigest()[:_HEX_DIGITS]
