"""What S3 announces: every shape gives the same files, and whatever else comes gives a clear error and nothing more."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.sources.events.messages import EventError, parse_body
from tests.support.s3_messages import SHAPES, bridged, notification, record, wrapped

TEST_EVENT = {
    "Service": "Amazon S3",
    "Event": "s3:TestEvent",
    "Time": "2026-01-02T03:04:05.678Z",
    "Bucket": "raw",
    "RequestId": "5582815E1AEA5ADF",
    "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR",
}
KEYS = (
    *("2026-01-02/part-1.ndjson", "red flower+leaf.ndjson", "50%25.json", "käse/日本.json", "a=b&c#d?.json"),
    *("_hidden", "[x]{y}*", "tab\there", "'quoted\"", "a/../b"),
)
KEY = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("key", KEYS)
def test_every_shape_announces_the_object(shape: Callable[..., str], key: str) -> None:
    """The key comes out as it is in the bucket, with size, version and time."""
    [file] = parse_body(shape("raw", key, 1234, "9b2cf535f27731c974343645a3985328")).files
    assert file.uri == f"s3://raw/{key}"
    assert (file.size_bytes, file.etag) == (1234, "9b2cf535f27731c974343645a3985328")
    assert file.event_time == datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)


@given(key=KEY, size=st.integers(0, 2**50))
def test_any_key_survives_any_shape(key: str, size: int) -> None:
    """Whatever a key holds, all shapes announce the same object."""
    found = {parse_body(shape("raw", key, size, "e")).files[0] for shape in SHAPES.values()}
    assert {(file.uri, file.size_bytes) for file in found} == {(f"s3://raw/{key}", size)}


def test_several_records_and_those_that_announce_nothing() -> None:
    """All records of a body count; removals and the like are counted apart."""
    removed = {**record("raw", "gone", 0, "e"), "eventName": "ObjectRemoved:Delete"}
    body = json.dumps({"Records": [record("raw", "a", 1, "e1"), removed, record("raw", "b", 2, "e2")]})
    found = parse_body(body)
    assert [file.uri for file in found.files] == ["s3://raw/a", "s3://raw/b"]
    assert found.ignored == {"not_created": 1}
    restored = json.loads(bridged("raw", "a", 1, "e")) | {"detail-type": "Object Restore Completed"}
    assert parse_body(json.dumps(restored)).ignored == {"not_created": 1}


@pytest.mark.parametrize("wrap", [json.dumps, lambda document: wrapped(json.dumps(document))], ids=["plain", "sns"])
def test_the_test_event_is_nothing(wrap: Callable[[Any], str]) -> None:
    """S3's test of a new notification announces nothing, and is no error."""
    found = parse_body(wrap(TEST_EVENT))
    assert (found.files, found.ignored) == ((), {"test_event": 1})


@pytest.mark.parametrize("source", ["aws:s3", "minio:s3", "ceph:s3"])
@pytest.mark.parametrize("key", ["a", "a+b%20c.ndjson", "x%FF", "a b", "\u00e4"])
def test_stores_with_the_notifications_of_s3(source: str, key: str) -> None:
    """MinIO and Ceph have a source of their own; MinIO adds keys around the records, and Ceph encodes no key."""
    given = {**record("raw", key, 1, "e"), "eventSource": source}
    if source == "ceph:s3":
        given["s3"]["object"]["key"] = key
    body = json.dumps({"EventName": "s3:ObjectCreated:Put", "Key": "raw/a", "Records": [given]})
    assert [file.uri for file in parse_body(body).files] == [f"s3://raw/{key}"]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.3", "2.99", "2"])
def test_minor_versions(version: str) -> None:
    """A minor version that is not known yet adds fields, and is read like the others."""
    body = json.dumps({"Records": [{**record("raw", "a", 1, "e"), "eventVersion": version, "new": {"field": 1}}]})
    assert len(parse_body(body).files) == 1


def _without(path: str) -> str:
    document = {"Records": [record("raw", "a", 1, "e")]}
    *parents, last = path.split(".")
    table: Any = document["Records"][0]
    for name in parents:
        table = table[name]
    del table[last]
    return json.dumps(document)


def _with(**fields: Any) -> str:
    return json.dumps({"Records": [{**record("raw", "a", 1, "e"), **fields}]})


POISON = {
    "nothing": ("", "the body: "),
    "no JSON": ("{nothing", "expected one JSON object; it begins with"),
    "a lone surrogate": ("\ud800", "expected one JSON object"),
    "an array": ("[]", "the body is [], expected a JSON object"),
    "another service": ('{"a": 1}', 'its keys are ["a"]'),
    "records of another kind": ('{"Records": {}}', "Records is {}, expected a list"),
    "a record that is none": ('{"Records": [7]}', "Records[0] is 7, expected an object"),
    "another source": (_with(eventSource="aws:sqs"), 'eventSource is "aws:sqs", expected aws:s3 or minio:s3'),
    "another major version": (_with(eventVersion="3.0"), 'eventVersion is "3.0", expected "2" with any minor version'),
    "no version": (_without("eventVersion"), "eventVersion is null"),
    "no name": (_without("eventName"), "Records[0].eventName is null, expected a string"),
    "no key": (_without("s3.object.key"), "Records[0].s3.object.key is null"),
    "no bucket": (_without("s3.bucket"), "Records[0].s3.bucket is null, expected an object"),
    "no version of the object": (_without("s3.object.eTag"), "Records[0].s3.object.eTag is null"),
    "a version with a line break": (
        notification("raw", "a", 1, "e\r\nX: y"),
        "expected the object's version",
    ),
    "no size": (_without("s3.object.size"), "Records[0].s3.object.size is null, expected a whole number"),
    "no time": (_without("eventTime"), "Records[0].eventTime is null, expected a time in ISO 8601"),
    "a key that is not UTF-8": (notification("raw", "a", 1, "e").replace('"a"', '"%ff"'), "expected UTF-8"),
    "nested": ('{"Records": ' + "[" * 900 + "]" * 900 + "}", "Records[0] is"),
    "wrapped for ever": (wrapped(wrapped(wrapped(wrapped("{}")))), "wrapped by SNS more than 3 times"),
    "wrapped nonsense": (wrapped("nonsense"), "the SNS Message: "),
    "another event of EventBridge": (
        bridged("raw", "a", 1, "e").replace("aws.s3", "aws.glue"),
        'source is "aws.glue", expected "aws.s3"',
    ),
}


@pytest.mark.parametrize(("body", "message"), POISON.values(), ids=POISON.keys())
def test_poison(body: str, message: str) -> None:
    """What cannot be understood is refused with what, where, and what was expected."""
    with pytest.raises(EventError) as caught:
        parse_body(body)
    assert message in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Records", "s3", "object", "bucket", "key", "size", "Message", "Type", "detail", "detail-type"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(body=st.text() | st.binary() | JSON.map(json.dumps) | JSON.map(lambda document: wrapped(json.dumps(document))))
def test_any_body_is_understood_or_refused(body: str | bytes) -> None:
    """Whatever the body, it is an announcement or an error of the one kind."""
    with suppress(EventError):
        assert all(file.uri.startswith("s3://") and file.event_time for file in parse_body(body).files)
