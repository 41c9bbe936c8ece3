"""An answer of AWS that ends within its head is none, wherever it ends."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSHTTPConnectionPool

from compactor.adapters.aws import clients
from compactor.adapters.aws.clients import require_whole_heads, s3_client
from compactor.adapters.aws.s3 import native_requests
from compactor.adapters.aws.s3.store import S3Store
from compactor.core.errors import StoreUnavailable
from tests.support.http_server import serving
from tests.support.tls import Authority

REGION = "eu-west-1"
FOUND = (
    b'HTTP/1.1 200 OK\r\nx-amz-request-id: 1\r\nETag: "abc"\r\nLast-Modified: Sat, 28 Nov 2026 20:00:00 GMT\r\n'
    b"Content-Length: 2048\r\n\r\n"
)
REFUSED = b"HTTP/1.1 403 Forbidden\r\nServer: x\r\nContent-Length: 0\r\n\r\n"
STORED = b'HTTP/1.1 200 OK\r\nETag: "abc"\r\nContent-Length: 0\r\n\r\n'
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CUT = FOUND[: -len(b"48\r\n\r\n")]
SECONDS = 10.0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_HEAD(self) -> None:
        self.wfile.write(self.server.told.pop(0))
        self.close_connection = not self.server.keeps

    def handle_expect_100(self) -> bool:
        go_on, is_asked, told = self.server.told.pop(0).rpartition(CONTINUE)
        self.wfile.write(go_on + is_asked)
        if is_asked:
            self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(told)
        self.close_connection = not self.server.keeps
        return False

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    """Answers requests with these bytes in turn, each over a connection that then ends, unless it `keeps` them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.told: list[bytes] = []
        self.keeps = False
        self.url = ""


@pytest.fixture
def server(aws_endpoint: str) -> Iterator[_Server]:  # noqa: ARG001 - credentials come with it
    made = _Server()
    with serving(made) as made.url:
        yield made


@pytest.fixture(autouse=True)
def _boto3_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have boto3 send all requests, as without the native engine."""
    monkeypatch.setattr(native_requests, "why_not_installed", lambda: "left out")


def asking_once(url: str) -> S3Store:
    return S3Store(s3_client(REGION, url, attempts=1, timeout_seconds=SECONDS / 2))


def test_an_answer_may_end_nowhere_in_its_head(server: _Server) -> None:
    """Within the digits of a length, too: the object would be shorter."""
    store = asking_once(server.url)
    for end in range(len(FOUND)):
        server.told = [FOUND[:end]]
        with pytest.raises(StoreUnavailable, match="s3://b/k"):
            store.stat("s3://b/k")
    server.told = [FOUND]
    found = store.stat("s3://b/k")
    assert found is not None
    assert (found.size_bytes, found.etag) == (2048, "abc")


def test_the_client_asks_again(server: _Server) -> None:
    """As after a connection that broke."""
    server.told = [CUT, FOUND]
    found = S3Store(s3_client(REGION, server.url, attempts=2)).stat("s3://b/k")
    assert found is not None
    assert found.size_bytes == 2048


@pytest.mark.parametrize("told", [REFUSED[:-2], REFUSED[:-4], REFUSED[:30]])
def test_a_refusal_counts_only_if_it_is_whole(told: bytes, server: _Server) -> None:
    """It may be of any kind, so that no operator is needed; also if the body of the request was waited for."""
    store = asking_once(server.url)
    server.told = [told, told]
    with pytest.raises(StoreUnavailable, match="s3://b/k"):
        store.stat("s3://b/k")
    with pytest.raises(StoreUnavailable, match="s3://b/k"), store.writer("s3://b/k") as writer:
        writer.write(b"1")


@pytest.mark.parametrize("told", [b"HTTP/1.1 100 Continue\r\n", b"HTTP/1.1 100 Continue\r\nServer: x\r\n"])
def test_a_request_that_waits_to_go_on_does_not_wait_for_ever(told: bytes, server: _Server) -> None:
    """A body is sent once the server says so; a connection that ends before is one that broke."""
    errors: list[Exception] = []

    def write() -> None:
        try:
            with asking_once(server.url).writer("s3://b/k") as writer:
                writer.write(b"1")
        except StoreUnavailable as exc:
            errors.append(exc)

    server.told = [told]
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert len(errors) == 1


def test_an_answer_before_the_body_is_not_that_of_the_next_request(server: _Server) -> None:
    """Servers in Go answer an empty body at once, and keep the connection; the next object may then be refused."""
    server.keeps = True
    store = asking_once(server.url)
    server.told = [STORED, CONTINUE + STORED, STORED, CONTINUE + b"HTTP/1.1 503 Slow Down\r\nConnection: close\r\n\r\n"]
    for content in (b"", b"1", b""):
        store.put("s3://b/k", content)
    with pytest.raises(StoreUnavailable, match="s3://b/k"):
        store.put("s3://b/k", b"1")


class Traced(AWSHTTPConnectionPool):  # type: ignore[misc]
    """A pool of a tracer, which extends botocore's."""

    made = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        Traced.made += 1
        super().__init__(*arguments, **options)


