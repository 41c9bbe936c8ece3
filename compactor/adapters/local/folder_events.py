"""Ends a pause between two listings of local folders early, by inotify of Linux.

The listings stay the truth: what no event tells of, the next one finds.
"""

import ctypes
import errno
import os
import select
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from compactor.core.text.formatting import count

MOST_FOLDERS = 10_000
"""Watched at once. All programs of a user share what the kernel has."""

LOCAL = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)
"""File systems all of whose changes are made by this machine."""

_MOUNTS = Path("/proc/self/mountinfo")
_CLOSE_WRITE, _MOVED_TO, _CREATE, _MOVE_SELF, _OVERFLOW, _IGNORED = 0x8, 0x80, 0x100, 0x800, 0x4000, 0x8000
_ONLY_DIR, _IS_DIR = 0x0100_0000, 0x4000_0000
_WATCHED = _CLOSE_WRITE | _MOVED_TO | _CREATE | _MOVE_SELF | _ONLY_DIR
_PASSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES})  # gone, or nothing that a listing could list
_EVENT = struct.Struct("iIII")
_READ_BYTES = 64 * 1024
_INIT_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class FolderEvents:
    """Waits for changes below folders. For one thread, but for `wake`.

    Args:
        folders: Absolute paths.
        takes: Whether a folder below them matters, by its path.
    """

    def __init__(self, folders: Sequence[str], takes: Callable[[str], bool] = lambda _: True) -> None:
        self.hindrance = ""  # why changes may be missed; empty if all are told
        self._takes = takes
        self._roots = list(dict.fromkeys(folders))
        self._paths: dict[int, str] = {}  # of the watched folders, by the number of the watch
        self._lock = Lock()  # a number that was closed may be that of another file
        self._woken, self._waker = os.pipe()
        for handle in (self._woken, self._waker):
            os.set_blocking(handle, False)
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        self._events = self._begin()
        self._renew()

    @property
    def tells_all(self) -> bool:
        """Whether pauses may be long, because each change ends one."""
        return not self.hindrance and set(self._roots) <= set(self._paths.values())

    def close(self) -> None:
        with self._lock:
            for handle in (self._woken, self._waker, self._events):
                if handle >= 0:
                    os.close(handle)
            self._woken = self._waker = self._events = -1

    def wake(self) -> None:
        """End the pause, from any thread."""
        with self._lock, suppress(OSError):  # it is full, or closed
            os.write(self._waker, b"1")

    def wait(self, seconds: float) -> bool:
        """Pause; return whether something ended it early: a change, or `wake`."""
        self._renew()
        is_early = bool(self._poll.poll(max(seconds, 0) * 1000))
        while self._read_events():
            pass
        with suppress(BlockingIOError):
            os.read(self._woken, _READ_BYTES)
        return is_early

    def _begin(self) -> int:
        self.hindrance = _not_local(self._roots)
        try:
            self._libc: Any = ctypes.CDLL(None, use_errno=True)
            handle = int(self._libc.inotify_init1(_INIT_FLAGS))
        except (AttributeError, OSError):
            self.hindrance = "this system has no inotify"
            return -1
        if handle < 0:
            self.hindrance = os.strerror(ctypes.get_errno())
        else:
            self._poll.register(handle, select.POLLIN)
        return handle

    def _renew(self) -> None:
        """Watch folders that were not there before."""
        watched = set(self._paths.values())
        for root in self._roots:
            if root not in watched:
                self._watch(root)

    def _watch(self, folder: str) -> None:
        """Watch a folder and those below it, as far as they matter."""
        left = [folder] if self._events >= 0 else []
        while left:
            path = left.pop()
            if len(self._paths) >= MOST_FOLDERS:
                self.hindrance = f"there are more than {count(MOST_FOLDERS, 'folder')}"
                return
            number = self._libc.inotify_add_watch(self._events, os.fsencode(path), _WATCHED)
            error = ctypes.get_errno() if number < 0 else 0
            if error == errno.ENOSPC:
                self.hindrance = "the kernel has no more watches (fs.inotify.max_user_watches)"
                return
            if error and error not in _PASSING:
                self.hindrance = os.strerror(error)
            if not error:
                self._paths[number] = path
                left += _folders_in(path, self._takes)

    def _read_events(self) -> bool:
        """Read events that wait; return whether there were some."""
        try:
            data = os.read(self._events, _READ_BYTES) if self._events >= 0 else b""
        except BlockingIOError:
            return False
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            name = data[at - length : at].rstrip(b"\0")
            if mask & _OVERFLOW or (mask & _MOVE_SELF and self._paths.get(number) in self._roots):
                self._paths.clear()  # folders may have come meanwhile, or another one may take the place of this one
            elif mask & _IGNORED:
                self._paths.pop(number, None)
            elif mask & _IS_DIR and number in self._paths:
                path = os.path.join(self._paths[number], os.fsdecode(name))  # noqa: PTH118 - names are used literally
                if self._takes(path):
                    self._watch(path)
        return bool(data)


def _folders_in(path: str, takes: Callable[[str], bool]) -> list[str]:
    with suppress(OSError), os.scandir(path) as entries:
        return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False) and takes(entry.path)]
    return []


def _not_local(folders: Sequence[str]) -> str:
    """Why changes below folders may be made by other machines; empty if they are not."""
    try:
        lines = [line.split(" ") for line in _MOUNTS.read_text(errors="surrogateescape").splitlines()]
    except OSError:
        return "the file systems are not known"
    mounts = {_unescaped(words[4]): words[words.index("-") + 1] for words in lines}
    for folder in map(os.path.realpath, folders):
        above = max((place for place in mounts if _is_below(folder, place)), key=len, default="/")
        below = [place for place in mounts if _is_below(place, folder)]
        other = next((place for place in [above, *below] if mounts.get(place) not in LOCAL), None)
        if other is not None:
            return f"{other} is of the file system {mounts.get(other, 'unknown')}, which others may write to"
    return ""


def _unescaped(name: str) -> str:
    """A name of the table of mounts, in which white space and backslashes are octal."""
    for character in (" ", "\t", "\n", "\\"):
        name = name.replace(f"\\{ord(character):03o}", character)
    return name


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
