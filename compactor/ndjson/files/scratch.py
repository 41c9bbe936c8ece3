"""Scratch files of a task: limits them, holds them while the task lives, and reports a full disk."""

import errno
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp

from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError, ScratchFull, StoreUnavailable

LEFTOVER_AGE_SECONDS = 24 * 3600.0
"""On a file system without locks, an unchanged temporary file of this age has no writer."""

TEMPORARY_PREFIX = ".~compactor-"
_FOLDER = re.compile(re.escape(TEMPORARY_PREFIX) + r"[a-z0-9_]{8}")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def hold(handle: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file or folder, as a sign that its writer lives; return False if a different process locked it.

    The kernel unlocks it once all processes that hold it are dead.
    """
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)  # guard: the kernel tells whether the writer of a temporary lives
    except OSError as exc:  # others than this one: the file system has no locks
        return not isinstance(exc, BlockingIOError)
    return True


def is_left(handle: int) -> bool:
    """Whether no living process holds a temporary file or folder. If so, `handle` now does."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # guard: a file held by a living process is not a leftover
    except OSError:  # ctime, because a hard-linked copy keeps the mtime of its source
        return time.time() - os.fstat(handle).st_ctime > LEFTOVER_AGE_SECONDS
    return True


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder for scratch files, which only this user can read, held and then deleted."""
    folder, handle = _held_folder()
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)
        os.close(handle)


def _held_folder() -> tuple[Path, int]:
    while True:
        folder = Path(mkdtemp(prefix=TEMPORARY_PREFIX))
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        # An erasure may have taken it for a leftover before it was held.
        if hold(handle) and os.fstat(handle).st_nlink:  # guard: a deleted scratch folder is not used
            return folder, handle
        os.close(handle)


def remove_scratch_folders() -> Iterator[str]:
    """Delete the scratch folders that this user's dead processes left on this machine; yield those that stay."""
    for path in Path(gettempdir()).iterdir():
        with suppress(OSError):
            if not _FOLDER.fullmatch(path.name) or path.lstat().st_uid != os.geteuid():
                continue
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if is_left(handle):
                    rmtree(path, ignore_errors=True)
                    if path.exists():
                        yield str(path)
            finally:
                os.close(handle)


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
        # Not `gettempdir()`, which raises again if no place for temporary files can be written.
        raise error(f"scratch files in {tempfile.tempdir or 'no folder'}: {exc}") from exc
