"""Digests of the beginnings of a file, whatever the pieces are in which it is read."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from compactor.ndjson.files.content_digest import ContentDigest, digests_of_beginnings


@given(st.lists(st.binary(max_size=9), max_size=6), st.sets(st.integers(1, 60), max_size=5))
def test_the_digest_of_each_beginning(pieces: list[bytes], lengths: set[int]) -> None:
    """It is that of a file with these bytes alone; lengths beyond the end have none."""
    content = b"".join(pieces)
    expected = {}
    for length in filter(lambda length: length <= len(content), lengths):
        digest = ContentDigest()
        list(digest.passing([content[:length]]))
        expected[length] = digest.of_whole(length)
        assert expected[length] == hashlib.sha256(content[:length]).hexdigest()[:32]
    assert digests_of_beginnings(pieces, lengths) == expected


def test_threads_that_do_the_work_make_the_same_digest() -> None:
    """Of all pieces in their order, also where an earlier reading of the file was given up."""
    pieces = [bytes([number]) * 3_000 for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        digest = ContentDigest(pool)
        next(digest.passing([b"given up" * 400_000, b"never read"]))
        assert digest.of_whole(120_000) == ""
        assert list(digest.passing(pieces)) == pieces
        assert digest.of_whole(120_000) == hashlib.sha256(b"".join(pieces)).hexdigest()[:32]


def test_no_more_is_read_than_needed() -> None:
    """Of a large file, only the pieces up to the longest beginning."""

    def pieces() -> Iterator[bytes]:
        yield b"abcd"
        raise AssertionError

    assert digests_of_beginnings(pieces(), [3]).keys() == {3}
    assert digests_of_beginnings(pieces(), []) == {}
