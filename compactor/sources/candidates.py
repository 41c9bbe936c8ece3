"""The sources of plans, and which objects are input. Decisions, no I/O."""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.manifest_parsing import uri_fault
from compactor.core.inputs.source_places import HIDING
from compactor.core.layout import base_name, canonical, folder, is_text, is_within
from compactor.core.ports import ObjectInfo
from compactor.sources.claiming import claim_key

NOT_DATA = {
    "outside_allowed_prefixes": "in none of input.allowed_prefixes",
    "folder_marker": "its name ends in /",
    "job_marker": "Spark marker (such as _SUCCESS, _started_1 or a file below _temporary)",
    "empty": "has no bytes",
    "excluded": "matches a pattern in input.exclude",
    "bad_name": "invalid in a manifest: not Unicode, contains a NUL, has . or .. as a folder, or is too long",
}
"""Why an object is not input: each reason with its meaning."""

LINKS = {
    "linked_folder": "a symbolic link to a folder, which is not followed",
    "outside_link": "a symbolic link that points outside input.allowed_prefixes",
    "dangling_link": "a broken symbolic link",
}
"""Symbolic links that are not planned: each reason with its meaning."""

SKIP_REASONS = {
    **NOT_DATA,
    "too_old": "written before the given time",
    "other_date": "belongs to a different date than the given one",
    **LINKS,
    "linked_file": "a symbolic link to a file that is input itself",
    "unsettled": "written seconds ago, so it may be incomplete",
    "other_stream": "belongs to a different stream in the settings, which has a longer prefix",
    "hidden": "its name, or a folder's name, begins with _ or .; --hidden takes it",
}
"""Objects that are not planned: each reason with its meaning."""

_JOB_MARKER_NAME = re.compile(r"_SUCCESS|_(started|committed)_\d+")
_JOB_FOLDERS = frozenset({"_temporary", "_spark_metadata"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that a plan puts into a manifest as a whole: a file version, or a pending part.

    Attributes:
        key: The key to claim for the manifest.
        files: One file, or those of a part.
        searched_at: When manifests were searched for it; None if claims alone decide whether one has it.
    """

    key: str
    date: str
    files: Sequence[ManifestFile]
    searched_at: datetime | None = None

    @classmethod
    def of_file(cls, date: str, file: ManifestFile, searched_at: datetime | None = None) -> "Candidate":
        return cls(claim_key(file), date, (file,), searched_at)


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates for one manifest; `is_full` if they suffice for it."""

    date: str
    candidates: Sequence[Candidate]
    is_full: bool

    @property
    def files(self) -> list[ManifestFile]:
        return [file for each in self.candidates for file in each.files]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes or 0 for file in self.files)

    @property
    def keys(self) -> list[str]:
        return [each.key for each in self.candidates]

    def only(self, keys: Container[str]) -> "Group":
        """The group reduced to its candidates with one of these keys."""
        return replace(self, candidates=[each for each in self.candidates if each.key in keys])


def is_settled(info: ObjectInfo, now: datetime, settle_seconds: float) -> bool:
    """Whether a file's last write is long enough ago."""
    # A future time only means that clocks differ, so the file need not wait.
    return abs((now - info.modified_at).total_seconds()) >= settle_seconds


def is_hidden(uri: str, folders: Sequence[str]) -> bool:
    """Whether a name below one of some folders begins with `_` or `.`. Spark and Hive skip such files."""
    path = canonical(uri)
    places = [folder(canonical(each)) for each in folders]
    below = next((path.removeprefix(each) for each in places if path.startswith(each)), "")
    return any(name.startswith(HIDING) for name in below.split("/"))


def skip_reason(uri: str, size_bytes: int, folders: Sequence[str], *, is_hidden: bool) -> str | None:
    """Why an object is not planned: one of `NOT_DATA`, or `hidden` if hidden objects are excluded; else None."""
    reason = not_data_reason(uri, size_bytes, folders)
    return "hidden" if is_hidden and reason in {None, "empty"} else reason


def not_data_reason(uri: str, size_bytes: int, allowed_prefixes: Sequence[str]) -> str | None:
    """Why an object is not input, one of `NOT_DATA`; None if it is. A prefix may be a single file."""
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
