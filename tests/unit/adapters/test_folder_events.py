"""Changes below a folder end a pause early; whatever keeps them from being told only makes pauses shorter."""

import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from compactor.adapters.local import folder_events
from compactor.adapters.local.folder_events import FolderEvents

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is of Linux")

LONG = 20.0
SHORT = 0.01


@pytest.fixture
def events(tmp_path: Path) -> Iterator[FolderEvents]:
    (tmp_path / "sub").mkdir()
    with closing(FolderEvents([str(tmp_path)], lambda path: not path.endswith("_tmp"))) as found:
        yield found


def in_a_moment(change: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(0.05, change)
    timer.start()
    return timer


def is_told(events: FolderEvents, change: Callable[[], object]) -> bool:
    """Whether a change ends a long pause, also one that begins after it, and no further pause."""
    change()
    began = time.monotonic()
    is_early = events.wait(LONG) and time.monotonic() - began < LONG / 2
    while events.wait(SHORT):
        pass
    return is_early and not events.wait(SHORT)


def test_changes_end_a_pause(events: FolderEvents, tmp_path: Path) -> None:
    """A file that is closed, moved or linked here, in folders that were there, that come, or that are moved here."""
    other = tmp_path.parent / f"{tmp_path.name}-other"
    (other / "deep").mkdir(parents=True)
    (other / "file").write_bytes(b"{}")
    assert (events.tells_all, events.hindrance) == (True, "")
    assert is_told(events, lambda: (tmp_path / "sub" / "a").write_bytes(b"1"))
    assert is_told(events, lambda: (tmp_path / "sub" / "b").hardlink_to(other / "file"))
    assert is_told(events, partial((other / "file").rename, tmp_path / "c"))
    assert is_told(events, partial((tmp_path / "new" / "er").mkdir, parents=True))
    assert is_told(events, lambda: (tmp_path / "new" / "er" / "d").write_bytes(b"1"))
    assert is_told(events, partial(other.rename, tmp_path / "moved"))
    assert is_told(events, lambda: (tmp_path / "moved" / "deep" / "e").write_bytes(b"1"))
    assert is_told(events, partial((tmp_path / "moved").rename, tmp_path / "sub" / "moved"))
    assert is_told(events, (tmp_path / "sub" / "moved" / "deep" / "x").mkdir)
    assert is_told(events, lambda: (tmp_path / "sub" / "moved" / "deep" / "x" / "f").write_bytes(b"1"))


def test_what_does_not_matter_is_not_watched(events: FolderEvents, tmp_path: Path) -> None:
    """Folders that are not taken, and reading."""
    assert is_told(events, (tmp_path / "_tmp").mkdir)
    (tmp_path / "_tmp" / "a").write_bytes(b"1")
    (tmp_path / "sub").iterdir()
    assert not events.wait(SHORT)


def test_a_pause_ends_by_itself_and_by_another_thread(events: FolderEvents) -> None:
    """`wake` counts once, also before the pause."""
    assert not events.wait(0)
    began = time.monotonic()
    timer = in_a_moment(events.wake)
    assert events.wait(LONG)
    assert time.monotonic() - began < LONG
    timer.join()
    for _ in range(66_000):  # more than a pipe holds
        events.wake()
    assert events.wait(LONG)
    assert not events.wait(SHORT)


def test_a_late_wake_harms_no_other_file(tmp_path: Path) -> None:
    """A signal may come while the watch ends, when the number of its handle is that of a file."""
    events = FolderEvents([str(tmp_path)])
    waker = events._waker
    events.close()
    path = tmp_path / "file"
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.dup2(handle, waker)
    events.wake()
    os.close(waker)
    assert path.read_bytes() == b""


def test_a_folder_that_goes_and_comes_back(tmp_path: Path) -> None:
    """While it is gone, or another one took its place, not all is told; then it is watched again."""
    root = tmp_path.parent / f"{tmp_path.name}-root"
    with closing(FolderEvents([str(root)])) as late:
        assert not late.tells_all
        root.mkdir()
        assert not late.wait(SHORT)
        assert late.tells_all
        assert is_told(late, lambda: (root / "a").write_bytes(b"1"))
        root.rename(f"{root}-old")
        root.mkdir()
        assert late.wait(LONG)
        assert not late.tells_all
        late.wait(SHORT)
        assert late.tells_all
        assert is_told(late, lambda: (root / "b").write_bytes(b"1"))
        (root / "b").unlink()
        root.rmdir()
        assert late.wait(LONG)
        assert not late.tells_all


def test_events_that_are_lost(events: FolderEvents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an overflow, all folders are watched anew: those that came meanwhile, too."""
    number = next(iter(events._paths))
    overflow = folder_events._EVENT.pack(-1, folder_events._OVERFLOW, 0, 0)
    (tmp_path / "unseen").mkdir()
    assert events._paths[number] == str(tmp_path)
    told = [overflow, b""]
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", lambda *_: told.pop(0))
        assert events._read_events()
    assert not events.tells_all
    events.wait(SHORT)
    events.wait(SHORT)
    assert events.tells_all
    assert is_told(events, lambda: (tmp_path / "unseen" / "a").write_bytes(b"1"))


class Libc:
    """A C library that refuses."""

    def __init__(self, *, init: int = 7, error: int = 0) -> None:
        self.inotify_init1 = lambda _: init
        self.inotify_add_watch = lambda *_: -1
        self.error = error


@pytest.mark.parametrize(
    ("init", "error", "hindrance"),
    [
        (-1, errno.EMFILE, "Too many open files"),
        (1, errno.ENOSPC, "the kernel has no more watches (fs.inotify.max_user_watches)"),
        (1, errno.ENOMEM, "Cannot allocate memory"),
        (1, errno.EACCES, ""),
    ],
)
def test_what_the_kernel_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, init: int, error: int, hindrance: str
) -> None:
    """It is said, and pauses last their time."""
    handle = os.open(tmp_path, os.O_RDONLY) if init > 0 else init
    monkeypatch.setattr(folder_events.ctypes, "CDLL", lambda *_, **__: Libc(init=handle))
    monkeypatch.setattr(folder_events.ctypes, "get_errno", lambda: error)
    monkeypatch.setattr(FolderEvents, "_read_events", lambda _: False)
    monkeypatch.setattr(folder_events.select, "poll", Never)
    with closing(FolderEvents([str(tmp_path)])) as found:
        assert (found.hindrance, found.tells_all, found.wait(SHORT)) == (hindrance, False, False)


class Never:
    """A poll in which nothing happens."""

    def register(self, *_: object) -> None: ...

    def poll(self, _: float) -> list[object]:
        return []


def test_a_system_without_inotify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as macOS."""
    monkeypatch.setattr(folder_events.ctypes, "CDLL", lambda *_, **__: object())
    with closing(FolderEvents([str(tmp_path)])) as found:
        assert (found.hindrance, found.tells_all, found.wait(SHORT)) == ("this system has no inotify", False, False)
        found.wake()
        assert found.wait(LONG)


def test_too_many_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is left to the listings."""
    monkeypatch.setattr(folder_events, "MOST_FOLDERS", 2)
    for number in range(3):
        (tmp_path / str(number)).mkdir()
    with closing(FolderEvents([str(tmp_path)])) as found:
        assert (found.hindrance, found.tells_all) == ("there are more than 2 folders", False)


@pytest.mark.parametrize(
    ("folders", "other"),
    [
        (["/data/a"], ""),
        (["/data/my share/a"], "/data/my share is of the file system nfs4, which others may write to"),
        (["/data"], "/data/my share is of the file system nfs4, which others may write to"),
        (["/data2"], "/ is of the file system fuse.sshfs, which others may write to"),
    ],
)
def test_file_systems(folders: list[str], other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a network, which tells of no changes of other machines; also if only a part of the folder is on it."""
    table = tmp_path / "mountinfo"
    monkeypatch.setattr(folder_events, "_MOUNTS", table)
    assert folder_events._not_local(folders) == "the file systems are not known"
    table.write_text(
        "27 1 0:1 / / rw,relatime - fuse.sshfs host:/ rw\n"
        "28 27 254:0 / /data rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "29 28 0:2 / /data/my\\040share rw - nfs4 host:/share rw\n"
    )
    assert folder_events._not_local(folders) == other
