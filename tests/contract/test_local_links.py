"""What the store on a local disk makes of symbolic links below folders that others write to."""

import os
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from compactor.adapters.local.links import links_left_out
from compactor.adapters.local.store import LocalStore
from compactor.core.errors import CompactorError, LinkRefused, ObjectNotFound

SECRET = b"not for the job"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder of input, beside one that is none of the job's business."""
    for name in ("raw", "more", "private", "raw-x"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "file").write_bytes(SECRET if name == "private" else name.encode())
    return tmp_path / "raw"


@pytest.fixture
def store(raw: Path) -> LocalStore:
    return LocalStore(confined=[str(raw), str(raw.parent / "more")])


def left_out(source: str, allowed_prefixes: Sequence[str]) -> dict[str, int]:
    return Counter(reason for _, reason in links_left_out(source, allowed_prefixes))


def listed(store: LocalStore, folder: Path) -> list[str]:
    return [info.uri.removeprefix(f"{folder}/") for info in store.list(f"{folder}/")]


OUT = {
    "absolute": "{top}/private/sub/file",
    "relative": "../private/sub/file",
    "up and down": "sub/../../private/sub/file",
    "up and back": "../../{name}/private/sub/file",
    "through the root": "../../../../../../../../../../../../etc/hostname",
    "prefix of a name": "{top}/raw-x/../private/sub/file",
    "of the process": "/proc/self/root/etc/hostname",
    "a link to a link": "first",
}


@pytest.mark.parametrize("target", OUT.values(), ids=OUT)
def test_links_that_lead_out_are_refused(raw: Path, store: LocalStore, target: str) -> None:
    """A link to a file elsewhere is not listed, and whatever reads it says where it may not lead."""
    (raw / "first").symlink_to(raw.parent / "private/sub/file")
    (raw / "link").symlink_to(target.format(top=raw.parent, name=raw.parent.name))
    uri = f"{raw}/link"
    assert listed(store, raw) == ["sub/file"]
    reads = [
        lambda: store.stat(uri),
        lambda: store.read(uri),
        lambda: store.read_range(uri, 0, 9),
        lambda: store.copy(uri, f"{raw.parent}/copy"),
    ]
    for read in reads:
        with pytest.raises(LinkRefused, match=f"cannot read {uri}: a symbolic link points outside {raw}$"):
            read()
    assert not (raw.parent / "copy").exists()
    assert left_out(f"{raw}/", [str(raw)]) == {"outside_link": 2}


@pytest.mark.parametrize("name", ["sub/deep", "deep"])
def test_folders_that_lead_out_are_refused(raw: Path, store: LocalStore, name: str) -> None:
    """A file below a linked folder is refused, and so is the listing of that folder."""
    (raw / name).symlink_to(raw.parent / "private")
    with pytest.raises(LinkRefused, match="a symbolic link points outside"):
        store.read(f"{raw}/{name}/sub/file")
    with pytest.raises(LinkRefused, match="a symbolic link points outside"):
        list(store.list(f"{raw}/{name}/"))
    assert listed(store, raw) == ["sub/file"]
    assert left_out(str(raw), [str(raw)]) == {"linked_folder": 1}


IN = {
    "absolute": "{top}/raw/sub/file",
    "relative": "sub/file",
    "out and in": "../raw/sub/file",
    "another allowed folder": "{top}/more/sub/file",
    "another one, relative": "../more/sub/file",
    "through a linked folder": "inner/file",
}


@pytest.mark.parametrize("target", IN.values(), ids=IN)
def test_links_that_stay_are_followed(raw: Path, store: LocalStore, target: str) -> None:
    """A link within the allowed folders is the file that it leads to."""
    (raw / "inner").symlink_to("sub")
    (raw / "link").symlink_to(target.format(top=raw.parent, name=raw.parent.name))
    real = (raw / "link").read_bytes()
    uri = f"{raw}/link"
    assert listed(store, raw) == ["link", "sub/file"]
    info = store.stat(uri)
    assert info is not None
    assert store.read(uri, etag=info.etag) == real
    assert next(each.etag for each in store.list(f"{raw}/")) == info.etag
    assert store.read(f"{raw}/inner/file") == b"raw"
    store.copy(uri, f"{raw.parent}/copy")
    assert (raw.parent / "copy").read_bytes() == real
    assert not (raw.parent / "copy").is_symlink()
    assert left_out(str(raw), [str(raw), str(raw.parent / "more")]) == {"linked_folder": 1}


