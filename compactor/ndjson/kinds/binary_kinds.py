"""Kinds of files that are not NDJSON. Recognises archives, UTF-16, schema registry values and other binary data."""

import re
from dataclasses import dataclass

from compactor.ndjson.codecs import sniff


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    Attributes:
        name: As in "looks like one JSON array".
        is_json: Whether `input.format = "json"` reads it.
    """

    name: str
    move: str
    is_json: bool = False

    @property
    def words(self) -> str:
        return f"looks like {self.name}; {self.move}"


# Recognises values written by schema registry serializers: a magic byte, a schema id, then the data.
#
# The formats are those documented by both registries: "Wire format" by Confluent, and the serializer header of the AWS
# Glue Schema Registry.


HEAD_BYTES = 18
"""How much of a value is needed."""

_CONFLUENT, _GLUE = 0, 3  # magic bytes
_GLUE_COMPRESSIONS = (0, 5)
_ID_BYTES = 4
_MOVE = "Avro, Protobuf and other registry data are not supported: expected JSON as plain text"


def registry_kind(value: bytes) -> Kind | None:
    """The kind of a value by its first bytes; None if no schema registry wrote it.

    A record is one line, in which carriage returns replace line feeds, so an id with either is not shown.
    """
    if len(value) < 1 + _ID_BYTES:
        return None
    schema = value[1 : 1 + _ID_BYTES]
    if value[0] == _CONFLUENT and any(schema):  # ids start at 1; a file of zeros has none
        named = "" if b"\r" in schema else f", schema {int.from_bytes(schema, 'big')}"
        return Kind(f"schema registry values (magic byte 0{named})", _MOVE)
    if len(value) >= HEAD_BYTES and value[0] == _GLUE and value[1] in _GLUE_COMPRESSIONS:
        return Kind("AWS Glue Schema Registry values (magic byte 3)", _MOVE)
    return None


_UNPACK = "unpack it"
_EXPECTED = "expected NDJSON"

ZIP = Kind("a zip archive", _UNPACK)
XLSX = Kind("an Excel workbook", "export its sheets as NDJSON")
TAR = Kind("a tar archive", _UNPACK)
UTF_16 = Kind("UTF-16 text", "convert it to UTF-8")
UTF_32 = Kind("UTF-32 text", "convert it to UTF-8")
BINARY = Kind("binary data", _EXPECTED)
ARROW_STREAM = Kind("an Arrow stream", _EXPECTED)

_ARROW_MESSAGE = b"\xff\xff\xff\xff"
_MAGIC = {
    b"PAR1": Kind("Parquet", _EXPECTED),
    b"PARE": Kind("encrypted Parquet", _EXPECTED),
    b"ORC": Kind("ORC", _EXPECTED),
    b"Obj\x01": Kind("Avro", _EXPECTED),
    b"ARROW1": Kind("Arrow", _EXPECTED),
    b"SQLite format 3\0": Kind("an SQLite database", _EXPECTED),
    b"%PDF-": Kind("a PDF document", _EXPECTED),
    b"7z\xbc\xaf\x27\x1c": Kind("a 7-Zip archive", _UNPACK),
    b"Rar!\x1a\x07": Kind("a RAR archive", _UNPACK),
    b"\x04\x22\x4d\x18": Kind("LZ4 data", "decompress it"),
}
_ZIP = re.compile(rb"PK(?:\x03\x04[\x0a-\x3f]|\x05\x06\x00\x00\x00\x00)")
_CONTROL = bytes({*range(0x20), 0x7F} - set(b"\t\n\r\x0c\x1b"))
_MIN_BINARY_BYTES = 64
_MIN_CONTROL_SHARE = 0.05  # of evenly distributed bytes, 11 % are control characters
_WIDE_SAMPLE = 512
_MIN_WIDE_BYTES = 16
_MIN_ZERO_SHARE = 0.9
_WIDE: dict[tuple[bool, ...], Kind] = {
    (False, True, False, True): UTF_16,
    (True, False, True, False): UTF_16,
    (False, True, True, True): UTF_32,
    (True, True, True, False): UTF_32,
}
_TAR_BLOCK = 512
_TAR_SUM = slice(148, 156)


def archive(head: bytes) -> Kind | None:
    """The kind of an archive, which may contain the lines of stored files verbatim."""
    if _ZIP.match(head):
        return XLSX if b"xl/" in head and b"[Content_Types].xml" in head else ZIP
    return TAR if _is_tar(head) else None


def _is_tar(head: bytes) -> bool:
    """Whether the first block has a valid header checksum; old archives have no magic bytes."""
    block = head[:_TAR_BLOCK]
    written = block[_TAR_SUM].strip(b" \0")
    if len(block) < _TAR_BLOCK or not block[0] or not re.fullmatch(rb"[0-7]+", written):
        return False
    return int(written, 8) == sum(block) - sum(block[_TAR_SUM]) + 8 * ord(" ")


def binary_kind(head: bytes) -> Kind | None:
    """The kind of bytes that contain no records and are not UTF-8 text; None if unknown."""
    if head.startswith(_ARROW_MESSAGE):  # its zero bytes look like UTF-16
        return ARROW_STREAM
    if found := _wide_text(head):
        return found
    control = len(head) - len(head.translate(None, _CONTROL))
    if control:
        for magic, kind in _MAGIC.items():
            if head.startswith(magic):
                return kind
    if (codec := sniff(head)) != "none":
        return Kind(f"{codec} data that was compressed twice", "decompress it once")
    is_binary = len(head) >= _MIN_BINARY_BYTES and control >= len(head) * _MIN_CONTROL_SHARE
    return BINARY if is_binary else None


def _wide_text(head: bytes) -> Kind | None:
    """UTF-16 or UTF-32 with a byte order mark, or with mostly ASCII characters."""
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return UTF_32
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return UTF_16
    sample = head[:_WIDE_SAMPLE]
    if len(sample) < _MIN_WIDE_BYTES:
        return None
    # Which of four bytes are zero in almost all characters.
    quarters = (sample[at::4] for at in range(4))
    return _WIDE.get(tuple(each.count(0) >= len(each) * _MIN_ZERO_SHARE for each in quarters))
