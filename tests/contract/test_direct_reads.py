"""Ranges of objects that are read without the client: the same bytes and errors, in one request each."""

import base64
import hashlib
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import botocore.auth
import pytest
from botocore.auth import S3SigV4Auth, _host_from_url
from botocore.awsrequest import AWSRequest, AWSResponse, HeadersDict
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from compactor.adapters.aws.clients import aws_client, s3_client
from compactor.adapters.aws.s3 import connections, direct_reads
from compactor.adapters.aws.s3.store import S3Store
from compactor.core.errors import (
    CredentialsMissing,
    CredentialsRefused,
    ObjectChanged,
    ObjectNotFound,
    StoreUnavailable,
)
from tests.support.http_server import serving
from tests.support.tls import Authority

REGION = "eu-west-1"
KEYS = [
    "plain",
    "a/b/c",
    "a//b",
    "/first",
    "sp ace",
    "pl+us",
    "50%",
    "%41",
    "ü/ñ",
    "q?x=1&y",
    "ha#sh",
    "~.-_!*'()",
    "a\\b",
    "=:@,;$",
]


class Counted:
    """A store, how many of its reads the client made, and all requests that were sent.

    Args:
        client: The client of S3.
        answer: Answers in place of a server.
    """

    def __init__(self, client: Any, answer: Callable[[Any], Any] | None = None) -> None:
        self.client = client
        self.store = S3Store(client, sleep=lambda _: None)
        self.by_client = 0
        self.sent: list[Any] = []
        self.answer = answer
        direct = self.store._direct._connections
        self._send, client._endpoint.http_session.send = client._endpoint.http_session.send, self._send_noted
        self._get, direct.get = direct.get, self._get_noted  # type: ignore[method-assign]
        client.meta.events.register("before-call.s3.GetObject", self._note)

    def _send_noted(self, request: Any) -> Any:
        self.sent.append(request)
        return self._send(request) if self.answer is None else self.answer(request)

    def _get_noted(self, url: str, headers: Mapping[str, str], max_bytes: int) -> connections.Answer:
        request = SimpleNamespace(url=url, headers=headers)
        self.sent.append(request)
        if self.answer is None:
            return self._get(url, headers, max_bytes)
        told = self.answer(request)
        return connections.Answer(told.status_code, {k.lower(): v for k, v in told.headers.items()}, told.raw.read())

    def _note(self, **_: object) -> None:
        self.by_client += 1


@pytest.fixture
def counted(aws_endpoint: str) -> Counted:
    return Counted(s3_client(REGION, aws_endpoint))


@pytest.mark.parametrize("key", KEYS)
def test_any_key_is_found(key: str, counted: Counted, bucket: str) -> None:
    """A key is spelled in the request as the client spells it, whatever characters it has."""
    counted.store.put(f"s3://{bucket}/{key}", key.encode())
    counted.store.put(f"s3://{bucket}/other", b"1")
    counted.store.read_range(f"s3://{bucket}/other", 0, 100)
    for _ in range(2):
        assert counted.store.read_range(f"s3://{bucket}/{key}", 0, 100) == key.encode()
    assert counted.by_client == 1


def test_one_read_by_the_client_shows_how_for_its_bucket(counted: Counted, bucket: str) -> None:
    """All later reads of the bucket are direct, from any thread; another bucket has to be shown anew."""
    other = f"{bucket}-other"
    counted.client.create_bucket(Bucket=other, CreateBucketConfiguration={"LocationConstraint": REGION})
    for place in (bucket, other):
        counted.store.put(f"s3://{place}/k", b"0123456789")
    uri = f"s3://{bucket}/k"
    assert counted.store.read_range(uri, 0, 4) == b"0123"
    counted.sent.clear()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: counted.store.read_range(uri, 2, 4), range(50))) == {b"2345"}
    assert (counted.by_client, len(counted.sent)) == (1, 50)
    assert counted.store.read_range(f"s3://{other}/k", 8, 4) == b"89"
    assert counted.by_client == 2


