"""Reads and writes objects by the native engine's client of HTTP, in a fraction of boto3's CPU time.

boto3 signs the URLs of reads. It makes, signs and takes apart all other requests, which are only sent here. Whatever is
not plainly sound counts as no answer: boto3 makes the request, with its retries and errors.
"""

import os
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import get_cert_path
from botocore.session import get_session
from botocore.utils import get_environ_proxies

from compactor.adapters.local.native.module import native_module, why_not_installed

LEFT_AFTER_FAILURE = 100
"""After a failure, boto3 makes this many requests of a client: lasting failures cost 1 % more."""

_SENT = ("GetObject", "PutObject", "UploadPart")
_MAX_BYTES = 2**30  # longer objects that are read at once are left to boto3, which reads in pieces
_NOT_SENT = {"expect"}  # the body follows at once
_VALID_SECONDS = 900  # a signature; the client's clock may be off by as much [S3 API]
_HEADERS = {"Range": "range", "IfMatch": "if-match", "ChecksumMode": "x-amz-checksum-mode"}  # by parameter
_OF_THE_OBJECT = (404, 412, 416)  # deleted, changed, or shorter: boto3 would get the same answer


class NativeRequests:
    """What the native engine does of a boto3 client's requests; nothing where it is not installed.

    Requests through a proxy, with a client's certificate, or to an endpoint with FIPS 140 cryptography stay with boto3.
    Safe to share between threads; a forked process gets connections of its own.
    """

    def __init__(self, client: Any) -> None:
        config, endpoint, events = client.meta.config, client.meta.endpoint_url, client.meta.events
        proxies = get_environ_proxies(endpoint) if config.proxies is None else config.proxies  # as botocore chooses
        self._is_used = not (why_not_installed() or proxies or config.client_cert or "-fips" in endpoint)
        self._rules = (config.connect_timeout, config.read_timeout, config.max_pool_connections)
        self._user_agent = config.user_agent
        self._url = client.generate_presigned_url
        self._process = 0
        self._client: Any = None
        self._left_to_boto3 = 0
        if self._is_used:
            events.register_first("choose-signer.s3.GetObject", _version_4, unique_id="compactor-version-4")
            for each in _SENT:
                events.register(f"before-send.s3.{each}", self.send, unique_id=f"compactor-{each}")

    def read(self, parameters: Mapping[str, str]) -> bytes | None:
        """Read a range, once; None if boto3 has to read it.

        Args:
            parameters: `get_object` parameters: `Bucket`, `Key`, `Range` as `bytes=first-last`, and `IfMatch` to read
                one version.
        """
        if self._left_to_boto3 > 0 or not self._is_used:
            return None
        first, last = asked_range(parameters["Range"])
        signed = {**parameters, "ChecksumMode": "ENABLED"}
        headers = [(header, signed[name]) for name, header in _HEADERS.items() if name in signed]
        try:
            url = self._url("get_object", Params=signed, ExpiresIn=_VALID_SECONDS)
            headers.append(("user-agent", self._user_agent))
            answer = self._own_client().send("GET", url, headers, b"", last + 1 - first)
        except (BotoCoreError, ClientError, OSError, ValueError):  # boto3 gets the same error, if it lasts
            answer = (0, [], b"")
        status, found, content = answer
        # guard: a native read accepts only the range that was asked for
        if status == 206 and is_range(dict(found).get("content-range", ""), first, last, len(content)):  # noqa: PLR2004
            return bytes(content)
        if status not in _OF_THE_OBJECT:
            self._left_to_boto3 = LEFT_AFTER_FAILURE
        return None

    def send(self, request: AWSPreparedRequest, **_: object) -> AWSResponse | None:
        """Send a request of boto3, once: a handler for botocore's event `before-send`. None if boto3 has to send it."""
        if self._left_to_boto3 > 0:
            self._left_to_boto3 -= 1
            return None
        if (body := _content(request)) is None:
            return None
        headers = [(name, _text(value)) for name, value in request.headers.items() if name.lower() not in _NOT_SENT]
        asked = _text(request.headers.get("Range", ""))
        first, last = asked_range(asked) if asked else (0, _MAX_BYTES - 1)
        try:
            answer = self._own_client().send(request.method, request.url, headers, body, last + 1 - first)
        except (OSError, ValueError):  # likewise
            self._left_to_boto3 = LEFT_AFTER_FAILURE
            return None
        status, found, content = answer
        return AWSResponse(request.url, status, dict(found), _Body(content))  # type: ignore[arg-type]  # any mapping

    def _own_client(self) -> Any:
        """This process's client, whose connections no other process has.

        Raises:
            OSError: There are no certificates to trust.
        """
        if self._process != os.getpid():  # guard: processes share no connection
            self._client = native_module().HttpClient(_ca_file(), *self._rules)
            self._process = os.getpid()
        return self._client


class _Body(BytesIO):
    """A response's body, as botocore reads it."""

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()


def asked_range(asked: str) -> tuple[int, int]:
    """The first and the last byte of a `Range`, `bytes=first-last`."""
    first, last = asked.removeprefix("bytes=").split("-")
    return int(first), int(last)


def is_range(content_range: str, first: int, last: int, size_bytes: int) -> bool:
    """Whether a Content-Range is the requested one: `first` to `last`, or to the end of the object."""
    end = first + size_bytes
    if end > last:
        return end == last + 1 and content_range.startswith(f"bytes {first}-{last}/")
    return content_range == f"bytes {first}-{end - 1}/{end}"


def _version_4(signature_version: Any, **_: object) -> str | None:
    """Sign URLs by version 4, which signs ranges and is the only one for encrypted objects; botocore prefers version 2.

    Other signatures, as of directory buckets, stay as they are.
    """
    return "s3v4-query" if signature_version in {"v4-query", "s3v4-query"} else None


def _ca_file() -> str:
    """The certificates that boto3 trusts."""
    chosen = get_session().get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE")
    return str(chosen or get_cert_path(verify=True))


def _content(request: AWSPreparedRequest) -> bytes | None:
    """The body of a request, without a copy; None if it is elsewhere than in memory."""
    body: Any = request.body
    if isinstance(body, BytesIO):
        body = body.getvalue()
    elif body is None:
        body = b""
    is_whole = isinstance(body, bytes) and len(body) == int(request.headers.get("Content-Length", 0))
    return bytes(body) if is_whole else None  # the same object


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
