"""Adds the field ids that Spark does not write, those of the rescued data's keys and values, to a Parquet file.

Readers that know columns by their ids take a map without them for null. The ids are in the footer alone, so the file is
copied with another footer, which has a few bytes more. All offsets in a footer are from the beginning of the file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.schema.field_ids import RESCUED_KEY_ID, RESCUED_VALUE_ID
from compactor.schema.schema import RESCUED_COLUMN

COPY_BYTES = 8 * 1024 * 1024
"""Bytes of a file that are read and written at once."""

_MAGIC = b"PAR1"
_TAIL_BYTES = 8  # the length of the footer, and the magic
_ENTRIES = ("key_value", "key", "value")  # what is below a map, by Parquet's specification

# Thrift's compact protocol: the types of fields and elements.
_I32, _DOUBLE, _BINARY, _STRUCT = 5, 7, 8, 12
_ONE_BYTE, _VARINTS, _LISTS, _MAP = (3,), (4, 5, 6), (9, 10), 11
_SEVEN_BITS = 0x7F  # those of a byte of a number; the eighth says that another byte follows
_LONG_LIST = 15  # a list of so many elements or more has its length behind the header

_SCHEMA, _NAME, _CHILDREN, _FIELD_ID = 2, 4, 5, 9  # fields of FileMetaData and of SchemaElement


@dataclass(frozen=True, slots=True)
class NestedIdsTask:
    """A staged file of Spark, and the folder for the copy; ends with `/`."""

    uri: str
    folder: str


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a struct: its number and type, and where its value is."""

    number: int
    kind: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Element:
    """A column, or a group of columns, in the list of them all; groups precede what they hold."""

    start: int
    end: int
    fields: Sequence[_Field]
    name: bytes
    children: int
    has_id: bool


def copy_with_nested_ids(store: ObjectStore, task: NestedIdsTask) -> str:
    """Copy a staged file, with ids for the keys and values of its rescued data.

    Returns:
        The URI of the copy, which no other run of the task writes; the file's own if it lacks nothing.

    Raises:
        StagingError: It is not a whole Parquet file.
    """
    info = store.stat(task.uri)
    size_bytes = info.size_bytes if info is not None else 0
    tail = store.read_range(task.uri, max(0, size_bytes - _TAIL_BYTES), _TAIL_BYTES) if info is not None else b""
    start = size_bytes - _TAIL_BYTES - int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or start < len(_MAGIC):
        raise StagingError(f"{task.uri}: no footer; expected a whole Parquet file")
    footer = store.read_range(task.uri, start, size_bytes - _TAIL_BYTES - start)
    try:
        renewed = with_nested_ids(footer)
    except (LookupError, ValueError) as exc:
        raise StagingError(f"{task.uri}: its footer cannot be read; expected a whole Parquet file") from exc
    if renewed == footer:
        return task.uri
    copy = f"{task.folder}{task.uri.rpartition('/')[2].removesuffix('.parquet')}-{uuid4().hex[:8]}.parquet"
    with store.writer(copy) as writer:
        for at in range(0, start, COPY_BYTES):
            writer.write(store.read_range(task.uri, at, min(COPY_BYTES, start - at)))
        writer.write(renewed + len(renewed).to_bytes(4, "little") + _MAGIC)
    return copy


def with_nested_ids(footer: bytes) -> bytes:
    """A footer whose rescued data have ids for keys and values; the same one if they have, or if there are none."""
    elements = list(_elements(footer))
    # A key may be called as the column, but then it is no group, or not at the top.
    for at in _top_level(elements):
        entries = elements[at : at + 4]
        if entries[0].name == RESCUED_COLUMN.encode() and entries[0].children:
            names = tuple(each.name.decode() for each in entries[1:])
            if names != _ENTRIES:
                raise ValueError(f"the rescued data hold {names}")
            key, value = entries[2:]
            if key.has_id or value.has_id:
                return footer
            new = _with_id(footer, key, RESCUED_KEY_ID) + _with_id(footer, value, RESCUED_VALUE_ID)
            return footer[: key.start] + new + footer[value.end :]
    return footer


def _top_level(elements: Sequence[_Element]) -> Iterator[int]:
    """The indices of the columns, of which each is followed by what it holds."""
    at = 1
    while at < len(elements):
        yield at
        open_elements = 1
        while open_elements:
            open_elements += elements[at].children - 1
            at += 1


def _elements(footer: bytes) -> Iterator[_Element]:
    schema = next((field for field in _Reader(footer).fields() if field.number == _SCHEMA), None)
    if schema is None:
        raise ValueError("no schema")
    reader = _Reader(footer, schema.start)
    count, _ = reader.list_header()
    for _ in range(count):
        start = reader.at
        fields = list(reader.fields())
        by_number = {field.number: field for field in fields}
        name, children = by_number[_NAME], by_number.get(_CHILDREN)
        yield _Element(
            start,
            reader.at,
            fields,
            _Reader(footer, name.start).binary(),
            _zigzag(_Reader(footer, children.start).varint()) if children else 0,
            _FIELD_ID in by_number,
        )


def _with_id(footer: bytes, element: _Element, field_id: int) -> bytes:
    """The element with an id among its fields, whose headers say how far each is from the one before."""
    values = [(field.number, field.kind, footer[field.start : field.end]) for field in element.fields]
    values.append((_FIELD_ID, _I32, _varint(2 * field_id)))
    found, last = bytearray(), 0
    for number, kind, value in sorted(values):
        found += bytes([(number - last) << 4 | kind]) + value
        last = number
    return bytes(found) + b"\0"


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > _SEVEN_BITS:
        found.append(number & _SEVEN_BITS | 0x80)
        number >>= 7
    return bytes([*found, number])


def _zigzag(number: int) -> int:
    return number >> 1 ^ -(number & 1)


class _Reader:
    """Walks through Thrift's compact protocol from a place on."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def varint(self) -> int:
        found, shift = 0, 0
        while (byte := self.byte()) > _SEVEN_BITS:
            found |= (byte & _SEVEN_BITS) << shift
            shift += 7
        return found | byte << shift

    def binary(self) -> bytes:
        length = self.varint()
        self.at += length
        return self._data[self.at - length : self.at]

    def list_header(self) -> tuple[int, int]:
        """The number of elements of a list, and their type."""
        header = self.byte()
        count = header >> 4
        return (self.varint() if count == _LONG_LIST else count), header & 0xF

    def fields(self) -> Iterator[_Field]:
        """The fields of a struct, behind whose end the reader is then."""
        number = 0
        while header := self.byte():
            delta, kind = header >> 4, header & 0xF
            number = number + delta if delta else _zigzag(self.varint())
            start = self.at
            self._skip(kind)
            yield _Field(number, kind, start, self.at)

    def _skip(self, kind: int, *, in_list: bool = False) -> None:
        if kind in _ONE_BYTE or (in_list and kind in (1, 2)):
            self.at += 1
        elif kind in _VARINTS:
            self.varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            self.binary()
        elif kind in _LISTS:
            count, inner = self.list_header()
            for _ in range(count):
                self._skip(inner, in_list=True)
        elif kind == _STRUCT:
            for _ in self.fields():
                pass
        elif kind == _MAP:
            self._skip_map()

    def _skip_map(self) -> None:
        count = self.varint()
        kinds = self.byte() if count else 0
        for _ in range(count):
            self._skip(kinds >> 4, in_list=True)
            self._skip(kinds & 0xF, in_list=True)
