"""Versions of files: how a local file gets one, and what a person is told of it."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime

_LOCAL = re.compile(r"(?P<ns>[0-9a-f]{1,20})-(?P<size>[0-9a-f]{1,16})")

Beginning = tuple[int, str]
"""The first so many bytes of a file: their number and their digest."""

AskedBeginnings = Mapping[int, AbstractSet[str]]
"""Beginnings to look for: digests by their number of bytes."""


def local_version(written_ns: int, size_bytes: int) -> str:
    """The version of a local file: its time and its length, so that a copy that keeps both is the same version.

    Args:
        written_ns: Time of the last write, in nanoseconds.
        size_bytes: Its length.
    """
    return f"{written_ns & 0xFFFFFFFFFFFFFFFF:x}-{size_bytes:x}"


def length_of(etag: str) -> int | None:
    """The length of a local file by its version; None of any other."""
    found = _LOCAL.fullmatch(etag)
    return int(found["size"], 16) if found else None


def described_version(uri: str, etag: str | None) -> str:
    """A version in words: the length and the time of a local file, the ETag of an object on S3."""
    found = _LOCAL.fullmatch(etag or "") if not uri.startswith("s3") else None
    if found is None:
        return f"version {etag}" if etag else "a version that is not on record"
    try:
        written = datetime.fromtimestamp(int(found["ns"], 16) / 1e9, UTC)
    except (ValueError, OverflowError, OSError):  # before 1970, or far in the future
        return f"{int(found['size'], 16):,} bytes"
    return f"{int(found['size'], 16):,} bytes of {written:%Y-%m-%d %H:%M:%S} UTC"
