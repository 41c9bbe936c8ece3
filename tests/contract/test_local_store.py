"""What the store on a local disk promises beyond the contract."""

import errno
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compactor.adapters.local.durable import remove_temporaries
from compactor.adapters.local.store import LocalStore
from compactor.core.errors import AccessError, ObjectChanged, ObjectNotFound, StoreUnavailable
from compactor.ndjson.files.scratch import hold

STORE = LocalStore()


def write(uri: str, data: bytes) -> None:
    with STORE.writer(uri) as writer:
        writer.write(data)


def inside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _create_in_process(root: str, number: int) -> list[bool]:
    return [LocalStore().create(f"{root}/deep/{turn}/outcome", f"{number}".encode() * 999) for turn in range(30)]


def test_of_many_processes_that_create_exactly_one_wins(tmp_path: Path) -> None:
    """Processes that create the same files in folders still to be made have one winner each, whole."""
    with ProcessPoolExecutor(3, multiprocessing.get_context("spawn")) as processes:
        results = list(processes.map(_create_in_process, [str(tmp_path)] * 3, range(3)))
    for turn in range(30):
        winners = [number for number in range(3) if results[number][turn]]
        assert len(winners) == 1
        assert STORE.read(f"{tmp_path}/deep/{turn}/outcome") == f"{winners[0]}".encode() * 999


def test_a_locale_that_gives_files_other_names_is_refused() -> None:
    """A file whose name is read in two ways would be compacted once under each of them."""
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    opened = "from compactor.adapters.local.store import LocalStore; LocalStore()"
    run = subprocess.run(
        [sys.executable, "-c", opened], env={**os.environ, **locale}, check=False, capture_output=True, text=True
    )
    assert run.returncode
    assert "decodes file names as ascii; expected utf-8: set LC_ALL=C.UTF-8 or PYTHONUTF8=1" in run.stderr


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_hard_links_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Those that have none, as exFAT and some network mounts: the reason is the file system, not the permissions."""

    def link(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("compactor.adapters.local.durable.os.link", link)
    refused = partial(pytest.raises, AccessError, match=r"/a: its file system has no hard links .*; expected one that")
    with refused():
        STORE.create(f"{tmp_path}/a", b"1")
    with refused(), STORE.new_writer(f"{tmp_path}/a") as writer:
        writer.write(b"1")
    assert not inside(tmp_path)


@pytest.mark.parametrize("step", ["link", "replace"])
def test_a_crash_leaves_nothing_that_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """A process that dies before a file has its name leaves no object, and the next try succeeds."""

    class Died(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr("os.unlink", die)
        patch.setattr("compactor.adapters.local.store.os.link", die)
        if step == "replace":
            patch.setattr("compactor.adapters.local.store.LocalStore._place.__defaults__", (die,))
        with pytest.raises(Died):
            STORE.create(f"{tmp_path}/a", b"1") if step == "link" else STORE.put(f"{tmp_path}/a", b"1")
    assert len(inside(tmp_path)) == 1
    assert list(STORE.list(f"{tmp_path}/")) == []
    assert STORE.stat(f"{tmp_path}/a") is None
    assert STORE.create(f"{tmp_path}/a", b"2")
    assert [info.uri for info in STORE.list(f"{tmp_path}/")] == [f"{tmp_path}/a"]


def test_other_users_can_never_write(tmp_path: Path) -> None:
    """Also with an umask of 0, as some containers have: who can write the state can do what an operator can."""
    before = os.umask(0)
    try:
        STORE.put(f"{tmp_path}/new/a", b"1")
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("new", "new/a")] == [0o775, 0o664]


def test_temporary_files_go_with_their_writers(tmp_path: Path) -> None:
    """Those of dead writers are deleted at any age; a living writer's file stays, and gets its name."""
    (tmp_path / f".~compactor-{'0' * 32}").write_bytes(b"left")
    with STORE.writer(f"{tmp_path}/below/a") as writer:
        writer.write(b"1")
        [held] = remove_temporaries(str(tmp_path))
        assert held.startswith(f"{tmp_path}/below/.~compactor-")
    assert STORE.read(f"{tmp_path}/below/a") == b"1"
    assert list(remove_temporaries(str(tmp_path))) == []
    assert inside(tmp_path) == ["below"]


