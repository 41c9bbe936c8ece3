"""Writes into the footer of a Parquet file what Spark does not: the ids of the rescued data's keys and values.

Readers that know columns by their ids take a map without ids for null. Ids are in the footer alone, so the file is
copied with another footer, which has a few bytes more.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.schema.field_ids import RESCUED_KEY_ID, RESCUED_VALUE_ID
from compactor.schema.schema import RESCUED_COLUMN

# Changes the list of columns in the footer of a Parquet file: what its writer cannot say of them.
#
# All offsets in a footer are from the beginning of the file, so that one may become longer. It is in Thrift's compact
# protocol: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md


MAGIC = b"PAR1"
TAIL_BYTES = 8
"""The end of a file: the length of the footer, and the magic."""

FIELD_ID = 9
"""The field of `SchemaElement` in Parquet's Thrift definition."""

I32, STRUCT = 5, 12
"""Types of fields in the protocol."""

_DOUBLE, _BINARY = 7, 8
_ONE_BYTE, _VARINTS, _LISTS, _MAP = (3,), (4, 5, 6), (9, 10), 11
_SEVEN_BITS = 0x7F  # those of a byte of a number; the eighth says that another byte follows
_LONG_LIST = 15  # a list of so many elements or more has its length behind the header
_SCHEMA, _NAME, _CHILDREN = 2, 4, 5  # fields of FileMetaData and of SchemaElement

New = tuple[int, int, bytes]
"""A further field: its number, its type and its value."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct: its number and type, and where its value is."""

    number: int
    kind: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Element:
    """A column, or a group of columns, in the list of them all; groups precede what they hold.

    Attributes:
        start: Where it is in the footer.
        children: How many columns and groups it holds itself.
    """

    start: int
    end: int
    fields: Sequence[Field]
    name: str
    children: int

    def has(self, number: int) -> bool:
        """Whether it has a field of this number."""
        return any(field.number == number for field in self.fields)


Change = Callable[[Sequence[Element]], Mapping[int, New]]
"""Gets a column at the top, followed by what it holds; returns the further fields of some of these, by their index."""


def changed(footer: bytes, change: Change) -> bytes:
    """A footer with further fields of its columns; the same one if there are none.

    Raises:
        LookupError, ValueError: It cannot be read.
    """
    found, last = bytearray(), 0
    for column in _columns(list(_elements(footer))):
        for at, new in sorted(change(column).items()):
            element = column[at]
            found += footer[last : element.start] + _with(footer, element, new)
            last = element.end
    return bytes(found) + footer[last:]


def varint(number: int) -> bytes:
    """A number without a sign."""
    found = bytearray()
    while number > _SEVEN_BITS:
        found.append(number & _SEVEN_BITS | 0x80)
        number >>= 7
    return bytes([*found, number])


def new_field_id(number: int) -> New:
    """The field that gives a column its id."""
    return FIELD_ID, I32, varint(2 * number)


def _columns(elements: Sequence[Element]) -> Iterator[Sequence[Element]]:
    """The columns at the top, each with what it holds."""
    at = 1
    while at < len(elements):
        start, open_elements = at, 1
        while open_elements:
            open_elements += elements[at].children - 1
            at += 1
        yield elements[start:at]


def _elements(footer: bytes) -> Iterator[Element]:
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
        yield Element(
            start,
            reader.at,
            fields,
            _Reader(footer, name.start).binary().decode(),
            _zigzag(_Reader(footer, children.start).varint()) if children else 0,
        )


def _with(footer: bytes, element: Element, new: New) -> bytes:
    """The element with another field, whose headers say how far each is from the one before."""
    values = [(field.number, field.kind, footer[field.start : field.end]) for field in element.fields]
    found, last = bytearray(), 0
    for number, kind, value in sorted([*values, new]):
        found += bytes([(number - last) << 4 | kind]) + value
        last = number
    return bytes(found) + b"\0"


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

    def fields(self) -> Iterator[Field]:
        """The fields of a struct, behind whose end the reader is then."""
        number = 0
        while header := self.byte():
            delta, kind = header >> 4, header & 0xF
            number = number + delta if delta else _zigzag(self.varint())
            start = self.at
            self._skip(kind)
            yield Field(number, kind, start, self.at)

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
        elif kind == STRUCT:
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


COPY_BYTES = 8 * 1024 * 1024
"""Bytes of a file that are read and written at once."""

_ENTRIES = ("key_value", "key", "value")  # what is below a map, by Parquet's specification


@dataclass(frozen=True, slots=True)
class WholeFooterTask:
    """A staged file of Spark.

    Attributes:
        folder: For the copy; ends with `/`.
    """

    uri: str
    folder: str


def copy_with_whole_footer(store: ObjectStore, task: WholeFooterTask) -> str:
    """Copy a staged file, with all that Spark did not write.

    Returns:
        The URI of the copy, which no other run of the task writes; the file's own if it lacks nothing.

    Raises:
        StagingError: It is not a whole Parquet file.
    """
    info = store.stat(task.uri)
    size_bytes = info.size_bytes if info is not None else 0
    tail = store.read_range(task.uri, max(0, size_bytes - TAIL_BYTES), TAIL_BYTES) if info is not None else b""
    start = size_bytes - TAIL_BYTES - int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or start < len(MAGIC):
        raise StagingError(f"{task.uri}: no footer; expected a whole Parquet file")
    footer = store.read_range(task.uri, start, size_bytes - TAIL_BYTES - start)
    try:
        renewed = changed(footer, _with_ids)
    except (LookupError, ValueError) as exc:
        raise StagingError(f"{task.uri}: its footer cannot be read; expected a whole Parquet file") from exc
    if renewed == footer:
        return task.uri
    copy = f"{task.folder}{task.uri.rpartition('/')[2].removesuffix('.parquet')}-{uuid4().hex[:8]}.parquet"
    with store.writer(copy) as writer:
        for at in range(0, start, COPY_BYTES):
            writer.write(store.read_range(task.uri, at, min(COPY_BYTES, start - at)))
        writer.write(renewed + len(renewed).to_bytes(4, "little") + MAGIC)
    return copy


def _with_ids(column: Sequence[Element]) -> Mapping[int, New]:
    """The ids that the rescued data lack. A key may be called as the column, but then it is no group."""
    if column[0].name != RESCUED_COLUMN or not column[0].children:
        return {}
    names = tuple(each.name for each in column[1:])
    if names != _ENTRIES:
        raise ValueError(f"the rescued data hold {names}")
    if any(each.has(FIELD_ID) for each in column[2:]):
        return {}
    return {2: new_field_id(RESCUED_KEY_ID), 3: new_field_id(RESCUED_VALUE_ID)}
