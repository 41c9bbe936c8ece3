"""What every object store promises."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID

from compactor.adapters.aws.s3 import store
from compactor.adapters.aws.s3.store import S3Store
from compactor.core.errors import ObjectChanged, ObjectNotFound

MIB = 1024 * 1024
ODD_NAMES = [
    *[
        "a b",
        "a%20b",
        "a+b",
        "a#b",
        "a,b",
        "a:b",
        "a\\b",
        "a*b",
        "a?b",
        "a[1]",
        "a{x}",
        "{date}",
        "_hidden",
        ".hidden",
        "~",
    ],
    *[
        "ünïcödé",
        "日本語",
        "😀",
        "a&b=c;d",
        "quote'\"",
        "a<b>c",
        "%",
        "%zz",
        "s3:",
        "a@b$c!",
        "ends ",
        " begins",
        "x.gz",
    ],
]


def names(place: Any, folder: str = "", **more: Any) -> list[str]:
    """What a listing finds, named from the folder on."""
    return [info.uri.removeprefix(place.root) for info in place.store.list(place.root + folder, **more)]


def test_nothing_is_there_before_it_was_written(place: Any) -> None:
    """An object that was never written has no status and cannot be read; its folder is empty."""
    uri = place.root + "none"
    assert place.store.stat(uri) is None
    assert names(place) == []
    with pytest.raises(ObjectNotFound, match="none"):
        place.store.read(uri)
    with pytest.raises(ObjectNotFound, match="none"):
        place.store.read_range(uri, 0, 1)
    with pytest.raises(ObjectNotFound, match="none"):
        place.store.read_range(uri, 0, 0)
    with pytest.raises(ObjectNotFound, match="none"):
        place.store.copy(uri, place.root + "target")
    assert place.store.stat(place.root + "target") is None


@pytest.mark.parametrize("data", [b"", b"\x00\xff\r\n", b"x" * 100_000], ids=["empty", "binary", "large"])
def test_bytes_come_back_as_they_were_written(place: Any, data: bytes) -> None:
    """What was put is read back byte for byte, and its status tells the length and a time in UTC."""
    uri = place.root + "a/b/c"
    place.store.put(uri, data)
    info = place.store.stat(uri)
    assert place.store.read(uri) == data
    assert place.store.read(uri, etag=info.etag) == data
    assert (info.uri, info.size_bytes) == (uri, len(data))
    assert '"' not in info.etag
    assert info.modified_at.utcoffset() == timedelta(0)
    assert abs(info.modified_at - datetime.now(UTC)) < timedelta(minutes=5)


@pytest.mark.parametrize(
    "odd", [ODD_NAMES[::2], pytest.param(ODD_NAMES[1::2], marks=pytest.mark.full)], ids=["half", "other half"]
)
def test_names_are_taken_literally(place: Any, odd: list[str]) -> None:
    """Characters with a meaning to shells, globs, URLs or Hadoop are ordinary ones, in files and in folders."""
    for name in odd:
        uri, target = f"{place.root}{name}/{name}", f"{place.root}{name}/copy of {name}"
        assert place.store.create(uri, b"1")
        place.store.copy(uri, target)
        assert place.store.read(uri) == place.store.read_range(target, 0, 9) == b"1"
        assert place.store.stat(uri).size_bytes == 1
        assert sorted(names(place, f"{name}/")) == sorted([f"{name}/{name}", f"{name}/copy of {name}"])
        assert names(place, start_after=max(uri, target, key=str.encode)) == []
        place.store.delete([uri, target])
        assert names(place) == [], name


def test_odd_names_do_not_stand_for_each_other(place: Any) -> None:
    """No odd name reads, replaces or deletes an object of another name."""
    for name in ODD_NAMES:
        place.store.put(place.root + name, name.encode())
    assert {name: place.store.read(place.root + name).decode() for name in ODD_NAMES} == {n: n for n in ODD_NAMES}
    assert names(place) == sorted(ODD_NAMES, key=str.encode)
    place.store.delete([place.root + name for name in ODD_NAMES[1:]])
    assert names(place) == ODD_NAMES[:1]


def test_ranges(place: Any) -> None:
    """A range ends at the object's end at the latest; behind it there is nothing."""
    uri = place.root + "digits"
    place.store.put(uri, b"0123456789")
    etag = place.store.stat(uri).etag
    expected = {
        (0, 4): b"0123",
        (3, 4): b"3456",
        (8, 10): b"89",
        (9, 1): b"9",
        **dict.fromkeys([(10, 5), (99, 5), (0, 0), (4, 0)], b""),
    }
    assert {each: place.store.read_range(uri, *each) for each in expected} == expected
    assert {each: place.store.read_range(uri, *each, etag=etag) for each in expected} == expected


