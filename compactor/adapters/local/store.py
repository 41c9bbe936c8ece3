"""Objects as files on a local disk, or on a disk mounted by all machines of a cluster."""

# Names are used literally; pathlib would normalise them.
# ruff: noqa: PTH112, PTH116, PTH120

import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import BinaryIO, TypeVar

from compactor.adapters.local import durable
from compactor.adapters.local.links import Last, beneath, root_of, status_of, without_links
from compactor.core.errors import (
    AccessError,
    LinkRefused,
    ObjectChanged,
    ObjectNotFound,
    OperatorError,
    StoreUnavailable,
)
from compactor.core.layout import canonical, holds_raw_lines
from compactor.core.ports import ObjectInfo, sort_key, start_within
from compactor.core.versions import local_version

T = TypeVar("T")

OnDenied = Callable[[str, str], None]
"""Receives a folder to which access is denied, with the error."""

_TRIES = 5  # for an object that others create and delete meanwhile
_SYNC_STEP_BYTES = 8 * 1024 * 1024  # written per step while a disk already starts storing
_EMPTY_FOLDERS = 3  # staging: the folders of an attempt, of its manifest, and of all manifests
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}


class LocalStore:
    """Files under absolute paths or `file://` URIs, which are used literally.

    Listings follow symbolic links to files but not to folders. A copy on the same disk is a hard link, so files are
    never written in place. Deleting a file removes the folders that become empty, unless it is a file of others.

    Args:
        confined: Folders with files of others. Links that lead out of them are left out of listings, and all methods
            that read or delete refuse them.
        state: The folder of the state, in which only the owner may read files that hold lines of the input.

    Raises:
        OperatorError: This process's locale does not decode file names as UTF-8.
    """

    def __init__(self, *, confined: Sequence[str] = (), state: str = "") -> None:
        _check_encoding()
        self._confined = [canonical(each) for each in confined]
        self._fixed = without_links(self._confined)
        self._state = state

    def stat(self, uri: str) -> ObjectInfo | None:
        try:
            with durable.translated(uri):
                status = self._status(_path(uri))
        except ObjectNotFound:
            return None
        return _info(uri, status) if stat.S_ISREG(status.st_mode) else None

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        return self._read(uri, 0, -1, etag)

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        return self._read(uri, start, max(length, 0), etag)

    def list(
        self, prefix: str, *, start_after: str | None = None, on_denied: OnDenied | None = None
    ) -> Iterator[ObjectInfo]:
        """List a folder; see `ObjectStore`.

        Args:
            prefix: The folder.
            start_after: Only files whose name sorts after this one.
            on_denied: Called with each folder below it to which access is denied, instead of raising the error.
        """
        after = start_within(prefix, start_after)
        if after is not None:
            if self._is_confined(_path(prefix)):
                with suppress(ObjectNotFound), durable.translated(prefix):
                    self._status(_path(prefix))  # a link may lead to it
            yield from self._walk(prefix, sort_key(after), on_denied)

    def create(self, uri: str, data: bytes) -> bool:
        path = _path(uri)
        for _ in range(_TRIES):
            with durable.translated(uri, writing=True):
                try:
                    self._place(path, data, durable.link)
                except FileExistsError:
                    if os.path.isdir(path):
                        raise AccessError(f"{uri}: is a folder, expected an object or no object") from None
                else:
                    return True
                # The loser continues with the winner's data, which must be durable, too.
                durable.sync_folder(os.path.dirname(path))
            with suppress(ObjectNotFound):
                return self.read(uri) == data
        raise StoreUnavailable(f"{uri}: others created and deleted it {_TRIES} times meanwhile")

    def put(self, uri: str, data: bytes) -> None:
        with durable.translated(uri, writing=True):
            self._place(_path(uri), data)

    def upload(self, uri: str, path: Path) -> None:
        with path.open("rb") as file, durable.translated(uri, writing=True):
            self._place(_path(uri), file)

    def writer(self, uri: str) -> AbstractContextManager["LocalWriter"]:
        return self._writer(uri, os.replace)

    @contextmanager
    def new_writer(self, uri: str) -> Iterator["LocalWriter"]:
        try:
            with self._writer(uri, _link_new) as writer:
                yield writer
        except _Taken:
            raise ObjectChanged(f"{uri}: another file exists; expected none") from None

    @contextmanager
    def _writer(self, uri: str, move: Callable[[str, str], None]) -> Iterator["LocalWriter"]:
        with suppress(_Aborted), ExitStack() as placing:
            with durable.translated(uri, writing=True):
                placed = durable.placed(_path(uri), self._mode(_path(uri)), move)
                writer = LocalWriter(uri, placing.enter_context(placed))
            yield writer  # the block's error does not concern this file, so it is not translated
            if writer.is_aborted:
                raise _Aborted
            if writer.has_hole:
                raise StoreUnavailable(f"{uri}: a write failed, so no object was created")
            with durable.translated(uri, writing=True):
                placing.close()

    def copy(self, source: str, target: str) -> None:
        with durable.translated(source):
            handle, _ = self._open(_path(source))
        with os.fdopen(handle, "rb") as file, durable.translated(target, writing=True):
            if self._is_confined(_path(source)) or not self._linked(source, target):
                self._place(_path(target), file)

    def _linked(self, source: str, target: str) -> bool:
        """Copy with a hard link; return whether that is possible."""
        path = os.path.realpath(_path(source))
        try:
            durable.place_link(path, _path(target), self._mode(_path(target)))
        except FileNotFoundError:
            if not os.path.lexists(path):
                raise ObjectNotFound(f"{source}: was deleted during the copy") from None
            raise
        except OSError as exc:
            if exc.errno not in _NO_LINK:
                raise
            return False
        return True

    def _place(self, path: str, content: bytes | BinaryIO, move: Callable[[str, str], None] = os.replace) -> None:
        with durable.placed(path, self._mode(path), move) as handle, os.fdopen(handle, "wb", closefd=False) as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                shutil.copyfileobj(content, file, 1024 * 1024)

    def delete(self, uris: Iterable[str]) -> None:
        for uri in uris:
            with suppress(ObjectNotFound), durable.translated(uri):
                path = _path(uri)
                if self._is_confined(path):
                    self._beneath(path, durable.unlink)
                elif durable.unlink(path):
                    durable.remove_empty_folders(os.path.dirname(path), _EMPTY_FOLDERS)

    def delete_version(self, uri: str, etag: str) -> bool:
        def unlinked(name: str, at: int) -> bool:
            # guard: the deleted file is the version that was checked, even if its path has changed
            if _etag(status_of(name, at)) != etag:
                return False
            return durable.unlink(name, at)

        path = _path(uri)
        with suppress(ObjectNotFound), durable.translated(uri):
            roots = self._confined if self._is_confined(path) else [os.path.dirname(path)]
            return beneath(path, roots, unlinked, self._fixed)
        return True

    def _read(self, uri: str, start: int, length: int, etag: str | None) -> bytes:
        with durable.translated(uri):
            handle, status = self._open(_path(uri))
            with os.fdopen(handle, "rb", 0) as file:
                _check(uri, status, etag)
                data = _bytes_from(file, start, length, status.st_size)
                _check(uri, os.fstat(handle), etag)
                return data

    def _mode(self, path: str) -> int:
        return durable.PRIVATE if self._state and holds_raw_lines(path, self._state) else durable.SHARED

    def _is_confined(self, path: str) -> bool:
        return root_of(path, self._confined) is not None

    def _status(self, path: str) -> os.stat_result:
        return self._beneath(path, status_of) if self._is_confined(path) else os.stat(path)

    def _open(self, path: str) -> tuple[int, os.stat_result]:
        if self._is_confined(path):
            return self._beneath(path, durable.open_file)
        return durable.open_file(path)

    def _beneath(self, path: str, last: Last[T]) -> T:
        return beneath(path, self._confined, last, self._fixed)

    def _walk(self, prefix: str, after: bytes, on_denied: OnDenied | None) -> Iterator[ObjectInfo]:
        """Yield all files in a folder whose relative name sorts after `after`."""
        # A stack of iterators, because folders may be deeper than Python's recursion limit.
        stack = [_entries(prefix, "")]
        while stack:
            for name, entry in stack[-1]:
                key = sort_key(name)
                if name.endswith("/"):
                    if key >= after or after.startswith(key):
                        stack.append(_entries(prefix, name, on_denied))
                        break
                elif key > after and (info := self._entry_info(prefix, name, entry, on_denied)):
                    yield info
            else:
                stack.pop()

    def _entry_info(
        self, prefix: str, name: str, entry: os.DirEntry[str], on_denied: OnDenied | None
    ) -> ObjectInfo | None:
        """An entry's file; None for other kinds, deleted files and links that may not be followed."""
        uri = prefix + name
        try:
            with suppress(ObjectNotFound, LinkRefused), durable.translated(uri):
                is_link = entry.is_symlink()
                status = self._status(_path(uri)) if is_link else entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    return _info(uri, status, _target(prefix, uri) if is_link else "")
        except AccessError as exc:
            if on_denied is None:
                raise
            on_denied(f"{os.path.dirname(uri)}/", str(exc))  # a folder that may be listed, but not entered
        return None


