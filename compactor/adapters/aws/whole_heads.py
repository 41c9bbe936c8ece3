"""Has a client refuse answers that end within their head.

`http.client` takes the end of a connection for the end of a head. A length of 2048 may then read as 20, an error may
lack its code, and an answer whose length is missing has no body: an empty object, or a listing of none.
"""

from collections.abc import Callable
from functools import partial
from http.client import HTTPResponse, RemoteDisconnected
from typing import Any, BinaryIO

import botocore
from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool

from compactor.core.errors import AccessError

_MESSAGE = "the answer ended within its head"
_POOLS = {"http": AWSHTTPConnectionPool, "https": AWSHTTPSConnectionPool}


def require_whole_heads(client: Any) -> None:
    """Have a boto3 client take an answer that ends within its head for a connection that broke, and so ask again.

    Raises:
        AccessError: This release of botocore has its connections elsewhere.
    """
    session = http_session_of(client)
    manager: Any = getattr(session, "_manager", None)
    found = getattr(manager, "pool_classes_by_scheme", None), getattr(session, "_pool_classes_by_scheme", None)
    if found != (_POOLS, _POOLS):
        raise AccessError(
            f"botocore {botocore.__version__} makes its connections in a way that is not known here; "
            "expected the release of boto3 that the lock names: install it beside the code"
        )
    pools = {"http": _Pool, "https": _TlsPool}
    manager.pool_classes_by_scheme = session._pool_classes_by_scheme = pools  # noqa: SLF001


def http_session_of(client: Any) -> Any:
    """What makes the connections of a boto3 client; None if this release of botocore keeps it elsewhere."""
    return getattr(getattr(client, "_endpoint", None), "http_session", None)


class _Head:
    """The file of an answer, while its head is read."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.last_line = b""

    def readline(self, limit: int) -> bytes:
        self.last_line = self.file.readline(limit)
        return self.last_line


def _begin(answer: Any) -> None:
    """Read the head of an answer; refuse it if it ends early."""
    del answer.begin  # it is this function, so that the answer refers to itself
    head = answer.fp = _Head(answer.fp)
    try:
        answer.begin()
    finally:
        answer.fp = head.file
    if not head.last_line:
        raise RemoteDisconnected(_MESSAGE)


def _answer(make: Callable[..., Any], *arguments: Any, **options: Any) -> HTTPResponse:
    made: Any = make(*arguments, **options)
    made.begin = partial(_begin, made)
    return made  # type: ignore[no-any-return]


class _WholeHeads:
    """Of a connection: refuses answers that end within their head."""

    response_class: Callable[..., Any]

    def getresponse(self) -> Any:
        self.response_class = partial(_answer, self.response_class)
        try:
            return super().getresponse()  # type: ignore[misc]  # of the other base
        finally:
            # botocore sets another one for an answer that comes before the body was sent. It has the status of that
            # answer, and botocore would use it again for the next one.
            self.response_class = HTTPResponse

    def _consume_headers(self, received: BinaryIO) -> None:
        """Read on after `100 Continue`; botocore would do so for ever where a connection ends."""
        while (line := received.readline()) not in (b"\r\n", b"\n"):
            if not line:
                raise RemoteDisconnected(_MESSAGE)


class _Connection(_WholeHeads, AWSHTTPConnection):  # type: ignore[misc]  # botocore has no types
    pass


class _TlsConnection(_WholeHeads, AWSHTTPSConnection):  # type: ignore[misc]
    pass


class _Pool(AWSHTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(AWSHTTPSConnectionPool):
    ConnectionCls = _TlsConnection
