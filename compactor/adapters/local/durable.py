"""Files on a local disk that are either there, whole and safe from a power failure, or not there at all."""

# Names are taken literally, and pathlib tidies them up.
# ruff: noqa: PTH102, PTH105, PTH106, PTH108, PTH112, PTH118, PTH120

import errno
import os
import re
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

from compactor.core.errors import AccessError, ObjectNotFound, StoreUnavailable

T = TypeVar("T")

_TEMPORARY_PREFIX = ".~compactor-"
_TEMPORARY = re.compile(re.escape(_TEMPORARY_PREFIX) + r"[0-9a-f]{32}")
LEFTOVER_AGE_SECONDS = 24 * 3600.0
_TRIES = 20  # one would do, were nobody removing empty folders at the same time

_NO_SUCH_FILE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT}


def is_temporary(name: str) -> bool:
    """Whether a file is one that was being written, or was left behind by a crash."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_leftover(entry: os.DirEntry[str]) -> None:
    """Delete a temporary file that nobody has written to for a day: its writer was killed."""
    with suppress(OSError):
        # By the time of the last change of the entry itself: a linked copy keeps the times of its source.
        if time.time() - entry.stat(follow_symlinks=False).st_ctime > LEFTOVER_AGE_SECONDS:
            os.unlink(entry.path)


@contextmanager
def translated(uri: str, *, writing: bool = False) -> Iterator[None]:
    """Turn errors of the operating system into the compactor's own.

    Args:
        uri: What they are about.
        writing: A name that cannot be had is then a fault of the settings, not an object that is missing.
    """
    try:
        yield
    except OSError as exc:
        reason = exc.strerror or str(exc)
        if exc.errno in _DENIED:
            raise AccessError(f"{uri}: {reason}; expected to be allowed to {'write' if writing else 'read'}") from exc
        if exc.errno in _NO_SUCH_FILE and writing:
            raise AccessError(f"{uri}: cannot be written: {reason}") from exc
        if exc.errno in _NO_SUCH_FILE:
            raise ObjectNotFound(f"{uri}: there is no such object ({reason})") from exc
        if exc.errno in _FULL:
            raise StoreUnavailable(f"{uri}: the disk is full ({reason})") from exc
        raise StoreUnavailable(f"{uri}: {reason}") from exc
    except ValueError as exc:  # a name with a null byte, or one that cannot be encoded
        raise ObjectNotFound(f"{uri!r}: no file can have this name ({exc})") from exc


def open_file(path: str) -> tuple[int, os.stat_result]:
    """Open a file for reading.

    Returns:
        A file descriptor, for the caller to close, and its status.

    Raises:
        OSError: There is no such file, or it is not a regular one.
    """
    # Opening a named pipe would wait for a writer for ever.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise OSError(errno.EISDIR, "not a regular file", path)
    return handle, status


def sync(path: str) -> None:
    """Make a file's data, or a folder's entries, outlast a power failure."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: str) -> None:
    """Make a folder's entries outlast a power failure; a folder that is gone has none."""
    with suppress(FileNotFoundError):
        sync(folder)


def make_folders(folder: str) -> None:
    """Make a folder and those above it, durably."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(path)
        sync_folder(os.path.dirname(path))


def remove_empty_folders(folder: str, levels: int) -> None:
    """Remove a folder and those above it, as far as they are empty.

    Args:
        folder: Where to begin.
        levels: How many folders at most.
    """
    with suppress(OSError):
        for _ in range(levels):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def place(target: str, fill: Callable[[str], None], move: Callable[[str, str], None] = os.replace) -> None:
    """Write a file under a temporary name beside its target, then give it its name.

    Args:
        target: Its path. Missing folders are made.
        fill: Writes the file to the path it is given, durably.
        move: Gives it its name: `os.replace`, or `os.link` to fail where the name is taken.

    Raises:
        OSError: As `fill` and `move` raise it.
    """

    def fill_and_move(temporary: str) -> None:
        try:
            fill(temporary)
            move(temporary, target)
        finally:
            # Also after a replace: renaming one of two links to the same file onto the other does nothing.
            _remove(temporary)

    folder = os.path.dirname(target)
    _in_folder(folder, fill_and_move)
    sync_folder(folder)


@contextmanager
def placed(target: str) -> Iterator[int]:
    """A new file to write to under a temporary name beside its target, whose name it gets when the block ends.

    Once it is there, on disk, nothing is left of what it replaces. It is gone if the block raises.

    Args:
        target: Its path. Missing folders are made.

    Raises:
        OSError: It cannot be written, or not be placed.
    """
    folder = os.path.dirname(target)
    with ExitStack() as removing:
        with ExitStack() as writing:
            temporary, handle = _in_folder(folder, lambda path: (path, writing.enter_context(new_file(path))))
            removing.callback(_remove, temporary)
            yield handle
        os.replace(temporary, target)
    sync_folder(folder)


def _in_folder(folder: str, work: Callable[[str], T]) -> T:
    """Do something with a new temporary name in a folder; again where the folder has to be made first."""
    tried = 0
    while True:
        tried += 1
        try:
            return work(os.path.join(folder, _TEMPORARY_PREFIX + uuid.uuid4().hex))
        except FileNotFoundError:
            if tried == _TRIES:
                raise
            with suppress(FileNotFoundError):
                make_folders(folder)


def _remove(temporary: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(temporary)


@contextmanager
def new_file(path: str) -> Iterator[int]:
    """A new file to write to; on disk when the block ends.

    Its time of writing is set to the nanosecond: the kernel's own steps of milliseconds are too coarse to tell two
    versions of a file apart.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        yield handle
        now = time.time_ns()
        os.utime(handle, ns=(now, now))
        os.fsync(handle)
    finally:
        os.close(handle)
