"""The base of all state records: immutable models, stored as JSON."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import ManifestKey
from compactor.core.ports import ObjectStore

T = TypeVar("T")

_CHECKSUM_BYTES = 16
_BEGIN, _END = b',"checksum":"', b'"}'
_SEAL_BYTES = len(_BEGIN) + 2 * _CHECKSUM_BYTES + len(_END)


class Document(BaseModel):
    """An immutable record. Readers ignore unknown keys. Stored records of the job end with a checksum of the rest."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def read(cls, data: bytes, uri: str, expected: str = "") -> Self:
        """Parse a stored record.

        Args:
            data: The bytes.
            uri: Where they are stored, for the error.
            expected: What to report as expected; by default, a record of this kind.

        Raises:
            RecordUnreadable: The bytes are not such a record, or have changed; the message names the first fault.
        """
        return parsed(cls.model_validate_json, data, uri, expected or f"a record of kind {cls.__name__}")

    @classmethod
    def find(cls, store: ObjectStore, uri: str, expected: str = "") -> Self | None:
        """Read the record at a place, as `read`; None if there is none."""
        try:
            data = store.read(uri)
        except ObjectNotFound:
            return None
        return cls.read(data, uri, expected)

    @classmethod
    def find_readable(cls, store: ObjectStore, uri: str) -> Self | None:
        """As `find`, but None for a damaged record, too: where that does no harm, or something else reports it."""
        try:
            return cls.find(store, uri)
        except RecordUnreadable:
            return None

    def to_json(self) -> bytes:
        """The bytes to store."""
        return _sealed(self.model_dump_json().encode())


class ManifestRecord(Document):
    """A record about one manifest."""

    manifest_id: str
    date: str

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)


def parsed(parse: Callable[[bytes], T], data: bytes, uri: str, expected: str) -> T:
    """Parse stored bytes; see `Document.read`."""
    try:
        found = parse(data)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the document"
        raise RecordUnreadable(f"{uri}: {field}: {first['msg']}; expected {expected}") from exc
    # guard: a record whose bytes have changed counts as unreadable
    if data[-_SEAL_BYTES:].startswith(_BEGIN) and data != _sealed(data[:-_SEAL_BYTES] + b"}"):
        raise RecordUnreadable(f"{uri}: its bytes have changed since they were written; expected {expected}")
    return found


def _sealed(document: bytes) -> bytes:
    checksum = blake2b(document, digest_size=_CHECKSUM_BYTES).hexdigest().encode()
    return document[:-1] + _BEGIN + checksum + _END
