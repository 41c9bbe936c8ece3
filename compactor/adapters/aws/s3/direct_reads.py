"""Reads ranges of objects with requests that are only signed and sent, once the client has read from the bucket.

For each object, a client resolves the endpoint, builds the request and parses the response. Including the checksum,
that takes as much CPU time as receiving 4 MB. The parts that depend only on the bucket are taken from a request that
succeeded.
"""

import hashlib
import hmac
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from threading import Lock, local
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from botocore.awsrequest import AWSRequest
from botocore.compat import HAS_CRT
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
from urllib3.exceptions import HTTPError
from zlib_ng.zlib_ng import crc32

from compactor.adapters.aws.s3.connections import PARTIAL, Answer, Connections, is_range, path_of

# Compares content from S3 with the checksums in a response, as botocore does for its own requests.


_HEADER = "x-amz-checksum-"
_NO_CHECKSUM = {"type", "mode"}

_DIGESTS: dict[str, Callable[[bytes], bytes]] = {
    "crc32": lambda data: crc32(data).to_bytes(4, "big"),
    "sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    "sha256": lambda data: hashlib.sha256(data).digest(),
    "sha512": lambda data: hashlib.sha512(data).digest(),
}
"""The checksums that botocore compares itself. It needs awscrt for any other."""


def matches_checksums(headers: Mapping[str, str], content: bytes) -> bool:
    """Whether content has each checksum that botocore would compare; False if only awscrt supports one of them."""
    names = (name.lower().removeprefix(_HEADER) for name in headers if name.lower().startswith(_HEADER))
    checksums = {name: headers[_HEADER + name] for name in names if name not in _NO_CHECKSUM}
    # One with a dash is over the checksums of an object's parts, not over its content [S3 API].
    return all("-" in value or _matches(name, value, content) for name, value in checksums.items())


def _matches(name: str, value: str, content: bytes) -> bool:
    digest = _DIGESTS.get(name)
    return not HAS_CRT if digest is None else value == b64encode(digest(content)).decode()


# Signs a request for an object, with botocore's result in a fraction of the time.
#
# The rules are those of Signature Version 4, in AWS's IAM guide under "Create a signed AWS API request". S3 deviates
# from them: it signs a path as it is sent.


_ALGORITHM = "AWS4-HMAC-SHA256"
_UNSIGNED = "user-agent"  # proxies may change it
_NO_CONTENT = sha256(b"").hexdigest()