def test_a_temporary_file_that_was_deleted_before_it_was_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure takes it for a leftover: the write goes to a different one, and nothing is lost."""

    def erased_first(handle: int) -> bool:
        monkeypatch.undo()
        assert list(remove_temporaries(str(tmp_path))) == []
        return hold(handle)

    monkeypatch.setattr("compactor.adapters.local.durable.hold", erased_first)
    STORE.put(f"{tmp_path}/a", b"1")
    assert (STORE.read(f"{tmp_path}/a"), inside(tmp_path)) == (b"1", ["a"])


def test_writing_leaves_only_what_was_written(tmp_path: Path) -> None:
    """No kind of write leaves a temporary file behind, a copy onto its own link included."""
    STORE.put(f"{tmp_path}/a", b"1")
    STORE.create(f"{tmp_path}/a", b"2")
    STORE.copy(f"{tmp_path}/a", f"{tmp_path}/b")
    STORE.copy(f"{tmp_path}/a", f"{tmp_path}/b")
    STORE.copy(f"{tmp_path}/a", f"{tmp_path}/a")
    STORE.upload(f"{tmp_path}/c", tmp_path / "b")
    write(f"{tmp_path}/d", b"1")
    assert inside(tmp_path) == ["a", "b", "c", "d"]


def test_a_copy_on_one_disk_moves_no_bytes(tmp_path: Path) -> None:
    """A copy shares its source's data, and still stays as it is when either is replaced."""
    STORE.put(f"{tmp_path}/a", b"1")
    STORE.copy(f"{tmp_path}/a", f"{tmp_path}/b")
    assert (tmp_path / "a").samefile(tmp_path / "b")
    STORE.upload(f"{tmp_path}/b", tmp_path / "a")
    assert not (tmp_path / "a").samefile(tmp_path / "b")


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_a_copy_that_cannot_share_moves_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Between disks, and where links are refused, a copy is a real one."""

    def refuse(*_: Any) -> None:
        raise OSError(code, "no link")

    monkeypatch.setattr("compactor.adapters.local.store.os.link", refuse)
    STORE.put(f"{tmp_path}/a", b"1")
    STORE.copy(f"{tmp_path}/a", f"{tmp_path}/b/c")
    assert STORE.read(f"{tmp_path}/b/c") == b"1"
    assert not (tmp_path / "a").samefile(tmp_path / "b/c")


def test_a_change_while_reading_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that grows between opening and the end of reading is not the version that was asked for."""
    path = tmp_path / "a"
    path.write_bytes(b"1")
    etag = STORE.stat(str(path)).etag
    opened = os.fdopen

    def open_and_append(handle: int, *more: Any) -> Any:
        with path.open("ab") as file:
            file.write(b"2")
        return opened(handle, *more)

    monkeypatch.setattr("compactor.adapters.local.store.os.fdopen", open_and_append)
    with pytest.raises(ObjectChanged, match="expected version"):
        STORE.read(str(path), etag=etag)


def test_what_is_no_file_is_no_object(tmp_path: Path) -> None:
    """Folders, named pipes and links that lead nowhere are not found, not listed, and do not block."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "up").symlink_to(tmp_path)
    assert list(STORE.list(f"{tmp_path}/")) == []
    for name in ["folder", "folder/", "pipe", "dangling", "loop", "pipe/x"]:
        assert STORE.stat(f"{tmp_path}/{name}") is None
        with pytest.raises(ObjectNotFound):
            STORE.read(f"{tmp_path}/{name}")
        with pytest.raises(ObjectNotFound):
            STORE.copy(f"{tmp_path}/{name}", f"{tmp_path}/target")
    STORE.delete([f"{tmp_path}/folder"])
    assert (tmp_path / "folder").is_dir()


def test_links_to_files_are_followed(tmp_path: Path) -> None:
    """A link to a file is an object with that file's content; a copy of it is no link."""
    (tmp_path / "real").write_bytes(b"123")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/link").symlink_to(tmp_path / "real")
    assert [info.size_bytes for info in STORE.list(f"{tmp_path}/in/")] == [3]
    STORE.copy(f"{tmp_path}/in/link", f"{tmp_path}/in/copy")
    assert not (tmp_path / "in/copy").is_symlink()
    STORE.delete([f"{tmp_path}/in/link"])
    assert STORE.read(f"{tmp_path}/real") == STORE.read(f"{tmp_path}/in/copy") == b"123"


def test_names_that_are_no_utf8_are_listed(tmp_path: Path) -> None:
    """Any bytes that a disk takes for a name are an object, in the order of these bytes."""
    for name in [b"\xff", b"a", b"\xc3\xa9", b"\xfe\x01"]:
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    found = list(STORE.list(f"{tmp_path}/"))
    assert [STORE.read(info.uri) for info in found] == [b"a", b"\xc3\xa9", b"\xfe\x01", b"\xff"]


def test_very_deep_folders_are_listed(tmp_path: Path) -> None:
    """Folders deeper than Python recurses are no trouble."""
    deep = "d/" * 1050
    STORE.put(f"{tmp_path}/{deep}x", b"")
    assert [info.uri for info in STORE.list(f"{tmp_path}/")] == [f"{tmp_path}/{deep}x"]
    STORE.delete([f"{tmp_path}/{deep}x"])
    # Python 3.11 removes folders by recursion, so pytest could not clean up after this test.
    os.removedirs(f"{tmp_path}/{'d/' * 1047}".rstrip("/"))


