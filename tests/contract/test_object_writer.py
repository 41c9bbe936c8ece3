"""What every object store promises about objects that are written as their bytes come."""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from compactor.adapters.aws.s3 import multipart
from compactor.core.errors import ObjectChanged
from tests.support.sampling import few_rows

MIB = 1024 * 1024
PART = 5 * MIB  # the least that S3 takes
BIG = bytes(range(251)) * (12 * MIB // 251)  # three parts in S3, the same at no two beginnings


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipart, "_PART_BYTES", PART)


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def write(place: Any, uri: str, pieces: Sequence[bytes]) -> None:
    with place.store.writer(uri) as writer:
        for piece in pieces:
            writer.write(piece)


@pytest.fixture
def unfinished(place: Any, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], list[str]]:
    """Finds files and uploads that are no objects."""
    kind: str = request.node.callspec.params["place"]

    def find() -> list[str]:
        if "s3" in kind:
            s3, bucket = request.getfixturevalue("s3"), request.getfixturevalue("bucket")
            return [upload["Key"] for upload in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", ())]
        objects = {Path(info.uri.removeprefix("file://")) for info in place.store.list(place.root)}
        return [str(path) for path in tmp_path.rglob("*") if path.is_file() and path not in objects]

    return find


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b""],
        pytest.param([b"one"], marks=pytest.mark.full),
        [b"", b"\x00", b"", b"\xff\r\n", b""],
        in_pieces(BIG[:99_999], 7),
        in_pieces(BIG, 1_000_001),
        pytest.param([b"PAR1", BIG, b"PAR1"], marks=pytest.mark.full),
        [BIG[:PART]],
        [BIG[:PART], BIG[: PART + 1]],
        pytest.param(in_pieces(BIG[: 2 * PART], MIB), marks=pytest.mark.full),
    ],
    ids=["nothing", "empty", "one", "few", "many", "large", "large at once", "a part", "over a part", "two parts"],
)
def test_the_pieces_are_one_object(place: Any, unfinished: Callable[[], list[str]], pieces: list[bytes]) -> None:
    """The object is all pieces one after the other, however many and large, and nothing else is left."""
    uri = place.root + "a/b/c"
    write(place, uri, pieces)
    expected = b"".join(pieces)
    assert place.store.read(uri) == expected
    assert [(info.uri, info.size_bytes) for info in place.store.list(place.root)] == [(uri, len(expected))]
    assert unfinished() == []


@pytest.mark.parametrize("size", [1, len(BIG)], ids=["small", "large"])
def test_nothing_is_there_before_the_end(place: Any, size: int) -> None:
    """A reader sees no object while it is written, or the one that was there before."""
    new, old = place.root + "x/new", place.root + "x/old"
    place.store.put(old, b"old")
    with place.store.writer(new) as first, place.store.writer(old) as second:
        for writer in (first, second):
            writer.write(BIG[:size])
        assert [info.uri for info in place.store.list(place.root)] == [old]
        assert place.store.stat(new) is None
        assert place.store.read(old) == b"old"
    assert [info.size_bytes for info in place.store.list(place.root)] == [size, size]


ERRORS = [OSError(2, "of the caller"), KeyboardInterrupt(), ValueError("of the caller")]


@pytest.mark.parametrize(("size", "error"), few_rows(product((0, 1, len(BIG)), ERRORS), 4))
def test_an_error_abandons_what_was_written(
    place: Any, unfinished: Callable[[], list[str]], size: int, error: BaseException
) -> None:
    """A block that raises leaves what was there before and nothing else, and its error comes out as it is."""

    def write_and_raise(uri: str) -> None:
        with place.store.writer(uri) as writer:
            writer.write(BIG[:size])
            raise error

    new, old = place.root + "x/new", place.root + "x/old"
    place.store.put(old, b"old")
    for uri in (new, old):
        with pytest.raises(type(error)) as raised:
            write_and_raise(uri)
        assert raised.value is error
    assert [info.uri for info in place.store.list(place.root)] == [old]
    assert place.store.read(old) == b"old"
    assert unfinished() == []