def test_the_answers_are_those_of_the_client(counted: Counted, bucket: str) -> None:
    """Versions, ends and missing objects are told as if the client had read."""
    uri = f"s3://{bucket}/k"
    counted.store.put(uri, b"0123456789")
    counted.store.put(f"s3://{bucket}/empty", b"")
    info = counted.store.stat(uri)
    assert info is not None
    for _ in range(2):
        assert counted.store.read_range(uri, 0, 4, etag=info.etag) == b"0123"
        assert counted.by_client == 1
    assert counted.store.read_range(uri, 10, 4, etag=info.etag) == b""
    assert counted.store.read_range(f"s3://{bucket}/empty", 0, 4) == b""
    assert counted.by_client == 3
    with pytest.raises(ObjectChanged, match=r"/k: GetObject failed with PreconditionFailed"):
        counted.store.read_range(uri, 0, 4, etag="of-another-version")
    with pytest.raises(ObjectNotFound, match="/gone"):
        counted.store.read_range(f"s3://{bucket}/gone", 0, 4)
    assert counted.by_client == 5
    assert counted.store.read_range(uri, 0, 4) == b"0123"  # none of these is trouble of direct reads
    assert counted.by_client == 5


def test_credentials_may_change(counted: Counted, bucket: str) -> None:
    """Each request is signed by the credentials of its moment."""
    uri = f"s3://{bucket}/k"
    counted.store.put(uri, b"0")
    counted.store.read_range(uri, 0, 1)
    counted.sent.clear()
    counted.client._request_signer._credentials = Credentials("rotated", "secret", "token")
    assert counted.store.read_range(uri, 0, 1) == b"0"
    headers = counted.sent[0].headers
    assert "Credential=rotated/" in headers["authorization"]
    assert headers["x-amz-security-token"] == "token"
    assert counted.by_client == 1


def test_credentials_that_cannot_be_renewed_are_told_as_by_the_client(counted: Counted, bucket: str) -> None:
    """STS answers with an error of its own kind."""
    uri = f"s3://{bucket}/k"
    counted.store.put(uri, b"0")
    counted.store.read_range(uri, 0, 1)

    class Expired(Credentials):
        def get_frozen_credentials(self) -> Any:
            raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "AssumeRole")

    counted.client._request_signer._credentials = None
    with pytest.raises(CredentialsMissing):
        counted.store.read_range(uri, 0, 1)
    counted.client._request_signer._credentials = Expired("a", "b")
    with pytest.raises(CredentialsRefused, match="ExpiredToken"):
        counted.store.read_range(uri, 0, 1)


CONTENT = b"0123456789"
WITHOUT_CHECKSUM = {"Content-Length": "10", "Content-Range": "bytes 0-9/10"}


class _Raw(BytesIO):
    """The body of an answer, as botocore reads it in a stream."""

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()


def _in_place_of_aws(request: Any) -> AWSResponse:
    """Ten bytes for a range, and a session for who asks for one."""
    if request.url.endswith("?session"):
        told = "".join(
            f"<{name}>{value}</{name}>"
            for name, value in {
                "SessionToken": "t",
                "SecretAccessKey": "s",
                "AccessKeyId": "a",
                "Expiration": "2099-01-01T00:00:00Z",
            }.items()
        )
        body = f"<CreateSessionResult><Credentials>{told}</Credentials></CreateSessionResult>".encode()
        return AWSResponse(request.url, 200, HeadersDict({}), _Raw(body))
    return AWSResponse(request.url, 206, HeadersDict(WITHOUT_CHECKSUM), _Raw(CONTENT))


