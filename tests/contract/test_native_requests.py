"""Objects whose bytes the native client of HTTP moves: what boto3 would have read, written or raised."""

import base64
import hashlib
import os
import signal
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from compactor.adapters.aws.clients import aws_client, s3_client
from compactor.adapters.aws.s3 import native_requests
from compactor.adapters.aws.s3.native_requests import NativeRequests
from compactor.adapters.aws.s3.store import S3Store
from compactor.core.errors import CredentialsMissing, CredentialsRefused, ObjectChanged, ObjectNotFound
from tests.support import extras
from tests.support.http_server import serving
from tests.support.tls import Authority

extras.NATIVE.need()

REGION = "eu-west-1"
KEYS = [
    "plain",
    "a/b/c",
    "a//b",
    "/first",
    "a/./b",
    "a/../b",
    "..",
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
CONTENT = b"0123456789"
WITHOUT_CHECKSUM = {"Content-Length": "10", "Content-Range": "bytes 0-9/10"}


class Counted:
    """A store, and how many of its requests boto3 sent itself."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.store = S3Store(client, sleep=lambda _: None)
        self.by_boto3 = 0
        session = client._endpoint.http_session
        self._send, session.send = session.send, self._send_noted

    def _send_noted(self, request: Any) -> Any:
        self.by_boto3 += 1
        return self._send(request)

    def read(self) -> bytes:
        return self.store.read_range("s3://b/k", 0, 100)


def _checksum(data: bytes) -> str:
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


SOUND = {**WITHOUT_CHECKSUM, "x-amz-checksum-crc32": _checksum(CONTENT)}

Answer = Callable[["_Handler"], None]


def _answered(status: int, headers: dict[str, str], body: bytes = CONTENT) -> Answer:
    def answer(asked: "_Handler") -> None:
        asked.send_response(status)
        for name, value in headers.items():
            asked.send_header(name, value)
        asked.end_headers()
        asked.wfile.write(body)

    return answer


def _hang_up(asked: "_Handler") -> None:
    asked.close_connection = True


def _head_alone(status: int, end: bytes = b"\r\n") -> Answer:
    def answer(asked: "_Handler") -> None:
        asked.wfile.write(f"HTTP/1.1 {status} Text\r\nServer: x\r\n".encode() + end)
        asked.close_connection = True

    return answer


def _with_checksum(name: str, value: str) -> Answer:
    return _answered(206, {**WITHOUT_CHECKSUM, f"x-amz-checksum-{name}": value})


def _in_version(version: str) -> Answer:
    def answer(asked: "_Handler") -> None:
        asked.protocol_version = version
        _answered(206, SOUND)(asked)

    return answer


def _digest(name: str, data: bytes) -> str:
    return base64.b64encode(hashlib.new(name, data).digest()).decode()


SUMS = {
    "crc32": _checksum(CONTENT),
    "crc32c": "KAwGng==",
    "crc64nvme": "Ffmx7kz9nB0=",
    **{name: _digest(name, CONTENT) for name in ("sha1", "sha256", "sha512")},
}

UNSOUND = {
    "other bytes": _answered(206, SOUND, b"0123456780"),
    **{f"{name} of other bytes": _with_checksum(name, "AAAA" + value[4:]) for name, value in SUMS.items()},
    "a part": _answered(206, SOUND, CONTENT[:5]),
    "a shorter range than told": _answered(206, {**SOUND, "Content-Length": "100", "Content-Range": "bytes 0-99/100"}),
    "more than asked for": _answered(206, {"Content-Length": "101", "Content-Range": "bytes 0-100/101"}, bytes(101)),
    "in chunks": _answered(206, {**WITHOUT_CHECKSUM, "Transfer-Encoding": "chunked"}, b"a\r\n0123456789\r\n0\r\n\r\n"),
    "two lengths": _answered(206, SOUND | {"content-length": "10"}),
    "too many headers": _answered(206, SOUND | {f"X-{n}": "" for n in range(100)}),
    "a line that is no header": _answered(206, SOUND | {"X\r\nabc\r\nY": ""}),
    "an old version": _in_version("HTTP/1.0"),
    "no status": _in_version("GARBAGE"),
    "no length": _answered(206, {"Content-Range": "bytes 0-9/10", "Connection": "close"}),
    "more than told": _answered(206, {**SOUND, "Content-Length": "5"}),
    "go on": _answered(100, {"Content-Length": "0"}, b""),
    "hung up": _hang_up,
    "hung up within the head": _head_alone(206, end=b""),
    "a refusal in part": _answered(403, {"Content-Length": "10"}, b""),
    "a busy server in part": _head_alone(503, end=b"Content-Length: 1"),
}
"""What counts as no answer: boto3 sends the request itself."""

OTHERS = {
    "another range": _answered(206, {**WITHOUT_CHECKSUM, "Content-Range": "bytes 1-10/20"}),
    "a shorter range than asked for": _answered(206, {**SOUND, "Content-Range": "bytes 0-9/100"}),
    "no range": _answered(206, {"Content-Length": "10"}),
    "the whole object": _answered(200, {"Content-Length": "10"}),
    "refused": _answered(403, {"Content-Length": "0"}, b""),
    "elsewhere": _answered(301, {"Content-Length": "0", "Location": "/other"}, b""),
    "busy": _answered(503, {"Content-Length": "0"}, b""),
    "a fault": _answered(500, {"Content-Length": "10"}),
}
"""Whole answers, which do not have the range that was asked for."""

SOUND_TOO = {
    "no checksum": _answered(206, WITHOUT_CHECKSUM),
    "of parts": _with_checksum("crc32", "AAAAAA==-3"),
    "unknown": _with_checksum("xxhash64", "AAAAAAAAAAA="),
    "what was stored with it": _answered(206, {**SOUND, "Content-Encoding": "gzip"}),
    "its type": _answered(206, {**SOUND, "x-amz-checksum-type": "FULL_OBJECT"}),
    **{name: _with_checksum(name, value) for name, value in SUMS.items()},
}


class _Server(ThreadingHTTPServer):
    """Answers as it is told next, and soundly after that."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.told: list[Answer] = []
        self.url = ""
        self.asked: list[_Asked] = []
        self.connections = 0

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients hang up on purpose."""


@dataclass
class _Asked:
    """A request that arrived."""

    path: str
    headers: dict[str, str]
    body: bytes = field(repr=False)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body would wait for its head to be acknowledged
    server: _Server

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(_Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        told = self.server.told
        usual = _answered(206, SOUND) if self.command == "GET" else _answered(200, STORED, b"")
        answer = told.pop(0) if told else usual
        answer(self)
        self.close_connection |= answer in UNSOUND.values()

    do_PUT = do_GET  # noqa: N815 - a name that http.server looks for

    def log_message(self, *_: Any) -> None:
        pass


STORED = {"Content-Length": "0", "ETag": '"e"'}


@pytest.fixture
def server(aws_endpoint: str) -> Iterator[_Server]:  # noqa: ARG001 - credentials come with it
    started = _Server()
    with serving(started) as started.url:
        yield started


@pytest.fixture
def counted(aws_endpoint: str) -> Counted:
    return Counted(s3_client(REGION, aws_endpoint))


@pytest.fixture(params=["http", "https"])
def fed(request: pytest.FixtureRequest, server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """A store on the server, over plain connections and over TLS."""
    if request.param == "https":
        authority = Authority.make(tmp_path, "of-the-server")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.file))
        authority.secure(server)
    return Counted(s3_client(REGION, server.url.replace("http:", f"{request.param}:")))


@pytest.mark.parametrize("key", KEYS)
def test_any_key_is_found(key: str, counted: Counted, bucket: str) -> None:
    """A key is spelled in the request as boto3 spells it, whatever characters it has."""
    counted.store.put(f"s3://{bucket}/{key}", key.encode())
    assert counted.store.read_range(f"s3://{bucket}/{key}", 0, 100) == key.encode()
    assert counted.by_boto3 == 0
    found = counted.client.list_objects_v2(Bucket=bucket)["Contents"]
    assert [each["Key"] for each in found] == [key]


def test_the_answers_are_those_of_boto3(counted: Counted, bucket: str) -> None:
    """Versions, ends and missing objects are told as if boto3 had asked."""
    uri = f"s3://{bucket}/k"
    counted.store.put(uri, CONTENT)
    counted.store.put(f"s3://{bucket}/empty", b"")
    info = counted.store.stat(uri)
    assert info is not None
    counted.by_boto3 = 0
    assert counted.store.read_range(uri, 2, 4, etag=info.etag) == b"2345"
    assert counted.store.read_range(uri, 8, 4) == b"89"
    assert counted.store.read_range(uri, 10, 4, etag=info.etag) == b""
    assert counted.store.read_range(f"s3://{bucket}/empty", 0, 4) == b""
    assert counted.store.read(uri) == CONTENT
    with pytest.raises(ObjectChanged, match=r"/k: GetObject failed with PreconditionFailed"):
        counted.store.read_range(uri, 0, 4, etag="of-another-version")
    with pytest.raises(ObjectNotFound, match="/gone"):
        counted.store.read_range(f"s3://{bucket}/gone", 0, 4)
    assert counted.by_boto3 == 0


def test_what_is_written_is_there(counted: Counted, bucket: str) -> None:
    """In one request, in parts, and never over what is there."""
    whole, parts = os.urandom(3_700_000), os.urandom(40_000_000)
    for name, content in (("whole", whole), ("parts", parts), ("empty", b"")):
        with counted.store.new_writer(f"s3://{bucket}/{name}") as writer:
            writer.write(content)
    assert counted.by_boto3 == 2, "the beginning and the end of the upload"
    for name, content in (("whole", whole), ("parts", parts), ("empty", b"")):
        assert counted.store.read(f"s3://{bucket}/{name}") == content
    assert counted.store.create(f"s3://{bucket}/record", b"1")
    assert not counted.store.create(f"s3://{bucket}/record", b"2")
    assert counted.by_boto3 == 2


def test_each_request_is_signed_by_the_credentials_of_its_moment(fed: Counted, server: _Server) -> None:
    """Which expire while a job runs."""
    assert fed.read() == CONTENT
    fed.client._request_signer._credentials = Credentials("rotated", "secret", "token")
    assert fed.read() == CONTENT
    assert "X-Amz-Credential=rotated%2F" in server.asked[1].path
    assert "X-Amz-Security-Token=token" in server.asked[1].path
    signed = parse_qs(urlsplit(server.asked[1].path).query)["X-Amz-SignedHeaders"]
    assert signed == ["host;range;x-amz-checksum-mode"]
    assert fed.by_boto3 == 0


def test_credentials_that_cannot_be_renewed_are_told_as_by_boto3(fed: Counted, server: _Server) -> None:
    """Those of the client, of STS, and those that S3 refuses."""

    class Expired(Credentials):
        def get_frozen_credentials(self) -> Any:
            raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "AssumeRole")

    refused = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
    server.told = [_answered(400, {"Content-Length": str(len(refused))}, refused)] * 2
    with pytest.raises(CredentialsRefused, match="ExpiredToken"):
        fed.read()
    fed.client._request_signer._credentials = None
    with pytest.raises(CredentialsMissing):
        fed.read()
    fed.client._request_signer._credentials = Expired("a", "b")
    with pytest.raises(CredentialsRefused, match="ExpiredToken"):
        fed.read()


@pytest.mark.parametrize("unsound", UNSOUND | OTHERS)
def test_boto3_makes_what_got_no_sound_answer(
    unsound: str, fed: Counted, server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so for a while; later requests are native again."""
    monkeypatch.setattr(native_requests, "LEFT_AFTER_FAILURE", 3)

    def by_boto3() -> int:
        assert fed.read() == CONTENT
        return fed.by_boto3

    assert by_boto3() == 0
    server.told = [(UNSOUND | OTHERS)[unsound]]
    assert [by_boto3() for _ in range(6)] == [1, 2, 3, 3, 3, 3]


@pytest.mark.parametrize("unsound", UNSOUND)
def test_boto3_sends_what_got_no_sound_answer(unsound: str, fed: Counted, server: _Server) -> None:
    """Its own requests, too."""
    server.told = [UNSOUND[unsound], _answered(200, {"Content-Length": "10"})]
    if unsound != "more than asked for":  # no range is
        assert fed.store.read("s3://b/k") == CONTENT
        assert fed.by_boto3 == 1


def test_a_whole_answer_goes_the_way_of_boto3(fed: Counted, server: _Server) -> None:
    """With its retries, which are native again."""
    whole = _answered(200, {"Content-Length": "10"})
    server.told = [OTHERS["busy"], OTHERS["a fault"], whole, OTHERS["busy"], _answered(200, STORED, b"")]
    assert fed.store.read("s3://b/k") == CONTENT
    fed.store.put("s3://b/k", CONTENT)
    assert (fed.by_boto3, len(server.asked)) == (0, 5)


@pytest.mark.parametrize("sound", SOUND_TOO)
def test_a_sound_answer_counts(sound: str, fed: Counted, server: _Server) -> None:
    """Without a checksum, with that of parts, with one that is unknown; and with each that is compared."""
    server.told = [SOUND_TOO[sound]]
    assert fed.read() == CONTENT
    assert fed.by_boto3 == 0


def test_a_lost_answer_to_a_new_object(fed: Counted, server: _Server) -> None:
    """boto3 sends the same request once more, and what is there by then is told as ever."""
    met = b"<Error><Code>PreconditionFailed</Code><Message>At least one did not hold</Message></Error>"
    refused, found = {"Content-Length": str(len(met))}, {"Content-Length": "1"}
    server.told = [_hang_up, _answered(412, refused, met), _answered(200, found, b"1")]
    assert fed.store.create("s3://b/k", b"1")
    assert [each.body for each in server.asked] == [b"1", b"1", b""]
    assert server.asked[0].headers["if-none-match"] == server.asked[1].headers["if-none-match"] == "*"
    assert server.asked[0].headers["x-amz-checksum-crc32"] == _checksum(b"1")


def test_an_unsigned_client_stays_unsigned(server: _Server) -> None:
    """Nothing is signed in place of a client that does not sign."""
    counted = Counted(aws_client("s3", REGION, server.url, is_signed=False))
    assert counted.read() == CONTENT
    assert "authorization" not in server.asked[0].headers
    assert server.asked[0].path == "/b/k"
    assert counted.by_boto3 == 0


def test_an_answer_that_does_not_come_is_left_to_boto3(server: _Server) -> None:
    """The native client waits no longer than boto3."""
    counted = Counted(aws_client("s3", REGION, server.url, timeout_seconds=0.5))
    waiting = threading.Event()
    server.told = [lambda _: waiting.wait(30) and None]
    try:
        assert counted.read() == CONTENT
        assert counted.by_boto3 == 1
    finally:
        waiting.set()


def test_a_signal_ends_a_wait(fed: Counted, server: _Server) -> None:
    """As Ctrl-C has to, within the time limit of a request."""

    class Stopped(BaseException):
        pass

    def stop(*_: object) -> None:
        raise Stopped

    waiting = threading.Event()
    server.told = [lambda _: waiting.wait(30) and None]
    before = signal.signal(signal.SIGUSR1, stop)
    ringing = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1))
    ringing.start()
    started = time.monotonic()
    try:
        with pytest.raises(Stopped):
            fed.read()
    finally:
        waiting.set()
        signal.signal(signal.SIGUSR1, before)
        ringing.join()
    assert time.monotonic() - started < 10
    assert fed.by_boto3 == 0


