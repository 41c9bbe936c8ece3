"""Compares content from S3 with the checksums that an answer tells, as botocore does for its own requests."""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping

from botocore.compat import HAS_CRT
from zlib_ng.zlib_ng import crc32

_HEADER = "x-amz-checksum-"
_NO_CHECKSUM = {"type", "mode"}

_DIGESTS: dict[str, Callable[[bytes], bytes]] = {
    "crc32": lambda data: crc32(data).to_bytes(4, "big"),
    "sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    "sha256": lambda data: hashlib.sha256(data).digest(),
    "sha512": lambda data: hashlib.sha512(data).digest(),
}
"""Those that botocore compares by itself. It needs awscrt for any other."""


def matches_checksums(headers: Mapping[str, str], content: bytes) -> bool:
    """Whether content has each checksum that botocore would compare; False if there is one that only awscrt knows.

    Args:
        headers: Of the answer.
        content: Its body.
    """
    names = (name.lower().removeprefix(_HEADER) for name in headers if name.lower().startswith(_HEADER))
    told = {name: headers[_HEADER + name] for name in names if name not in _NO_CHECKSUM}
    # One with a dash is of the checksums of an object's parts, not of its content [S3 API].
    return all("-" in value or _matches(name, value, content) for name, value in told.items())


def _matches(name: str, value: str, content: bytes) -> bool:
    digest = _DIGESTS.get(name)
    return not HAS_CRT if digest is None else value == b64encode(digest(content)).decode()