@pytest.fixture
def at_aws(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """A store at AWS, with an answer in place of its servers."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "c")
    return Counted(s3_client(REGION), _in_place_of_aws)


_EACH_TIME = {"authorization", "x-amz-date", "amz-sdk-invocation-id", "amz-sdk-request"}
_WHEN_SENT = {"host"}  # the client's connection adds it


@pytest.mark.parametrize(
    "bucket", ["plain", "with.dots", f"arn:aws:s3:{REGION}:123456789012:accesspoint:name", "name-123456789012-s3alias"]
)
def test_a_request_is_that_of_the_client(bucket: str, at_aws: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """URL, scope of the signature and headers are the same; what differs is made for each request."""
    for _ in range(2):
        assert at_aws.store.read_range(f"s3://{bucket}/a b/%", 0, 10, etag="e") == CONTENT
    assert at_aws.by_client == 1
    by_client, direct = at_aws.sent
    assert direct.url == by_client.url

    def headers(request: Any) -> dict[str, str]:
        texts = {name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()}
        return {name.lower(): text for name, text in texts.items()}

    def scope(request: Any) -> str:
        return headers(request)["authorization"].partition("Credential=")[2].partition(",")[0]

    def others(request: Any) -> dict[str, str]:
        return {name: text for name, text in headers(request).items() if name not in _EACH_TIME | _WHEN_SENT}

    assert scope(direct) == scope(by_client) != ""
    assert others(direct) == others(by_client)
    assert direct.headers["host"] == urlsplit(direct.url).netloc == by_client.url.split("/")[2]
    assert {"range", "if-match", "x-amz-checksum-mode", "user-agent"} <= others(direct).keys()
    assert direct.headers["authorization"] == _signature_of_botocore(direct, at_aws, monkeypatch)


def _signature_of_botocore(direct: Any, at_aws: Counted, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the request that was sent, at the time that it states, which is now."""
    at = datetime.strptime(direct.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=5)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: at)
    request = AWSRequest("GET", direct.url, dict(direct.headers))
    credentials = at_aws.client._request_signer._credentials.get_frozen_credentials()
    S3SigV4Auth(credentials, "s3", REGION).add_auth(request)
    return str(request.headers["Authorization"])


def test_a_bucket_with_other_signatures_is_left_to_the_client(at_aws: Counted) -> None:
    """A directory bucket is read by the client, and not like the bucket that was read before."""
    at_aws.store.read_range("s3://plain/k", 0, 10)
    for by_client in (2, 3):
        at_aws.store.read_range("s3://dir--euw1-az1--x-s3/k", 0, 10)
        assert at_aws.by_client == by_client


def test_threads_learn_each_from_its_own_request(at_aws: Counted) -> None:
    """While one thread waits for its first answer from a bucket, another thread reads from a second one."""
    waiting, go = threading.Event(), threading.Event()

    def slow_for_one(request: Any) -> AWSResponse:
        if "//one." in request.url and not waiting.is_set():
            waiting.set()
            assert go.wait(10)
        return _in_place_of_aws(request)

    at_aws.answer = slow_for_one
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(at_aws.store.read_range, "s3://one/k", 0, 10)
        assert waiting.wait(10)
        at_aws.store.read_range("s3://two/k", 0, 10)
        go.set()
        reading.result()
    at_aws.sent.clear()
    for bucket in ("one", "two"):
        at_aws.store.read_range(f"s3://{bucket}/k", 0, 10)
        assert f"//{bucket}." in at_aws.sent[-1].url
    assert at_aws.by_client == 2


def _checksum(data: bytes) -> str:
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


SOUND = {**WITHOUT_CHECKSUM, "x-amz-checksum-crc32": _checksum(CONTENT)}

Answer = Callable[[BaseHTTPRequestHandler], None]


def _answered(status: int, headers: dict[str, str], body: bytes = CONTENT) -> Answer:
    def answer(asked: BaseHTTPRequestHandler) -> None:
        asked.send_response(status)
        for name, value in headers.items():
            asked.send_header(name, value)
        asked.end_headers()
        asked.wfile.write(body)

    return answer


def _hang_up(asked: BaseHTTPRequestHandler) -> None:
    asked.close_connection = True


def _head_alone(status: int, end: bytes = b"\r\n") -> Answer:
    def answer(asked: BaseHTTPRequestHandler) -> None:
        asked.wfile.write(f"HTTP/1.1 {status} Text\r\nServer: x\r\n".encode() + end)
        asked.close_connection = True

    return answer


