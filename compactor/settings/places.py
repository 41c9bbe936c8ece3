"""Parses the places in settings into one absolute spelling, and detects overlaps."""

import os
import re

from compactor.core import layout
from compactor.core.logs.names import input_place as log_place
from compactor.core.logs.names import is_log

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_GLOB = frozenset("*?[]{}\\")

EXPECTED = "s3://bucket/prefix, file:///folder or a path"
STAGING_EXPECTED = "s3://bucket/prefix, or empty"
INPUT_EXPECTED = f"{EXPECTED}, or kafka://cluster/topic or kinesis://source/stream"


def parse_place(text: str, *, any_name: bool = False) -> str:
    """Parse a place into `s3://bucket/prefix` or an absolute local path without `.`, `..` and doubled slashes.

    A relative path starts at the current working directory. With `any_name`, control characters and invalid UTF-8 are
    accepted, too: producers use them, settings cannot.

    Raises:
        ValueError: The text is not a valid folder. The message describes the expected form.
    """
    if not text.strip() or (_CONTROL.search(text) and not any_name):
        raise ValueError(f"{EXPECTED}, without control characters")
    if not any_name and not layout.is_text(text):
        raise ValueError(f"{EXPECTED}, in UTF-8")
    uri = layout.canonical(text)
    if layout.is_s3(uri):
        return _s3_place(uri)
    if text.startswith("file://") and not text.startswith("file:///"):
        raise ValueError("file:/// and an absolute path, without a host")
    if _SCHEME.match(uri):
        raise ValueError(EXPECTED)
    if uri.startswith("~"):
        raise ValueError("a path without ~, which is not expanded")
    try:
        return "/" + os.path.abspath(uri).lstrip("/")  # noqa: PTH100  pathlib keeps `..`
    except OSError as exc:
        raise ValueError(f"an absolute path, because the current working directory is unknown ({exc})") from exc


def parse_input_place(text: str) -> str:
    """Parse a place of input: as `parse_place`, or a Kafka topic or Kinesis stream.

    Raises:
        ValueError: The place is invalid. The message describes the expected form.
    """
    return log_place(text) if is_log(text) else parse_place(text)


def parse_own_place(text: str) -> str:
    """Parse a place for output: as `parse_place`, but without Spark's glob characters.

    Raises:
        ValueError: The place is invalid. The message describes the expected form.
    """
    found = sorted(_GLOB.intersection(text))
    if found:
        raise ValueError(f"a place without {' '.join(found)}, which Spark reads as a pattern")
    return parse_place(text)


def parse_staging(text: str) -> str:
    """Parse the place of staging; empty if it is below the state, as local staging always is: only its owner reads it.

    Raises:
        ValueError: The place is invalid, or local. The message describes the expected form.
    """
    place = parse_own_place(text) if text else ""
    if place and not layout.is_s3(place):
        raise ValueError(STAGING_EXPECTED)
    return place


def overlap(one: str, other: str) -> bool:
    """Whether two parsed places are equal or one is inside the other, also through a symbolic link."""
    return any(
        layout.is_within(layout.folder(inner), outer) or layout.is_within(layout.folder(outer), inner)
        for inner, outer in ((one, other), (real_place(one), real_place(other)))
    )


def real_place(place: str) -> str:
    """A parsed place with symbolic links resolved, so each folder has one spelling. It need not exist."""
    return place if layout.is_s3(place) or is_log(place) else os.path.realpath(place)


def exists(text: str) -> bool:
    """Whether a local path typed by a user exists."""
    return os.path.lexists(layout.canonical(text))


def is_file(place: str) -> bool:
    """Whether a local place is a file."""
    return os.path.isfile(place)  # noqa: PTH113 - names are used literally


def _s3_place(uri: str) -> str:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    key = key.removesuffix("/")
    if not _BUCKET.fullmatch(bucket):
        raise ValueError(f"s3://bucket/prefix; {bucket!r} is not a bucket name")
    if key and not {"", ".", ".."}.isdisjoint(key.split("/")):
        raise ValueError("s3://bucket/prefix, without empty, . or .. segments")
    return f"s3://{bucket}/{key}" if key else f"s3://{bucket}"
