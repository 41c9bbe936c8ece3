"""Opens files in folders that links must not escape: step by step, so that nothing changes after a check."""

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import TypeVar

from compactor.core.errors import LinkRefused
from compactor.core.layout import canonical, is_s3
from compactor.core.logs.names import is_log

# Names are used literally; pathlib would normalise them.
# ruff: noqa: PTH116

_ROOT_USER = 0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH  # with an ACL, the group bits are the most that it grants


class OwnFolders:
    """Checks whether only trusted users can change folders. Caches each folder's result.

    Args:
        roots: Folders with other users' files. The path to them is the operator's.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = [canonical(each) for each in roots]
        self._trusted = {os.geteuid(), _ROOT_USER}
        self._own: dict[str, bool] = {}

    def hold(self, uri: str) -> bool:
        """Whether a file is not a link, and only trusted users can change the folders from its root down."""
        path = canonical(uri)
        root = root_of(path, self._roots)
        if root is None:
            return True
        folders = [root]
        for name in path[len(root) :].split("/")[1:-1]:
            folders.append(f"{folders[-1]}/{name}")
        return all(map(self._is_own, folders)) and _is_file(path)

    def _is_own(self, folder: str) -> bool:
        if folder not in self._own:
            try:
                found = os.stat(folder, follow_symlinks=folder in self._roots)
            except OSError:
                return False
            is_own = stat.S_ISDIR(found.st_mode) and found.st_uid in self._trusted
            self._own[folder] = is_own and not found.st_mode & _OTHERS_WRITE
        return self._own[folder]


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path, follow_symlinks=False).st_mode)
    except OSError:
        return False


def links_left_out(source: str, allowed_prefixes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the links in a folder that listings do not follow, each with its reason."""
    roots = [canonical(each) for each in allowed_prefixes if not (is_s3(each) or is_log(each))]
    if is_s3(source) or root_of(canonical(source).rstrip("/"), roots) is None:
        return
    for entry in _links(canonical(source)):
        if reason := _reason(entry, roots):
            yield entry.path, reason


def _reason(entry: os.DirEntry[str], roots: Sequence[str]) -> str:
    with suppress(OSError):
        if _leads_nowhere(entry):
            return "dangling_link"
        if entry.is_dir():
            return "linked_folder"
        try:
            beneath(entry.path, roots, status_of)
        except LinkRefused:
            return "outside_link" if entry.is_file() else ""
    return ""


def _leads_nowhere(entry: os.DirEntry[str]) -> bool:
    try:
        os.stat(entry.path)
    except OSError as exc:
        is_there = os.path.islink(entry.path)  # noqa: PTH114 - it may be gone since it was listed
        return is_there and exc.errno in {errno.ENOENT, errno.ELOOP}
    return False


def _links(folder: str) -> Iterator[os.DirEntry[str]]:
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield entry
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


# Names are used literally; pathlib would normalise them.
# ruff: noqa: PTH118


T = TypeVar("T")

_MAX_LINKS = 40  # Linux's limit per path
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)  # O_PATH needs no permission to list it

Last = Callable[[str, int], T]
"""Handles a name in an opened folder; raises `OSError` if the name is a link, which it does not follow."""


class _Leads(Exception):
    """A name on the path is a link; `path` is its target."""

    def __init__(self, path: str) -> None:
        self.path = path


def root_of(path: str, roots: Sequence[str]) -> str | None:
    """The longest of the given folders that contains a path; None if there is none."""
    found = [root for root in roots if path.startswith(root) and path[len(root) : len(root) + 1] in {"/", ""}]
    return max(found, key=len, default=None)


def without_links(roots: Iterable[str]) -> frozenset[str]:
    """Those folders, of these, that no link is on the way to."""
    return frozenset(root for root in roots if os.path.realpath(root) == root)


def beneath(path: str, roots: Sequence[str], last: Last[T], fixed: Collection[str] = ()) -> T:
    """Handle a file or folder, following only links that stay within the given folders.

    As with `openat2(RESOLVE_BENEATH)`, each folder on the path is opened by name in the previous one, without following
    links, so that a link that replaces it meanwhile is detected. A link from one of the folders to another is followed.

    Args:
        path: An absolute path in one of `roots`.
        roots: Absolute paths of folders, or of single files; the paths to them may contain links.
        last: Handles the last name of the path.
        fixed: Those of `roots` that no link may be on the way to, because none was (`without_links`).

    Raises:
        LinkRefused: A link leads out of the folders, or has replaced a folder on the way to them.
        OSError: There is no such file, or another error of the operating system.
    """
    target = path
    for turn in range(_MAX_LINKS):
        root = root_of(
            target, roots if not turn else [*roots, *(os.path.realpath(each) for each in roots if each not in fixed)]
        )
        if root is None:
            raise LinkRefused(f"cannot read {path}: a symbolic link points outside {root_of(path, roots)}")
        try:
            if target == root and not os.path.isdir(root):  # noqa: PTH112
                above, _, name = root.rpartition("/")
                return _walk(above or "/", [name], last, is_fixed=root in fixed)
            return _walk(root, _names(target[len(root) :]), last, is_fixed=root in fixed)
        except _Leads as link:
            target = link.path
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def status_of(name: str, at: int) -> os.stat_result:
    """A file's status, as the last step of `beneath`."""
    status = os.stat(name, dir_fd=at, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "a symbolic link", name)
    return status


def _walk(root: str, names: Sequence[str], last: Last[T], *, is_fixed: bool) -> T:
    with ExitStack() as opened:

        def enter(name: str, at: int | None, flags: int) -> int:
            handle = os.open(name, _FOLDER | flags, dir_fd=at)
            opened.callback(os.close, handle)
            return handle

        at = enter(root, None, 0)
        if is_fixed and _path_of(at, root) != root:
            raise LinkRefused(f"cannot open {root}: a symbolic link has replaced a folder on the way")
        for number, name in enumerate(names):
            try:
                if number == len(names) - 1:
                    return last(name, at)
                at = enter(name, at, os.O_NOFOLLOW)  # guard: no folder of the path is a link
            except OSError:
                target = _target(name, at)
                if target is None:
                    raise
                # No name before this one is a link, so they are where they seem to be.
                place = os.path.join(os.path.realpath(root), *names[:number], target, *names[number + 1 :])
                raise _Leads(os.path.normpath(place)) from None
    raise AssertionError("a path always has a last name")


def _path_of(handle: int, name: str) -> str:
    """Where an opened folder is, as Linux knows; elsewhere where its name leads by now."""
    try:
        return os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 - literal names
    except OSError:
        return os.path.realpath(name)


def _names(path: str) -> list[str]:
    """The names in a path. A path with a final slash, or an empty one, names a folder.

    Raises:
        OSError: A name is `..`, which would escape the folder.
    """
    names = [name for name in path.split("/") if name]
    if ".." in names:
        raise OSError(errno.ENOENT, "a path with ..", path)
    return names if names and not path.endswith("/") else [*names, "."]


def _target(name: str, at: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=at)
    except OSError:
        return None
