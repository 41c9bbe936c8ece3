"""Makes a client reject responses truncated inside the header.

`http.client` treats the end of a connection as the end of a header. A length of 2048 may then read as 20, an error may
lack its code, and a response without a length has no body: an empty object, or an empty listing.

A tracer may have replaced botocore's classes. Classes that extend botocore's are extended in turn. With any others the
client works as made by boto3, but rejects responses without a length. As botocore rejects a body that is shorter than
its length, no truncated response with a body counts then. A truncated HEAD response may count: an object's size could
lack its last digits.
"""

from collections.abc import Callable
from functools import cache, partial
from http.client import HTTPResponse, RemoteDisconnected
from typing import Any, BinaryIO

import botocore
from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool
from botocore.exceptions import ConnectionClosedError

from compactor.telemetry.logs import log_event

_MESSAGE = "the response was truncated inside its header"
_POOLS = (AWSHTTPConnectionPool, AWSHTTPSConnectionPool)
_CONNECTIONS = (AWSHTTPConnection, AWSHTTPSConnection)
_WITHOUT_A_BODY = (204, 304)  # [RFC 9110]


def require_whole_heads(client: Any) -> None:
    """Have a boto3 client treat a response truncated inside its header as a broken connection, and retry.

    If its connection classes neither are botocore's own nor extend them, log once that headers are unchecked.
    """
    session = http_session_of(client)
    manager: Any = getattr(session, "_manager", None)
    found = getattr(manager, "pool_classes_by_scheme", None)
    to_proxies = getattr(session, "_pool_classes_by_scheme", None)
    if found and found == to_proxies and all(map(_extends_botocore, found.values())):
        pools = {scheme: _whole(pool) for scheme, pool in found.items()}
        # If botocore keeps its pools elsewhere, the branch below is taken, which logs what remains unchecked.
        manager.pool_classes_by_scheme = session._pool_classes_by_scheme = pools  # noqa: SLF001
    else:
        _tell_unchecked()
        client.meta.events.register("before-parse", _require_length, unique_id="compactor-length")


def _extends_botocore(pool: Any) -> bool:
    return isinstance(pool, type) and issubclass(pool, _POOLS) and issubclass(pool.ConnectionCls, _CONNECTIONS)


@cache
def _whole(pool: Any) -> Any:
    """A subclass of a pool class whose connections reject responses truncated inside the header."""

    class Connection(_WholeHeads, pool.ConnectionCls):  # type: ignore[misc]
        pass

    class Pool(pool):  # type: ignore[misc]
        ConnectionCls = Connection

    return Pool


@cache
def _tell_unchecked() -> None:
    log_event("aws.heads_unchecked", botocore=botocore.__version__)


def _require_length(operation_model: Any, response_dict: Any, **_: object) -> None:
    """Reject a response that does not state its length in any way, because it may end anywhere."""
    names = {name.lower() for name in response_dict["headers"]}
    has_body = response_dict["status_code"] not in _WITHOUT_A_BODY and operation_model.http.get("method") != "HEAD"
    if has_body and not names & {"content-length", "transfer-encoding"}:
        raise ConnectionClosedError(endpoint_url=operation_model.service_model.service_name)


def http_session_of(client: Any) -> Any:
    """The object that makes a boto3 client's connections; None if this botocore release keeps it elsewhere."""
    return getattr(getattr(client, "_endpoint", None), "http_session", None)


class _Head:
    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.last_line = b""

    def readline(self, limit: int) -> bytes:
        self.last_line = self.file.readline(limit)
        return self.last_line


def _begin(answer: Any) -> None:
    """Read a response header; reject it if it is truncated."""
    del answer.begin  # it is this function, so the response refers to itself
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
    """Makes a connection reject responses truncated inside the header."""

    response_class: Callable[..., Any]

    def getresponse(self) -> Any:
        self.response_class = partial(_answer, self.response_class)
        try:
            return super().getresponse()  # type: ignore[misc]  # of the other base
        finally:
            # botocore sets a different one for a response that arrives before the body was sent. It has that response's
            # status, and botocore would reuse it for the next one.
            self.response_class = HTTPResponse

    def _consume_headers(self, received: BinaryIO) -> None:
        """Skip a `100 Continue`. botocore would loop forever if a connection ends."""
        while (line := received.readline()) not in (b"\r\n", b"\n"):
            if not line:
                raise RemoteDisconnected(_MESSAGE)
