"""Limits the scratch files of a task, and reports a full disk."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import gettempdir

from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError, ScratchFull, StoreUnavailable

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Scratch:
    """Counts the bytes of a task's scratch files.

    Attributes:
        kept_bytes: The bytes of files that stay until the end of the task.
    """

    def __init__(self, max_bytes: int) -> None:
        self.kept_bytes = 0
        self._max_bytes = max_bytes
        self._held_bytes = 0

    def take(self, length_bytes: int) -> None:
        """Count bytes that are about to be written for the current input file.

        Raises:
            FileError: `too_much_scratch`: they exceed the task's limit.
        """
        if self.kept_bytes + self._held_bytes + length_bytes > self._max_bytes:
            raise FileError(
                FileStatus.TOO_MUCH_SCRATCH,
                f"its copy or its rejects would need over {self._held_bytes + length_bytes:,} bytes of scratch, "
                f"in addition to {self.kept_bytes:,} for earlier files; expected at most {self._max_bytes:,}, by "
                "max_decompressed_bytes",
            )
        self._held_bytes += length_bytes

    def give_back(self, length_bytes: int) -> None:
        """Subtract deleted bytes."""
        self._held_bytes -= length_bytes


@contextmanager
def scratch_errors() -> Iterator[None]:
    """Report an `OSError`, which stores never raise, as a scratch folder failure.

    Raises:
        ScratchFull: The disk or the quota is full.
        StoreUnavailable: Any other failure.
    """
    try:
        yield
    except OSError as exc:
        error = ScratchFull if exc.errno in _FULL else StoreUnavailable
        raise error(f"scratch files in {gettempdir()}: {exc}") from exc
