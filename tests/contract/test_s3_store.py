"""What the store in S3 promises beyond the contract."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.response import StreamingBody
from botocore.stub import Stubber
from s3transfer.exceptions import S3CopyFailedError

from compactor.adapters.aws.clients import dynamodb_client, s3_client
from compactor.adapters.aws.s3 import native_requests
from compactor.adapters.aws.s3.store import _COPY, S3Store
from compactor.core.errors import AccessError, ObjectChanged, ObjectNotFound, StoreUnavailable

REGION = "eu-west-1"
_IN_PARTS = ["HeadObject", "CreateMultipartUpload", "UploadPartCopy", "CompleteMultipartUpload", "HeadObject"]


def test_a_create_whose_answer_was_lost_is_recognised(
    aws_endpoint: str, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that took effect, but whose answer never came, counts as one's own when it is repeated."""
    monkeypatch.setattr(native_requests, "why_not_installed", lambda: "left out")
    client = s3_client(REGION, aws_endpoint)
    session = client._endpoint.http_session
    send, sent = session.send, []

    def losing_send(request: Any) -> Any:
        answer = send(request)
        sent.append((request.method, answer.status_code))
        if len(sent) == 1:
            raise ReadTimeoutError(endpoint_url=request.url)
        return answer

    session.send = losing_send
    assert S3Store(client).create(f"s3://{bucket}/a", b"mine")
    assert sent == [("PUT", 200), ("PUT", 412), ("GET", 200)]
    assert not S3Store(client).create(f"s3://{bucket}/a", b"other")


@contextmanager
def stubbed(aws_endpoint: str) -> Iterator[tuple[S3Store, Stubber, list[float]]]:
    """A store whose answers are given in advance, and the pauses that it took."""
    client = s3_client(REGION, aws_endpoint, attempts=1)
    pauses: list[float] = []
    with Stubber(client) as stub:
        yield S3Store(client, sleep=pauses.append), stub, pauses


def test_a_conflict_with_a_write_at_the_same_time_is_tried_again(aws_endpoint: str) -> None:
    """While another write to the same key is under way S3 refuses to decide; it is asked again, a little later."""
    with stubbed(aws_endpoint) as (store, stub, pauses):
        for _ in range(2):
            stub.add_client_error("put_object", "ConditionalRequestConflict", http_status_code=409)
        stub.add_response("put_object", {"ETag": '"1"'})
        assert store.create("s3://b/k", b"")
        stub.assert_no_pending_responses()
    assert 0.1 <= pauses[0] <= 0.2 <= pauses[1] <= 0.4
    assert len(pauses) == 2
    with stubbed(aws_endpoint) as (store, stub, pauses):
        for _ in range(5):
            stub.add_client_error("put_object", "ConditionalRequestConflict", http_status_code=409)
        with pytest.raises(StoreUnavailable, match="s3://b/k"):
            store.create("s3://b/k", b"")


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("NoSuchKey", 404, ObjectNotFound),
        ("InvalidObjectState", 403, ObjectNotFound),
        ("KeyTooLongError", 400, ObjectNotFound),
        ("PreconditionFailed", 412, ObjectChanged),
        ("NoSuchBucket", 404, AccessError),
        ("AccessDenied", 403, AccessError),
        ("InvalidAccessKeyId", 403, AccessError),
        ("ExpiredToken", 400, AccessError),
        ("SignatureDoesNotMatch", 403, AccessError),
        ("PermanentRedirect", 301, AccessError),
        ("SlowDown", 503, StoreUnavailable),
        ("InternalError", 500, StoreUnavailable),
        ("RequestTimeout", 400, StoreUnavailable),
        ("502", 502, StoreUnavailable),
        ("TooManyRequests", 429, StoreUnavailable),
    ],
)
def test_errors_say_what_to_do_next(aws_endpoint: str, code: str, status: int, expected: type) -> None:
    """Every answer of S3 becomes one of the compactor's errors, with the object's name and the answer in it."""
    with stubbed(aws_endpoint) as (store, stub, _):
        stub.add_client_error("get_object", code, "why", http_status_code=status)
        with pytest.raises(expected, match=rf"s3://b/k.*{code}.*why"):
            store.read("s3://b/k")
        stub.add_client_error("list_objects_v2", code, http_status_code=status)
        with pytest.raises(expected, match="s3://b/folder/"):
            list(store.list("s3://b/folder/"))


def test_an_upload_that_is_refused_says_why(aws_endpoint: str, tmp_path: Path) -> None:
    """The reason of a refused upload comes through, although boto3 wraps it."""
    (tmp_path / "file").write_bytes(b"1")
    with stubbed(aws_endpoint) as (store, stub, _):
        for code, expected in [("AccessDenied", AccessError), ("SlowDown", StoreUnavailable)]:
            stub.add_client_error("put_object", code, http_status_code=403 if code == "AccessDenied" else 503)
            with pytest.raises(expected, match=code):
                store.upload("s3://b/k", tmp_path / "file")


def write(store: S3Store, uri: str) -> None:
    with store.writer(uri) as writer:
        writer.write(b"1")


