"""Groups files, and pending parts, into manifests. Decisions, no I/O."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from compactor.core.layout import canonical
from compactor.core.manifest import Manifest, ManifestFile
from compactor.core.packing import cut, layered

MAX_FILES = 20_000
"""The most files that one manifest should name, however small: about 5 MB of names."""


@dataclass(frozen=True, slots=True)
class Group:
    """Files for one manifest.

    Attributes:
        files: At most one version of each object.
        is_full: Whether they are enough for a manifest.
    """

    files: Sequence[ManifestFile]
    is_full: bool


def grouped(files: Iterable[ManifestFile], target_bytes: float) -> list[Group]:
    """Cut the files of one date into manifests.

    Args:
        files: Cut in this order.
        target_bytes: How many stored bytes a manifest should name.
    """
    groups: list[Group] = []
    for layer in layered(files, lambda file: (canonical(file.uri),)):
        full, rest = cut(layer, target_bytes, lambda file: _weight(file, target_bytes))
        groups += [Group(each, is_full=True) for each in full]
        groups += [Group(rest, is_full=False)] if rest else []
    return groups


def is_worth_a_manifest(files: Sequence[ManifestFile], target_bytes: float) -> bool:
    """Return whether the rest of a full group is large enough for a manifest: at least half the target."""
    return sum(_weight(file, target_bytes) for file in files) >= target_bytes / 2


def due(parts: Sequence[Manifest], target_bytes: float, *, now: datetime, wait_seconds: float) -> list[list[Manifest]]:
    """Return the pending parts of one date to seal now, one list for each manifest.

    Args:
        parts: All pending parts of the date.
        target_bytes: How many stored bytes a manifest should name.
        now: The time.
        wait_seconds: The age at which a part is sealed in any case.
    """
    groups: list[list[Manifest]] = []
    in_order = sorted(parts, key=lambda part: (part.created_at, part.manifest_id))
    for layer in layered(in_order, lambda part: {canonical(file.uri) for file in part.files}):
        full, rest = cut(layer, target_bytes, lambda part: sum(_weight(file, target_bytes) for file in part.files))
        is_old = bool(rest) and (now - rest[0].created_at).total_seconds() >= wait_seconds
        groups += [*full, rest] if is_old else full
    return groups


def new_manifest_id(date: str) -> str:
    """A unique id for a manifest of a date."""
    return f"{date}-{secrets.token_hex(8)}"


def _weight(file: ManifestFile, target_bytes: float) -> float:
    return max(file.size_bytes or 0, target_bytes / MAX_FILES)