def test_empty_folders_go_with_their_last_file(tmp_path: Path) -> None:
    """Deleting removes up to three folders that became empty, and none that holds anything."""
    STORE.put(f"{tmp_path}/keep/staging/m-1/1/part", b"")
    STORE.put(f"{tmp_path}/keep/staging/m-2/1/part", b"")
    STORE.delete([f"{tmp_path}/keep/staging/m-1/1/part"])
    assert inside(tmp_path / "keep/staging") == ["m-2"]
    STORE.delete([f"{tmp_path}/keep/staging/m-2/1/part"])
    assert inside(tmp_path / "keep") == []


@contextmanager
def without_permission(folder: Path) -> Iterator[None]:
    """A folder that may be neither read nor written."""
    user = os.geteuid()
    folder.chmod(0)
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(0)
        folder.chmod(0o755)


def test_permission_denied_is_for_an_operator(tmp_path: Path) -> None:
    """Whatever is asked of a folder that may not be entered stops with the name of the file."""
    folder = tmp_path / "closed"
    STORE.put(f"{folder}/a", b"")
    with without_permission(folder):
        for ask in [
            lambda: STORE.stat(f"{folder}/a"),
            lambda: STORE.read(f"{folder}/a"),
            lambda: list(STORE.list(f"{folder}/")),
            lambda: STORE.create(f"{folder}/b", b""),
            lambda: STORE.put(f"{folder}/a", b""),
            lambda: write(f"{folder}/a", b""),
            lambda: STORE.copy(f"{folder}/a", f"{tmp_path}/b"),
            lambda: STORE.delete([f"{folder}/a"]),
        ]:
            with pytest.raises(AccessError, match="closed"):
                ask()


def test_a_name_that_cannot_be_had_is_for_an_operator(tmp_path: Path) -> None:
    """Writing onto a folder, below a file, or to a relative path can never succeed."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for uri in [f"{tmp_path}/folder", f"{tmp_path}/file/x", f"{tmp_path}/file/x/y", f"{tmp_path}/{'n' * 300}", "a/b"]:
        with pytest.raises(AccessError):
            STORE.put(uri, b"")
        with pytest.raises(AccessError):
            STORE.create(uri, b"")
        with pytest.raises(AccessError):
            write(uri, b"")
    assert inside(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_passing_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A write that the disk refuses leaves nothing behind, not even half a file, and may be tried again."""
    with monkeypatch.context() as patch:
        patch.setattr(
            "compactor.adapters.local.durable.os.fsync", lambda _: (_ for _ in ()).throw(OSError(code, "full"))
        )
        for method in (STORE.put, STORE.create, write):
            with pytest.raises(StoreUnavailable, match="full"):
                method(f"{tmp_path}/a", b"1")
    assert inside(tmp_path) == []
    assert STORE.create(f"{tmp_path}/a", b"1")


def test_what_is_written_is_on_disk_before_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power failure finds no object, or all of it: its bytes are made safe first, then its name."""
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda handle: (steps.append(f"{os.fstat(handle).st_mode:o}"), fsync(handle))[1])
    monkeypatch.setattr("os.replace", lambda *paths: (steps.append("named"), replace(*paths))[1])
    write(f"{tmp_path}/a", b"1")
    assert [step[:2] if step != "named" else step for step in steps] == ["10", "named", "40"]  # file, and folder


def test_a_file_with_a_hole_is_never_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that goes on from a write that failed gets no object for it, and nothing is left."""

    def refuse(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "full")

    def write_and_go_on() -> None:
        with STORE.writer(f"{tmp_path}/a") as writer:
            with monkeypatch.context() as patch:
                patch.setattr("os.write", refuse)
                with pytest.raises(StoreUnavailable, match="the disk is full"):
                    writer.write(b"1")
            writer.write(b"2")

    with pytest.raises(StoreUnavailable, match="a write failed"):
        write_and_go_on()
    assert inside(tmp_path) == []


@pytest.mark.parametrize("answer", [None, OSError(errno.EINVAL, "no such advice")], ids=["taken", "refused"])
def test_the_disk_begins_before_a_long_file_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: OSError | None
) -> None:
    """It is asked to store each byte once, in steps, so that the last flush has less to wait for. It need not obey."""
    asked = []

    def advise(_handle: int, start: int, length: int, _advice: int) -> None:
        asked.append((start, length))
        if answer is not None:
            raise answer

    monkeypatch.setattr(os, "posix_fadvise", advise, raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
    piece = bytes(range(256)) * (12 * 1024)  # 3 MiB
    target = str(tmp_path / "long.parquet")
    with LocalStore().writer(target) as writer:
        for _ in range(7):
            writer.write(piece)
    assert asked == [(0, 3 * len(piece)), (3 * len(piece), 3 * len(piece))]
    assert LocalStore().read(target) == piece * 7
