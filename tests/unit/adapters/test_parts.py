"""The content of a request in pieces: it reads as a file of all bytes would, whatever their pieces were."""

import zlib
from io import SEEK_CUR, SEEK_END, BytesIO

from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.aws.s3.multipart import _KEPT_BYTES, Part

SIZES = st.lists(st.sampled_from([0, 1, 2, 100, _KEPT_BYTES - 1, _KEPT_BYTES, _KEPT_BYTES + 1]), max_size=12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 3 * _KEPT_BYTES)),
        st.tuples(st.just("start"), st.integers(0, 4 * _KEPT_BYTES)),
        st.tuples(st.just("back"), st.integers(0, 2 * _KEPT_BYTES)),
        st.tuples(st.just("end"), st.integers(0, 3)),
    ),
    max_size=20,
)


def filled(sizes: list[int]) -> tuple[Part, bytes]:
    """A part of pieces with these lengths, and all of their bytes."""
    part, data = Part(), bytearray()
    for index, size in enumerate(sizes):
        piece = (bytes([index + 1, index + 101, index + 201]) * size)[:size]
        part.add(memoryview(piece))
        data += piece
    return part, bytes(data)


def view(part: Part) -> memoryview:
    """What a reader gets of its first piece."""
    found = part.read(len(part))
    assert isinstance(found, memoryview)
    return found


@given(SIZES, STEPS)
def test_it_reads_as_a_file_of_all_bytes(sizes: list[int], steps: list[tuple[str, int]]) -> None:
    """From wherever a reader goes. A read may end early, where a piece ends, but never at nothing before the end."""
    part, data = filled(sizes)
    whole = BytesIO(data)
    assert len(part) == len(data)
    for step, number in steps:
        if step == "read":
            found = bytes(part.read(number))
            assert found == whole.read(len(found))
            assert found or not number or whole.tell() >= len(data)
        elif step == "start":
            assert part.seek(number) == whole.seek(number)
        elif step == "back":
            back = min(number, whole.tell())
            assert part.seek(-back, SEEK_CUR) == whole.seek(-back, SEEK_CUR)
        else:
            assert part.seek(0, SEEK_END) == whole.seek(0, SEEK_END)
        assert part.tell() == whole.tell()
    assert part.read() == whole.read()


@given(SIZES)
def test_its_checksum_is_of_all_bytes(sizes: list[int]) -> None:
    """Wherever it has been read to, and that stays."""
    part, data = filled(sizes)
    part.read(1)
    before = part.tell()
    assert part.crc32() == zlib.crc32(data)
    assert part.tell() == before


def test_short_pieces_are_held_as_one() -> None:
    """An object for each of them would take far more memory than its bytes."""
    part = Part()
    for _ in range(100_000):
        part.add(memoryview(b"0123456789"))
    assert bytes(part.read(2_000_000)) == b"0123456789" * 100_000


def test_a_long_piece_is_not_copied() -> None:
    """What is read of it is a view of its own memory."""
    part, piece = Part(), bytes(_KEPT_BYTES)
    part.add(memoryview(piece))
    assert view(part).obj is piece


def test_a_piece_is_held_alone() -> None:
    """Neither the rest of what it was cut from, nor memory that may change."""
    large, small = bytes(10 * _KEPT_BYTES), bytearray(_KEPT_BYTES)
    for piece in (memoryview(large)[: 2 * _KEPT_BYTES], memoryview(small)):
        part = Part()
        part.add(piece)
        assert view(part).obj is not piece.obj
    small[0] = 1
    assert part.crc32() == zlib.crc32(bytes(_KEPT_BYTES))
