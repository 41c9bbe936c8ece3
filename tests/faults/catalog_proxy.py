"""A proxy in front of a REST catalog that makes commits of tables go wrong, one answer after the other."""

import threading
from collections import Counter
from enum import Enum
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_BACKEND_SECONDS = 60.0
_POLL_SECONDS = 0.05
_KEPT = ("content-type", "authorization")


class Fate(Enum):
    """What becomes of a commit."""

    WELL = "well"
    LOST = "lost"  # it is made, and the connection is closed without an answer
    DONE_503 = "done 503"  # it is made, and the answer is a 503
    DONE_504 = "done 504"
    UNAVAILABLE = "unavailable"  # nothing is made: 503
    BROKEN = "broken"  # nothing is made: 500
    DROPPED = "dropped"  # nothing is made, and the connection is closed
    LATE = "late"  # the connection is closed, and the commit is sent on by the next call of `land`
    SILENT = "silent"  # it is made, and there is no answer until the proxy ends
    DENIED = "denied"  # 403
    NO_CREDENTIALS = "no credentials"  # 401
    INVALID = "invalid"  # 400
    MOVED = "moved"  # 301, as to another address
    AGAIN = "again"  # it is sent on twice, as by a proxy with retries; the second answer is given
    NONSENSE = "nonsense"  # it is made, and the answer is 200 with a page


_STATUS = {
    Fate.DONE_503: 503,
    Fate.DONE_504: 504,
    Fate.UNAVAILABLE: 503,
    Fate.BROKEN: 500,
    Fate.DENIED: 403,
    Fate.NO_CREDENTIALS: 401,
    Fate.INVALID: 400,
    Fate.MOVED: 301,
}
_MADE = {Fate.LOST, Fate.DONE_503, Fate.DONE_504, Fate.SILENT, Fate.NONSENSE}


class _Request(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class CatalogProxy:
    """Passes requests on, but for the commits that `fates` spoils. Use it as a context manager.

    Args:
        url: Of the catalog behind it.

    Attributes:
        fates: Called for each commit of a table.
        refuses: Told the body of each commit, says whether the catalog refuses it for ever: 400, whatever its fate.
        posts: How many commits came, by their fate.
    """

    def __init__(self, url: str) -> None:
        backend = urlsplit(url)
        self.backend = (backend.hostname or "127.0.0.1", backend.port or 80)
        self.fates = _all_well
        self.refuses: Callable[[bytes], bool] = lambda _: False
        self.posts: Counter[Fate] = Counter()
        self.ended = threading.Event()
        self._late: list[_Request] = []
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True)

    @property
    def url(self) -> str:
        """What clients use as the address of the catalog."""
        return f"http://127.0.0.1:{self._server.server_port}/"

    def land(self) -> bool:
        """Send on the first commit that is late; return whether the catalog made it. Without one, false."""
        with self._lock:
            request = self._late.pop(0) if self._late else None
        return request is not None and self.sent_on(request)[0] == 200

    def has_late(self) -> bool:
        """Whether a commit is still on its way."""
        return bool(self._late)

    def fate_of(self, request: _Request) -> Fate:
        """Count a commit, and say what becomes of it."""
        with self._lock:
            fate = Fate.INVALID if self.refuses(request.body) else self.fates()
            self.posts[fate] += 1
            if fate is Fate.LATE:
                self._late.append(request)
            return fate

    def sent_on(self, request: _Request) -> tuple[int, bytes, str]:
        """The status, the body and the kind of the catalog's answer."""
        connection = HTTPConnection(*self.backend, timeout=_BACKEND_SECONDS)
        try:
            connection.request(request.method, request.target, request.body or None, request.headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers.get("content-type", "application/json")
        finally:
            connection.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _all_well() -> Fate:
    return Fate.WELL


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, proxy: CatalogProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients hang up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() in _KEPT}
        request = _Request(self.command, self.path, headers, body)
        is_commit = self.command == "POST" and "/tables/" in self.path
        fate = proxy.fate_of(request) if is_commit else Fate.WELL
        try:
            if fate is Fate.WELL:
                self._answer(*proxy.sent_on(request))
            else:
                self._spoil(fate, request)
        except (OSError, HTTPException):
            self.close_connection = True  # one of the two sides is gone

    do_HEAD = do_POST = do_DELETE = do_GET  # noqa: N815 - names that http.server looks for

    def _spoil(self, fate: Fate, request: _Request) -> None:
        proxy = self.server.proxy
        if fate in _MADE or fate is Fate.AGAIN:
            proxy.sent_on(request)
        if fate is Fate.AGAIN:
            self._answer(*proxy.sent_on(request))
        elif fate is Fate.NONSENSE:
            self._answer(200, b"<html>", "text/html")
        elif fate in _STATUS:
            self._answer(_STATUS[fate], b"", "text/plain")
        else:
            if fate is Fate.SILENT:
                proxy.ended.wait()
            self.close_connection = True

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == _STATUS[Fate.MOVED]:
            self.send_header("Location", f"http://{self.headers.get('host')}{self.path}")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
