"""The proxy changes nothing but what it is told to, and does that exactly; its decisions repeat with their seed."""

import http.client
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from tests.faults.fault_rules import LOST_ANSWERS, Call, FaultKind, FaultPlan, Operation, Rule, applies, call_of
from tests.faults.proxy import FaultProxy
from tests.faults.s3_server import S3Server, s3_server

BUCKET = "proxied"
TIMEOUT_SECONDS = 2.0
BIG = random.Random(1).randbytes(12 * 1024 * 1024)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "data") as started:
        started.make_bucket(BUCKET)
        yield started


@pytest.fixture
def proxy(server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(server.url, slow_body_seconds=0.2) as started:
        yield started


@pytest.fixture
def s3(server: S3Server, proxy: FaultProxy) -> Any:
    """A client that asks once, and is soon out of patience."""
    return server.client(proxy.url, attempts=1, timeout_seconds=TIMEOUT_SECONDS)


@pytest.fixture
def impatient(server: S3Server, proxy: FaultProxy) -> Any:
    """The same, for objects of a few bytes and calls that are all spoiled."""
    return server.client(proxy.url, attempts=1, timeout_seconds=TIMEOUT_SECONDS / 2)


def test_without_rules_the_proxy_is_not_there(server: S3Server, proxy: FaultProxy) -> None:
    """Puts, ranges, listings, copies, multipart uploads and errors come through as they are, names of all kinds too."""
    s3 = server.client(proxy.url, attempts=1)
    for key in ["plain", "a b+c%20d", "ü/*?[x]", "_hidden", "e=mc:2"]:
        s3.put_object(Bucket=BUCKET, Key=f"names/{key}", Body=key.encode())
        assert s3.get_object(Bucket=BUCKET, Key=f"names/{key}")["Body"].read() == key.encode()
    listed = [each["Key"] for each in s3.list_objects_v2(Bucket=BUCKET, Prefix="names/")["Contents"]]
    assert len(listed) == 5
    s3.put_object(Bucket=BUCKET, Key="big", Body=BIG)
    assert s3.get_object(Bucket=BUCKET, Key="big")["Body"].read() == BIG
    assert s3.get_object(Bucket=BUCKET, Key="big", Range="bytes=5-9")["Body"].read() == BIG[5:10]
    assert s3.head_object(Bucket=BUCKET, Key="big")["ContentLength"] == len(BIG)
    s3.copy_object(Bucket=BUCKET, Key="copied", CopySource={"Bucket": BUCKET, "Key": "big"})
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    named = {"Bucket": BUCKET, "Key": "parts", "UploadId": upload}
    halves = (BIG[: len(BIG) // 2], BIG[len(BIG) // 2 :])
    parts = [
        {"PartNumber": number, "ETag": s3.upload_part(**named, PartNumber=number, Body=half)["ETag"]}
        for number, half in enumerate(halves, start=1)
    ]
    s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
    assert s3.get_object(Bucket=BUCKET, Key="parts")["Body"].read() == BIG
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket=BUCKET, Key="big", Body=b"", IfNoneMatch="*")
    s3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": "copied"}, {"Key": "parts"}]})
    with pytest.raises(ClientError, match="404"):
        s3.head_object(Bucket=BUCKET, Key="copied")
    assert not proxy.traffic.injected
    assert proxy.traffic.calls[Operation.CREATE_OBJECT] == 1
    assert proxy.traffic.calls[Operation.UPLOAD_PART] == 2
    assert proxy.traffic.calls[Operation.DELETE_OBJECTS] == 1


REFUSALS = {
    FaultKind.SLOW_DOWN: "SlowDown",
    FaultKind.INTERNAL_ERROR: "InternalError",
    FaultKind.ACCESS_DENIED: "AccessDenied",
    FaultKind.NO_SUCH_BUCKET: "NoSuchBucket",
    FaultKind.RESET: "Connection (was closed|reset)",
    FaultKind.SILENCE: "Read timeout",
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_what_is_refused_is_not_carried_out(
    kind: FaultKind, server: S3Server, proxy: FaultProxy, impatient: Any
) -> None:
    """The caller is told of the fault, the server never hears of the call, and the call after it is well."""
    proxy.use([Rule(kind, frozenset({Operation.PUT_OBJECT}), calls=frozenset({1}))])
    with pytest.raises((ClientError, BotoCoreError), match=REFUSALS[kind]):
        impatient.put_object(Bucket=BUCKET, Key=f"refused/{kind}", Body=b"1")
    with pytest.raises(ClientError, match="404"):
        server.client().head_object(Bucket=BUCKET, Key=f"refused/{kind}")
    server.client(proxy.url).put_object(Bucket=BUCKET, Key=f"refused/{kind}", Body=b"1")
    assert proxy.traffic.injected == {(kind, Operation.PUT_OBJECT): 1}


@pytest.mark.parametrize("kind", sorted(LOST_ANSWERS))
def test_what_loses_its_answer_is_carried_out(
    kind: FaultKind, server: S3Server, proxy: FaultProxy, impatient: Any
) -> None:
    """Create-only puts, copies and deletions take effect, and the caller hears of trouble."""
    proxy.use([Rule(kind, calls=frozenset({1, 2, 3}))])
    direct = server.client()
    target = {"Bucket": BUCKET, "Key": f"done/{kind}"}
    for call in (
        lambda: impatient.put_object(**target, Body=b"1", IfNoneMatch="*"),
        lambda: impatient.copy_object(Bucket=BUCKET, Key=f"copy/{kind}", CopySource=target),
        lambda: impatient.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": target["Key"]}]}),
    ):
        with pytest.raises((ClientError, BotoCoreError), match=r"InternalError|Connection|timeout"):
            call()
    assert direct.get_object(Bucket=BUCKET, Key=f"copy/{kind}")["Body"].read() == b"1"
    with pytest.raises(ClientError, match="404"):
        direct.head_object(**target)
    assert proxy.traffic.faults() == {kind: 3}


def test_a_body_is_cut_or_slow_as_told(proxy: FaultProxy, s3: Any) -> None:
    """A cut body ends early and is noticed; a slow one is whole; a call without a body is left alone."""
    s3.put_object(Bucket=BUCKET, Key="body", Body=BIG)
    proxy.use([Rule(FaultKind.TRUNCATED_BODY, calls=frozenset({1})), Rule(FaultKind.SLOW_BODY, calls=frozenset({2}))])
    s3.head_object(Bucket=BUCKET, Key="body")
    with pytest.raises((BotoCoreError, HTTPError)):
        s3.get_object(Bucket=BUCKET, Key="body")["Body"].read()
    assert s3.get_object(Bucket=BUCKET, Key="body")["Body"].read() == BIG
    assert proxy.traffic.faults() == {FaultKind.TRUNCATED_BODY: 1, FaultKind.SLOW_BODY: 1}


def test_a_stale_listing_is_the_one_before_the_last_change(proxy: FaultProxy, s3: Any) -> None:
    """Only a listing that did change can be stale, and only then it counts."""
    proxy.use([Rule(FaultKind.STALE_LISTING, calls=frozenset({1, 3}))])

    def names() -> list[str]:
        answer = s3.list_objects_v2(Bucket=BUCKET, Prefix="stale/")
        return [each["Key"] for each in answer.get("Contents", ())]

    assert names() == []
    assert not proxy.traffic.injected
    s3.put_object(Bucket=BUCKET, Key="stale/1", Body=b"")
    assert names() == ["stale/1"]
    s3.put_object(Bucket=BUCKET, Key="stale/2", Body=b"")
    assert names() == ["stale/1"]
    assert names() == ["stale/1", "stale/2"]
    assert proxy.traffic.faults() == {FaultKind.STALE_LISTING: 1}


def test_a_copy_can_fail_inside_an_answer_that_began_well(proxy: FaultProxy, s3: Any) -> None:
    """As S3 does it: status 200, and the error in the body; it is not carried out."""
    proxy.use([Rule(FaultKind.ERROR_IN_OK, calls=frozenset({1}))])
    s3.put_object(Bucket=BUCKET, Key="from", Body=b"1")
    with pytest.raises(ClientError, match="InternalError"):
        s3.copy_object(Bucket=BUCKET, Key="to", CopySource={"Bucket": BUCKET, "Key": "from"})
    with pytest.raises(ClientError, match="404"):
        s3.head_object(Bucket=BUCKET, Key="to")


def test_bodies_of_unknown_length_and_the_wish_to_be_told_to_go_on() -> None:
    """Chunked bodies arrive as they were framed; `Expect: 100-continue` is answered before the body is read."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as backend:
        thread = threading.Thread(target=_take_one, args=(backend, received))
        thread.start()
        with FaultProxy(f"http://127.0.0.1:{backend.getsockname()[1]}") as proxy:
            host = urlsplit(proxy.url)
            with socket.create_connection((host.hostname, host.port), timeout=5) as client:
                client.sendall(b"PUT /b/k HTTP/1.1\r\nHost: h:1\r\nExpect: 100-continue\r\n")
                client.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
                assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
                client.sendall(b"5;chunk-signature=0a\r\nhello\r\n0\r\nx-amz-checksum: 1\r\n\r\n")
                answer = http.client.HTTPResponse(client)
                answer.begin()
                assert answer.read() == b"ok"
        thread.join()
    head, _, body = received[0].partition(b"\r\n\r\n")
    assert b"Host: h:1" in head
    assert b"Expect" not in head
    assert body == b"5;chunk-signature=0a\r\nhello\r\n0\r\nx-amz-checksum: 1\r\n\r\n"


def _take_one(backend: socket.socket, received: list[bytes]) -> None:
    connection, _ = backend.accept()
    with connection:
        request = b""
        while not request.endswith(b"1\r\n\r\n"):
            request += connection.recv(65536)
        received.append(request)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")


def test_decisions_repeat_with_their_seed() -> None:
    """The same seed strikes the same calls at about the rate that was asked for; another seed strikes others."""
    rule = Rule(FaultKind.RESET, probability=0.2)
    call = Call(Operation.GET_OBJECT, "b/k")

    def struck(seed: int) -> list[int]:
        plan = FaultPlan([rule], seed)
        return [number for number in range(1000) if plan.fault_for(call)]

    assert struck(1) == struck(1) != struck(2)
    assert 150 < len(struck(1)) < 250


def test_rules_pick_their_calls() -> None:
    """A rule counts only the calls that it is about; a burst goes on with the next of them; the first rule wins."""
    plan = FaultPlan(
        [
            Rule(FaultKind.RESET, frozenset({Operation.GET_OBJECT}), pattern=r"/a$", calls=frozenset({2}), burst=2),
            Rule(FaultKind.SLOW_DOWN, calls=frozenset({4})),
        ]
    )
    about = [
        (Operation.GET_OBJECT, "b/a"),
        (Operation.GET_OBJECT, "b/other"),
        (Operation.HEAD_OBJECT, "b/a"),
        (Operation.GET_OBJECT, "b/a"),
        (Operation.GET_OBJECT, "b/a"),
        (Operation.GET_OBJECT, "b/a"),
    ]
    found = [plan.fault_for(Call(operation, place)) for operation, place in about]
    assert found == [None, None, None, FaultKind.RESET, FaultKind.RESET, None]


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("GET", "/b/k", Operation.GET_OBJECT),
        ("HEAD", "/b/k", Operation.HEAD_OBJECT),
        ("GET", "/b?list-type=2&prefix=a%2F", Operation.LIST_OBJECTS),
        ("PUT", "/b/k?x-id=PutObject", Operation.PUT_OBJECT),
        ("POST", "/b?delete", Operation.DELETE_OBJECTS),
        ("DELETE", "/b/k", Operation.DELETE_OBJECT),
        ("POST", "/b/k?uploads", Operation.CREATE_UPLOAD),
        ("PUT", "/b/k?partNumber=1&uploadId=u", Operation.UPLOAD_PART),
        ("POST", "/b/k?uploadId=u", Operation.COMPLETE_UPLOAD),
        ("DELETE", "/b/k?uploadId=u", Operation.ABORT_UPLOAD),
        ("PUT", "/b", Operation.BUCKET),
        ("HEAD", "/b/", Operation.BUCKET),
    ],
)
def test_requests_are_known_by_their_looks(method: str, target: str, expected: Operation) -> None:
    """Every call that the compactor and S3A make is told by method, path and query."""
    assert call_of(method, target, copies=False, creates=False).operation is expected


def test_conditions_and_sources_make_other_calls() -> None:
    """A put that may only create, and one that copies, are kinds of their own; keys come decoded."""
    assert call_of("PUT", "/b/a%20b", copies=False, creates=True) == Call(Operation.CREATE_OBJECT, "b/a b")
    assert call_of("PUT", "/b/k", copies=True, creates=False).operation is Operation.COPY_OBJECT
    assert call_of("PUT", "/b/k?partNumber=1&uploadId=u", copies=True, creates=False).operation is Operation.COPY_PART
    assert call_of("GET", "/b?list-type=2&prefix=a%2F", copies=False, creates=False).place == "b/a/"


def test_faults_that_cannot_be_are_not_thought_of() -> None:
    """Only listings are stale, and only answers with a body are cut."""
    assert [each for each in Operation if applies(FaultKind.STALE_LISTING, each)] == [Operation.LIST_OBJECTS]
    assert not applies(FaultKind.TRUNCATED_BODY, Operation.HEAD_OBJECT)
    assert all(applies(FaultKind.SLOW_DOWN, each) for each in Operation)


def test_a_server_is_left_with_its_folder(tmp_path: Path) -> None:
    """The server ends with its block: nothing listens there any more."""
    with s3_server(tmp_path / "data") as server:
        port = urlsplit(server.url).port
        assert port is not None
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


READER = """
import sys, urllib.request
try:
    urllib.request.urlopen(sys.argv[1])
except OSError as exc:
    sys.exit(str(exc))
"""


@pytest.mark.parametrize(("name", "status"), [("pyspark.worker", -signal.SIGKILL), ("driver", 1)])
def test_a_worker_that_reads_is_killed_and_any_other_process_is_not(proxy: FaultProxy, name: str, status: int) -> None:
    """The one at the other end of the connection; what else asks sees its connection reset."""
    proxy.use([Rule(FaultKind.KILLED_WORKER, probability=1.0)])
    asked = f"{proxy.url}/{BUCKET}/killer"
    reader = subprocess.run([sys.executable, "-c", READER, asked, name], capture_output=True, check=False, timeout=20)
    assert reader.returncode == status, reader.stderr
    assert proxy.traffic.faults()[FaultKind.KILLED_WORKER] == (status < 0)
