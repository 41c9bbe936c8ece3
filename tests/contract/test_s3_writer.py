"""What writing to S3 as bytes come promises beyond the contract."""

import threading
import zlib
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse, HeadersDict
from botocore.exceptions import ClientError

from compactor.adapters.aws.clients import s3_client
from compactor.adapters.aws.s3 import multipart
from compactor.adapters.aws.s3.store import S3Store
from compactor.core.errors import AccessError, ObjectChanged, StoreUnavailable
from tests.support.aws_stand_in import REGION

PART = 5 * 1024 * 1024  # the least that S3 takes
DATA = bytes(range(256)) * (PART // 256)


class Traffic:
    """The requests of a client, as they begin and end, and what befalls them.

    Attributes:
        seen: The operations in the order in which they began, and `end of` each that ended.
        on: Called with an operation and its parameters before the request is sent.
    """

    def __init__(self, client: Any) -> None:
        self.seen: list[str] = []
        self.on: Callable[[str, dict[str, Any]], None] = lambda _operation, _params: None
        events = client.meta.events
        events.register("provide-client-params.s3", self._begin)
        events.register("after-call.s3", lambda model, **_: self.seen.append(f"end of {model.name}"))

    @property
    def begun(self) -> list[str]:
        return [each for each in self.seen if not each.startswith("end of")]

    def refuse(self, operation: str, *, code: str = "SlowDown", part: int | None = None) -> None:
        """Answer a kind of request with an error."""

        def on(asked: str, params: dict[str, Any]) -> None:
            if asked == operation and part in (None, params.get("PartNumber")):
                raise ClientError({"Error": {"Code": code, "Message": "refused"}}, operation)

        self.on = on

    def _begin(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.seen.append(model.name)
        self.on(model.name, params)


@pytest.fixture
def client(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(multipart, "_PART_BYTES", PART)
    return s3_client(REGION, aws_endpoint)


@pytest.fixture
def traffic(client: Any) -> Traffic:
    return Traffic(client)


@pytest.fixture
def store(client: Any) -> S3Store:
    return S3Store(client)


@pytest.fixture
def nothing_left(s3: Any, bucket: str) -> Callable[[], bool]:
    """Tells whether there is neither an object nor an upload."""

    def is_there() -> bool:
        uploads = s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
        return not uploads and not s3.list_objects_v2(Bucket=bucket)["KeyCount"]

    return is_there


def write(store: S3Store, uri: str, size: int) -> None:
    with store.writer(uri) as writer:
        while size > 0:
            writer.write(DATA[:size])
            size -= PART


def abandon(store: S3Store, uri: str) -> None:
    with store.writer(uri) as writer:
        writer.write(DATA * 3)
        raise RuntimeError("of the caller")


@pytest.mark.parametrize(
    ("size", "parts"),
    [
        (0, 0),
        (PART, 0),
        (PART + 1, 2),
        *(pytest.param(*each, marks=pytest.mark.full) for each in ((1, 0), (2 * PART, 2), (2 * PART + 1, 3))),
        (6 * PART, 6),
    ],
)
def test_requests_of_a_written_object(store: S3Store, traffic: Traffic, bucket: str, size: int, parts: int) -> None:
    """An object of one part takes one request, a larger one a request each part, and two."""
    write(store, f"s3://{bucket}/a", size)
    expected = ["CreateMultipartUpload", *["UploadPart"] * parts, "CompleteMultipartUpload"] if parts else ["PutObject"]
    assert traffic.begun == expected


def test_writing_goes_on_while_parts_are_sent(store: S3Store, traffic: Traffic, bucket: str) -> None:
    """The caller waits only when two parts are under way and a third one is full; no more is held in memory."""
    may_go_on = threading.Event()
    traffic.on = lambda operation, _: (operation != "UploadPart" or may_go_on.wait(20)) and None
    with ThreadPoolExecutor(1) as threads:
        try:
            with store.writer(f"s3://{bucket}/a") as writer:
                writer.write(DATA * 3)
                fourth = threads.submit(writer.write, b"x")
                with pytest.raises(TimeoutError):
                    fourth.result(0.3)
                assert traffic.seen.count("UploadPart") == 2
                may_go_on.set()
                fourth.result(20)
        finally:
            may_go_on.set()
    assert store.read(f"s3://{bucket}/a") == DATA * 3 + b"x"


@pytest.mark.parametrize("part", [1, *(pytest.param(part, marks=pytest.mark.full) for part in (2, 5)), 6])
def test_a_part_that_fails_abandons_the_object(
    store: S3Store, traffic: Traffic, bucket: str, nothing_left: Callable[[], bool], part: int
) -> None:
    """Whichever part it is, the last one too, its error is raised and nothing stays in S3."""
    for code, expected in [("SlowDown", StoreUnavailable), ("AccessDenied", AccessError)]:
        traffic.refuse("UploadPart", part=part, code=code)
        with pytest.raises(expected, match=rf"s3://{bucket}/a.*UploadPart.*{code}"):
            write(store, f"s3://{bucket}/a", 6 * PART)
        assert traffic.begun[-1] == "AbortMultipartUpload"
        assert nothing_left()


@pytest.mark.parametrize("operation", ["PutObject", "CreateMultipartUpload", "CompleteMultipartUpload"])
def test_a_request_that_fails_abandons_the_object(
    store: S3Store, traffic: Traffic, bucket: str, nothing_left: Callable[[], bool], operation: str
) -> None:
    """Beginning and end of an object may be refused like a part of it."""
    traffic.refuse(operation)
    with pytest.raises(StoreUnavailable, match=rf"s3://{bucket}/a.*{operation}.*SlowDown"):
        write(store, f"s3://{bucket}/a", 1 if operation == "PutObject" else 3 * PART)
    assert nothing_left()


@pytest.mark.parametrize(("operation", "part"), [("CreateMultipartUpload", None), ("UploadPart", 1)])
def test_an_object_with_a_hole_is_never_made(
    store: S3Store, traffic: Traffic, bucket: str, nothing_left: Callable[[], bool], operation: str, part: int | None
) -> None:
    """A caller that goes on from a write that failed gets no object for it, even if all goes well from then on."""
    traffic.refuse(operation, part=part)

    def write_and_go_on() -> None:
        with store.writer(f"s3://{bucket}/a") as writer:
            with pytest.raises(StoreUnavailable, match="SlowDown"):
                writer.write(DATA * 4)
            traffic.on = lambda _operation, _params: None
            writer.write(DATA)

    with pytest.raises(StoreUnavailable, match=f"s3://{bucket}/a"):
        write_and_go_on()
    assert nothing_left()


def test_an_abort_waits_for_the_parts_under_way(
    store: S3Store, traffic: Traffic, bucket: str, nothing_left: Callable[[], bool]
) -> None:
    """A part that came after the abort could stay in S3, so none does."""
    may_go_on = threading.Event()
    traffic.on = lambda operation, _: (operation != "UploadPart" or may_go_on.wait(0.3)) and None
    with pytest.raises(RuntimeError, match="of the caller"):
        abandon(store, f"s3://{bucket}/a")
    assert traffic.seen[-2:] == ["AbortMultipartUpload", "end of AbortMultipartUpload"]
    assert traffic.seen.count("UploadPart") == traffic.seen.count("end of UploadPart") > 0
    assert nothing_left()


def test_an_abort_that_fails_does_not_hide_why(store: S3Store, traffic: Traffic, bucket: str) -> None:
    """The error of the block is the one that is raised, whatever becomes of the abort."""
    traffic.refuse("AbortMultipartUpload", code="AccessDenied")
    with pytest.raises(RuntimeError, match="of the caller"):
        abandon(store, f"s3://{bucket}/a")
    assert store.stat(f"s3://{bucket}/a") is None


def test_checksums_of_parts_are_part_of_the_whole(store: S3Store, traffic: Traffic, bucket: str) -> None:
    """S3 refuses checksums of parts that were not announced, and an announced upload without those of all parts."""
    asked: dict[str, dict[str, Any]] = {}
    traffic.on = lambda operation, params: asked.update({operation: params})
    write(store, f"s3://{bucket}/a", 2 * PART)
    assert asked["CreateMultipartUpload"]["ChecksumAlgorithm"] == asked["UploadPart"]["ChecksumAlgorithm"] == "CRC32"
    parts = asked["CompleteMultipartUpload"]["MultipartUpload"]["Parts"]
    assert [part["PartNumber"] for part in parts] == [1, 2]
    assert [sorted(part) for part in parts] == [["ChecksumCRC32", "ETag", "PartNumber"]] * 2


def test_an_upload_counts_once_s3_tells_its_etag(store: S3Store, client: Any, bucket: str) -> None:
    """S3 answers with success as it begins to put parts together; after that, the connection may break."""
    client.meta.events.register("after-call.s3.CompleteMultipartUpload", lambda parsed, **_: parsed.clear())
    with pytest.raises(StoreUnavailable, match=f"s3://{bucket}/k: the response ended before the object was created"):
        write_new(store, f"s3://{bucket}/k", 2 * PART)


@pytest.mark.parametrize("size", [3, PART + 1])
def test_over_https_a_checksum_goes_ahead_of_its_body(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 compares it, so the body itself is neither signed nor sent in chunks."""
    monkeypatch.setattr(multipart, "_PART_BYTES", PART)
    client = s3_client(REGION)
    sent: list[tuple[str, dict[str, str], bytes]] = []

    def answered(request: Any) -> AWSResponse:
        if request.method == "PUT":
            headers = {k: v.decode() if isinstance(v, bytes) else v for k, v in request.headers.items()}
            sent.append((request.url, headers, request.body.read()))
        told = b"<Result><UploadId>u</UploadId><ETag>e</ETag></Result>"
        return AWSResponse(request.url, 200, HeadersDict({"ETag": '"e"'}), SimpleNamespace(stream=lambda: iter([told])))

    client._endpoint.http_session.send = answered
    write(S3Store(client), "s3://bucket/k", size)
    sent.sort()  # by their numbers, which end the URLs of parts
    assert b"".join(body for *_, body in sent) == (DATA * 2)[:size]
    for _, headers, body in sent:
        assert headers["x-amz-checksum-crc32"] == b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()
        assert headers["X-Amz-Content-SHA256"] == "UNSIGNED-PAYLOAD"
        assert headers["Content-Length"] == str(len(body))
        assert not {"X-Amz-Trailer", "Content-Encoding", "Transfer-Encoding"} & headers.keys()
        assert "x-amz-checksum-crc32" in headers["Authorization"]


def write_new(store: S3Store, uri: str, size: int) -> None:
    with store.new_writer(uri) as writer:
        while size > 0:
            writer.write(DATA[:size])
            size -= PART


LAST = pytest.mark.parametrize(("size", "last"), [(1, "PutObject"), (2 * PART, "CompleteMultipartUpload")])


@LAST
def test_a_new_object_names_its_condition_and_its_writer(
    store: S3Store, traffic: Traffic, bucket: str, size: int, last: str
) -> None:
    """The condition goes with the request that makes the object, the writer with the one that begins it."""
    asked: dict[str, dict[str, Any]] = {}
    traffic.on = lambda operation, params: asked.update({operation: params})
    write_new(store, f"s3://{bucket}/a", size)
    assert asked[last]["IfNoneMatch"] == "*"
    first = asked.get("CreateMultipartUpload", asked.get("PutObject"))
    assert first is not None
    assert len(first["Metadata"]["compactor-writer"]) == 32


@LAST
@pytest.mark.parametrize("again", ["", "NoSuchUpload", "ConditionalRequestConflict"])
def test_a_new_object_whose_answer_was_lost_is_there(
    store: S3Store, client: Any, bucket: str, monkeypatch: pytest.MonkeyPatch, size: int, last: str, again: str
) -> None:
    """The client sends the request again and is refused, because of the object that its first one has made."""
    name = {"PutObject": "put_object", "CompleteMultipartUpload": "complete_multipart_upload"}[last]
    send = getattr(client, name)

    def twice(**params: Any) -> Any:
        send(**params)
        if again:
            raise ClientError({"Error": {"Code": again, "Message": "refused"}}, last)
        return send(**params)

    monkeypatch.setattr(client, name, twice)
    write_new(store, f"s3://{bucket}/a", size)
    found = store.stat(f"s3://{bucket}/a")
    assert found is not None
    assert found.size_bytes == size


@LAST
def test_a_new_object_is_not_taken_for_one_of_another_writer(
    store: S3Store, client: Any, bucket: str, monkeypatch: pytest.MonkeyPatch, size: int, last: str
) -> None:
    """Another writer makes the same object while this one is about to: it is refused, although the bytes are equal."""
    name = {"PutObject": "put_object", "CompleteMultipartUpload": "complete_multipart_upload"}[last]
    send = getattr(client, name)

    def after_another(**params: Any) -> Any:
        monkeypatch.setattr(client, name, send)
        write_new(store, f"s3://{bucket}/a", size)
        return send(**params)

    monkeypatch.setattr(client, name, after_another)
    with pytest.raises(ObjectChanged, match="PreconditionFailed"):
        write_new(store, f"s3://{bucket}/a", size)


def test_a_new_object_whose_upload_was_aborted_is_not_made(
    store: S3Store, traffic: Traffic, bucket: str, nothing_left: Callable[[], bool]
) -> None:
    """A lifecycle rule, or a stranger, takes the parts: nothing is decided by then, and another attempt writes anew."""
    traffic.refuse("CompleteMultipartUpload", code="NoSuchUpload")
    with pytest.raises(StoreUnavailable, match="NoSuchUpload"):
        write_new(store, f"s3://{bucket}/a", 3 * PART)
    assert nothing_left()
