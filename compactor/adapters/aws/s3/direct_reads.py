"""Reads ranges of objects by requests that are only signed and sent, once the client has read one of the same bucket.

For each object anew, a client resolves the endpoint, builds the request and takes the answer apart. Together with its
checksum, that takes as much of the processor's time as to receive 4 MB. What depends on the bucket alone is taken from
a request that succeeded.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock, local
from typing import Any
from urllib.parse import quote, urlsplit

from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
from urllib3.exceptions import HTTPError

from compactor.adapters.aws.s3.checksums import matches_checksums
from compactor.adapters.aws.s3.connections import PARTIAL, Answer, Connections, is_range, path_of
from compactor.adapters.aws.s3.signatures import Scope, signed_headers

CLIENT_READS_AFTER_FAILURE = 100
"""So many reads of a bucket are left to the client after a direct one that failed: lasting trouble costs 1 % more."""

_SIGNED = re.compile("AWS4-HMAC-SHA256 Credential=[^/]+/[0-9]{8}/([^/]+)/([^/]+)/aws4_request,")
_VERSION = "s3v4"  # botocore's name of this signature; directory buckets, among others, have a different one
_COPIED = ("user-agent", "x-amz-checksum-mode")
_HEADERS = {"Range": "range", "IfMatch": "if-match"}  # by the parameters of `get_object`

_PORTS = {"http": 80, "https": 443}
_OF_THE_OBJECT = (404, 412, 416)  # it is gone, another version, or shorter: no trouble of direct reads


@dataclass(frozen=True, slots=True)
class _BucketRequest:
    """What requests for the objects of a bucket have in common.

    Attributes:
        url: Of the bucket, with a slash at the end.
        headers: Those that stay the same, by names in lower case.
        scope: The region and the service that it is signed for.
        signer: The `RequestSigner` of botocore, which has the credentials.
    """

    url: str
    headers: dict[str, str]
    scope: Scope
    signer: Any


class DirectReads:
    """Reads through the connections of a client. Safe to share between threads, as the client is.

    A direct read counts if it has the range, whole and sound. After any other answer the client asks again, with its
    retries and its errors.

    Args:
        client: A boto3 client of S3.
    """

    def __init__(self, client: Any) -> None:
        self._connections = Connections(client)
        self._known: dict[str, _BucketRequest] = {}
        self._client_reads_left: dict[str, int] = {}
        self._lock = Lock()
        self._of_thread = local()
        client.meta.events.register("before-sign.s3.GetObject", self._note)

    def read(self, parameters: Mapping[str, str], by_client: Callable[[], bytes]) -> bytes:
        """Read a range of an object.

        Args:
            parameters: Those of `get_object`: `Bucket`, `Key`, `Range` as `bytes=first-last`, and `IfMatch` if only one
                version will do.
            by_client: Reads the same by the client, whose errors pass through.
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
        with suppress(BotoCoreError, ClientError, HTTPError, OSError, ValueError):  # the client will meet the same
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
        """Keep the last request of this thread that is about to be signed: its headers will tell how."""
        self._of_thread.signed = (request, request_signer) if signature_version == _VERSION else None

    def _learn(self, bucket: str, key: str) -> None:
        """Take what is common to a bucket's requests from the one by which the client has just read an object of it."""
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
    """The URL of a request, and its headers.

    Raises:
        BotoCoreError: There are no credentials.
        ClientError: They could not be renewed.
    """
    url = known.url + quote(parameters["Key"])
    headers = {header: parameters[name] for name, header in _HEADERS.items() if name in parameters}
    # What botocore would sign with has the credentials of the moment.
    credentials = known.signer.get_auth_instance(known.scope.service, known.scope.region, _VERSION).credentials
    if credentials is None:
        raise NoCredentialsError
    made = signed_headers(path_of(url), {**known.headers, **headers}, credentials, known.scope, datetime.now(UTC))
    return url, made


def _host(url: str) -> str:
    """The header that a connection of the client adds, and that botocore signs in any case."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else str(parts.hostname)
    return host if parts.port in (None, _PORTS[parts.scheme]) else f"{host}:{parts.port}"


def _is_sound(answer: Answer, first: int, last: int) -> bool:
    """Whether an answer has all bytes of the object from `first` to `last`, and no others."""
    content = answer.content or b""
    is_all = is_range(answer.headers.get("content-range", ""), first, last, len(content))
    # guard: a direct read takes no other bytes for those of the object
    return is_all and matches_checksums(answer.headers, content)
