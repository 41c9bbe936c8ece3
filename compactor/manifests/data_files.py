"""Tells which objects are input. Decisions, no I/O."""

import re
from collections.abc import Sequence

from compactor.core.documents.manifest_parsing import uri_fault
from compactor.core.inputs.source_places import HIDING
from compactor.core.layout import base_name, canonical, folder, is_text, is_within

NOT_DATA = {
    "outside_allowed_prefixes": "below none of input.allowed_prefixes",
    "folder_marker": "its name ends in /",
    "job_marker": "Spark marker (such as _SUCCESS, _started_1 or a file below _temporary)",
    "empty": "holds no bytes",
    "excluded": "matches a pattern of input.exclude",
    "bad_name": "no manifest can name it: it is not Unicode, contains a NUL, has . or .. as a folder, or is too long",
}
"""Why an object is not input: each reason with its meaning."""

_JOB_MARKER_NAME = re.compile(r"_SUCCESS|_(started|committed)_\d+")
_JOB_FOLDERS = frozenset({"_temporary", "_spark_metadata"})


def is_hidden(uri: str, folders: Sequence[str]) -> bool:
    """Return whether a name below one of some folders begins with `_` or `.`: Spark and Hive pass over it."""
    path = canonical(uri)
    places = [folder(canonical(each)) for each in folders]
    below = next((path.removeprefix(each) for each in places if path.startswith(each)), "")
    return any(name.startswith(HIDING) for name in below.split("/"))


def skip_reason(uri: str, size_bytes: int, folders: Sequence[str], *, is_hidden: bool) -> str | None:
    """Return why an object of a listing is not planned: one of `NOT_DATA`, or `hidden`; None if it is planned.

    Args:
        uri: The object.
        size_bytes: Its length.
        folders: Those that are planned.
        is_hidden: Whether it has a hidden name, and these are not planned.
    """
    reason = not_data_reason(uri, size_bytes, folders)
    return "hidden" if is_hidden and reason in {None, "empty"} else reason


def not_data_reason(uri: str, size_bytes: int, allowed_prefixes: Sequence[str]) -> str | None:
    """Return why an object is not input: one of `NOT_DATA`; None if it is input.

    Args:
        uri: The object.
        size_bytes: Its length.
        allowed_prefixes: Folders that input may be in, and single files.
    """
    path = canonical(uri)
    if any(path == canonical(each) for each in allowed_prefixes):  # a single file
        return None if size_bytes else "empty"
    prefix = next((each for each in allowed_prefixes if path.startswith(folder(canonical(each)))), None)
    if prefix is None:
        return "outside_allowed_prefixes"
    name = path.removeprefix(folder(canonical(prefix)))
    if name.endswith("/") or not name:
        return "folder_marker"
    if _JOB_MARKER_NAME.fullmatch(base_name(name)) or not _JOB_FOLDERS.isdisjoint(name.split("/")):
        return "job_marker"
    if size_bytes == 0:
        return "empty"
    return None if is_text(uri) and not uri_fault(path) and is_within(uri, prefix) else "bad_name"
