"""Writes files on a local disk atomically and durably: a file is complete and on disk, or absent."""

# Names are used literally; pathlib would normalise them.
# ruff: noqa: PTH101, PTH102, PTH105, PTH106, PTH108, PTH112, PTH118, PTH120

import errno
import fcntl
import os
import re
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

from compactor.core.errors import AccessError, ObjectNotFound, StoreUnavailable
from compactor.ndjson.files.scratch import LEFTOVER_AGE_SECONDS, TEMPORARY_PREFIX, hold, is_left

T = TypeVar("T")

_TEMPORARY = re.compile(re.escape(TEMPORARY_PREFIX) + r"[0-9a-f]{32}")
SHARED, PRIVATE = 0o664, 0o600  # the modes of new files, before the umask: never may all users write
_FOLDER = 0o775
_TRIES = 20  # one suffices unless another process removes empty folders meanwhile

_NO_SUCH_FILE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT}
_LINKLESS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}


def is_temporary(name: str) -> bool:
    """Whether a file is temporary: being written, or left by a crash."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_leftover(path: str, min_age_seconds: float = LEFTOVER_AGE_SECONDS) -> bool:
    """Delete a temporary file whose writer died, if it is unchanged for this long; return whether it is still there."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        if time.time() - os.fstat(handle).st_ctime >= min_age_seconds and is_left(handle):
            _remove(path)
            return False
    finally:
        os.close(handle)
    return True


def remove_temporaries(folder: str) -> Iterator[str]:
    """Delete the temporary files of dead writers below a folder, of any age; yield those that stay."""
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names if is_temporary(name)):
            with suppress(OSError):
                if remove_leftover(path, 0.0):
                    yield path


@contextmanager
def translated(uri: str, *, writing: bool = False) -> Iterator[None]:
    """Translate operating system errors into the compactor's own.

    When writing, an impossible name is a settings error; otherwise no such object exists.
    """
    try:
        yield
    except OSError as exc:
        reason = exc.strerror or str(exc)
        if exc.errno in _DENIED:
            raise AccessError(f"cannot {'write to' if writing else 'read'} {uri}: {reason.lower()}") from exc
        if exc.errno in _NO_SUCH_FILE and writing:
            raise AccessError(f"cannot write to {uri}: {reason.lower()}") from exc
        if exc.errno in _NO_SUCH_FILE:
            raise ObjectNotFound(f"{uri}: no such object ({reason})") from exc
        if exc.errno in _FULL:
            raise StoreUnavailable(f"{uri}: the disk is full ({reason})") from exc
        raise StoreUnavailable(f"{uri}: {reason}") from exc
    except ValueError as exc:  # a name with a null byte, or one that cannot be encoded
        raise ObjectNotFound(f"{uri!r}: invalid file name ({exc})") from exc


def open_file(path: str, at: int | None = None) -> tuple[int, os.stat_result]:
    """Open a file for reading; return a descriptor for the caller to close, and its status.

    Args:
        path: A path; or a name in an opened folder, which must not be a link.
        at: That folder's descriptor.

    Raises:
        OSError: There is no such file, or it is not a regular one.
    """
    # O_NONBLOCK, because opening a named pipe would wait for a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if at is None else os.O_NOFOLLOW)
    handle = os.open(path, flags, dir_fd=at)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise OSError(errno.EISDIR, "not a regular file", path)
    return handle, status


def unlink(path: str, at: int | None = None) -> bool:
    """Delete a file, or a link itself; return whether it was one, and not a folder.

    Args:
        path: A path; or a name in an opened folder.
        at: The descriptor of that folder.
    """
    if stat.S_ISDIR(os.stat(path, dir_fd=at, follow_symlinks=False).st_mode):
        return False
    os.unlink(path, dir_fd=at)
    return True


