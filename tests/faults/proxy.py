"""An HTTP/1.1 proxy in front of an S3 endpoint that makes calls go wrong as a plan of faults says."""

import select
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.faults.clients import kill_worker
from tests.faults.fault_rules import LOST_ANSWERS, Call, FaultKind, FaultPlan, Operation, Rule, call_of

_CHUNK_BYTES = 256 * 1024
_LINE_MAX_BYTES = 65536
_BACKEND_SECONDS = 120.0
_POLL_SECONDS = 0.1
_SLOW_PIECES = 10
_LISTINGS = 2  # answers to the same listing that are remembered, no two in a row alike
_LISTINGS_OF_TARGETS = 2000  # different listings that are remembered
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # linger: on, no seconds
# Each side of a proxy has connections of its own; 100-continue is answered here, where the body is read.
_OF_ONE_CONNECTION = frozenset({"connection", "keep-alive", "proxy-connection", "expect"})

_ANSWERS = {
    FaultKind.SLOW_DOWN: (503, "SlowDown", "Please reduce your request rate."),
    FaultKind.INTERNAL_ERROR: (500, "InternalError", "We encountered an internal error. Please try again."),
    FaultKind.DONE_ERROR: (500, "InternalError", "We encountered an internal error. Please try again."),
    FaultKind.ERROR_IN_OK: (200, "InternalError", "We encountered an internal error. Please try again."),
    FaultKind.ACCESS_DENIED: (403, "AccessDenied", "Access Denied"),
    FaultKind.NO_SUCH_BUCKET: (404, "NoSuchBucket", "The specified bucket does not exist"),
    FaultKind.UNKNOWN_KEY: (400, "InvalidRequest", "The object was stored using a form of Server Side Encryption."),
}


@dataclass(slots=True)
class Traffic:
    """What passed by.

    Attributes:
        calls: By operation, those that went wrong included.
        injected: Faults that took effect, by kind and operation.
    """

    calls: Counter[Operation] = field(default_factory=Counter)
    injected: Counter[tuple[FaultKind, Operation]] = field(default_factory=Counter)

    def faults(self) -> Counter[FaultKind]:
        """Faults by kind."""
        found: Counter[FaultKind] = Counter()
        for (kind, _), number in self.injected.items():
            found[kind] += number
        return found