@dataclass
class LocalWriter:
    """A new file under a temporary name next to its target."""

    uri: str
    handle: int
    has_hole: bool = False
    is_aborted: bool = False
    _synced_bytes: int = field(default=0, init=False)
    _written_bytes: int = field(default=0, init=False)

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            with durable.translated(self.uri, writing=True):
                while rest:
                    rest = rest[os.write(self.handle, rest) :]
        except BaseException:
            self.has_hole = True
            raise
        self._written_bytes += len(data)
        if (waiting := self._written_bytes - self._synced_bytes) >= _SYNC_STEP_BYTES:
            durable.begin_sync(self.handle, self._synced_bytes, waiting)
            self._synced_bytes = self._written_bytes

    def abort(self) -> None:
        self.is_aborted = True


class _Aborted(Exception):
    """Ends a writer's block without a file."""


class _Taken(Exception):
    """A new file's name is taken."""


def _link_new(temporary: str, target: str) -> None:
    try:
        durable.link(temporary, target)
    except FileExistsError:
        raise _Taken from None


def _check_encoding() -> None:
    """Refuse a locale that decodes names differently: each name of a file would be compacted separately."""
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        raise OperatorError(
            f"the locale decodes file names as {encoding}; expected utf-8: set LC_ALL=C.UTF-8 or PYTHONUTF8=1"
        )