def test_a_bucket_that_is_missing_is_for_an_operator(s3: Any, bucket: str, tmp_path: Path) -> None:
    """No method takes a missing bucket for a missing object."""
    store = S3Store(s3)
    (tmp_path / "file").write_bytes(b"1")
    here, gone = f"s3://{bucket}/k", "s3://no-such-bucket-here/k"
    store.put(here, b"")
    for ask in [
        lambda: store.stat(gone),
        lambda: store.read(gone),
        lambda: list(store.list("s3://no-such-bucket-here/")),
        lambda: store.create(gone, b""),
        lambda: store.put(gone, b""),
        lambda: store.upload(gone, tmp_path / "file"),
        lambda: write(store, gone),
        lambda: store.copy(gone, here),
        lambda: store.copy(here, gone),
        lambda: store.delete([gone]),
    ]:
        with pytest.raises(AccessError, match="no-such-bucket-here"):
            ask()


def test_objects_that_could_not_be_deleted_are_not_passed_over(aws_endpoint: str) -> None:
    """What S3 failed to delete in passing is tried again; what it refused is named; what was gone is fine."""
    slow = {"Key": "b", "Code": "SlowDown", "Message": "later"}
    with stubbed(aws_endpoint) as (store, stub, pauses):
        gone = {"Key": "a", "Code": "NoSuchKey"}
        both = {"Objects": [{"Key": "a"}, {"Key": "b"}], "Quiet": True}
        stub.add_response("delete_objects", {"Errors": [gone, slow]}, {"Bucket": "x", "Delete": both})
        stub.add_response("delete_objects", {}, {"Bucket": "x", "Delete": {"Objects": [{"Key": "b"}], "Quiet": True}})
        store.delete(["s3://x/a", "s3://x/b"])
        stub.assert_no_pending_responses()
        assert len(pauses) == 1
        for _ in range(5):
            stub.add_response("delete_objects", {"Errors": [slow]})
        with pytest.raises(StoreUnavailable, match=r"s3://x/b.*SlowDown"):
            store.delete(["s3://x/b"])
        stub.add_response("delete_objects", {"Errors": [{"Key": "a", "Code": "AccessDenied"}]})
        with pytest.raises(AccessError, match=r"s3://x/a.*AccessDenied"):
            store.delete(["s3://x/a"])


def test_reading_is_repeated_when_the_answer_breaks_off(aws_endpoint: str) -> None:
    """An object whose bytes stop short is read again, and never returned in part."""
    with stubbed(aws_endpoint) as (store, stub, _):
        for body in (b"01234", b"0123456789"):
            stub.add_response("get_object", {"Body": StreamingBody(BytesIO(body), 10), "ContentLength": 10})
        assert store.read("s3://b/k") == b"0123456789"
        for _ in range(5):
            stub.add_response("get_object", {"Body": StreamingBody(BytesIO(b"01234"), 10), "ContentLength": 10})
        with pytest.raises(StoreUnavailable, match="s3://b/k"):
            store.read("s3://b/k")


@pytest.mark.parametrize(
    ("told", "sent"),
    [
        ("bytes 1-4/10", b"1234"),
        ("bytes 0-3/10", b"0123"),
        ("bytes 2-5/10", b"234"),
        ("bytes 2-4/10", b"234"),
        ("bytes 2-9/10", b"23456789"),
        ("bytes 2-5/4", b"23"),
        ("bytes */10", b"2345"),
        ("", b"2345"),
        ("", b"0123456789"),
    ],
)
def test_another_range_than_was_asked_for_is_none(told: str, sent: bytes, aws_endpoint: str) -> None:
    """Bytes from elsewhere in the object would become rows: the range is asked for again, then it is trouble."""

    def answer(told: str, sent: bytes) -> dict[str, Any]:
        ranged = {"ContentRange": told} if told else {}
        return {"Body": StreamingBody(BytesIO(sent), len(sent)), "ContentLength": len(sent), **ranged}

    with stubbed(aws_endpoint) as (store, stub, _):
        for each in (answer(told, sent), answer("bytes 2-5/10", b"2345")):
            stub.add_response("get_object", each)
        assert store.read_range("s3://b/k", 2, 4) == b"2345"
        stub.add_response("get_object", answer("bytes 2-3/4", b"23"))
        assert store.read_range("s3://b/k", 2, 4) == b"23"
        for _ in range(5):
            stub.add_response("get_object", answer(told, sent))
        with pytest.raises(StoreUnavailable, match=r"s3://b/k: requested bytes=2-5, got "):
            store.read_range("s3://b/k", 2, 4)


def test_a_range_in_place_of_an_object_is_none(aws_endpoint: str) -> None:
    """An object that was asked for whole is not the part that came."""
    with stubbed(aws_endpoint) as (store, stub, _):
        for _ in range(5):
            body = {"Body": StreamingBody(BytesIO(b"01"), 2), "ContentLength": 2, "ContentRange": "bytes 0-1/10"}
            stub.add_response("get_object", body)
        with pytest.raises(StoreUnavailable, match=r"s3://b/k: requested all bytes, got bytes 0-1/10"):
            store.read("s3://b/k")