def sync(path: str) -> None:
    """Flush a file's data or a folder's entries to disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def begin_sync(handle: int, start: int, length: int) -> None:
    """Have the disk start storing written bytes, so that a later flush takes less time.

    Linux does so on this advice, and keeps unstored data in memory. Other systems may ignore it.
    """
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(handle, start, length, os.POSIX_FADV_DONTNEED)


def sync_folder(folder: str) -> None:
    """Flush a folder's entries to disk, if the folder exists."""
    with suppress(FileNotFoundError):
        sync(folder)


def make_folders(folder: str) -> None:
    """Create a folder and its parents durably."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(path, _FOLDER)
        sync_folder(os.path.dirname(path))


def remove_empty_folders(folder: str, levels: int) -> None:
    """Remove a folder and its parents while they are empty, up to a number of levels."""
    with suppress(OSError):
        for _ in range(levels):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def link(temporary: str, target: str) -> None:
    """Give a new file its name, unless another file has it.

    Raises:
        FileExistsError: Another file has it.
        AccessError: The file system has no hard links, and so no way to decide which of two writers is first.
    """
    try:
        os.link(temporary, target)
    except OSError as exc:
        if exc.errno not in _LINKLESS:
            raise
        raise AccessError(
            f"cannot write to {target}: its file system has no hard links ({(exc.strerror or str(exc)).lower()}); "
            "expected one that does, such as ext4, XFS or APFS"
        ) from exc


@contextmanager
def placed(target: str, mode: int = SHARED, move: Callable[[str, str], None] = os.replace) -> Iterator[int]:
    """Open a new file under a temporary name next to its target, and rename it when the block ends.

    Missing folders are created. The rename replaces an existing target; with `link` as `move`, it fails instead. If the
    block raises, the temporary file is deleted. Raises an OSError if the file cannot be written or renamed.
    """
    folder = os.path.dirname(target)
    with ExitStack() as removing:
        with ExitStack() as writing:
            temporary, handle = _in_folder(folder, lambda path: (path, writing.enter_context(new_file(path, mode))))
            removing.callback(_remove, temporary)
            removing.callback(os.close, os.dup(handle))  # holds the file until it has its name
            yield handle
        move(temporary, target)
    sync_folder(folder)


def place_link(source: str, target: str, mode: int) -> None:
    """Give a file that never changes a second name, replacing any file with that name.

    Raises:
        OSError: For instance, the file system cannot link here.
    """

    def linked(temporary: str) -> str:
        os.link(source, temporary)
        return temporary

    folder = os.path.dirname(target)
    handle, _ = open_file(source)
    with ExitStack() as ending:
        ending.callback(os.close, handle)
        hold(handle, fcntl.LOCK_SH)  # several may link it
        temporary = _in_folder(folder, linked)
        # Also after a rename: renaming a link onto another link to the same file does nothing.
        ending.callback(_remove, temporary)
        if mode == PRIVATE:  # an engine in another process may have written the source
            os.chmod(temporary, mode)
        sync(temporary)
        os.replace(temporary, target)
    sync_folder(folder)


def _in_folder(folder: str, work: Callable[[str], T]) -> T:
    """Call `work` with a new temporary path in a folder; create the folder and retry if it is missing."""
    tried = 0
    while True:
        tried += 1
        try:
            return work(os.path.join(folder, TEMPORARY_PREFIX + uuid.uuid4().hex))
        except FileNotFoundError:
            if tried == _TRIES:
                raise
            with suppress(FileNotFoundError):
                make_folders(folder)


def _remove(temporary: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(temporary)


@contextmanager
def new_file(path: str, mode: int = SHARED) -> Iterator[int]:
    """Create a file, hold it, and flush it to disk when the block ends.

    Its mtime is set in nanoseconds: the kernel's clock ticks in milliseconds, too coarse to tell versions apart.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        if not hold(handle) or not os.fstat(handle).st_nlink:  # guard: a deleted temporary file is not used
            _remove(path)
            raise FileNotFoundError(errno.ENOENT, "deleted as a leftover", path)
        yield handle
        now = time.time_ns()
        os.utime(handle, ns=(now, now))
        os.fsync(handle)
    finally:
        os.close(handle)
