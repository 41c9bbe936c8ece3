"""Adds to Parquet footers what Spark omits: the ids of the rescued data's keys and values.

Readers that find columns by id treat a map without ids as null. Ids are only in the footer, so the file is copied with
a new footer that is a few bytes longer. Footer offsets count from the start of the file, so they stay valid.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.schema.field_ids import RESCUED_KEY_ID, RESCUED_VALUE_ID
from compactor.schema.schema import RESCUED_COLUMN

COPY_BYTES = 8 * 1024 * 1024
"""Bytes per read and write."""

_MAGIC = b"PAR1"
_TAIL_BYTES = 8  # the end of a file: the length of the footer, and the magic
_ENTRIES = ["key_value", "key", "value"]  # the children of a map, by Parquet's specification
_SCHEMA = 2  # of `FileMetaData` in Parquet's Thrift definition
_NAME, _CHILDREN, _FIELD_ID = 4, 5, 9  # of `SchemaElement`
_I32 = 5  # a type of Thrift's compact protocol


@dataclass(frozen=True, slots=True)
class WholeFooterTask:
    """A staged file of Spark.

    Attributes:
        folder: For the copy; ends with `/`.
    """

    uri: str
    folder: str


def copy_with_whole_footer(store: ObjectStore, task: WholeFooterTask) -> str:
    """Copy a staged file, adding what Spark omitted.

    Returns:
        The URI of the copy, which no other run of the task writes; the file's own URI if nothing is missing.

    Raises:
        StagingError: It is not a complete Parquet file.
    """
    info = store.stat(task.uri)
    size_bytes = info.size_bytes if info is not None else 0
    tail = store.read_range(task.uri, max(0, size_bytes - _TAIL_BYTES), _TAIL_BYTES) if info is not None else b""
    start = size_bytes - _TAIL_BYTES - int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or start < len(_MAGIC):
        raise StagingError(f"{task.uri}: no footer; expected a complete Parquet file")
    footer = store.read_range(task.uri, start, size_bytes - _TAIL_BYTES - start)
    try:
        renewed = _with_ids(footer)
    except (LookupError, ValueError) as exc:
        raise StagingError(f"{task.uri}: unreadable footer; expected a complete Parquet file") from exc
    if renewed == footer:
        return task.uri
    copy = f"{task.folder}{task.uri.rpartition('/')[2].removesuffix('.parquet')}-{uuid4().hex[:8]}.parquet"
    with store.writer(copy) as writer:
        for at in range(0, start, COPY_BYTES):
            writer.write(store.read_range(task.uri, at, min(COPY_BYTES, start - at)))
        writer.write(renewed + len(renewed).to_bytes(4, "little") + _MAGIC)
    return copy


@dataclass(frozen=True, slots=True)
class _Field:
    number: int
    kind: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Element:
    """A column, or a group of columns, in the schema list. A group precedes its children."""

    start: int
    end: int
    fields: list[_Field]
    name: str
    children: int

    @property
    def has_id(self) -> bool:
        return any(field.number == _FIELD_ID for field in self.fields)


def _with_ids(footer: bytes) -> bytes:
    """Add the missing ids of the rescued data. A key may have that column's name, but then it is not a group."""
    elements = list(_elements(footer))
    at = 1
    while at < len(elements) and not (elements[at].name == RESCUED_COLUMN and elements[at].children):
        at = _behind(elements, at)
    entries = elements[at + 1 : _behind(elements, at)] if at < len(elements) else []
    if not entries or (entries[1:] and any(each.has_id for each in entries[1:])):
        return footer
    if [each.name for each in entries] != _ENTRIES:
        raise ValueError(f"the rescued data hold {[each.name for each in entries]}")
    key, value = entries[1:]
    return (
        footer[: key.start]
        + _with_id(footer, key, RESCUED_KEY_ID)
        + footer[key.end : value.start]
        + _with_id(footer, value, RESCUED_VALUE_ID)
        + footer[value.end :]
    )


def _behind(elements: list[_Element], at: int) -> int:
    """The index of the next column outside this one."""
    is_open = 1
    while is_open:
        is_open += elements[at].children - 1
        at += 1
    return at


def _with_id(footer: bytes, element: _Element, number: int) -> bytes:
    """The element with one more field. Each field's header has its distance from the previous one."""
    values = [(field.number, field.kind, footer[field.start : field.end]) for field in element.fields]
    found, last = bytearray(), 0
    for field, kind, value in sorted([*values, (_FIELD_ID, _I32, _varint(2 * number))]):
        found += bytes([(field - last) << 4 | kind]) + value
        last = field
    return bytes(found) + b"\0"


def _elements(footer: bytes) -> Iterator[_Element]:
    schema = next((field for field in _Reader(footer).fields() if field.number == _SCHEMA), None)
    if schema is None:
        raise ValueError("no schema")
    reader = _Reader(footer, schema.start)
    count, _ = reader.list_header()
    for _ in range(count):
        start, fields = reader.at, list(reader.fields())
        places = {field.number: field.start for field in fields}
        children = _zigzag(_Reader(footer, places[_CHILDREN]).varint()) if _CHILDREN in places else 0
        name = _Reader(footer, places[_NAME]).binary().decode()
        yield _Element(start, reader.at, fields, name, children)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte; the eighth says that another one follows
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _zigzag(number: int) -> int:
    return number >> 1 ^ -(number & 1)


class _Reader:
    """Walks through Thrift's compact protocol: https://github.com/apache/thrift/blob/master/doc/specs."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def varint(self) -> int:
        found, shift = 0, 0
        while (byte := self._byte()) > 0x7F:  # noqa: PLR2004 - as above
            found |= (byte & 0x7F) << shift
            shift += 7
        return found | byte << shift

    def binary(self) -> bytes:
        length = self.varint()
        self.at += length
        return self._data[self.at - length : self.at]

    def list_header(self) -> tuple[int, int]:
        """The number and type of a list's elements."""
        header = self._byte()
        count = header >> 4
        return (self.varint() if count == 0xF else count), header & 0xF  # noqa: PLR2004 - a long list

    def fields(self) -> Iterator[_Field]:
        """Yield the fields of a struct; afterwards the reader is at its end."""
        number = 0
        while header := self._byte():
            delta, kind = header >> 4, header & 0xF
            number = number + delta if delta else _zigzag(self.varint())
            start = self.at
            self._skip(kind)
            yield _Field(number, kind, start, self.at)

    def _skip(self, kind: int, *, in_list: bool = False) -> None:
        """Skip a value of one of the types used in footers."""
        match kind:
            case 1 | 2:  # a boolean, stored in the field header
                self.at += in_list
            case 3:  # a byte
                self.at += 1
            case 4 | 5 | 6:  # integers
                self.varint()
            case 8:
                self.binary()
            case 9:  # a list
                count, inner = self.list_header()
                for _ in range(count):
                    self._skip(inner, in_list=True)
            case 12:  # a struct
                deque(self.fields(), maxlen=0)
            case _:
                raise ValueError(f"a value of type {kind}")
