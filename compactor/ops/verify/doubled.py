"""Finds input whose rows are there twice: two manifests have compacted the same version of a file.

Memory does not grow with the number of files: each file is a short entry, and the entries are sorted on disk.
"""

import hashlib
import heapq
import struct
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from types import TracebackType
from typing import IO, Self

from compactor.core.documents.records import Commit, FileReport, FileStatus
from compactor.core.layout import ManifestKey, canonical
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.state import State
from compactor.ops.verify.report import Discrepancy

RUN_ENTRIES = 200_000  # sorted in memory at once: about 15 MB
_BLOCK_ENTRIES = 2_000  # of one sorted run in memory, while the runs are merged

_DIGEST_BYTES = 16
_ENTRY = struct.Struct(f">{_DIGEST_BYTES}sQ")  # the digest of a file version, and where its manifest's key is


@dataclass(slots=True)
class _Pair:
    """Two manifests with common files: how many, and the digest of one."""

    first: int
    second: int
    files: int
    digest: bytes


class _Sorted:
    """Entries of one length, sorted on disk.

    Args:
        file: Has the entries that are sorted already.
        length: Of an entry.
    """

    def __init__(self, file: IO[bytes], length: int) -> None:
        self._file = file
        self._length = length
        self._entries: list[bytes] = []
        self._runs: list[tuple[int, int]] = []  # of sorted entries in the file: start and end

    def add(self, entries: Iterable[bytes]) -> None:
        self._entries += entries
        if len(self._entries) >= RUN_ENTRIES:
            start = self._file.tell()
            self._file.writelines(sorted(self._entries))
            self._runs.append((start, self._file.tell()))
            self._entries.clear()

    def __iter__(self) -> Iterator[bytes]:
        return heapq.merge(*map(self._run, self._runs), sorted(self._entries))

    def _run(self, run: tuple[int, int]) -> Iterator[bytes]:
        start, end = run
        block_bytes = _BLOCK_ENTRIES * self._length
        for place in range(start, end, block_bytes):
            self._file.seek(place)
            block = self._file.read(min(block_bytes, end - place))
            yield from (block[at : at + self._length] for at in range(0, len(block), self._length))


class DoubledFiles:
    """Collects the files of commits, and finds those that are in two of them. A context manager, for one thread.

    Files of redriven lines have names of their own, and a quarantined file has no rows before it is redriven. So it
    finds neither.

    Args:
        state: Has the commits.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._keys: IO[bytes] = self._stack.enter_context(tempfile.TemporaryFile())
        self._versions = self._sorted(_ENTRY)
        return self

    def _sorted(self, entry: struct.Struct) -> _Sorted:
        return _Sorted(self._stack.enter_context(tempfile.TemporaryFile()), entry.size)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, commit: Commit) -> None:
        """Add the files of a commit that have rows."""
        place = self._keys.tell()
        self._keys.write(f"{commit.date}/{commit.manifest_id}\n".encode())
        self._versions.add(_ENTRY.pack(digest, place) for file in commit.files if (digest := version_digest(file)))

    def found(self) -> Iterator[Discrepancy]:
        """Yield one discrepancy for each two manifests that have compacted the same files."""
        pairs: dict[tuple[int, int], _Pair] = {}
        for digest, entries in groupby(map(_ENTRY.unpack, self._versions), key=lambda entry: entry[0]):
            first, *others = dict.fromkeys(place for _, place in entries)
            for second in others:
                pair = pairs.setdefault((first, second), _Pair(first, second, 0, digest))
                pair.files += 1
        named = ((pair, self._key(pair.first), self._key(pair.second)) for pair in pairs.values())
        yield from map_ordered(self._discrepancy, named)

    def _key(self, place: int) -> ManifestKey:
        self._keys.seek(place)
        date, _, manifest_id = self._keys.readline().decode().strip().partition("/")
        return ManifestKey(date, manifest_id)

    def _discrepancy(self, found: tuple[_Pair, ManifestKey, ManifestKey]) -> Discrepancy:
        pair, first, second = found
        commit = self._state.ledger.outcome(first)
        files = commit.files if isinstance(commit, Commit) else ()
        uri = next((file.uri for file in files if version_digest(file) == pair.digest), "")
        return _doubled(first, second, uri, pair.files)


def doubled_versions(state: State, first: ManifestKey, second: ManifestKey) -> Discrepancy | None:
    """What two manifests have compacted both; None if that is nothing."""
    # What cannot be read is reported with the manifest of that record.
    commits = [each.commit for each in accounts(state, Scope(keys=(first, second)))]
    reports = [commit.files if commit is not None else () for commit in commits]
    files = [{digest: file.uri for file in each if (digest := version_digest(file))} for each in reports]
    common = files[0].keys() & files[1].keys()
    return _doubled(first, second, files[0][min(common)], len(common)) if common else None


def _doubled(first: ManifestKey, second: ManifestKey, uri: str, files: int) -> Discrepancy:
    more = f", and {files - 1} more files of both" if files > 1 else ""
    return Discrepancy(
        second.id, uri, "the rows of each file version once", f"compacted by manifest {first.id} as well{more}"
    )


def version_digest(file: FileReport) -> bytes:
    """The digest of a file version that has rows, of a range that of what it continues; empty for any other file."""
    if file.status is not FileStatus.COMPACTED or not file.etag:
        return b""
    # guard: two ranges that begin at the same byte are the same lines
    if (part := file.range) is not None:  # no other range has a line of it if none begins at the same byte
        return _digest(f"{canonical(part.continues)}#{part.digest_before}@{part.from_byte}")
    return _digest(f"{canonical(file.uri)}#{file.etag}")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
