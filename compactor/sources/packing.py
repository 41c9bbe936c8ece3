"""Cuts candidates into groups of manifest size. Decisions, no I/O."""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.manifest_parsing import MAX_MANIFEST_BYTES
from compactor.core.layout import canonical
from compactor.sources.candidates import Candidate, Group

T = TypeVar("T")

MAX_FILES = 20_000
"""The most files per manifest, however small: about 5 MB of names."""

_JSON_CHARACTER_MAX_BYTES = 6  # of a control character in a name, as in \u0001
_JSON_FILE_MAX_BYTES = 1024  # of a file entry without its name


@dataclass(slots=True)
class Packing:
    """Cuts one date's candidates into groups as they arrive; no file twice, as if all were known from the start.

    Attributes:
        target_bytes: The target size of a manifest, in stored bytes.
    """

    date: str
    target_bytes: float
    _rest: list[Candidate] = field(default_factory=list, init=False)

    def add(self, candidates: Iterable[Candidate]) -> list[Group]:
        """The groups completed by new candidates. The rest waits for more."""
        by_files: dict[tuple[str, ...], list[Candidate]] = {}
        for each in (*self._rest, *candidates):  # the versions of an object together: only one of them will be read
            by_files.setdefault(tuple(canonical(file.uri) for file in each.files), []).append(each)
        full, rest = cut(by_files.values(), self.target_bytes, self._weight)
        self._rest = [*chain(*rest)]
        return [Group(self.date, [*chain(*each)], is_full=True) for each in full]

    def end(self) -> list[Group]:
        """The group of the rest, if there is one."""
        rest, self._rest = self._rest, []
        return [Group(self.date, rest, is_full=False)] if rest else []

    def _weight(self, candidates: Sequence[Candidate]) -> float:
        return weight((file for each in candidates for file in each.files), self.target_bytes)


def one_entry_each(files: Iterable[ManifestFile]) -> list[ManifestFile]:
    """The files with one entry for each object: its version announced last, and the ETags of the others."""
    found: dict[str, dict[str | None, ManifestFile]] = {}
    for file in files:
        found.setdefault(canonical(file.uri), {}).update({each.etag: each for each in file.versions})
    return [_one_entry(list(versions.values())) for versions in found.values()]


def _one_entry(versions: Sequence[ManifestFile]) -> ManifestFile:
    if len(versions) == 1:
        return versions[0]
    last = max(versions, key=lambda each: each.event_time.timestamp() if each.event_time else 0.0)
    others = tuple(each.etag for each in versions if each.etag not in {None, last.etag})
    return last.model_copy(update={"other_etags": others})


def weight(files: Iterable[ManifestFile], target_bytes: float) -> float:
    """Files' share of the target: their stored bytes, or more if they are many or have long names or many versions."""
    # `cut` fills a manifest up to twice its target, so a file takes its share of half of a manifest's capacity.
    least = target_bytes / MAX_FILES
    return sum(
        max(file.size_bytes or 0, least, target_bytes * _json_bytes(file) * 2 / MAX_MANIFEST_BYTES)
        for file in one_entry_each(files)
    )


def _json_bytes(file: ManifestFile) -> int:
    of_path = sum(len(key) + len(text) for key, text in (file.path_columns or {}).items())
    of_versions = sum(len(etag) + 3 for etag in file.other_etags or ())
    return _JSON_CHARACTER_MAX_BYTES * (len(file.uri) + of_path) + of_versions + _JSON_FILE_MAX_BYTES


def new_manifest_id(date: str) -> str:
    """A unique manifest id for a date."""
    return f"{date}-{secrets.token_hex(8)}"


def cut(items: Iterable[T], target_weight: float, weight: Callable[[T], float]) -> tuple[list[list[T]], list[T]]:
    """Cut a sequence into runs. Each run ends at the item that brings its weight closest to the target.

    An item as heavy as the target is a run on its own. The order is kept.

    Returns:
        The full runs, and the remaining items, which do not fill one.
    """
    runs: list[list[T]] = []
    current: list[T] = []
    total = 0.0
    for item in items:
        item_weight = weight(item)
        overshoot = total + item_weight - target_weight
        if current and (item_weight >= target_weight or overshoot > max(0, target_weight - total)):
            runs.append(current)
            current, total = [], 0.0
        current.append(item)
        total += item_weight
        if total >= target_weight:
            runs.append(current)
            current, total = [], 0.0
    return runs, current