@pytest.mark.parametrize("how", ["put", "upload", "writer", "copy"])
def test_a_replaced_object_is_another_version(place: Any, how: str, tmp_path: Path) -> None:
    """However an object is replaced, also by one of the same length, its old version is refused from then on."""
    uri, other = place.root + "a", place.root + "b"
    place.store.put(other, b"new")
    place.store.put(uri, b"old")
    before = place.store.stat(uri)
    if how == "put":
        place.store.put(uri, b"new")
    elif how == "copy":
        place.store.copy(other, uri)
    elif how == "writer":
        with place.store.writer(uri) as writer:
            writer.write(b"new")
    else:
        (tmp_path / "file").write_bytes(b"new")
        place.store.upload(uri, tmp_path / "file")
    after = place.store.stat(uri)
    assert after.etag != before.etag
    assert place.store.read(uri, etag=after.etag) == b"new"
    for start, length in [(0, 3), (0, 0), (99, 1)]:
        with pytest.raises(ObjectChanged, match="a"):
            place.store.read_range(uri, start, length, etag=before.etag)
    with pytest.raises(ObjectChanged, match="a"):
        place.store.read(uri, etag=before.etag)


def test_many_quick_replacements_are_all_different_versions(place: Any) -> None:
    """Versions differ even if they follow each other at once and have the same length."""
    etags = set()
    for number in range(20):
        place.store.put(place.root + "a", f"{number:03}".encode())
        etags.add(place.store.stat(place.root + "a").etag)
    assert len(etags) == 20


def test_create_leaves_another_object_alone(place: Any) -> None:
    """The first to create wins; another content is refused, and the very same one is a repeat that succeeded."""
    uri = place.root + "ledger/outcome.json"
    assert place.store.create(uri, b"first")
    assert not place.store.create(uri, b"second")
    assert not place.store.create(uri, b"")
    assert place.store.create(uri, b"first")
    assert place.store.read(uri) == b"first"
    place.store.delete([uri])
    assert place.store.create(uri, b"second")


def test_of_many_that_create_at_once_exactly_one_wins(place: Any) -> None:
    """Sixteen threads that create the same object have one winner, and the object is that one's, whole."""
    barrier = threading.Barrier(16)

    def compete(number: int) -> list[bool]:
        won = []
        for turn in range(3):
            barrier.wait()
            won.append(place.store.create(f"{place.root}race/{turn}", f"{number}".encode() * 1000))
        return won

    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(compete, range(16)))
    for turn in range(3):
        winners = [number for number, won in enumerate(results) if won[turn]]
        assert len(winners) == 1
        assert place.store.read(f"{place.root}race/{turn}") == f"{winners[0]}".encode() * 1000
    assert names(place) == [f"race/{turn}" for turn in range(3)]


def test_listing_is_in_the_order_of_bytes(place: Any) -> None:
    """Any depth, in the order of the whole names' UTF-8 bytes: what sorts between a folder and its `/` comes first."""
    expected = sorted(
        ["a", "a-b", "a.b/c", "a/b/c/d", "a/b-c", "a/b.c", "a0", "B", "b/_x/.y", "ÿ", "\uffff", "😀", "Ω/ω"],
        key=str.encode,
    )
    # A disk cannot hold a file and a folder of the same name.
    for name in (kept := [name for name in expected if name != "a"]):
        place.store.put(place.root + name, b"")
    assert names(place) == kept
    assert names(place, "a/") == ["a/b-c", "a/b.c", "a/b/c/d"]
    assert names(place, "a/b/") == ["a/b/c/d"]
    assert names(place, "nowhere/") == []


def test_listing_starts_behind_a_name(place: Any) -> None:
    """Listing may start behind any name, whether there is such an object or not, in the folder or not."""
    every = sorted(["a/1", "a/2", "a-1", "b", "c/d/e", "c/d/f", "c0"], key=str.encode)
    for name in every:
        place.store.put(place.root + name, b"")
    for start in [*every, "", "a", "a/", "a/15", "c", "c/", "c/d", "c/d/", "c/d/e/x", "c/d0", "d", "ÿ"]:
        expected = [name for name in every if name.encode() > start.encode()]
        assert names(place, start_after=place.root + start) == expected, start
    assert names(place, "c/", start_after=place.root + "b") == ["c/d/e", "c/d/f"]
    assert names(place, "a/", start_after=place.root + "b") == []


