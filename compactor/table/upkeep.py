"""Decides which of a table's snapshots expire, and which metadata files are unneeded. No I/O.

A change may land while the table stays at the snapshot that the change asserts. So a file older than the current
snapshot belongs to a change that is in the table, or that can never land.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.ledger.table.batches import CLOCKS_DIFFER

SAFE_AGE = timedelta(days=1)
"""Younger files always stay."""

LOOSE_MANIFESTS = 16
"""How many more manifests a snapshot may have than its entries need."""

_ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_WRITTEN_BY_COMMITS = re.compile(
    rf"snap-\d+-\d+-{_ID}\.avro|{_ID}-m\d+\.avro|\d+-{_ID}(?:\.gz)?\.metadata\.json(?:\.gz)?"
)


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """A snapshot that has not expired.

    Attributes:
        parent_id: The previous current snapshot; None for the first.
        made_at: By its writer's clock.
    """

    snapshot_id: int
    parent_id: int | None
    made_at: datetime


@dataclass(frozen=True, slots=True)
class TableRef:
    """A branch or a tag; the branch `main` has the current snapshot.

    Attributes:
        is_branch: Whether it moves to later snapshots, and keeps earlier ones for a while.
        keep_for: How long it requests snapshots to be kept, in addition to the settings.
        keep_snapshots: How many snapshots it requests to be kept.
    """

    snapshot_id: int
    is_branch: bool = True
    keep_for: timedelta = timedelta()
    keep_snapshots: int = 1


@dataclass(frozen=True, slots=True)
class TableHistory:
    """A table's history.

    Attributes:
        snapshots: All unexpired ones, in any order.
        refs: Branches and tags.
        manifest_bytes: The length of each manifest in the current snapshot.
        manifest_target_bytes: The target length of manifests.
        keeps_all: Whether nothing may be removed, because something outside this catalog needs it.
    """

    snapshots: tuple[TableSnapshot, ...]
    refs: tuple[TableRef, ...]
    manifest_bytes: tuple[int, ...]
    manifest_target_bytes: int
    keeps_all: bool = False


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """A file in a table's metadata folder, with the store's time of its last write."""

    name: str
    size_bytes: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class TableFolder:
    """A table's metadata folder. It contains no rows.

    Attributes:
        files: Listed before the table was read.
        named: The names of all files needed by this table, or by another one with metadata in the folder.
        current_since: When the current snapshot was made; None without one.
    """

    files: tuple[MetadataFile, ...]
    named: frozenset[str]
    current_since: datetime | None


@dataclass(frozen=True, slots=True)
class KeepRule:
    """Which snapshots stay readable.

    Attributes:
        keep_for: How long a snapshot stays after it was replaced.
        snapshots: The minimum number of latest snapshots kept per branch.
    """

    keep_for: timedelta
    snapshots: int


def expired(history: TableHistory, rule: KeepRule, now: datetime) -> list[int]:
    """The snapshots that no branch or tag needs, in the order of the history."""
    if history.keeps_all:
        return []
    by_id, reached, kept = {each.snapshot_id: each for each in history.snapshots}, set[int](), set[int]()
    for ref in history.refs:
        if ref.is_branch:
            reached.update(_line(by_id, ref.snapshot_id))
            kept.update(_kept_of(by_id, ref, rule, now))
        else:
            reached.add(ref.snapshot_id)
            kept.add(ref.snapshot_id)
    for each in history.snapshots:  # one that is staged, or was rolled back
        if each.snapshot_id not in reached and each.made_at > now - rule.keep_for:
            kept.add(each.snapshot_id)
    return [each.snapshot_id for each in history.snapshots if each.snapshot_id not in kept]


def needs_merge(history: TableHistory) -> bool:
    """Whether the current snapshot has many more manifests than its entries need."""
    filled = 2 * sum(history.manifest_bytes) // history.manifest_target_bytes + 1  # two in a row exceed the target
    return len(history.manifest_bytes) > filled + LOOSE_MANIFESTS


def leftovers(folder: TableFolder, now: datetime) -> list[MetadataFile]:
    """The files needed by no table, nor by a change that may still land.

    Files with names unlike those of commits belong to other programs, and stay.
    """
    if folder.current_since is None:
        return []
    before = min(now - SAFE_AGE, folder.current_since - CLOCKS_DIFFER)
    old = (each for each in folder.files if each.written_at < before and each.name not in folder.named)
    return [each for each in old if _WRITTEN_BY_COMMITS.fullmatch(each.name)]


def _line(by_id: Mapping[int, TableSnapshot], snapshot_id: int | None) -> list[int]:
    """A snapshot and its ancestors."""
    line = dict[int, None]()
    while snapshot_id is not None and snapshot_id in by_id and snapshot_id not in line:
        line[snapshot_id] = None
        snapshot_id = by_id[snapshot_id].parent_id
    return list(line)


def _kept_of(by_id: Mapping[int, TableSnapshot], ref: TableRef, rule: KeepRule, now: datetime) -> Iterable[int]:
    """The snapshots that a branch keeps. Their age counts from their replacement: until then, readers use them."""
    line = _line(by_id, ref.snapshot_id)
    at_least, keep_for = max(1, rule.snapshots, ref.keep_snapshots), max(rule.keep_for, ref.keep_for)
    for place, (number, later) in enumerate(zip(line, [None, *line], strict=False)):
        # Clocks differ, and a snapshot may seem to be from the future; it is not kept if nothing is.
        is_young = bool(keep_for) and later is not None and by_id[later].made_at > now - keep_for
        if place < at_least or is_young:
            yield number