def test_what_goes_through_a_proxy_is_left_to_boto3(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request goes past the proxy, though the server itself could be reached."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", server.url)
    counted = Counted(s3_client(REGION, server.url))
    assert counted.read() == CONTENT
    assert counted.by_boto3 == 1


@pytest.mark.parametrize(
    ("config", "endpoint"),
    [
        (Config(proxies={"https": "http://proxy.test"}), "https://s3.test"),
        (Config(client_cert="own.pem"), "https://s3.test"),
        (Config(), "https://s3-fips.us-east-1.amazonaws.com"),
    ],
)
def test_what_the_native_client_cannot_do_is_left_to_boto3(config: Config, endpoint: str) -> None:
    """A proxy in the configuration, a certificate of the client, and validated cryptography."""
    registered: list[str] = []

    def register(event: str, _: object, **__: object) -> None:
        registered.append(event)

    def made(config: Any, endpoint: str) -> NativeRequests:
        events = SimpleNamespace(register=register, register_first=register)
        meta = SimpleNamespace(config=config, endpoint_url=endpoint, events=events)
        return NativeRequests(SimpleNamespace(meta=meta, generate_presigned_url=None))

    requests = made(config, endpoint)
    assert registered == []
    assert requests.read({"Bucket": "b", "Key": "k", "Range": "bytes=0-1"}) is None
    made(Config(), "https://s3.test")
    assert len(registered) == 4


