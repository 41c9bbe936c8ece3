"""The binary form of variants: bytes by Parquet's specification, which Spark reads, too."""

import json
import random
import struct
from contextlib import suppress
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.variant_utils import VariantUtils

from compactor.schema.variants.binary_form import decode, encode
from compactor.schema.variants.json_values import canonical, parse
from tests.unit.schema.variants.test_json_values import VALUES

EMPTY = b"\x11\x00\x00"
"""The metadata of a value without keys."""


@pytest.mark.parametrize(
    ("text", "metadata", "value"),
    [
        ("[]", EMPTY, b"\x03\x00\x00"),
        ("{}", EMPTY, b"\x02\x00\x00"),
        ("[null,true,false]", EMPTY, b"\x03\x03\x00\x01\x02\x03\x00\x04\x08"),
        ('{"b":1,"a":"x"}', b"\x11\x02\x00\x01\x02ab", b"\x02\x02\x00\x01\x02\x00\x04\x0c\x01\x05x"),
        (
            "[-1,300,70000,5000000000]",
            EMPTY,
            b"\x03\x04\x00\x02\x05\x0a\x13\x0c\xff\x10\x2c\x01\x14\x70\x11\x01\x00\x18" + struct.pack("<q", 5 * 10**9),
        ),
        ("[1.10]", EMPTY, b"\x03\x01\x00\x06\x20\x02\x6e\x00\x00\x00"),
        ("[1e2]", EMPTY, b"\x03\x01\x00\x09\x1c" + struct.pack("<d", 100.0)),
    ],
)
def test_bytes(text: str, metadata: bytes, value: bytes) -> None:
    """The keys are sorted, the values of an object are not, and nothing takes more bytes than it needs."""
    found = encode(parse(text))
    assert found[0] == metadata
    assert found[1] == value
    assert canonical(decode(*found)) == canonical(parse(text))


@pytest.mark.parametrize("count", [0, 1, 255, 256, 70_000])
@pytest.mark.parametrize("length", [0, 63, 64, 300])
def test_sizes(count: int, length: int) -> None:
    """Of offsets and ids, one byte up to three; of the number of elements, one or four."""
    if count * length > 1_000_000:
        length = 1
    array = json.dumps(["x" * length] * count)
    assert canonical(decode(*encode(parse(array)))) == canonical(parse(array))
    named = json.dumps({f"{number:x}" + "k" * length: number for number in range(min(count, 3000))})
    assert canonical(decode(*encode(parse(named)))) == canonical(parse(named))


@given(st.lists(VALUES, max_size=4) | st.dictionaries(st.text(), VALUES, max_size=4))
@example({"": {"": []}})
def test_all_is_read_back(value: object) -> None:
    """By this module, and by Spark."""
    try:
        text = json.dumps(value)
        node = parse(text)
    except ValueError:  # half a surrogate pair, or a number without a variant
        return
    metadata, encoded = encode(node)
    assert canonical(decode(metadata, encoded)) == canonical(node)
    assert json.loads(VariantUtils.to_json(encoded, metadata), parse_int=float) == json.loads(text, parse_int=float)


def test_other_contexts_of_decimals() -> None:
    """What a caller has set for its own decimals changes nothing."""
    node = parse("[12345678901234567890.123456789]")
    with localcontext(prec=3):
        assert decode(*encode(node)) == [Decimal("12345678901234567890.123456789")]


def test_broken_bytes() -> None:
    """Any bytes are a value or a ValueError."""
    metadata, value = encode(parse('{"a":[1,{"b":"text"},2.5,1e9,null],"c":{}}'))
    chance = random.Random(1)
    for _ in range(5_000):
        halves = [bytearray(metadata), bytearray(value)]
        for half in halves:
            for _ in range(chance.randrange(3)):
                half[chance.randrange(len(half))] = chance.randrange(256)
        with suppress(ValueError):
            decode(bytes(halves[0]), bytes(halves[1]))


@pytest.mark.parametrize(
    ("metadata", "value", "said"),
    [
        (b"", b"\x00", "not the binary form"),
        (EMPTY, b"", "not the binary form"),
        (b"\x12\x00\x00", b"\x00", "version 2"),
        (EMPTY, b"\x2c\x00\x00\x00\x00", "type 11"),
        (EMPTY, b"\x13\xff\xff\xff\xff", "not the binary form"),
        (EMPTY, b"\x02\x01\x05\x00\x01\x00", "not the binary form"),
    ],
)
def test_what_is_no_variant(metadata: bytes, value: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        decode(metadata, value)
