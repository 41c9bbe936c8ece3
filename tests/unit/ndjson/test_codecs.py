import bz2
import gzip
import itertools
import lzma
import os
import string
import tracemalloc
import zlib

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.errors import FileError
from compactor.ndjson.codecs import MAX_PIECE_BYTES, decode, sniff


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress(data)) or SNAPPY_START  # cramjam writes nothing for empty data


SNAPPY_START = b"\xff\x06\x00\x00sNaPpY"
ENCODERS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
    "zlib": zlib.compress,
    "snappy": snappy,
}
LINES = b"".join(b'{"id":%d,"name":"n%d"}\n' % (i, i * 7919) for i in range(40))
ZSTD_SKIPPABLE = b"\x53\x2a\x4d\x18\x05\x00\x00\x00hello"
SNAPPY_SKIPPABLE = b"\x99\x05\x00\x00hello"
SNAPPY_PADDING = b"\xfe\x03\x00\x00\x00\x00\x00"


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def decoded(codec: str, data: bytes, size: int = 1 << 16) -> bytes:
    return b"".join(decode(codec, cut(data, size)))


@pytest.mark.parametrize("codec", ENCODERS)
@pytest.mark.parametrize("data", [b"", b"{}", LINES, LINES * 1000], ids=["empty", "tiny", "lines", "large"])
def test_a_codec_is_told_by_content_and_decoded(codec, data):
    """What an ordinary encoder writes is recognised and comes back byte for byte."""
    encoded = ENCODERS[codec](data)
    assert sniff(encoded) == codec
    assert decoded(codec, encoded) == data


@given(
    codec=st.sampled_from(sorted(ENCODERS)),
    members=st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    size=st.integers(1, 400),
)
def test_several_members_cut_anywhere_are_one_file(codec, members, size):
    """Members in a row, empty ones among them, decode to all their data, however the bytes arrive."""
    encoded = b"".join(map(ENCODERS[codec], members))
    assert decoded(codec, encoded, size) == b"".join(members)


@pytest.mark.parametrize("codec", ENCODERS)
def test_truncation_at_any_byte_is_noticed(codec):
    """A file that was cut is unreadable, unless the cut is between two members."""
    first, second = ENCODERS[codec](LINES[:400]), ENCODERS[codec](b'{"last":1}\n')
    whole = first + second
    ends = {0: b"", len(first): LINES[:400], len(whole): LINES[:400] + b'{"last":1}\n'}
    if codec == "snappy":  # a snappy stream has no end marker: the identifier alone is a complete, empty stream
        ends |= {10: b"", len(first) + 10: LINES[:400]}
    for at in range(len(whole) + 1):
        if at in ends:
            assert decoded(codec, whole[:at]) == ends[at]
        else:
            with pytest.raises(FileError) as caught:
                decoded(codec, whole[:at])
            assert caught.value.status == "unreadable"


@pytest.mark.parametrize("codec", ENCODERS)
@pytest.mark.parametrize("garbage", [b"x", b"\1", b"{}\n", b"\0" * 512 + b"x", b"trailing garbage, and more of it"])
def test_trailing_garbage_is_noticed(codec, garbage):
    """Bytes after the last member that are not a member make the file unreadable."""
    with pytest.raises(FileError, match=rf"^{codec} data at about byte \d+: "):
        decoded(codec, ENCODERS[codec](LINES) + garbage)


@pytest.mark.parametrize("codec", ENCODERS)
def test_no_flipped_bit_changes_the_data_unnoticed(codec):
    """Checksums are checked: damage is an error, or it hit a byte that carries no data."""
    encoded = ENCODERS[codec](LINES[:300])
    for at, bit in itertools.product(range(len(encoded)), range(8)):
        damaged = bytearray(encoded)
        damaged[at] ^= 1 << bit
        try:
            found = decoded(codec, bytes(damaged))
        except FileError:
            continue
        assert found == LINES[:300] or (codec == "snappy" and not found), (at, bit)


