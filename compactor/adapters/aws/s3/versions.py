"""Brings back earlier versions of objects, which a bucket with versioning keeps."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from compactor.adapters.aws.errors import translated, translated_pages
from compactor.adapters.aws.s3.store import bucket_and_key
from compactor.core.errors import AccessError, ObjectNotFound, StoreUnavailable
from compactor.core.layout import is_s3

_SOURCE = "compactor-restored-version"  # of the metadata of an object that was brought back: the version it was


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """A version of an object that is not the current one."""

    uri: str
    version_id: str
    size_bytes: int
    modified_at: datetime


def earlier_version(client: Any, uri: str, version_id: str = "") -> ObjectVersion:
    """The newest version of an object before the current one, or before its deletion; or the one with an id.

    Args:
        client: A boto3 S3 client.
        uri: The object.
        version_id: As S3 names the version; empty for the newest one.

    Raises:
        AccessError: It is no object in S3, or its versions may not be listed; or the current version was brought back
            already, so that the one before it is the damaged one, and no id is given.
        ObjectNotFound: The bucket keeps no such version of it.
    """
    if not is_s3(uri):
        raise AccessError(f"{uri}: expected an s3:// URI; a local folder keeps no earlier versions")
    bucket, key = bucket_and_key(uri)
    if not version_id and (source := _restored_from(client, uri, bucket, key)):
        raise AccessError(f"{uri}: it was restored from version {source} already; for another one, give --version")
    versions = (each for each in _kept_versions(client, uri, bucket, key) if version_id in {"", each.version_id})
    found = max(versions, key=lambda each: each.modified_at, default=None)
    if found is None:
        which = f"earlier version {version_id}" if version_id else "earlier version"
        raise ObjectNotFound(f"{uri}: the bucket {bucket} keeps no {which} of this object")
    return found


def make_current(client: Any, version: ObjectVersion) -> None:
    """Make a version the current one, by copying it. The versions after it stay."""
    bucket, key = bucket_and_key(version.uri)
    with translated(version.uri):
        made = client.copy_object(
            CopySource={"Bucket": bucket, "Key": key, "VersionId": version.version_id},
            Bucket=bucket,
            Key=key,
            Metadata={_SOURCE: version.version_id},
            MetadataDirective="REPLACE",
        )
    if "ETag" not in made.get("CopyObjectResult", ()):  # S3 answers 200 before it copies [API, CopyObject]
        raise StoreUnavailable(f"{version.uri}: the response ended before the version was restored")


def _restored_from(client: Any, uri: str, bucket: str, key: str) -> str:
    """The version that the current one was brought back from; empty if it is another one, or none."""
    try:
        with translated(uri):
            return str(client.head_object(Bucket=bucket, Key=key)["Metadata"].get(_SOURCE, ""))
    except ObjectNotFound:
        return ""


def _kept_versions(client: Any, uri: str, bucket: str, key: str) -> Iterator[ObjectVersion]:
    pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=key)
    for page in translated_pages(uri, pages):
        for each in page.get("Versions", ()):
            if each["Key"] == key and not each["IsLatest"]:
                modified_at = each["LastModified"].astimezone(UTC)
                yield ObjectVersion(uri, each["VersionId"], each["Size"], modified_at)
