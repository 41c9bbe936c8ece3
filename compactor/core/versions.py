"""Versions of files: how a local file gets one, and how it is described to users."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime

_LOCAL = re.compile(r"(?P<ns>[0-9a-f]{1,20})-(?P<size>[0-9a-f]{1,16})")

Beginning = tuple[int, str]
"""The first bytes of a file: their number and their digest."""

AskedBeginnings = Mapping[int, AbstractSet[str]]
"""Beginnings to look for: digests by number of bytes."""


def local_version(written_ns: int, size_bytes: int) -> str:
    """The version of a local file: its time and its length, so a copy that preserves both has the same version."""
    return f"{written_ns & 0xFFFFFFFFFFFFFFFF:x}-{size_bytes:x}"


def version_of_beginning(etag: str, size_bytes: int) -> str:
    """The version that the first bytes of a local file are, given that of the whole file."""
    return f"{etag.rpartition('-')[0] or etag}-{size_bytes:x}"


def length_of(etag: str) -> int | None:
    """The length of a local file from its version; None for any other version."""
    found = _LOCAL.fullmatch(etag)
    return int(found["size"], 16) if found else None


def described_version(uri: str, etag: str | None) -> str:
    """A version in words: length and time of a local file, ETag of an S3 object."""
    found = _LOCAL.fullmatch(etag or "") if not uri.startswith("s3") else None
    if found is None:
        return f"version {etag}" if etag else "an unrecorded version"
    try:
        written = datetime.fromtimestamp(int(found["ns"], 16) / 1e9, UTC)
    except (ValueError, OverflowError, OSError):  # before 1970, or far in the future
        return f"{int(found['size'], 16):,} bytes"
    return f"{int(found['size'], 16):,} bytes written {written:%Y-%m-%d %H:%M:%S} UTC"
