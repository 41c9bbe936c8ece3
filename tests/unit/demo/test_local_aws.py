"""The AWS emulator decides conditional writes one at a time."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from compactor.demo.local_aws import ConditionsInTurn

THREADS = 2


class Watched:
    """An application that sees how many of its requests overlap, and reads what they send."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.most = 0
        self._now, self._lock, self._other = 0, threading.Lock(), threading.Event()

    def __call__(self, environ: dict[str, Any], _start: Any) -> list[bytes]:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            if self._now > 1:
                self._other.set()
        self._other.wait(0.2)  # an overlapping request ends it at once
        self.bodies.append(environ["wsgi.input"].read(3))
        with self._lock:
            self._now -= 1
        return [b"done"]


@pytest.mark.parametrize(
    ("request_of", "is_in_turn"),
    [
        ({"REQUEST_METHOD": "PUT", "HTTP_IF_NONE_MATCH": "*"}, True),
        ({"REQUEST_METHOD": "POST", "HTTP_IF_NONE_MATCH": "*"}, True),
        ({"REQUEST_METHOD": "PUT", "HTTP_IF_MATCH": '"e"'}, True),
        ({"REQUEST_METHOD": "POST", "HTTP_X_AMZ_TARGET": "DynamoDB_20120810.PutItem"}, True),
        ({"REQUEST_METHOD": "PUT"}, False),
        ({"REQUEST_METHOD": "GET", "HTTP_IF_MATCH": '"e"'}, False),
    ],
)
def test_conditions_in_turn(request_of: dict[str, str], is_in_turn: bool) -> None:
    """Two that have a condition never overlap, for moto looks first and writes later; others do."""
    inner = Watched()
    app = ConditionsInTurn(inner)

    def ask(number: int) -> list[bytes]:
        body = b"abc" if number else b"xyz"
        environ = {**request_of, "CONTENT_LENGTH": "3", "wsgi.input": io.BytesIO(body)}
        return list(app(environ, None))

    with ThreadPoolExecutor(THREADS) as threads:
        answers = list(threads.map(ask, range(THREADS)))
    assert answers == [[b"done"]] * THREADS
    assert (inner.most == 1) is is_in_turn
    assert sorted(inner.bodies) == [b"abc"] * (THREADS - 1) + [b"xyz"]
