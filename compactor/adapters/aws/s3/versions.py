"""Restores earlier versions of objects, which a bucket with versioning keeps."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from compactor.adapters.aws.errors import translated, translated_pages
from compactor.core.errors import AccessError, ObjectNotFound
from compactor.core.layout import canonical, is_s3


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """A version of an object that is not the current one."""

    uri: str
    version_id: str
    size_bytes: int
    modified_at: datetime


def earlier_version(client: Any, uri: str) -> ObjectVersion:
    """The newest version of an object before the current one, or before its deletion.

    Args:
        client: A boto3 S3 client.
        uri: The object.

    Raises:
        AccessError: It is no object in S3, or its versions may not be listed.
        ObjectNotFound: The bucket keeps no earlier version of it.
    """
    bucket, key = _split(uri)
    found = max(_earlier(client, uri, bucket, key), key=lambda each: each.modified_at, default=None)
    if found is None:
        raise ObjectNotFound(f"{uri}: the bucket {bucket} keeps no earlier version of this object")
    return found


def restore(client: Any, version: ObjectVersion) -> None:
    """Make a version the current one, by copying it. The versions after it stay."""
    bucket, key = _split(version.uri)
    with translated(version.uri):
        source = {"Bucket": bucket, "Key": key, "VersionId": version.version_id}
        client.copy_object(CopySource=source, Bucket=bucket, Key=key)


def _earlier(client: Any, uri: str, bucket: str, key: str) -> Iterator[ObjectVersion]:
    pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=key)
    for page in translated_pages(uri, pages):
        for each in page.get("Versions", ()):
            if each["Key"] == key and not each["IsLatest"]:
                modified_at = each["LastModified"].astimezone(UTC)
                yield ObjectVersion(uri, each["VersionId"], each["Size"], modified_at)


def _split(uri: str) -> tuple[str, str]:
    if not is_s3(uri):
        raise AccessError(f"{uri}: expected an s3:// URI; a local folder keeps no earlier versions")
    bucket, _, key = canonical(uri).removeprefix("s3://").partition("/")
    return bucket, key
