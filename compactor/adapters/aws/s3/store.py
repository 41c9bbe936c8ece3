"""Reads and writes objects in S3."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from boto3.exceptions import S3UploadFailedError
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError
from s3transfer.exceptions import S3CopyFailedError

from compactor.adapters.aws.errors import (
    answered_code,
    error_code,
    error_for,
    pause_before_try,
    translated,
    translated_pages,
)
from compactor.adapters.aws.s3.multipart import S3Writer, send_checksum_first
from compactor.adapters.aws.s3.native_requests import NativeRequests, asked_range, is_range
from compactor.core.errors import AccessError, CompactorError, ObjectNotFound, StoreUnavailable
from compactor.core.layout import canonical, is_s3
from compactor.core.ports import ObjectInfo, delete_by_name, start_within

_TRIES = 5
_DELETE_BATCH = 1000  # the limit of DeleteObjects [S3 API]
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # not allowed in the format of key lists
_MIB = 1024 * 1024
_UPLOAD = TransferConfig(multipart_threshold=64 * _MIB, multipart_chunksize=32 * _MIB, max_concurrency=4)
# One CopyObject takes up to 5 GB [S3 API]; far below that, concurrent parts are faster.
_COPY = TransferConfig(multipart_threshold=512 * _MIB, multipart_chunksize=128 * _MIB, max_concurrency=8)


@dataclass(slots=True)
class S3Store:
    """Objects under `s3://bucket/key`, with the alternative spellings `s3a://` and `s3n://`.

    The boto3 client retries transient errors itself; `sleep` waits before other retries.
    """

    client: Any
    sleep: Callable[[float], None] = field(default=time.sleep, kw_only=True)
    _seen_buckets: set[str] = field(default_factory=set)
    _native: NativeRequests = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._native = NativeRequests(self.client)
        self.client.meta.events.register("before-call.s3", send_checksum_first, unique_id="compactor-checksum")

    def stat(self, uri: str) -> ObjectInfo | None:
        bucket, _ = _split_prefix(uri)
        try:
            _, key = bucket_and_key(uri)
            with translated(uri):
                head = self.client.head_object(Bucket=bucket, Key=key)
        except ObjectNotFound:
            self._require_bucket(bucket)
            return None
        if not head.keys() >= {"ContentLength", "ETag", "LastModified"}:
            raise StoreUnavailable(f"{uri}: the response lacks its length, ETag or time")
        return _info(uri, head["ContentLength"], head["ETag"], head["LastModified"])

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        return self._get(uri, _of_version(uri, etag))

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        parameters = _of_version(uri, etag)
        if length <= 0:  # a Range header cannot express this
            self._get(uri, {**parameters, "Range": "bytes=0-0"})
            return b""
        parameters["Range"] = f"bytes={start}-{start + length - 1}"
        content = self._native.read(parameters)
        return self._get(uri, parameters) if content is None else content

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        bucket, key_prefix = _split_prefix(prefix)
        start = start_within(prefix, start_after)
        if start is None:
            return
        after = {"StartAfter": key_prefix + start} if start else {}
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=key_prefix, **after)
        for page in translated_pages(prefix, pages):
            if "IsTruncated" not in page:  # a response without a body
                raise StoreUnavailable(f"{prefix}: the listing got an empty response")
            for item in page.get("Contents", ()):
                uri = prefix + item["Key"].removeprefix(key_prefix)
                yield _info(uri, item["Size"], item["ETag"], item["LastModified"])

    def create(self, uri: str, data: bytes) -> bool:
        bucket, key = bucket_and_key(uri)
        for tried in range(_TRIES):
            try:
                with translated(uri):
                    # guard: a record in S3 is created once, never overwritten
                    self.client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
            except CompactorError as exc:
                code = answered_code(exc)
                if code == "ConditionalRequestConflict":
                    self._pause(tried)
                    continue
                if code != "PreconditionFailed":
                    raise
            else:
                return True
            try:
                # The client retries a request whose response was lost; the retry finds the first request's object.
                return self.read(uri) == data
            except ObjectNotFound:
                self._pause(tried)
        raise StoreUnavailable(f"{uri}: created or deleted by others in each of {_TRIES} tries")

    def put(self, uri: str, data: bytes) -> None:
        bucket, key = bucket_and_key(uri)
        with translated(uri):
            self.client.put_object(Bucket=bucket, Key=key, Body=data)

    def upload(self, uri: str, path: Path) -> None:
        bucket, key = bucket_and_key(uri)
        with translated(uri):
            try:
                self.client.upload_file(str(path), bucket, key, Config=_UPLOAD)
            except S3UploadFailedError as exc:
                # boto3 hides the response in its own error.
                if isinstance(exc.__context__, ClientError):
                    raise exc.__context__ from None
                raise

    def writer(self, uri: str) -> AbstractContextManager[S3Writer]:
        return S3Writer(self.client, uri, *bucket_and_key(uri)).block()

    def new_writer(self, uri: str) -> AbstractContextManager[S3Writer]:
        return S3Writer(self.client, uri, *bucket_and_key(uri), only_new=True).block()

    def copy(self, source: str, target: str) -> None:
        from_bucket, from_key = bucket_and_key(source)
        bucket, key = bucket_and_key(target)
        found = self.stat(source)
        if found is None:
            raise ObjectNotFound(f"{source}: no such object")
        copied = {"Bucket": from_bucket, "Key": from_key}
        with translated(f"{source} to {target}"):
            if found.size_bytes < _COPY.multipart_threshold:  # for one request, `client.copy` would start two threads
                answer = self.client.copy_object(CopySource=copied, Bucket=bucket, Key=key)
                is_done = "ETag" in answer.get("CopyObjectResult", ())  # guard: a copy counts only once it exists
            else:
                try:
                    self.client.copy(copied, bucket, key, Config=_COPY)
                except S3CopyFailedError as exc:
                    raise StoreUnavailable(f"{source} changed while being copied") from exc
                made = self.stat(target)
                # guard: a multipart copy counts only once it exists
                is_done = made is not None and made.size_bytes == found.size_bytes
        if not is_done:  # S3 answers 200 before it copies [API reference of CopyObject]
            raise StoreUnavailable(f"{source} to {target}: the response ended before the copy was made")

    def delete(self, uris: Iterable[str]) -> None:
        remaining = iter(uris)
        while batch := list(islice(remaining, _DELETE_BATCH)):
            keys: dict[str, set[str]] = {}
            for uri in batch:
                with suppress(ObjectNotFound):
                    bucket, key = bucket_and_key(uri)
                    keys.setdefault(bucket, set()).add(key)
            for bucket, of_bucket in keys.items():
                unlistable = {key for key in of_bucket if _NOT_IN_XML.search(key)}
                for key in unlistable:
                    with suppress(ObjectNotFound), translated(f"s3://{bucket}/{key}"):
                        self.client.delete_object(Bucket=bucket, Key=key)
                if of_bucket > unlistable:
                    self._delete_keys(bucket, of_bucket - unlistable)

    def delete_version(self, uri: str, etag: str) -> bool:
        return delete_by_name(self, uri, etag)

    def _delete_keys(self, bucket: str, keys: set[str]) -> None:
        """Delete up to 1,000 keys; retry keys with a transient error."""
        for tried in range(_TRIES):
            wanted = {"Objects": [{"Key": key} for key in sorted(keys)], "Quiet": True}
            with translated(f"s3://{bucket}/"):
                answer = self.client.delete_objects(Bucket=bucket, Delete=wanted)
            failures: dict[str, StoreUnavailable] = {}
            for error in answer.get("Errors", ()):
                place = f"s3://{bucket}/{error['Key']}"
                what = error_for(error["Code"], f"{place}: not deleted: {error['Code']}: {error.get('Message')}", 0)
                if isinstance(what, AccessError):
                    raise what
                if isinstance(what, StoreUnavailable):
                    failures[error["Key"]] = what
            if not failures:
                return
            keys = set(failures)
            self._pause(tried)
        raise failures.popitem()[1]

    def _get(self, uri: str, parameters: Mapping[str, str]) -> bytes:
        for tried in range(_TRIES):
            with translated(uri):
                try:
                    answer = self.client.get_object(**parameters)
                except ClientError as exc:
                    if error_code(exc) == "InvalidRange":
                        return b""
                    raise
            try:
                # Not `with answer["Body"]`: that gives the bare stream, without checks of length and checksum.
                with translated(uri), closing(answer["Body"]):
                    _check_length(uri, answer)
                    _check_range(uri, parameters.get("Range"), answer)
                    content: bytes = answer["Body"].read()
                    return content
            except StoreUnavailable as exc:  # the client does not retry reading a response body
                failure = exc
            self._pause(tried)
        raise failure

    def _pause(self, tried: int) -> None:
        self.sleep(pause_before_try(tried + 1))

    def _require_bucket(self, bucket: str) -> None:
        """Fail if the bucket is missing: a HEAD request has the same response for a missing bucket and object."""
        if bucket in self._seen_buckets:
            return
        try:
            with translated(f"s3://{bucket}/"):
                self.client.head_bucket(Bucket=bucket)
        except ObjectNotFound as exc:
            raise AccessError(f"s3://{bucket}/: no such bucket") from exc
        except AccessError:
            pass  # a role may read objects without permissions on their bucket
        self._seen_buckets.add(bucket)


def _split_prefix(uri: str) -> tuple[str, str]:
    if not is_s3(uri):
        raise AccessError(f"{uri}: expected an s3:// URI")
    bucket, _, key = canonical(uri).removeprefix("s3://").partition("/")
    return bucket, key


def bucket_and_key(uri: str) -> tuple[str, str]:
    """The bucket and key of an object; raises `ObjectNotFound` if no object can have this name."""
    bucket, key = _split_prefix(uri)
    try:
        key.encode()
    except UnicodeEncodeError as exc:
        raise ObjectNotFound(f"{uri!r}: invalid object name: it is not Unicode text") from exc
    if not key:
        raise ObjectNotFound(f"{uri}: expected a key after the bucket")
    return bucket, key


def _of_version(uri: str, etag: str | None) -> dict[str, str]:
    """The `get_object` parameters for one version of an object, or for any."""
    bucket, key = bucket_and_key(uri)
    return {"Bucket": bucket, "Key": key} | ({} if etag is None else {"IfMatch": f'"{etag}"'})


def _check_length(uri: str, answer: Mapping[str, Any]) -> None:
    """Check that a response states its length in some way; without a length it could end anywhere."""
    if "ContentLength" not in answer and "transfer-encoding" not in answer["ResponseMetadata"]["HTTPHeaders"]:
        raise StoreUnavailable(f"{uri}: the response does not state its length")


def _check_range(uri: str, asked: str | None, answer: Mapping[str, Any]) -> None:
    """Check that a response has the requested bytes: the whole object, or a range."""
    content_range = answer.get("ContentRange", "")
    is_asked = not content_range
    if asked:
        is_asked = is_range(content_range, *asked_range(asked), answer.get("ContentLength", -1))
    if not is_asked:  # guard: bytes of a different range are refused
        raise StoreUnavailable(f"{uri}: requested {asked or 'all bytes'}, got {content_range or 'all bytes'}")


def _info(uri: str, size_bytes: int, etag: str, modified_at: datetime) -> ObjectInfo:
    return ObjectInfo(uri, size_bytes, etag.strip('"'), modified_at.astimezone(UTC))