def test_the_way_to_the_folder_may_have_links(raw: Path) -> None:
    """Only links below an allowed folder are its producers'; those on the way to it are the operator's."""
    (raw.parent / "way").symlink_to(raw)
    (raw / "link").symlink_to(f"{raw}/sub/file")
    (raw / "up").symlink_to("../private/sub/file")
    store = LocalStore(confined=[f"{raw.parent}/way"])
    assert store.read(f"{raw.parent}/way/sub/file") == store.read(f"{raw.parent}/way/link") == b"raw"
    with pytest.raises(LinkRefused):
        store.read(f"{raw.parent}/way/up")


def test_what_is_no_file_is_no_object(raw: Path, store: LocalStore) -> None:
    """Folders, circles, links that lead nowhere and missing files are not found, as everywhere else."""
    (raw / "loop").symlink_to("loop")
    (raw / "dangling").symlink_to("nowhere")
    for name in (
        "loop",
        "dangling",
        "gone",
        "sub",
        "sub/",
        "sub/file/",
        "gone/file",
        "sub/file/x",
        "x" * 300,
        "../private/sub/file",
    ):
        assert store.stat(f"{raw}/{name}") is None, name
        with pytest.raises(ObjectNotFound):
            store.read(f"{raw}/{name}")
    assert listed(store, raw) == ["sub/file"]
    assert list(store.list(f"{raw}/gone/")) == []
    assert left_out(str(raw), [str(raw)]) == {"dangling_link": 2}


def test_only_confined_folders_are(raw: Path, store: LocalStore) -> None:
    """Elsewhere, in the job's own places, links are followed as ever."""
    (raw.parent / "own").symlink_to(raw.parent / "private")
    assert store.read(f"{raw.parent}/own/sub/file") == SECRET


@pytest.mark.parametrize("swapped", ["sub", "sub/file"])
def test_no_swap_gets_past_the_check(raw: Path, store: LocalStore, swapped: str) -> None:
    """While a file or its folder and a link out take turns, each read gives the file or none, and never what is out."""
    place, stop = raw / swapped, threading.Event()
    (raw.parent / "link").symlink_to(raw.parent / "private" / swapped)

    def swap() -> None:
        while not stop.is_set():
            for new in ("link", "kept"):
                os.rename(place, raw.parent / ("kept" if new == "link" else "link"))  # noqa: PTH104
                os.rename(raw.parent / new, place)  # noqa: PTH104

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[object] = set()
    try:
        for _ in range(3000):
            try:
                seen.add(store.read(f"{raw}/sub/file"))
            except CompactorError as exc:
                seen.add(type(exc))
    finally:
        stop.set()
        swapper.join()
    assert seen <= {b"raw", LinkRefused, ObjectNotFound}
    assert {b"raw", LinkRefused} <= seen


def test_a_deletion_never_leaves_the_folder(raw: Path, store: LocalStore) -> None:
    """A link to a folder elsewhere that replaces one on the way, or the prefix itself, leads to no deletion there."""
    outside = raw.parent / "private"
    (raw / "sub").rename(raw / "was")
    (raw / "sub").symlink_to(outside / "sub")
    with pytest.raises(LinkRefused):
        store.delete([f"{raw}/sub/file"])
    (raw / "sub").unlink()
    raw.rename(raw.parent / "was")
    raw.symlink_to(outside)
    with pytest.raises(LinkRefused):
        store.delete([f"{raw}/sub/file"])
    with pytest.raises(LinkRefused):
        store.stat(f"{raw}/sub/file")
    assert (outside / "sub" / "file").read_bytes() == SECRET


def test_only_the_version_that_was_checked_is_deleted(raw: Path) -> None:
    """Also where the prefix was a link to a folder elsewhere when the store was opened."""
    checked = LocalStore(confined=[str(raw)]).stat(f"{raw}/sub/file")
    assert checked is not None
    raw.rename(raw.parent / "was")
    raw.symlink_to(raw.parent / "private")
    assert not LocalStore(confined=[str(raw)]).delete_version(f"{raw}/sub/file", checked.etag)
    assert (raw / "sub" / "file").read_bytes() == SECRET
