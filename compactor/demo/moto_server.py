"""The AWS emulator: moto, whose conditional writes are decided one at a time, as on AWS."""

import io
import logging
import os
import sys
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from moto.server import ThreadedMotoServer

_WRITES = {"PUT", "POST", "DELETE"}
_CONDITIONS = {"HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH"}

App = Callable[[dict[str, Any], Any], Iterable[bytes]]
"""An application of WSGI [PEP 3333]."""


class ConditionsInTurn:
    """Passes requests on; those with a condition run one at a time.

    moto checks the condition first and writes later: two parallel requests that create the same object would both
    succeed.
    """

    def __init__(self, app: App) -> None:
        self._app, self._lock = app, Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not _is_conditional(environ):
            return self._app(environ, start_response)
        # A client that sends its body slowly must not block the others.
        if length := environ.get("CONTENT_LENGTH"):
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(length)))
        with self._lock:
            answer = self._app(environ, start_response)
            try:
                return list(answer)
            finally:
                if hasattr(answer, "close"):
                    answer.close()


def _is_conditional(environ: dict[str, Any]) -> bool:
    if environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB_"):
        return True
    return environ["REQUEST_METHOD"] in _WRITES and not _CONDITIONS.isdisjoint(environ)


def started(host: str) -> ThreadedMotoServer:
    """Start the emulator in a thread, on a free port of this address."""
    server = ThreadedMotoServer(host, port=0, verbose=False)
    server.start()
    # moto has no way to wrap its application. If it keeps its server elsewhere, this raises as the demo starts.
    inner: Any = server._server  # noqa: SLF001
    inner.app = ConditionsInTurn(inner.app)
    return server


def _serve() -> None:
    """Serve until the parent process closes standard input or dies."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    host, port = started("127.0.0.1").get_host_and_port()
    sys.stdout.write(f"http://{host}:{port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # nothing to finish


if __name__ == "__main__":
    _serve()
