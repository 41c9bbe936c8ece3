"""Reads S3 events from queue message bodies, in all of their shapes.

Shapes: the notification of S3, MinIO or Ceph with any number of records, the same wrapped by SNS, an EventBridge event,
and the test event that S3 sends when a notification is set up [S3 user guide, "Event message structure"; Ceph, "S3
Bucket Notifications Compatibility"].
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import unquote_plus

import orjson

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.manifest_parsing import is_etag, moment
from compactor.core.errors import InputError
from compactor.core.text.formatting import shown

_CEPH = "ceph:s3"  # sends keys as they are [Ceph, rgw_pubsub.cc]; all others encode them
_SOURCES = ("aws:s3", "minio:s3", _CEPH)
_KEY_MAX_BYTES = 1024  # of a key [S3 user guide]; a claim's key has to fit into DynamoDB's 2,048
_ETAG_MAX_CHARACTERS = 256
_SNS_LEVELS = 3  # a topic may be subscribed to another topic's queue; deeper nesting is not expected


class EventError(InputError):
    """A body that cannot be parsed. Its message fails, so that the queue moves it to its dead-letter queue."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """The files announced by one message body.

    Attributes:
        files: Created objects, each at the announced version.
        ignored: Records that announce no new object, by reason: `test_event`, S3's own test of the notification, and
            `not_created`, an object that was removed, restored or tagged.
    """

    files: tuple[ManifestFile, ...]
    ignored: Counter[str] = field(default_factory=Counter)


def parse_body(body: str | bytes) -> Announcement:
    """Read the body of one message.

    Raises:
        EventError: It has none of the known shapes.
    """
    document = _unwrapped(body)
    if document.get("Event") == "s3:TestEvent":
        return Announcement((), Counter(test_event=1))
    if "Records" in document:
        records = document["Records"]
        if not isinstance(records, list):
            raise EventError(f"Records is {shown(records)}, expected a list")
        return _announcement([_notified(record, f"Records[{index}]") for index, record in enumerate(records)])
    if "detail-type" in document:
        return _announcement([_bridged(document)])
    raise EventError(
        f"neither Records nor detail-type in it, expected an S3 event; its keys are {shown(list(document))}"
    )


def _unwrapped(body: str | bytes) -> dict[str, Any]:
    """The document inside the SNS envelopes."""
    document = _document(body, "the body")
    for _ in range(_SNS_LEVELS):
        if document.get("Type") != "Notification" or "Message" not in document:
            return document
        document = _document(document["Message"], "the SNS Message")
    raise EventError(f"wrapped by SNS more than {_SNS_LEVELS} times")


def _document(text: object, where: str) -> dict[str, Any]:
    if not isinstance(text, str | bytes):
        raise EventError(f"{where} is {shown(text)}, expected a JSON object as text")
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        start = text[:60] if isinstance(text, str) else text[:60].decode(errors="replace")
        raise EventError(f"{where}: {exc}, expected one JSON object; it begins with {shown(start)}") from exc
    if not isinstance(document, dict):
        raise EventError(f"{where} is {shown(document)}, expected a JSON object")
    return document


def _announcement(found: Sequence[ManifestFile | None]) -> Announcement:
    files = tuple(each for each in found if each is not None)
    return Announcement(files, +Counter(not_created=len(found) - len(files)))


def _notified(record: object, where: str) -> ManifestFile | None:
    """The object in one record of S3's own notifications; None if it announces nothing new."""
    record = _table(record, where)
    source, version = record.get("eventSource"), record.get("eventVersion")
    if source not in _SOURCES:
        raise EventError(f"{where}.eventSource is {shown(source)}, expected {' or '.join(_SOURCES)}")
    # A minor version adds fields; a new major version may redefine existing names [S3 user guide].
    if not isinstance(version, str) or version.partition(".")[0] != "2":
        raise EventError(f'{where}.eventVersion is {shown(version)}, expected "2" with any minor version')
    name = _text(record, "eventName", where)
    if not name.removeprefix("s3:").startswith("ObjectCreated:"):
        return None
    s3 = _table(record.get("s3"), f"{where}.s3")
    found = _table(s3.get("object"), f"{where}.s3.object")
    bucket = _text(_table(s3.get("bucket"), f"{where}.s3.bucket"), "name", f"{where}.s3.bucket")
    key = _text(found, "key", f"{where}.s3.object")
    return _file(
        bucket,
        key if source == _CEPH else _decoded(key, f"{where}.s3.object.key"),
        found,
        ("eTag", _text(found, "eTag", f"{where}.s3.object")),
        _time(record.get("eventTime"), f"{where}.eventTime"),
        f"{where}.s3.object",
    )


def _bridged(document: dict[str, Any]) -> ManifestFile | None:
    """The object in an EventBridge event, whose key is not encoded; None if it announces nothing new."""
    source = document.get("source")
    if source != "aws.s3":
        raise EventError(f'source is {shown(source)}, expected "aws.s3"')
    if document["detail-type"] != "Object Created":
        return None
    detail = _table(document.get("detail"), "detail")
    found = _table(detail.get("object"), "detail.object")
    return _file(
        _text(_table(detail.get("bucket"), "detail.bucket"), "name", "detail.bucket"),
        _text(found, "key", "detail.object"),
        found,
        ("etag", _text(found, "etag", "detail.object")),
        _time(document.get("time"), "time"),
        "detail.object",
    )


def _file(
    bucket: str, key: str, found: Mapping[str, Any], etag: tuple[str, str], event_time: datetime, where: str
) -> ManifestFile:
    size_bytes = found.get("size")
    if not isinstance(size_bytes, int) or isinstance(size_bytes, bool) or size_bytes < 0:
        raise EventError(f"{where}.size is {shown(size_bytes)}, expected a whole number from 0")
    version = etag[1].strip('"')
    if len(key.encode()) > _KEY_MAX_BYTES:
        raise EventError(f"{where}.key is {shown(key)}, expected at most {_KEY_MAX_BYTES} bytes")
    # Otherwise intake would refuse the whole manifest because of this file.
    if not version or len(version) > _ETAG_MAX_CHARACTERS or not is_etag(version):
        raise EventError(f"{where}.{etag[0]} is {shown(etag[1])}, expected the object's version")
    return ManifestFile(uri=f"s3://{bucket}/{key}", size_bytes=size_bytes, etag=version, event_time=event_time)


def _decoded(key: str, where: str) -> str:
    """The decoded key; S3 encodes it like a form, as in `red+flower%2Bleaf.json`."""
    try:
        return unquote_plus(key, errors="strict")
    except UnicodeDecodeError as exc:
        raise EventError(f"{where} is {shown(key)}, expected UTF-8 after decoding") from exc


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise EventError(f"{where} is {shown(value)}, expected an object")
    return value


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise EventError(f"{where}.{key} is {shown(value)}, expected a string")
    return value


def _time(value: object, where: str) -> datetime:
    try:
        return moment(value)
    except ValueError as exc:
        raise EventError(f"{where} is {shown(value)}, expected a time in ISO 8601") from exc
