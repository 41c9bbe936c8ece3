"""Records in which producers packed several: taken apart, or known to be none."""

from hashlib import md5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.logs import aggregation
from compactor.core.logs.aggregation import MAGIC, UserRecord, user_records
from compactor.core.logs.ports import LAST_HASH
from tests.support.kpl import aggregated, sealed

packed_records = st.lists(st.tuples(st.text(min_size=1, max_size=256), st.binary(max_size=300)), max_size=12)


def hash_of(key: str) -> int:
    return int.from_bytes(md5(key.encode(), usedforsecurity=False).digest())


@given(packed_records, st.booleans())
def test_what_was_packed_comes_out(records: list[tuple[str, bytes]], tags: bool) -> None:
    """In order, with the hash of each partition key, whatever else is in the message."""
    found = user_records(aggregated(records, tags=tags))
    assert found == [UserRecord(data, hash_of(key)) for key, data in records]


@given(st.lists(st.integers(0, LAST_HASH), min_size=1, max_size=5))
def test_explicit_hashes(hashes: list[int]) -> None:
    """They count in place of that of the key."""
    found = user_records(aggregated([("key", b"x")] * len(hashes), hashes=hashes))
    assert found is not None
    assert [each.hash_key for each in found] == hashes


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """They are none, with the magic before them, and with a right checksum of nonsense: never an error."""
    assert user_records(data) is None or data.startswith(MAGIC)
    assert user_records(MAGIC + data) is None
    user_records(sealed(data))


@given(packed_records.filter(bool), st.data())
def test_a_damaged_record_is_none(records: list[tuple[str, bytes]], data: st.DataObject) -> None:
    """Cut off anywhere, or with another byte anywhere."""
    whole = aggregated(records)
    assert user_records(whole[: data.draw(st.integers(0, len(whole) - 1))]) is None
    at = data.draw(st.integers(0, len(whole) - 1))
    assert user_records(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]) is None


@pytest.mark.parametrize(
    "body",
    [
        b"\x1a\x02\x08\x00",  # a record without data, and no partition key
        b"\x0a\x01k\x1a\x02\x08\x00",  # without data
        b"\x0a\x01k\x1a\x02\x1a\x00",  # without an index
        b"\x0a\x01k\x1a\x04\x08\x01\x1a\x00",  # an index beyond the table
        b"\x0a\x01k\x1a\x06\x08\x00\x10\x00\x1a\x00",  # no table of hashes
        b"\x0a\x01k\x12\x01x\x1a\x06\x08\x00\x10\x00\x1a\x00",  # a hash that is no number
        b"\x18\x05",  # a number in place of a record
        b"\x0a\x01k\x1a\x04\x08\x00\x18\x01",  # a number in place of data
        b"\x0a\x01k\x1a\x05\x0a\x01x\x1a\x00",  # bytes in place of an index
        b"\x0a\x05k",  # a length beyond the end
        b"\x0b",  # a group, which no version of the message has
        b"\xff" * 11,  # a number without an end
    ],
)
def test_messages_of_another_kind(body: bytes) -> None:
    """Their checksum is right, and nothing of them is taken."""
    assert user_records(sealed(body)) is None


@pytest.mark.parametrize("digits", [40, 5_000])
def test_a_hash_that_is_too_long(digits: int) -> None:
    """No producer writes one, and Python refuses to read the longer one: its record is a line as it is."""
    length = bytes([digits & 0x7F | 0x80, digits >> 7])
    body = b"\x0a\x01k\x12" + length + b"9" * digits + b"\x1a\x06\x08\x00\x10\x00\x1a\x00"
    assert user_records(sealed(body)) is None


def test_many_records_with_one_long_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is hashed once, so that the work grows with the length of a record and not with its square."""
    hashed = list[int]()

    def counted(data: bytes) -> bytes:
        hashed.append(len(data))
        return md5(data, usedforsecurity=False).digest()

    monkeypatch.setattr(aggregation, "_md5", counted)
    data = aggregated([("k" * 50_000, b"x")] * 5_000)
    found = user_records(data)
    assert found is not None
    assert len({each.hash_key for each in found}) == 1
    assert sum(hashed) <= 2 * len(data)