def test_without_the_native_engine_boto3_sends_all(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the functions of Lambda."""
    monkeypatch.setattr(native_requests, "why_not_installed", lambda: "it is not")
    counted = Counted(s3_client(REGION, server.url))
    assert counted.read() == CONTENT
    counted.store.put("s3://b/k", b"1")
    assert counted.by_boto3 == 2


def test_a_body_that_is_not_in_memory_is_left_to_boto3(fed: Counted, server: _Server, tmp_path: Path) -> None:
    """It may be longer than memory."""
    (tmp_path / "file").write_bytes(b"1")
    with (tmp_path / "file").open("rb") as file:
        fed.client.put_object(Bucket="b", Key="k", Body=file)
    assert (fed.by_boto3, len(server.asked)) == (1, 1)


def test_a_connection_is_used_again(fed: Counted, server: _Server) -> None:
    """Each would take a handshake. As many as there are threads are open."""
    for _ in range(20):
        assert fed.read() == CONTENT
    assert server.connections == 1
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: fed.read(), range(50))) == {CONTENT}
    assert server.connections <= 4
    assert fed.by_boto3 == 0


def test_a_connection_that_the_server_ended_is_not_used_again(fed: Counted, server: _Server) -> None:
    """Whether it says so or not."""
    server.told = [_answered(206, SOUND | {"Connection": "close"}), _sound_and_gone]
    for _ in range(3):
        assert fed.read() == CONTENT
        time.sleep(0.2)
    assert (fed.by_boto3, server.connections) == (0, 3)


def _sound_and_gone(asked: _Handler) -> None:
    _answered(206, SOUND)(asked)
    asked.close_connection = True


def test_nothing_unread_is_left_to_the_next_answer(fed: Counted, server: _Server) -> None:
    """What is not read of an answer would be taken for the next one."""
    body = b"HTTP/1.1 206 OK\r\nContent-Length: 10\r\nContent-Range: bytes 0-9/10\r\n\r\nabcdefghij"

    def more(asked: _Handler) -> None:
        _answered(206, SOUND)(asked)
        time.sleep(0.2)  # so that the connection looks idle
        with suppress(OSError):
            asked.wfile.write(body)

    server.told = [more]
    assert fed.read() == CONTENT
    time.sleep(0.5)
    assert fed.read() == CONTENT
    assert (fed.by_boto3, server.connections) == (0, 2)


def test_processes_share_no_connection(fed: Counted, server: _Server) -> None:
    """A forked one opens its own, as workers of Spark do; that of its parent goes on."""
    assert fed.read() == CONTENT
    child = os.fork()
    if not child:
        is_sound = False
        with suppress(BaseException):
            is_sound = fed.read() == CONTENT and not fed.by_boto3
        os._exit(0 if is_sound else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert server.connections == 2
    assert fed.read() == CONTENT
    assert (fed.by_boto3, server.connections) == (0, 2)


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_the_native_client_trusts_whom_boto3_trusts(
    variable: str, server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no one else: not another authority, another host or a certificate of the past."""
    trusted, other = (Authority.make(tmp_path, name) for name in ("trusted", "other"))
    monkeypatch.setenv(variable, str(trusted.file))
    monkeypatch.setattr(native_requests, "LEFT_AFTER_FAILURE", 0)
    tls = trusted.secure(server)
    counted = Counted(aws_client("s3", REGION, server.url.replace("http:", "https:"), attempts=1))
    server.told = [_answered(206, SOUND | {"Connection": "close"})] * 2
    for _ in range(3):
        assert counted.read() == CONTENT
    assert (counted.by_boto3, server.connections) == (0, 3)
    with counted.store.new_writer("s3://b/new") as writer:
        writer.write(bytes(3_700_000))
    assert counted.by_boto3 == 0
    assert server.asked[-1].body == bytes(3_700_000)
    assert server.asked[-1].headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"
    asked = len(server.asked)
    for wrong in (
        other.server("untrusted", "127.0.0.1"),
        trusted.server("elsewhere", "s3.test"),
        trusted.server("expired", "127.0.0.1", (-20, -10)),
    ):
        tls.load_cert_chain(wrong)
        fresh = Counted(aws_client("s3", REGION, server.url.replace("http:", "https:"), attempts=1))
        with pytest.raises(Exception, match="s3://b/k"):
            fresh.read()
        assert fresh.by_boto3 > 0
    assert len(server.asked) == asked, "nothing was sent"


@pytest.mark.parametrize("length", [0, 1, 16_384, 65_536, 65_537, 300_000, 5_000_000])
def test_any_length_over_tls(length: int, server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records, buffers and pieces end where they like."""
    authority = Authority.make(tmp_path, "trusted")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.file))
    authority.secure(server)
    counted = Counted(s3_client(REGION, server.url.replace("http:", "https:")))
    body = os.urandom(length)
    headers = {"Content-Length": str(length), "x-amz-checksum-crc32": _checksum(body)}
    server.told = [_answered(200, headers, body)] * 2
    for _ in range(2):
        assert counted.store.read("s3://b/k") == body
    counted.store.put("s3://b/k", body)
    assert server.asked[-1].body == body
    assert (counted.by_boto3, server.connections) == (0, 1)