@pytest.mark.parametrize("size", [0, 1, len(BIG)], ids=["empty", "small", "large"])
def test_an_aborted_object_leaves_nothing_behind(place: Any, unfinished: Callable[[], list[str]], size: int) -> None:
    """After `abort` the block ends without an error, and what was there before stays."""
    new, old = place.root + "x/new", place.root + "x/old"
    place.store.put(old, b"old")
    for uri in (new, old):
        with place.store.writer(uri) as writer:
            writer.write(BIG[:size])
            writer.abort()
    assert [info.uri for info in place.store.list(place.root)] == [old]
    assert place.store.read(old) == b"old"
    assert unfinished() == []


@pytest.mark.parametrize("size", [1000, len(BIG)], ids=["small", "large"])
def test_of_two_writers_the_last_to_end_wins(place: Any, unfinished: Callable[[], list[str]], size: int) -> None:
    """Writers of the same object do not meet: it is one's, then the other's, whole."""
    uri = place.root + "a"
    ones, twos = b"1" * size, b"2" * size
    with place.store.writer(uri) as outer:
        outer.write(ones[:10])
        with place.store.writer(uri) as inner:
            inner.write(twos)
            outer.write(ones[10:-1])
        assert place.store.read(uri) == twos
        outer.write(ones[-1:])
    assert place.store.read(uri) == ones
    assert unfinished() == []


SIZES = pytest.mark.parametrize(
    "size", [0, pytest.param(1, marks=pytest.mark.full), len(BIG)], ids=["empty", "small", "large"]
)


@SIZES
def test_a_new_object_is_whole_and_unseen_before_its_end(
    place: Any, unfinished: Callable[[], list[str]], size: int
) -> None:
    """It is all pieces one after the other, as that of any other writer."""
    uri = place.root + "a/b/c"
    with place.store.new_writer(uri) as writer:
        for piece in in_pieces(BIG[:size], 1_000_001):
            writer.write(piece)
        assert place.store.stat(uri) is None
    assert place.store.read(uri) == BIG[:size]
    assert [info.uri for info in place.store.list(place.root)] == [uri]
    assert unfinished() == []


@SIZES
def test_a_new_object_never_replaces_another(place: Any, unfinished: Callable[[], list[str]], size: int) -> None:
    """Not even one of the same length, nor of the same bytes: the other one stays, and this one leaves nothing."""

    def write_new(data: bytes) -> None:
        with place.store.new_writer(uri) as writer:
            writer.write(data)

    uri = place.root + "a"
    write(place, uri, [BIG[:size]])
    before = place.store.stat(uri)
    for data in (BIG[:size], bytes(size)):
        with pytest.raises(ObjectChanged, match=r"expected none|PreconditionFailed"):
            write_new(data)
    assert place.store.stat(uri) == before
    assert place.store.read(uri) == BIG[:size]
    assert unfinished() == []


@SIZES
def test_of_two_new_objects_the_first_to_end_is_there(
    place: Any, unfinished: Callable[[], list[str]], size: int
) -> None:
    """The other one finds it at its own end, and leaves nothing."""
    uri = place.root + "a"

    def write_beside_another() -> None:
        with place.store.new_writer(uri) as outer:
            outer.write(BIG[:size])
            with place.store.new_writer(uri) as inner:
                inner.write(BIG[: max(size, 2)])

    with pytest.raises(ObjectChanged):
        write_beside_another()
    assert place.store.read(uri) == BIG[: max(size, 2)]
    assert unfinished() == []


@SIZES
@pytest.mark.parametrize("how", ["error", "abort"])
def test_a_new_object_that_is_given_up_leaves_nothing(
    place: Any, unfinished: Callable[[], list[str]], size: int, how: str
) -> None:
    """Its name is free for the next one."""

    def write_and_raise() -> None:
        with place.store.new_writer(uri) as writer:
            writer.write(BIG[:size])
            if how == "abort":
                writer.abort()
                return
            raise ValueError("of the caller")

    uri = place.root + "x/new"
    if how == "error":
        with pytest.raises(ValueError, match="of the caller"):
            write_and_raise()
    else:
        write_and_raise()
    assert list(place.store.list(place.root)) == []
    assert unfinished() == []
