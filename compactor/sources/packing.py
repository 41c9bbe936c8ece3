"""Cuts candidates into groups of manifest size. Decisions, no I/O."""

import secrets
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
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
        groups = self._grouped([*self._rest, *candidates])
        self._rest = [each for group in groups if not group.is_full for each in group.candidates]
        return [group for group in groups if group.is_full]

    def end(self) -> list[Group]:
        """The groups of the rest."""
        groups, self._rest = self._grouped(self._rest), []
        return groups

    def _grouped(self, candidates: Iterable[Candidate]) -> list[Group]:
        groups: list[Group] = []
        # guard: no manifest names two versions of one object
        for layer in layered(candidates, lambda each: {canonical(file.uri) for file in each.files}):
            full, rest = cut(layer, self.target_bytes, self._weight)
            groups += [Group(self.date, each, is_full=True) for each in full]
            groups += [Group(self.date, rest, is_full=False)] if rest else []
        return groups

    def _weight(self, candidate: Candidate) -> float:
        return weight(candidate.files, self.target_bytes)


def weight(files: Iterable[ManifestFile], target_bytes: float) -> float:
    """Files' share of the target: their stored bytes, or more if they are many or have long names."""
    # `cut` fills a manifest up to twice its target, so a file takes its share of half of a manifest's capacity.
    least = target_bytes / MAX_FILES
    return sum(
        max(file.size_bytes or 0, least, target_bytes * _json_bytes(file) * 2 / MAX_MANIFEST_BYTES) for file in files
    )


def _json_bytes(file: ManifestFile) -> int:
    of_path = sum(len(key) + len(text) for key, text in (file.path_columns or {}).items())
    return _JSON_CHARACTER_MAX_BYTES * (len(file.uri) + of_path) + _JSON_FILE_MAX_BYTES


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


def layered(items: Iterable[T], names: Callable[[T], Collection[str]]) -> list[list[T]]:
    """Divide items greedily into few layers, with no name twice in one layer. The order is kept."""
    layers: list[tuple[set[str], list[T]]] = []
    for item in items:
        own = set(names(item))
        layer = next((each for each in layers if own.isdisjoint(each[0])), None)
        if layer is None:
            layer = (set(), [])
            layers.append(layer)
        layer[0].update(own)
        layer[1].append(item)
    return [items_of_layer for _, items_of_layer in layers]
