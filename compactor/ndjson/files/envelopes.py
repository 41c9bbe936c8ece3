"""Finds files whose rows are envelopes: JSON objects that hold the actual records in an array."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import nlargest

import orjson

from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import AccessError, FileError, LinkRefused, ObjectChanged, ObjectNotFound
from compactor.core.inputs.record_place import KNOWN_PLACES, path_of_array
from compactor.core.map_ordered import map_ordered
from compactor.core.text.formatting import count
from compactor.ndjson.codecs import decode
from compactor.ndjson.files.object_reading import InputStore, range_bytes
from compactor.ndjson.line_splitting import BOM
from compactor.ndjson.rawjson import texts

MAX_FILES_READ = 20
"""How many files of a call are checked: those with the longest rows."""

FIRST_READ_BYTES = 64 * 1024
"""The first read of a file."""

MAX_HEAD_BYTES = 16 * 1024 * 1024
"""How much of a file is decoded: the default limit of a line."""

MIN_ELEMENTS = 10
"""The fewest objects in an array under any other key."""

MIN_SHARE = 0.9
"""The smallest share of an envelope's text in such an array."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A file with envelopes.

    Attributes:
        key: The key of the array.
        elements: The number of objects in the first envelope's array.
        rows: The file's number of rows.
    """

    uri: str
    key: str
    elements: int
    rows: int

    @property
    def path(self) -> str:
        """The path to its records, for `--records`."""
        return path_of_array(self.key)

    @property
    def words(self) -> str:
        first = f" of the first of {self.rows:,} rows" if self.rows > 1 else ""
        return f"looks like an envelope: {count(self.elements, 'element')} in `{self.key}`{first}"


def longest_rows(reports: Iterable[FileReport]) -> list[FileReport]:
    """The files with the longest rows on average, at most `MAX_FILES_READ`."""
    with_rows = (
        each for each in reports if each.status is FileStatus.COMPACTED and each.records and not each.record_path
    )
    return nlargest(MAX_FILES_READ, with_rows, key=lambda each: each.decoded_bytes / each.records)


def find_envelopes(store: InputStore, reports: Iterable[FileReport]) -> list[Envelope]:
    """Read the first record of each file, and return the files where it is an envelope.

    A file that no longer has the version of its report is skipped.

    Raises:
        StoreUnavailable: The store failed temporarily.
    """
    return [each for each in map_ordered(partial(_envelope, store), reports) if each is not None]


def recognise_envelope(record: bytes, *, is_only: bool) -> tuple[str, int] | None:
    """Return the key of the array and its number of elements; None if the record is not an envelope.

    Args:
        record: JSON.
        is_only: Whether its file has no other record. Otherwise only the keys of `KNOWN_PLACES` are recognised.
    """
    try:
        parsed = orjson.loads(record)
    except orjson.JSONDecodeError:
        return None
    arrays = {key: value for key, value in parsed.items() if _holds_objects(value)} if isinstance(parsed, dict) else {}
    for key, elements in arrays.items():
        if key in KNOWN_PLACES:
            return key, len(elements)
        if is_only and len(elements) >= MIN_ELEMENTS:
            text = texts(record)[key] or ""
            if len(text.encode()) >= MIN_SHARE * len(record.strip()):
                return key, len(elements)
    return None


def _holds_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _envelope(store: InputStore, report: FileReport) -> Envelope | None:
    try:
        head = _head(store, report)
    except (AccessError, FileError, LinkRefused, ObjectChanged, ObjectNotFound):
        return None
    # JSON documents may contain line feeds; of several documents, the first that fits on one line is recognised.
    documents = (head, head.partition(b"\n")[0]) if report.format == "json" else (head.partition(b"\n")[0],)
    found = next(filter(None, (recognise_envelope(each, is_only=report.records == 1) for each in documents)), None)
    return found and Envelope(report.uri, *found, rows=report.records)


def _head(store: InputStore, report: FileReport) -> bytes:
    """The first decoded bytes: all that may be read of a JSON file, else up to the end of the first non-blank line."""
    head = bytearray()
    for piece in _without_blank_start(decode(report.codec, _stored(store, report))):
        head += piece
        if len(head) >= MAX_HEAD_BYTES or (report.format == "ndjson" and b"\n" in piece):
            break
    return bytes(head)


def _stored(store: InputStore, report: FileReport) -> Iterator[bytes]:
    """Yield a stored file in parts of doubling length: most first lines are in the first part."""
    at, length = 0, FIRST_READ_BYTES
    while data := store.read_range(report.uri, at, length, etag=report.etag or None):
        yield data
        at, length = at + len(data), min(2 * length, range_bytes(report.uri))


def _without_blank_start(pieces: Iterable[bytes]) -> Iterator[bytes]:
    has_begun = False
    for piece in pieces:
        text = piece if has_begun else piece.removeprefix(BOM).lstrip()
        has_begun = has_begun or bool(text)
        yield text