def _with_checksum(name: str, value: str) -> Answer:
    return _answered(206, {**WITHOUT_CHECKSUM, f"x-amz-checksum-{name}": value})


def _in_version(version: str) -> Answer:
    def answer(asked: BaseHTTPRequestHandler) -> None:
        asked.protocol_version = version
        _answered(206, SOUND)(asked)

    return answer


def _digest(name: str, data: bytes) -> str:
    return base64.b64encode(hashlib.new(name, data).digest()).decode()


SPOILED = {
    "other bytes": _answered(206, SOUND, b"0123456780"),
    **{
        f"{name} of other bytes": _with_checksum(name, _digest(name, b"other")) for name in ("sha1", "sha256", "sha512")
    },
    "a part": _answered(206, SOUND, CONTENT[:5]),
    "other bytes of a part": _answered(
        206,
        {
            "Content-Length": "100",
            "Content-Range": "bytes 0-99/200",
            "x-amz-checksum-crc32": _checksum(bytes(100)),
        },
        CONTENT * 10,
    ),
    "another range": _answered(206, {**SOUND, "Content-Range": "bytes 1-10/20"}),
    "a shorter range than told": _answered(206, {**SOUND, "Content-Range": "bytes 0-99/100"}),
    "a shorter range than asked for": _answered(206, {**SOUND, "Content-Range": "bytes 0-9/100"}),
    "no range": _answered(206, {"Content-Length": "10"}),
    "more than asked for": _answered(206, {"Content-Length": "101", "Content-Range": "bytes 0-100/101"}, bytes(101)),
    "in chunks": _answered(206, {**WITHOUT_CHECKSUM, "Transfer-Encoding": "chunked"}, b"a\r\n0123456789\r\n0\r\n\r\n"),
    "two lengths": _answered(206, SOUND | {"content-length": "10"}),
    "too many headers": _answered(206, SOUND | {f"X-{n}": "" for n in range(100)}),
    "a line that is no header": _answered(206, SOUND | {"X\r\nabc\r\nY": ""}),
    "an old version": _in_version("HTTP/1.0"),
    "no status": _in_version("GARBAGE"),
    "no length": _answered(206, {"Content-Range": "bytes 0-9/10", "Connection": "close"}),
    "the whole object": _answered(200, {"Content-Length": "10"}),
    "busy": _answered(503, {"Content-Length": "0"}, b""),
    "elsewhere": _answered(301, {"Content-Length": "0", "Location": "/other"}, b""),
    "refused": _answered(403, {"Content-Length": "0"}, b""),
    "hung up": _hang_up,
    "hung up within the head": _head_alone(206, end=b""),
}


SOUND_TOO = {
    "no checksum": _answered(206, WITHOUT_CHECKSUM),
    "of parts": _with_checksum("crc32", "AAAAAA==-3"),
    "unknown": _with_checksum("crc64nvme", "AAAAAAAAAAA="),
    "what was stored with it": _answered(206, {**SOUND, "Content-Encoding": "gzip"}),
    "its type": _answered(206, {**SOUND, "x-amz-checksum-type": "FULL_OBJECT"}),
    **{name: _with_checksum(name, _digest(name, CONTENT)) for name in ("sha1", "sha256", "sha512")},
}