def test_copy_replaces_and_stays_apart(place: Any) -> None:
    """A copy takes the place of what was there, and neither side notices what becomes of the other."""
    source, target = place.root + "staging/1/part", place.root + "out/part"
    place.store.put(target, b"older and longer")
    place.store.put(source, b"one")
    for _ in range(2):
        place.store.copy(source, target)
        assert place.store.read(target) == b"one"
    place.store.put(source, b"two")
    assert place.store.read(target) == b"one"
    place.store.copy(target, place.root + "third")
    place.store.put(target, b"three")
    assert [place.store.read(place.root + n) for n in ["staging/1/part", "out/part", "third"]] == [
        b"two",
        b"three",
        b"one",
    ]
    place.store.delete([source])
    assert names(place) == ["out/part", "third"]


def test_upload_takes_a_file_of_any_size(place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's content is uploaded whole, also one that is sent in several parts, and the file is left as it is."""
    small_parts = TransferConfig(multipart_threshold=6 * MIB, multipart_chunksize=5 * MIB, max_concurrency=4)
    monkeypatch.setattr(store, "_UPLOAD", small_parts)
    path = tmp_path / "big file"
    content = bytes(range(256)) * 4 * 1024 * 11  # 11 MiB: three parts in S3
    path.write_bytes(content)
    place.store.upload(place.root + "x/big", path)
    assert place.store.stat(place.root + "x/big").size_bytes == len(content)
    assert place.store.read(place.root + "x/big") == content
    path.write_bytes(b"")
    place.store.upload(place.root + "x/big", path)
    assert place.store.read(place.root + "x/big") == b""


def test_delete_may_be_repeated(place: Any) -> None:
    """Deleting takes what is there; what is not, or no more, is no error; nothing else is touched."""
    for name in ["a/b/1", "a/b/2", "a/c"]:
        place.store.put(place.root + name, b"")
    wanted = [place.root + name for name in ["a/b/1", "a/b/2", "a/b/3", "a/b", "x/y", "a/c/z", "a/b/1"]]
    for _ in range(2):
        place.store.delete(iter(wanted))
        assert names(place) == ["a/c"]
    place.store.delete([])
    place.store.put(place.root + "a/b/1", b"again")
    assert names(place) == ["a/b/1", "a/c"]


def test_one_version_is_deleted(place: Any) -> None:
    """Another version stays; an object that is gone already is as good as deleted."""
    uri = place.root + "a/1"
    assert place.store.delete_version(uri, "none")
    place.store.put(uri, b"first")
    first = place.store.stat(uri)
    assert not place.store.delete_version(uri, "other")
    place.store.put(uri, b"second")
    assert not place.store.delete_version(uri, first.etag)
    assert place.store.read(uri) == b"second"
    assert place.store.delete_version(uri, place.store.stat(uri).etag)
    assert names(place) == []


def _put_into_moto(uri: str) -> None:
    """Put an empty object where the stand-in of this process keeps them: a thousand requests take very long."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"].put_object(bucket, key, b"")


@pytest.mark.parametrize("place", ["memory", "local", "s3"], indirect=True)
def test_thousands_are_listed_and_deleted_as_they_are_listed(place: Any) -> None:
    """More objects than a page of S3 holds are listed once each and in order, and can be deleted on the way."""
    every = [f"day/{number % 7}/{number:04}" for number in range(1_003)]
    for name in every:
        if isinstance(place.store, S3Store):
            _put_into_moto(place.root + name)
        else:
            place.store.put(place.root + name, b"")
    assert names(place) == sorted(every)
    assert names(place, start_after=place.root + sorted(every)[3]) == sorted(every)[4:]
    place.store.delete(info.uri for info in place.store.list(place.root))
    assert names(place) == []


def test_folders_may_come_and_go_under_a_writer(place: Any) -> None:
    """Writing into a folder succeeds while others empty it all the time."""
    stop = threading.Event()
    rounds = 5 if isinstance(place.store, S3Store) else 25  # S3 has no folders

    def empty() -> None:
        while not stop.is_set():
            place.store.delete([f"{place.root}x/y/z/{number}" for number in range(5)])

    with ThreadPoolExecutor(1) as threads:
        emptied = threads.submit(empty)
        try:
            place.store.put(place.root + "source", b"1")
            for number in range(rounds):
                place.store.put(f"{place.root}x/y/z/{number % 5}", b"1")
                place.store.create(f"{place.root}x/y/z/{number % 5}", b"1")
                place.store.copy(place.root + "source", f"{place.root}x/y/z/{number % 5}")
                with place.store.writer(f"{place.root}x/y/z/{number % 5}") as writer:
                    writer.write(b"1")
        finally:
            stop.set()
        emptied.result()


def test_names_no_object_can_have_are_not_found(place: Any) -> None:
    """A name that no store could hold is an object that is not there, not a crash."""
    for name in ["x/" * 1000 + "x", "n" * 5000, "lone \ud800 surrogate", "null \0 byte"]:
        with pytest.raises(ObjectNotFound):
            place.store.read(place.root + name)
        assert place.store.stat(place.root + name) is None
        place.store.delete([place.root + name])
