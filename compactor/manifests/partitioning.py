"""Groups files, and pending parts, into manifests. Decisions, no I/O."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.manifest_parsing import ManifestRules
from compactor.core.layout import canonical
from compactor.core.rules.packing import cut, layered

MAX_FILES = 20_000
"""The most files that one manifest should name, however small: about 5 MB of names."""

_JSON_CHARACTER_MAX_BYTES = 6  # of a control character in a name, as in \u0001
_JSON_FILE_MAX_BYTES = 1024  # of a file without its name


@dataclass(frozen=True, slots=True)
class Group:
    """Files for one manifest.

    Attributes:
        files: At most one version of each object.
        is_full: Whether they are enough for a manifest.
    """

    files: Sequence[ManifestFile]
    is_full: bool

    @property
    def size_bytes(self) -> int:
        """The stored size of the files."""
        return sum(file.size_bytes or 0 for file in self.files)


def grouped(files: Iterable[ManifestFile], target_bytes: float, rules: ManifestRules) -> list[Group]:
    """Cut the files of one date into manifests.

    Args:
        files: Cut in this order.
        target_bytes: How many stored bytes a manifest should name.
        rules: What a manifest may name, so that intake accepts it.
    """
    groups: list[Group] = []
    # guard: no manifest names two versions of one object
    for layer in layered(files, lambda file: (canonical(file.uri),)):
        full, rest = cut(layer, target_bytes, lambda file: _weight(file, target_bytes, rules))
        groups += [Group(each, is_full=True) for each in full]
        groups += [Group(rest, is_full=False)] if rest else []
    return groups


@dataclass(slots=True)
class Packing:
    """Cuts the files of one date into manifests as they come: those that it cuts from all at once, if no file is twice.

    Attributes:
        target_bytes: As for `grouped`.
        rules: As for `grouped`.
    """

    target_bytes: float
    rules: ManifestRules
    _rest: list[ManifestFile] = field(default_factory=list, init=False)

    def add(self, files: Sequence[ManifestFile]) -> list[Group]:
        """The groups that further files fill. What does not fill one waits for more of them."""
        groups = grouped([*self._rest, *files], self.target_bytes, self.rules)
        self._rest = [file for group in groups if not group.is_full for file in group.files]
        return [group for group in groups if group.is_full]

    def end(self) -> list[Group]:
        """The groups of what waits."""
        groups, self._rest = grouped(self._rest, self.target_bytes, self.rules), []
        return groups

    @property
    def has_rest(self) -> bool:
        """Whether files wait."""
        return bool(self._rest)


def largest_first(groups: Iterable[tuple[str, Group]]) -> list[tuple[str, Group]]:
    """Order the groups of all dates, so that many tiny ones do not delay volume: full ones, then the largest."""
    return sorted(groups, key=lambda each: (not each[1].is_full, -each[1].size_bytes))


def is_worth_a_manifest(files: Sequence[ManifestFile], target_bytes: float, rules: ManifestRules) -> bool:
    """Return whether the rest of a full group is large enough for a manifest: at least half the target."""
    return sum(_weight(file, target_bytes, rules) for file in files) >= target_bytes / 2


def due(
    parts: Sequence[Manifest], target_bytes: float, rules: ManifestRules, *, now: datetime, wait_seconds: float
) -> list[list[Manifest]]:
    """Return the pending parts of one date to seal now, one list for each manifest.

    Args:
        parts: All pending parts of the date.
        target_bytes: How many stored bytes a manifest should name.
        rules: What a manifest may name, so that intake accepts it.
        now: The time.
        wait_seconds: The age at which a part is sealed in any case.
    """
    groups: list[list[Manifest]] = []
    in_order = sorted(parts, key=lambda part: (part.created_at, part.manifest_id))
    for layer in layered(in_order, lambda part: {canonical(file.uri) for file in part.files}):
        full, rest = cut(
            layer, target_bytes, lambda part: sum(_weight(file, target_bytes, rules) for file in part.files)
        )
        is_old = bool(rest) and (now - rest[0].created_at).total_seconds() >= wait_seconds
        groups += [*full, rest] if is_old else full
    return groups


def new_manifest_id(date: str) -> str:
    """A unique id for a manifest of a date."""
    return f"{date}-{secrets.token_hex(8)}"


def _weight(file: ManifestFile, target_bytes: float, rules: ManifestRules) -> float:
    # `cut` fills a manifest up to twice its target, so a file takes its share of half of what a manifest may hold.
    most_files = min(MAX_FILES, max(1, rules.max_files // 2))
    of_path = sum(len(key) + len(text) for key, text in (file.path_columns or {}).items())
    json_bytes = _JSON_CHARACTER_MAX_BYTES * (len(file.uri) + of_path) + _JSON_FILE_MAX_BYTES
    return max(file.size_bytes or 0, target_bytes / most_files, target_bytes * json_bytes * 2 / rules.max_bytes)