def _path(uri: str) -> str:
    path = canonical(uri)
    if not path.startswith("/"):
        raise AccessError(f"{uri}: expected an absolute path or a file:// URI")
    return path


def _etag(status: os.stat_result) -> str:
    return local_version(status.st_mtime_ns, status.st_size)


def _target(prefix: str, uri: str) -> str:
    """A link's target, spelled like the prefix if it is below it."""
    root, path = os.path.realpath(_path(prefix)), os.path.realpath(_path(uri))
    below = path.removeprefix(root.rstrip("/") + "/")
    return prefix + below if below != path else path


def _info(uri: str, status: os.stat_result, target: str = "") -> ObjectInfo:
    modified_at = datetime.fromtimestamp(status.st_mtime, UTC)
    # No program can set the status change time.
    stamp = f"{status.st_ino:x}-{status.st_ctime_ns:x}"
    return ObjectInfo(uri, status.st_size, _etag(status), modified_at, stamp, target)


def _check(uri: str, status: os.stat_result, etag: str | None) -> None:
    if etag is not None and _etag(status) != etag:
        raise ObjectChanged(f"{uri}: expected version {etag}, found {_etag(status)}")


def _bytes_from(file: FileIO, start: int, length: int, size: int) -> bytes:
    """Bytes from a file; all from `start` if `length` is negative. Uses no more memory than the current length."""
    file.seek(start)
    if length < 0:
        return file.readall()
    left = min(length, max(size - start, 0))
    data = file.read(left) or b""
    while len(data) < left and (more := file.read(left - len(data))):  # after a signal, or on other kinds of disks
        data += more
    return data


def _entries(prefix: str, below: str, on_denied: OnDenied | None = None) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """A folder's sorted entries by name relative to the prefix; names of folders end with `/`."""
    found = []
    try:
        with suppress(ObjectNotFound), durable.translated(prefix + below), os.scandir(_path(prefix) + below) as entries:
            for entry in entries:
                if durable.is_temporary(entry.name):
                    durable.remove_leftover(entry.path)
                else:
                    folder = entry.is_dir(follow_symlinks=False)
                    found.append((below + entry.name + ("/" if folder else ""), entry))
    except AccessError as exc:
        if on_denied is None:
            raise
        on_denied(prefix + below, str(exc))
    found.sort(key=lambda item: sort_key(item[0]))
    return iter(found)
