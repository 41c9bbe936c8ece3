"""Serves HTTP from this process while a block runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer

_POLL_SECONDS = 0.05  # so long it takes to end at most


@contextmanager
def serving(server: HTTPServer) -> Iterator[str]:
    """Serve in a thread of its own; the URL. The server is closed when the context ends."""
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