class _Server(ThreadingHTTPServer):
    """Answers as it is told next, and soundly after that."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.told: list[Answer] = []
        self.url = ""
        self.connections = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body would wait for its head to be acknowledged

    def setup(self) -> None:
        self.server.connections += 1  # type: ignore[attr-defined]
        super().setup()

    def do_GET(self) -> None:
        told = self.server.told  # type: ignore[attr-defined]
        answer = told.pop(0) if told else _answered(206, SOUND)
        answer(self)
        self.close_connection |= answer in SPOILED.values()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    started = _Server()
    with serving(started) as started.url:
        yield started


@pytest.mark.usefixtures("aws_endpoint")
@pytest.mark.parametrize("spoiled", SPOILED)
def test_anything_but_a_sound_answer_is_left_to_the_client(
    spoiled: str, server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client asks again, and so for a while; later reads are direct again."""
    monkeypatch.setattr(direct_reads, "CLIENT_READS_AFTER_FAILURE", 3)
    counted = Counted(s3_client(REGION, server.url))

    def read() -> int:
        assert counted.store.read_range("s3://b/k", 0, 100) == CONTENT
        return counted.by_client

    assert [read(), read()] == [1, 1]
    server.told = [SPOILED[spoiled]]
    assert [read() for _ in range(6)] == [2, 3, 4, 5, 5, 5]


@pytest.mark.usefixtures("aws_endpoint")
def test_an_unsigned_client_reads_by_itself(server: _Server) -> None:
    """Nothing is signed in place of a client that does not sign."""
    counted = Counted(aws_client("s3", REGION, server.url, is_signed=False))
    for by_client in (1, 2):
        assert counted.store.read_range("s3://b/k", 0, 100) == CONTENT
        assert counted.by_client == by_client


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://LOCALHOST:80/b/k", "localhost"),
        ("https://h:443/b/k", "h"),
        ("https://h:80/b/k", "h:80"),
        ("http://user:word@h:9000/b/k", "h:9000"),
        ("http://[::1]:9000/b/k", "[::1]:9000"),
    ],
)
def test_a_host_is_spelled_as_it_is_signed(url: str, host: str) -> None:
    """As the client spells it, for servers and balancers that compare."""
    assert direct_reads._host(url) == _host_from_url(url) == host


@pytest.mark.usefixtures("aws_endpoint")
def test_an_answer_that_does_not_come_is_left_to_the_client(server: _Server) -> None:
    """A connection that a direct read has opened waits no longer than those of the client."""
    counted = Counted(aws_client("s3", REGION, server.url, timeout_seconds=0.5))
    waiting = threading.Event()
    server.told = [_answered(206, SOUND | {"Connection": "close"}), lambda _: waiting.wait(30)]
    try:
        for by_client in (1, 2):
            assert counted.store.read_range("s3://b/k", 0, 100) == CONTENT
            assert counted.by_client == by_client
    finally:
        waiting.set()


@pytest.mark.usefixtures("aws_endpoint")
def test_what_goes_through_a_proxy_is_left_to_the_client(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request goes past the proxy, though the server itself could be reached."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", server.url)
    counted = Counted(s3_client(REGION, server.url))
    for by_client in (1, 2):
        assert counted.store.read_range("s3://b/k", 0, 100) == CONTENT
        assert counted.by_client == by_client


def test_no_header_ends_early(counted: Counted) -> None:
    """The version in a manifest is any text."""
    for spoiled in ('"a"\r\nX-Other: b', '"a"\n', "\0"):
        with pytest.raises(ValueError, match="a character that may end it"):
            connections.Connections(counted.client).get("http://s3.test/b/k", {"If-Match": spoiled}, 10)


@pytest.mark.usefixtures("aws_endpoint")
@pytest.mark.parametrize("sound", SOUND_TOO)
def test_a_checksum_that_no_client_compares_is_passed_over(sound: str, server: _Server) -> None:
    """An answer without a checksum, with that of parts, or with one that needs a further library, is sound."""
    counted = Counted(s3_client(REGION, server.url))
    counted.store.read_range("s3://b/k", 0, 100)
    server.told = [SOUND_TOO[sound]]
    assert counted.store.read_range("s3://b/k", 0, 100) == CONTENT
    assert counted.by_client == 1


