"""Has a client refuse answers that end within their head.

`http.client` takes the end of a connection for the end of a head. A length of 2048 may then read as 20, an error may
lack its code, and an answer whose length is missing has no body: an empty object, or a listing of none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http.client import HTTPResponse, RemoteDisconnected
from typing import Any, BinaryIO

from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool

_MESSAGE = "the answer ended within its head"


def require_whole_heads(client: Any) -> None:
    """Have a boto3 client take an answer that ends within its head for a connection that broke, and so ask again.

    Raises:
        AttributeError: This release of botocore keeps its connections elsewhere.
    """
    session = client._endpoint.http_session  # noqa: SLF001 - no argument of a client says what its connections are
    pools = {"http": _Pool, "https": _TlsPool}
    session._manager.pool_classes_by_scheme = session._pool_classes_by_scheme = pools  # noqa: SLF001


class _Head:
    """The file of an answer, while its head is read."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.last_line = b""

    def readline(self, limit: int) -> bytes:
        self.last_line = self.file.readline(limit)
        return self.last_line

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        self.file.close()


def _begin(answer: Any) -> None:
    """Read the head of an answer, as `HTTPResponse.begin` does."""
    del answer.begin  # it is this function: the answer would not go before the garbage is collected
    head = answer.fp = _Head(answer.fp)
    answer.begin()
    answer.fp = head.file
    if not head.last_line:
        raise RemoteDisconnected(_MESSAGE)


@dataclass(frozen=True, slots=True)
class _WithWholeHeads:
    """Makes answers, as `make` does, that refuse to end within their head."""

    make: Callable[..., Any]

    def __call__(self, *arguments: Any, **options: Any) -> HTTPResponse:
        answer: Any = self.make(*arguments, **options)
        answer.begin = partial(_begin, answer)
        return answer  # type: ignore[no-any-return]


class _WholeHeads:
    """What a connection does otherwise than that of botocore."""

    response_class: Callable[..., Any]  # botocore sets another one if an answer comes before the body was sent

    def getresponse(self) -> Any:
        if not isinstance(self.response_class, _WithWholeHeads):
            self.response_class = _WithWholeHeads(self.response_class)
        return super().getresponse()  # type: ignore[misc]  # of the other base

    def _consume_headers(self, received: BinaryIO) -> None:
        """Read on after `100 Continue`; botocore would do so for ever where a connection ends."""
        for line in iter(received.readline, b"\r\n"):
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