@pytest.mark.parametrize("codec", ENCODERS)
def test_a_bomb_is_decoded_in_bounded_pieces(codec):
    """Data that unpacks to hundreds of times its size comes in pieces of bounded size, never as a whole."""
    size = 16 * 1024 * 1024
    bomb = ENCODERS[codec](bytes(size))
    tracemalloc.start()
    try:
        total = 0
        for piece in decode(codec, [bomb]):
            assert len(piece) <= MAX_PIECE_BYTES
            total += len(piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == size
    assert peak < 6 * MAX_PIECE_BYTES


def test_plain_bytes_come_in_bounded_pieces():
    """A large chunk is cut also where nothing is decoded."""
    assert max(map(len, decode("none", [bytes(3 * MAX_PIECE_BYTES + 1)]))) == MAX_PIECE_BYTES


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        (b"", "none"),
        (b'{"a":1}\n', "none"),
        (b"x^ is not zlib\n", "none"),
        (b"x^", "none"),
        (b"x^c\n", "none"),
        (b"x^cdefghijklmnopqrstuvwxyz\n" * 9, "none"),
        (b"x\x9c", "none"),
        (b"x\x9c\xff\xff\xff", "none"),
        (b"x\xbb\x00\x00\x00\x00\x00\x00", "none"),
        (b"BZh9 is how bzip2 begins", "none"),
        (b"BZh01AY&SY", "none"),
        (b"BZ", "none"),
        (b"\x1f", "none"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x1f\x8b\x07", "none"),
        (b"PK\x03\x04", "none"),
        (b"PAR1", "none"),
        (ZSTD_SKIPPABLE + zstd(LINES), "zstd"),
        (b"\xef\xbb\xbf{}", "none"),
        (zlib.compress(LINES, 1), "zlib"),
        (zlib.compress(LINES, 9), "zlib"),
        (zlib.compress(LINES, 9)[:40], "zlib"),
        (zlib.compress(b"{}\n", 3), "zlib"),
    ],
)
def test_magic_bytes_decide(head, codec):
    """Only the real beginning of an encoded file counts as one; text that resembles it does not."""
    assert sniff(head) == codec


def test_a_corrupt_zlib_file_is_unreadable_and_no_text():
    """Wherever the fault is behind its header; also in a file that is shorter than what is sniffed."""
    encoded = zlib.compress(LINES, 9)
    for at in range(3, len(encoded)):
        corrupt = encoded[:at] + bytes([encoded[at] ^ 0xFF]) + encoded[at + 1 :]
        assert sniff(corrupt) == "zlib", at
        with pytest.raises(FileError, match="zlib"):
            b"".join(decode("zlib", [corrupt]))
    small = zlib.compress(b'{"id":1}\n')
    assert sniff(small[:-1] + bytes([small[-1] ^ 1])) == "zlib"


@given(st.text())
def test_text_is_never_taken_for_encoded(text):
    """No valid UTF-8 text of printable characters has a codec."""
    printable = "".join(character for character in text if character.isprintable() or character in "\n\t")
    assert sniff(printable.encode()) == "none"


def starts_zlib(header: str) -> bool:
    try:
        zlib.decompressobj().decompress(header.encode())
    except zlib.error:
        return False
    return True


ZLIB_HEADERS = [*filter(starts_zlib, map("".join, itertools.product("(8HXhx", "\t\n" + string.printable[:95])))]
TEXTS = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]))


@given(st.sampled_from(ZLIB_HEADERS), TEXTS | TEXTS.map("c".__add__))  # zlib inflates what a "c" begins
def test_text_with_a_zlib_header_is_text(header, text):
    """Two characters that happen to be a zlib header are not enough, even if what follows inflates."""
    assert sniff((header + text).encode()) == "none"