class FaultProxy:
    """Passes requests on, but for those that the plan spoils. Use it as a context manager.

    Args:
        endpoint: The S3 server behind it, as `http://host:port`.
        rules: What goes wrong; nothing at first.
        seed: Of the plan.
        silence_max_seconds: How long an answer is withheld from a client that does not hang up.
        slow_body_seconds: How long a slow body takes.
    """

    def __init__(
        self,
        endpoint: str,
        rules: Sequence[Rule] = (),
        *,
        seed: int = 0,
        silence_max_seconds: float = 120.0,
        slow_body_seconds: float = 1.0,
    ) -> None:
        backend = urlsplit(endpoint)
        self.backend = (backend.hostname or "127.0.0.1", backend.port or 80)
        self.silence_max_seconds = silence_max_seconds
        self.slow_body_seconds = slow_body_seconds
        self.ended = threading.Event()
        self.traffic = Traffic()
        self._plan = FaultPlan(rules, seed)
        self._listings: dict[str, deque[bytes]] = {}
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True)

    @property
    def url(self) -> str:
        """What clients use as their endpoint."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def use(self, rules: Sequence[Rule] = (), *, seed: int = 0) -> None:
        """From now on, these rules, which begin to count; no rules: no faults."""
        with self._lock:
            self._plan = FaultPlan(rules, seed)

    def restart_count(self) -> Traffic:
        """Begin to count anew; what was counted before."""
        with self._lock:
            before, self.traffic = self.traffic, Traffic()
            return before

    def fault_for(self, call: Call) -> FaultKind | None:
        """Count a call, and say what befalls it."""
        with self._lock:
            self.traffic.calls[call.operation] += 1
            return self._plan.fault_for(call)

    def count(self, kind: FaultKind, call: Call) -> None:
        """Count a fault that took effect."""
        with self._lock:
            self.traffic.injected[kind, call.operation] += 1

    def earlier_listing(self, target: str, now: bytes) -> bytes | None:
        """The answer that the same listing got before it became what it is now, if it ever changed."""
        with self._lock:
            known = self._listings.setdefault(target, deque(maxlen=_LISTINGS))
            if len(self._listings) > _LISTINGS_OF_TARGETS:
                del self._listings[next(iter(self._listings))]
            if not known or known[-1] != now:
                known.append(now)
            return known[-2] if len(known) > 1 else None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override] # of TCP, it is always one
        if request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(_RESET_ON_CLOSE)) == _RESET_ON_CLOSE:
            self.close_request(request)  # an orderly goodbye first would be none
        else:
            super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that were killed hang up at any moment."""


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle_expect_100(self) -> bool:
        return True  # said where the body is read, so that a refusal can come instead

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        proxy = self.server.proxy
        self._target = self.requestline.split(" ")[1]
        call = call_of(
            self.command,
            self._target,
            copies="x-amz-copy-source" in self.headers,
            creates="if-none-match" in self.headers,
        )
        kind = proxy.fault_for(call)
        try:
            if kind is None:
                self._pass_on()
            else:
                self._spoil(kind, call)
        except (OSError, HTTPException):
            self._reset()  # one of the two sides is gone

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - names that http.server looks for

    def _spoil(self, kind: FaultKind, call: Call) -> None:
        if kind in LOST_ANSWERS:
            with self._answer_of_backend() as answer:
                content = answer.read()
        elif kind in {FaultKind.TRUNCATED_BODY, FaultKind.SLOW_BODY, FaultKind.STALE_LISTING}:
            self._pass_on(kind, call)
            return
        elif kind is not FaultKind.RESET and not self._refuses_early(kind):
            for _ in self._body():
                pass
        if kind is FaultKind.KILLED_WORKER and not kill_worker(self.client_address[1], self.server.server_port):
            self._reset()  # no worker asked
            return
        self.server.proxy.count(kind, call)
        if kind in {FaultKind.RESET, FaultKind.DONE_RESET, FaultKind.KILLED_WORKER}:
            self._reset()
        elif kind in {FaultKind.SILENCE, FaultKind.DONE_SILENCE}:
            self._stay_silent()
        elif kind is FaultKind.DONE_CUT_HEAD:
            length = int(answer.headers.get("content-length") or len(content))
            self._head(answer.status, answer.reason, answer.headers, length, is_cut=True)
        else:
            self._answer(*_ANSWERS[kind])

    def _refuses_early(self, kind: FaultKind) -> bool:
        """Whether the client asked before it sends the body, and is told no: nothing more can come from it."""
        if "expect" in self.headers and kind is not FaultKind.SILENCE:
            self.close_connection = True
        return self.close_connection and "expect" in self.headers

    def _pass_on(self, kind: FaultKind | None = None, call: Call | None = None) -> None:
        with self._answer_of_backend() as answer:
            listing = self.command == "GET" and "list-type=2" in self._target and answer.status == 200
            if listing:
                self._pass_listing_back(answer, answer.read(), kind, call)
            else:
                self._pass_back(answer, kind, call)

    def _pass_listing_back(self, answer: HTTPResponse, now: bytes, kind: FaultKind | None, call: Call | None) -> None:
        earlier = self.server.proxy.earlier_listing(self._target, now)
        body = now
        if kind is FaultKind.STALE_LISTING and call and earlier is not None:
            self.server.proxy.count(kind, call)
            body = earlier
        self._head(answer.status, answer.reason, answer.headers, len(body))
        self._send_body(iter([body]), len(body), kind, call)

    def _pass_back(self, answer: HTTPResponse, kind: FaultKind | None, call: Call | None) -> None:
        length = answer.headers.get("content-length")
        if self.command == "HEAD" or answer.status in {204, 304}:
            self._head(answer.status, answer.reason, answer.headers, int(length) if length else None)
        elif length is None:
            # Whole in memory: S3 servers only leave the length out of short documents.
            body = answer.read()
            self._head(answer.status, answer.reason, answer.headers, len(body))
            self._send_body(iter([body]), len(body), kind, call)
        else:
            self._head(answer.status, answer.reason, answer.headers, int(length))
            self._send_body(_pieces(answer), int(length), kind, call)

    def _send_body(self, pieces: Iterator[bytes], length: int, kind: FaultKind | None, call: Call | None) -> None:
        if kind not in {FaultKind.TRUNCATED_BODY, FaultKind.SLOW_BODY} or call is None or not length:
            for piece in pieces:
                self.wfile.write(piece)
                length -= len(piece)
            if length:
                raise ConnectionResetError("the server hung up")
            return
        self.server.proxy.count(kind, call)
        sent = 0
        for piece in _cut(pieces, max(1, length // _SLOW_PIECES)):
            if kind is FaultKind.SLOW_BODY:
                self.server.proxy.ended.wait(self.server.proxy.slow_body_seconds / _SLOW_PIECES)
            elif sent >= length // 2:
                self.close_connection = True
                return
            self.wfile.write(piece)
            sent += len(piece)

    def _answer_of_backend(self) -> "_Answer":
        """Send the request on, and wait for the head of the answer."""
        connection = HTTPConnection(*self.server.proxy.backend, timeout=_BACKEND_SECONDS)
        connection.putrequest(self.command, self._target, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _OF_ONE_CONNECTION:
                connection.putheader(name, value)
        connection.putheader("Connection", "close")
        body = self._body()
        connection.endheaders()
        try:
            for piece in body:
                connection.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            for _ in body:  # the server has answered without reading to the end
                pass
        return _Answer(connection)

    def _body(self) -> Iterator[bytes]:
        """The request's body as it is framed: what is chunked stays chunked."""
        if "expect" in self.headers:
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            yield from self._chunks()
            return
        missing = int(self.headers.get("content-length") or 0)
        while missing:
            piece = self.rfile.read1(min(missing, _CHUNK_BYTES))
            if not piece:
                raise ConnectionResetError("the client hung up")
            missing -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = self.rfile.readline(_LINE_MAX_BYTES)
            length = int(size.split(b";")[0], 16)
            if not length:
                break
            yield size + self.rfile.read(length + len(b"\r\n"))
        yield size
        while (line := self.rfile.readline(_LINE_MAX_BYTES)) not in {b"\r\n", b"\n", b""}:
            yield line
        yield b"\r\n"

    def _head(self, status: int, reason: str, headers: Message, length: int | None, *, is_cut: bool = False) -> None:
        self.send_response_only(status, reason)
        for name, value in headers.items():
            if name.lower() not in _OF_ONE_CONNECTION | {"content-length", "transfer-encoding"}:
                self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if is_cut:  # where a length has lost a digit, and still looks like one if it has another
            self._headers_buffer = [b"".join(self._headers_buffer)[: -len(b"0\r\n")]]
            self.flush_headers()
            self.close_connection = True
            return
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def _answer(self, status: int, code: str, message: str) -> None:
        """Answer in the server's place."""
        body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
        headers = Message()
        headers["Content-Type"] = "application/xml"
        headers["x-amz-request-id"] = "FAULT"
        self._head(status, code, headers, len(body))
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    def _stay_silent(self) -> None:
        """Keep the client waiting until it hangs up."""
        deadline = time.monotonic() + self.server.proxy.silence_max_seconds
        while time.monotonic() < deadline and not self.server.proxy.ended.is_set():
            readable, _, _ = select.select([self.connection], [], [], _POLL_SECONDS)
            if readable and not self.connection.recv(_LINE_MAX_BYTES):
                break
        self._reset()

    def _reset(self) -> None:
        """Drop the connection so that the client sees it reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.close_connection = True


class _Answer:
    """The answer of the backend; its connection ends with the block."""

    def __init__(self, connection: HTTPConnection) -> None:
        self._connection = connection

    def __enter__(self) -> HTTPResponse:
        return self._connection.getresponse()

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _pieces(answer: HTTPResponse) -> Iterator[bytes]:
    while piece := answer.read1(_CHUNK_BYTES):
        yield piece


def _cut(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces of at most that size."""
    for piece in pieces:
        for start in range(0, len(piece), size):
            yield piece[start : start + size]
