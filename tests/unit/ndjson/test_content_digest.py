"""Digests of files and of their beginnings, whatever the pieces are in which they are read."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.versions import Beginning
from compactor.ndjson.files.content_digest import ContentDigest, beginnings

BLAKE3_OF_ABC = "b3-6437b3ac38465133ffb63b75273a8db5"
"""The first 128 bits of the test vector."""


def by_length(some: set[Beginning]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for length, digest in some:
        found.setdefault(length, set()).add(digest)
    return found


def of_now(content: bytes) -> str:
    digest = ContentDigest()
    list(digest.passing([content]))
    return digest.of_whole(len(content))


def test_a_digest_is_of_all_pieces() -> None:
    digest = ContentDigest()
    list(digest.passing([b"a", b"bc"]))
    assert digest.of_whole(3) == of_now(b"abc") == BLAKE3_OF_ABC


@given(st.lists(st.binary(max_size=9), max_size=6), st.sets(st.integers(1, 60), max_size=5))
def test_each_beginning(pieces: list[bytes], asked: set[int]) -> None:
    """A file has those with the digest of as many bytes; it has none that is longer, or of other bytes."""
    content = b"".join(pieces)

    def beginnings_of(text: bytes) -> set[Beginning]:
        return {(length, of_now(text[:length])) for length in asked}

    own = {each for each in beginnings_of(content) if each[0] <= len(content)}
    longer = {each for each in beginnings_of(content + bytes(60)) if each[0] > len(content)}
    others = beginnings_of(bytes([1]) + content)
    found = beginnings(pieces, by_length(own | longer | others))
    assert found - others == own - others
    assert not found & longer


def test_threads_that_do_the_work_make_the_same_digest() -> None:
    """Of all pieces in their order, also where an earlier reading of the file was given up."""
    pieces = [bytes([number]) * 3_000 for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        digest = ContentDigest(pool)
        next(digest.passing([b"given up" * 400_000, b"never read"]))
        assert digest.of_whole(120_000) == ""
        assert list(digest.passing(pieces)) == pieces
        assert digest.of_whole(120_000) == of_now(b"".join(pieces))


def test_no_more_is_read_than_needed() -> None:
    """Of a large file, only the pieces up to the longest beginning."""

    def pieces() -> Iterator[bytes]:
        yield b"abcd"
        raise AssertionError

    assert beginnings(pieces(), {3: {of_now(b"abc")}}) == {(3, of_now(b"abc"))}
    assert beginnings(pieces(), {}) == set()


@pytest.mark.parametrize("rounds", [1, 2])
@given(st.binary(max_size=9), st.lists(st.binary(max_size=9), max_size=3))
def test_the_first_piece_counts_once(rounds: int, first: bytes, others: list[bytes]) -> None:
    """It may be added before the pieces pass, and a second reading begins from nothing."""
    digest = ContentDigest()
    digest.begin(first)
    pieces = [first, *others] if first else []
    for _ in range(rounds):
        assert list(digest.passing(pieces)) == pieces
    content = b"".join(pieces)
    assert digest.of_whole(len(content)) == of_now(content)
    assert digest.of_whole(len(content) + 1) == ""


def test_no_digest_of_a_file_that_was_not_read_to_its_end() -> None:
    """What was added at once is not all of it."""
    digest = ContentDigest()
    digest.begin(b"abc")
    assert digest.of_whole(6) == ""
    assert next(iter(digest.passing([b"abc", b"def"]))) == b"abc"
    assert digest.of_whole(6) == ""