class Credentials(Protocol):
    """A frozen copy of botocore's credentials. The token is empty or None for long-term keys."""

    @property
    def access_key(self) -> str: ...

    @property
    def secret_key(self) -> str: ...

    @property
    def token(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Scope:
    """The region and service for which a signature is valid."""

    region: str
    service: str


def signed_headers(
    path: str, headers: Mapping[str, str], credentials: Credentials, scope: Scope, now: datetime
) -> dict[str, str]:
    """Add the signature to the headers of a GET request, which has no query.

    Args:
        path: The URL's path, as sent.
        headers: Lower-case names, including `host`; all of them except `user-agent` are signed.
        credentials: The caller's credentials.
        scope: The bucket's region and service.
        now: The time, aware, in UTC.
    """
    timestamp = f"{now:%Y%m%dT%H%M%SZ}"
    signed = {**headers, "x-amz-content-sha256": _NO_CONTENT, "x-amz-date": timestamp}
    if credentials.token:
        signed["x-amz-security-token"] = credentials.token
    names = sorted(name for name in signed if name != _UNSIGNED)
    lines = [f"{name}:{' '.join(signed[name].split())}" for name in names]
    canonical_request = "\n".join(["GET", path, "", *lines, "", ";".join(names), _NO_CONTENT])
    credential_scope = f"{timestamp[:8]}/{scope.region}/{scope.service}/aws4_request"
    digest = sha256(canonical_request.encode()).hexdigest()
    string_to_sign = f"{_ALGORITHM}\n{timestamp}\n{credential_scope}\n{digest}"
    key = _signing_key(credentials.secret_key, credential_scope)
    signed["authorization"] = (
        f"{_ALGORITHM} Credential={credentials.access_key}/{credential_scope}, "
        f"SignedHeaders={';'.join(names)}, Signature={hmac.digest(key, string_to_sign.encode(), sha256).hex()}"
    )
    return signed


@lru_cache(maxsize=4)  # one per region and day, while credentials last
def _signing_key(secret_key: str, credential_scope: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in credential_scope.split("/"):
        key = hmac.digest(key, part.encode(), sha256)
    return key


CLIENT_READS_AFTER_FAILURE = 100
"""After a failed direct read, the client makes this many reads from the bucket: lasting failures cost 1 % more."""

_SIGNED = re.compile("AWS4-HMAC-SHA256 Credential=[^/]+/[0-9]{8}/([^/]+)/([^/]+)/aws4_request,")
_VERSION = "s3v4"  # botocore's name of this signature; directory buckets, among others, have a different one
_COPIED = ("user-agent", "x-amz-checksum-mode")
_HEADERS = {"Range": "range", "IfMatch": "if-match"}  # by `get_object` parameter

_PORTS = {"http": 80, "https": 443}
_OF_THE_OBJECT = (404, 412, 416)  # deleted, changed, or shorter: not the fault of direct reads


@dataclass(frozen=True, slots=True)
class _BucketRequest:
    """The common part of requests for a bucket's objects.

    Attributes:
        headers: The constant headers, with lower-case names.
        signer: botocore's `RequestSigner`, which has the credentials.
    """

    url: str
    headers: dict[str, str]
    scope: Scope
    signer: Any


class DirectReads:
    """Reads through a client's connections. Safe to share between threads, like the client.

    A direct read counts if it returns the complete range with matching checksums. After any other response the client
    repeats it, with its retries and its errors.
    """

    def __init__(self, client: Any) -> None:
        self._connections = Connections(client)
        self._known: dict[str, _BucketRequest] = {}
        self._client_reads_left: dict[str, int] = {}
        self._lock = Lock()
        self._of_thread = local()
        client.meta.events.register("before-sign.s3.GetObject", self._note)

    def read(self, parameters: Mapping[str, str], by_client: Callable[[], bytes]) -> bytes:
        """Read a range from an object.

        Args:
            parameters: `get_object` parameters: `Bucket`, `Key`, `Range` as `bytes=first-last`, and `IfMatch` to read
                one version.
            by_client: Reads the same through the client; its errors pass through.
        """
        bucket, key = parameters["Bucket"], parameters["Key"]
        known = self._known.get(bucket)
        content = None if known is None else self._read(known, parameters)
        if content is None:
            self._of_thread.signed = None
            content = by_client()
            self._learn(bucket, key)
        return content

    def _read(self, known: _BucketRequest, parameters: Mapping[str, str]) -> bytes | None:
        """The range; None if the client has to read it."""
        first, last = (int(each) for each in parameters["Range"].removeprefix("bytes=").split("-"))
        with suppress(BotoCoreError, ClientError, HTTPError, OSError, ValueError):  # the client will get the same error
            answer = self._connections.get(*_request(known, parameters), last + 1 - first)
            if answer.status in _OF_THE_OBJECT:
                return None
            if answer.status == PARTIAL and _is_sound(answer, first, last):
                return answer.content
        with self._lock:
            self._known.pop(parameters["Bucket"], None)
            self._client_reads_left[parameters["Bucket"]] = CLIENT_READS_AFTER_FAILURE
        return None

    def _note(self, request: AWSRequest, signature_version: object, request_signer: object, **_: object) -> None:
        """Keep this thread's last request before signing, for its headers."""
        self._of_thread.signed = (request, request_signer) if signature_version == _VERSION else None

    def _learn(self, bucket: str, key: str) -> None:
        """Keep the common part of a bucket's requests, from the client's latest read of an object."""
        if self._of_thread.signed is None:
            return
        request, signer = self._of_thread.signed
        self._of_thread.signed = None
        found = _SIGNED.match(str(request.headers.get("Authorization", "")))
        path = quote(key)
        if not (found and request.url.endswith(f"/{path}") and self._connections.are_direct(request.url)):
            return
        headers = {name: request.headers[name] for name in _COPIED if name in request.headers}
        headers["host"] = _host(request.url)
        with self._lock:
            left = self._client_reads_left.get(bucket, 0)
            self._client_reads_left[bucket] = max(0, left - 1)
            if not left:
                self._known[bucket] = _BucketRequest(
                    request.url.removesuffix(path), headers, Scope(*found.groups()), signer
                )


def _request(known: _BucketRequest, parameters: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """The URL and headers of a request.

    Raises:
        BotoCoreError: There are no credentials.
        ClientError: The credentials could not be renewed.
    """
    url = known.url + quote(parameters["Key"])
    headers = {header: parameters[name] for name, header in _HEADERS.items() if name in parameters}
    # botocore's current signer has the current credentials.
    credentials = known.signer.get_auth_instance(known.scope.service, known.scope.region, _VERSION).credentials
    if credentials is None:
        raise NoCredentialsError
    made = signed_headers(path_of(url), {**known.headers, **headers}, credentials, known.scope, datetime.now(UTC))
    return url, made


def _host(url: str) -> str:
    """The `Host` header, which botocore signs and a client's connection would add."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else str(parts.hostname)
    return host if parts.port in (None, _PORTS[parts.scheme]) else f"{host}:{parts.port}"


def _is_sound(answer: Answer, first: int, last: int) -> bool:
    """Whether a response has all bytes of the object from `first` to `last`, and no others."""
    content = answer.content or b""
    is_all = is_range(answer.headers.get("content-range", ""), first, last, len(content))
    # guard: a direct read accepts only the object's own bytes
    return is_all and matches_checksums(answer.headers, content)
