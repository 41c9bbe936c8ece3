"""An AWS emulator on this machine: moto, in a process of its own, on a free port of 127.0.0.1.

Its conditional writes are decided one at a time, as on AWS.
"""

import io
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

from compactor.core.errors import OperatorError

_HOST = "127.0.0.1"
_END_SECONDS = 10.0  # it has nothing to finish, so it ends at once

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo", "AWS_EC2_METADATA_DISABLED": "true"}
"""AWS clients require credentials; the emulator ignores them. These belong to no account."""


@contextmanager
def local_aws() -> Iterator[str]:
    """Start the emulator at the URL that the context gives, and end it with the context.

    Raises:
        OperatorError: It did not start.
    """
    # Its warnings go to a file: a pipe that is not read is full after 64 KiB, and the emulator would wait for ever.
    with TemporaryFile("w+") as errors:
        # It has its own session: Ctrl-C must not end it before the commands that still use it.
        server = subprocess.Popen(
            [sys.executable, "-m", "compactor.demo.local_aws"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **CREDENTIALS},
            start_new_session=True,
            text=True,
        )
        try:
            assert server.stdout is not None  # noqa: S101 - asked for above
            url = server.stdout.readline().strip()
            if not url:
                server.wait(_END_SECONDS)
                errors.seek(0)
                last = (errors.read().strip().splitlines() or ["no message"])[-1]
                raise OperatorError(f"the AWS emulator did not start ({last}); expected moto: pip install .[demo]")
            yield url
        finally:
            server.kill()
            server.communicate(timeout=_END_SECONDS)


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


def started(host: str) -> Any:
    """Start the emulator in a thread, on a free port of this address."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - only the emulator's own process has to have it

    server = ThreadedMotoServer(host, port=0, verbose=False)
    server.start()
    # moto has no way to wrap its application. If it keeps its server elsewhere, this raises as the demo starts.
    inner: Any = server._server  # noqa: SLF001
    inner.app = ConditionsInTurn(inner.app)
    return server


def _serve() -> None:
    """Serve until the parent process closes standard input or dies."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    host, port = started(_HOST).get_host_and_port()
    sys.stdout.write(f"http://{host}:{port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # nothing to finish


if __name__ == "__main__":
    _serve()
