"""Creates AWS clients. Credentials come from the usual places: environment, profile, role."""

from collections.abc import Callable
from functools import cache, partial
from http.client import HTTPResponse, RemoteDisconnected
from typing import Any, BinaryIO

import botocore
from boto3.session import Session
from botocore import UNSIGNED
from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSHTTPSConnection, AWSHTTPSConnectionPool
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError
from botocore.loaders import Loader
from botocore.session import get_session

from compactor.adapters.aws.errors import translated
from compactor.telemetry.logs import log_event

_CONNECTIONS = 64  # as many as threads that share a client
_CONNECT_TIMEOUT_SECONDS = 5
_TIMEOUT_SECONDS = 60.0
_ATTEMPTS = 8  # with increasing pauses; throttling and 5xx are retried


def aws_client(
    service: str,
    region: str | None = None,
    endpoint_url: str | None = None,
    *,
    attempts: int | None = None,
    timeout_seconds: float = _TIMEOUT_SECONDS,
    is_signed: bool = True,
    session: Session | None = None,
) -> Any:
    """A client that is safe to share between threads, but not between processes.

    The first arguments are fields of `compactor.adapters.stores.StoreSpec`. Unsigned requests need no credentials.
    Clients of one session share its credentials; by default each has its own session.

    Raises:
        AccessError: There is no region, or the environment is misconfigured.
    """
    config = Config(
        retries={"mode": "standard", "total_max_attempts": attempts or _ATTEMPTS},
        max_pool_connections=_CONNECTIONS,
        connect_timeout=min(_CONNECT_TIMEOUT_SECONDS, timeout_seconds),
        read_timeout=timeout_seconds,
        # Only AWS has a host name for every bucket.
        s3={"addressing_style": "path" if endpoint_url else "auto"},
        signature_version=None if is_signed else UNSIGNED,
    )
    with translated(endpoint_url or service):
        make_client: Any = (session or aws_session()).client
        client = make_client(service, region_name=region, endpoint_url=endpoint_url, config=config)
    require_whole_heads(client)
    return client


def aws_session() -> Session:
    """A new session in the current environment. All sessions share the first one's model folders.

    Raises:
        BotoCoreError: The environment is misconfigured.
    """
    core = get_session()
    core.register_component("data_loader", _models())
    session = Session(botocore_session=core)
    paths = _models().search_paths
    paths[:] = dict.fromkeys(paths)  # each session adds the same one
    return session


@cache
def _models() -> Loader:
    """AWS's service descriptions, shared by all clients: reading them takes 50 ms."""
    loader: Loader = get_session().get_component("data_loader")
    return loader


s3_client = partial(aws_client, "s3")
dynamodb_client = partial(aws_client, "dynamodb")
sqs_client = partial(aws_client, "sqs")
# Metrics that could not be sent are queued and sent again, so a request may fail early.
cloudwatch_client = partial(aws_client, "cloudwatch", attempts=2, timeout_seconds=10)


# Makes a client reject responses truncated inside the header.
#
# `http.client` treats the end of a connection as the end of a header. A length of 2048 may then read as 20, an error
# may lack its code, and a response without a length has no body: an empty object, or an empty listing.
#
# A tracer may have replaced botocore's classes. Classes that extend botocore's are extended in turn. With any others
# the client works as made by boto3, but rejects responses without a length. As botocore rejects a body that is shorter
# than its length, no truncated response with a body counts then. A truncated HEAD response may count: an object's size
# could lack its last digits.


_MESSAGE = "the response was truncated inside its header"
_POOLS = (AWSHTTPConnectionPool, AWSHTTPSConnectionPool)
_CONNECTION_CLASSES = (AWSHTTPConnection, AWSHTTPSConnection)
_WITHOUT_A_BODY = (204, 304)  # [RFC 9110]


def require_whole_heads(client: Any) -> None:
    """Have a boto3 client treat a response truncated inside its header as a broken connection, and retry.

    If its connection classes neither are botocore's own nor extend them, log once that headers are unchecked.
    """
    session: Any = getattr(getattr(client, "_endpoint", None), "http_session", None)
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
    return isinstance(pool, type) and issubclass(pool, _POOLS) and issubclass(pool.ConnectionCls, _CONNECTION_CLASSES)


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