@pytest.mark.usefixtures("aws_endpoint")
@pytest.mark.parametrize("changed", ["_endpoint", "_endpoint.http_session", "_proxy_config", "_manager", "_get_conn"])
def test_a_client_that_keeps_its_connections_elsewhere_makes_all_reads(changed: str, server: _Server) -> None:
    """As another release of botocore or of urllib3 may do."""
    client = s3_client(REGION, server.url)
    session = client._endpoint.http_session
    counted = Counted(client)
    direct = counted.store._direct._connections
    if changed.startswith("_endpoint"):
        made = SimpleNamespace(_endpoint=SimpleNamespace()) if changed.endswith("session") else SimpleNamespace()
        counted.store._direct._connections = connections.Connections(made)
    elif changed == "_get_conn":
        pools = SimpleNamespace(connection_from_url=lambda _: SimpleNamespace(timeout=None, _put_conn=None))
        direct._session = SimpleNamespace(_proxy_config=session._proxy_config, _manager=pools)
    else:
        kept = {"_proxy_config": session._proxy_config, "_manager": session._manager}
        del kept[changed]
        direct._session = SimpleNamespace(**kept)
    for by_client in (1, 2, 3):
        assert counted.store.read_range("s3://b/k", 0, 100) == CONTENT
        assert counted.by_client == by_client


@pytest.mark.usefixtures("aws_endpoint")
def test_a_connection_is_used_again(server: _Server) -> None:
    """Each would take a handshake."""
    counted = Counted(s3_client(REGION, server.url))
    for _ in range(20):
        assert counted.store.read_range("s3://b/k", 0, 100) == CONTENT
    assert (counted.by_client, server.connections) == (1, 1)


@pytest.mark.usefixtures("aws_endpoint")
def test_nothing_unread_is_left_to_the_next_answer(server: _Server) -> None:
    """What is not read of an answer would be taken for the next one."""
    counted = Counted(s3_client(REGION, server.url))
    counted.store.read_range("s3://b/k", 0, 100)
    body = b"HTTP/1.1 206 OK\r\nContent-Length: 10\r\nContent-Range: bytes 0-9/10\r\n\r\nabcdefghij"

    def missing(asked: BaseHTTPRequestHandler) -> None:
        _answered(404, {"Content-Length": str(len(body))}, b"")(asked)
        time.sleep(0.2)  # so that the connection looks idle
        with suppress(OSError):
            asked.wfile.write(body)

    server.told = [missing]
    for _ in range(2):
        assert counted.store.read_range("s3://b/k", 0, 100) == CONTENT
    assert (counted.by_client, server.connections) == (2, 2)


@pytest.mark.usefixtures("aws_endpoint")
def test_a_direct_read_trusts_whom_the_client_trusts(
    server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a connection that it opens itself, too."""
    trusted, other = (Authority.make(tmp_path, name) for name in ("trusted", "other"))
    monkeypatch.setenv("AWS_CA_BUNDLE", str(trusted.file))
    url = server.url.replace("http:", "https:")
    counted = Counted(s3_client(REGION, url))
    tls = trusted.secure(server)
    server.told = [_answered(206, SOUND | {"Connection": "close"})] * 2
    for _ in range(2):
        assert counted.store.read_range("s3://b/k", 0, 100) == CONTENT
    assert (counted.by_client, server.connections) == (1, 2)
    tls.load_cert_chain(other.server("wrong", "127.0.0.1"))
    with pytest.raises(ssl.SSLCertVerificationError):
        counted.store._direct._connections.get(f"{url}/b/k", {}, 100)


@pytest.mark.usefixtures("aws_endpoint")
def test_an_answer_without_a_length_is_no_empty_object(server: _Server) -> None:
    """It may end anywhere, and the client takes it as it comes; a listing would have no objects."""
    store = S3Store(s3_client(REGION, server.url), sleep=lambda _: None)
    for read, whole in (
        (store.read, _answered(200, {"Content-Length": "10"}, CONTENT)),
        (lambda uri: store.read_range(uri, 0, 100), _answered(206, SOUND)),
    ):
        server.told = [*[_head_alone(206)] * 2, whole]
        assert read("s3://b/k") == CONTENT
    server.told = [_head_alone(200)]
    with pytest.raises(StoreUnavailable, match="s3://b/k: the listing got an empty response"):
        list(store.list("s3://b/k"))