def replaced(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have new clients of botocore use another class, or what makes one, for their pools."""
    monkeypatch.setattr("botocore.awsrequest.AWSHTTPConnectionPool", pool)
    monkeypatch.setattr("botocore.httpsession.AWSHTTPConnectionPool", pool, raising=False)


def test_classes_of_a_tracer_that_extend_those_of_botocore(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are extended in turn: the tracer sees what it saw, and cut answers are none."""
    replaced(Traced, monkeypatch)
    monkeypatch.setattr(Traced, "made", 0)
    store = asking_once(server.url)
    server.told = [CUT, FOUND]
    with pytest.raises(StoreUnavailable, match="s3://b/k"):
        store.stat("s3://b/k")
    assert store.stat("s3://b/k") is not None
    assert Traced.made == 1


def unchecked(caplog: pytest.LogCaptureFixture) -> int:
    """How often it was logged that cut heads are not noticed."""
    return sum(record.message == "aws.heads_unchecked" for record in caplog.records)


def test_other_classes_than_those_of_botocore(
    server: _Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients go on as boto3 makes them, which is logged once. Answers that tell no length do not count either."""
    clients._tell_unchecked.cache_clear()
    replaced(partial(AWSHTTPConnectionPool), monkeypatch)
    first, store = asking_once(server.url), asking_once(server.url)
    assert unchecked(caplog) == 1
    server.told = [FOUND, FOUND]
    for each in (first, store):
        found = each.stat("s3://b/k")
        assert found is not None
        assert found.size_bytes == 2048
    for told in (b"HTTP/1.1 200 OK\r\n", STORED.partition(b"Content-Length")[0], REFUSED[:30]):
        server.told = [told]
        with pytest.raises(StoreUnavailable, match="s3://b/k"):
            store.put("s3://b/k", b"")


@pytest.mark.parametrize("name", ["http_session", "_manager", "_pool_classes_by_scheme"])
def test_another_botocore_is_told(name: str, server: _Server, caplog: pytest.LogCaptureFixture) -> None:
    """One that keeps its connections elsewhere is used as it is."""
    clients._tell_unchecked.cache_clear()
    client = s3_client(REGION, server.url)
    assert unchecked(caplog) == 0
    session = SimpleNamespace(**vars(client._endpoint.http_session))
    endpoint = SimpleNamespace(http_session=session)
    for place in (endpoint, session):
        vars(place).pop(name, None)
    require_whole_heads(SimpleNamespace(_endpoint=endpoint, meta=client.meta))
    assert unchecked(caplog) == 1


def test_through_a_proxy(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connections are others."""
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.setenv("NO_PROXY", "")
    store = asking_once("http://s3.test")
    server.told = [CUT, FOUND]
    with pytest.raises(StoreUnavailable, match="s3://b/k"):
        store.stat("s3://b/k")
    assert store.stat("s3://b/k") is not None


def test_over_tls(server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As over plain connections."""
    authority = Authority.make(tmp_path, "trusted")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.file))
    authority.secure(server)
    store = asking_once(server.url.replace("http:", "https:"))
    server.told = [CUT, FOUND]
    with pytest.raises(StoreUnavailable, match="s3://b/k"):
        store.stat("s3://b/k")
    assert store.stat("s3://b/k") is not None
