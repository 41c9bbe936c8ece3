"""Tells which local files no one but the job's user could exchange for others while they are opened by name."""

# Names are used literally; pathlib would normalise them.
# ruff: noqa: PTH116

import os
import stat
from collections.abc import Sequence

from compactor.adapters.local.beneath import root_of
from compactor.core.layout import canonical

_ROOT_USER = 0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH  # with an ACL, the bits of the group are what it grants at most


class OwnFolders:
    """Asks the disk once for each folder: one whose owner can be trusted stays as it is.

    Args:
        roots: Folders with files of others. The way to them is the operator's.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = [canonical(each) for each in roots]
        self._trusted = {os.geteuid(), _ROOT_USER}
        self._own: dict[str, bool] = {}

    def hold(self, uri: str) -> bool:
        """Return whether a file is no link, and only the job's user can change the folders from its root to it."""
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