@pytest.mark.parametrize(
    ("codec", "encoded", "expected"),
    [
        ("zstd", ZSTD_SKIPPABLE + zstd(LINES), LINES),
        ("zstd", zstd(LINES) + ZSTD_SKIPPABLE, LINES),
        ("zstd", zstd(LINES) + ZSTD_SKIPPABLE + zstd(b"x"), LINES + b"x"),
        ("xz", lzma.compress(LINES) + bytes(4), LINES),
        ("xz", lzma.compress(LINES) + bytes(8) + lzma.compress(b"x") + bytes(4), LINES + b"x"),
        ("gzip", gzip.compress(LINES) + bytes(1), LINES),
        ("gzip", gzip.compress(LINES) + bytes(511) + gzip.compress(b"x") + bytes(512), LINES + b"x"),
        ("snappy", snappy(LINES) + SNAPPY_SKIPPABLE, LINES),
        ("snappy", SNAPPY_START + SNAPPY_SKIPPABLE + snappy(LINES)[10:] + SNAPPY_PADDING, LINES),
        ("snappy", snappy(LINES) + snappy(LINES), LINES * 2),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_frames_without_data_are_skipped(codec, encoded, expected, size):
    """Skippable frames and chunks, padding and repeated identifiers are legal and carry nothing."""
    assert decoded(codec, encoded, size) == expected


@pytest.mark.parametrize(
    ("codec", "encoded", "message"),
    [
        ("bzip2", bz2.compress(LINES) + bytes(1), "other data follows its end; expected nothing, or another member"),
        ("gzip", gzip.compress(LINES) + b"other" * 9, "other data follows its end"),
        ("xz", lzma.compress(LINES) + b"other" * 9, "other data follows its end"),
        ("gzip", gzip.compress(LINES) + gzip.compress(LINES)[:-8] + bytes(8), "incorrect data check"),
        ("xz", lzma.compress(LINES) + bytes(3), "3 zero bytes after a stream, expected a multiple of 4"),
        ("xz", lzma.compress(LINES) + bytes(5) + lzma.compress(LINES), "5 zero bytes"),
        ("zstd", zstd(LINES) + ZSTD_SKIPPABLE[:-1], "runcated"),
        ("snappy", snappy(LINES) + b"\x02\x01\x00\x00x", "unknown type 0x02"),
        ("snappy", snappy(LINES) + b"\x7f\x01\x00\x00x", "unknown type 0x7f"),
        ("snappy", snappy(LINES) + SNAPPY_SKIPPABLE[:-1], "truncated"),
        ("snappy", snappy(LINES)[10:], "expected the stream identifier"),
        ("snappy", b"\xff\x06\x00\x00sNaPpX", "does not read sNaPpY"),
        ("snappy", SNAPPY_START + b"\x01\xff\xff\xff", "expected at most 64 KiB"),
        ("snappy", SNAPPY_START + b"\x00\x0a\x00\x00\0\0\0\0\xff\xff\xff\xff\x0f\0", "snappy"),
        ("gzip", gzip.compress(LINES)[:-8] + bytes(8), "incorrect data check"),
    ],
)
def test_damage_is_named(codec, encoded, message):
    """The message says what is wrong and where."""
    with pytest.raises(FileError, match=message):
        decoded(codec, encoded)


@pytest.mark.parametrize("codec", ["none", *ENCODERS])
def test_errors_of_the_source_pass_through(codec):
    """An error of the store is not taken for one of the data, not even one of the operating system."""

    def broken():
        encoded = ENCODERS.get(codec, bytes)(os.urandom(300_000))
        yield encoded[: len(encoded) // 2]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(decode(codec, broken()))


@pytest.mark.parametrize("size", [1, 3, 7, 1 << 16])
def test_runs_of_short_skippable_chunks(size):
    """Chunks to skip carry nothing, however many follow each other, whatever their length, wherever they are cut."""
    run = b"".join(bytes([0x80 + at]) + bytes([at, 0, 0]) + b"\xfe" * at for at in range(40)) * 3
    frames = snappy(LINES).removeprefix(SNAPPY_START)
    assert decoded("snappy", SNAPPY_START + run + frames + run, size) == LINES
    with pytest.raises(FileError, match="truncated"):
        decoded("snappy", SNAPPY_START + frames + run[:-1], size)