@pytest.mark.usefixtures("aws_endpoint")
def test_a_server_that_is_not_there_is_passing_trouble() -> None:
    """Where nothing listens, every method says that the store cannot be reached."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        store = S3Store(s3_client(REGION, url, attempts=1))
        for ask in (
            lambda: store.stat("s3://b/k"),
            lambda: store.create("s3://b/k", b""),
            lambda: list(store.list("s3://b/")),
        ):
            with pytest.raises(StoreUnavailable, match="s3://b/"):
                ask()


def test_without_credentials_an_operator_must_act(
    aws_endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Missing credentials, or a missing region, are named."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(AccessError, match=r"s3://b/k.*credentials"):
        S3Store(s3_client(REGION, aws_endpoint)).read("s3://b/k")
    with pytest.raises(AccessError, match="region"):
        dynamodb_client()


@pytest.mark.parametrize(("threshold", "copied_by"), [(100, ["CopyObject"]), (99, _IN_PARTS)], ids=["whole", "parts"])
def test_a_copy_is_made_by_the_server(
    threshold: int, copied_by: list[str], s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No byte of a copy passes through the client; a large object is copied in parts."""
    monkeypatch.setattr(_COPY, "multipart_threshold", threshold)
    S3Store(s3).put(f"s3://{bucket}/a", b"1" * 99)
    asked: list[str] = []
    s3.meta.events.register("before-call.s3", lambda model, **_: asked.append(model.name), unique_id="asked")
    try:
        S3Store(s3).copy(f"s3://{bucket}/a", f"s3://{bucket}/b")
    finally:
        s3.meta.events.unregister("before-call.s3", unique_id="asked")
    assert asked == ["HeadObject", *copied_by]
    assert S3Store(s3).read(f"s3://{bucket}/b") == b"1" * 99


HEAD = {"ContentLength": 3, "ETag": '"1"', "LastModified": datetime(2026, 1, 1, tzinfo=UTC)}


@pytest.mark.parametrize("missing", HEAD)
def test_an_answer_that_lacks_something_describes_no_object(missing: str, aws_endpoint: str) -> None:
    """S3 tells its length, ETag and time of every object."""
    with stubbed(aws_endpoint) as (store, stub, _):
        stub.add_response("head_object", {name: value for name, value in HEAD.items() if name != missing})
        with pytest.raises(StoreUnavailable, match="s3://b/k: the response lacks its length, ETag or time"):
            store.stat("s3://b/k")


@pytest.mark.parametrize("told", [{}, {"CopyObjectResult": {}}])
def test_a_copy_counts_once_s3_tells_its_etag(told: dict[str, Any], aws_endpoint: str) -> None:
    """S3 answers with success as it begins: an answer without a result, as of a broken connection, tells nothing."""
    with stubbed(aws_endpoint) as (store, stub, _):
        stub.add_response("head_object", HEAD)
        stub.add_response("copy_object", told)
        with pytest.raises(StoreUnavailable, match="s3://b/k to s3://b/l: the response ended before the copy was made"):
            store.copy("s3://b/k", "s3://b/l")


@pytest.mark.parametrize("made", [None, 2])
def test_a_copy_in_parts_counts_once_it_is_there(
    made: int | None, aws_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the length of its source; a source that changes meanwhile is passing trouble."""
    monkeypatch.setattr(_COPY, "multipart_threshold", 3)
    with stubbed(aws_endpoint) as (store, stub, _):
        monkeypatch.setattr(store.client, "copy", lambda *_, **__: None)
        stub.add_response("head_object", HEAD)
        if made is None:
            stub.add_client_error("head_object", "404", http_status_code=404)
            stub.add_response("head_bucket", {})
        else:
            stub.add_response("head_object", HEAD | {"ContentLength": made})
        with pytest.raises(StoreUnavailable, match="s3://b/k to s3://b/l"):
            store.copy("s3://b/k", "s3://b/l")

        def changed(*_: Any, **__: Any) -> None:
            raise S3CopyFailedError

        monkeypatch.setattr(store.client, "copy", changed)
        stub.add_response("head_object", HEAD)
        with pytest.raises(StoreUnavailable, match="s3://b/k changed while being copied"):
            store.copy("s3://b/k", "s3://b/l")


def test_listing_spells_results_like_its_prefix(s3: Any, bucket: str) -> None:
    """Asked with another spelling of the scheme, a listing answers in it; a whole bucket can be listed."""
    store = S3Store(s3)
    store.put(f"s3://{bucket}/a/b", b"")
    for scheme in ("s3", "s3a", "s3n"):
        assert [info.uri for info in store.list(f"{scheme}://{bucket}/")] == [f"{scheme}://{bucket}/a/b"]
        after = f"s3://{bucket}/a/a"
        assert [i.uri for i in store.list(f"{scheme}://{bucket}/a/", start_after=after)] == [f"{scheme}://{bucket}/a/b"]
    assert store.stat(f"s3a://{bucket}/a/b").modified_at <= datetime.now(UTC)
