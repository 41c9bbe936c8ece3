"""Chooses table files to merge: small files of one partition, each from a commit or an earlier merge."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from compactor.core.documents.records import Commit
from compactor.core.documents.table_records import MergedPart
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.results import as_document
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.sizing import is_right_sized
from compactor.ledger.state import State
from compactor.table.catalog import FilePartition
from compactor.table.changes import Changes
from compactor.table.merging.choosing import MergeRule
from compactor.table.unmerged import LiveFile


@as_document(shows=("hit_rate",))
@dataclass(frozen=True, slots=True)
class FileSizes:
    """The files of the table at one instant."""

    files: int = 0  # files that the table lists
    size_bytes: int = 0  # their total length
    right_sized_bytes: int = 0  # the length of those of the right size
    lone_bytes: int = 0  # the length of smaller ones that are alone in their partition, which has no more rows

    @property
    def hit_rate(self) -> float:
        """The share of the bytes in right-sized or lone files; 1 without files."""
        return (self.right_sized_bytes + self.lone_bytes) / self.size_bytes if self.size_bytes else 1.0


@dataclass(frozen=True, slots=True)
class NotMerged:
    """Files that were left as they are."""

    where: str  # the first of them
    why: str  # why they cannot be merged


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What merging did. With `--dry-run` nothing is changed."""

    table: str  # the name of the table
    exists: bool = False  # whether there is one
    merged_files: int = 0  # files that became part of others
    merged_bytes: int = 0  # their total length
    made_files: int = 0  # files that these are now
    made_bytes: int = 0  # the total length of those; of a dry run, that of the files to merge
    taken_apart: int = 0  # merged files that their parts took the place of
    not_merged: tuple[NotMerged, ...] = ()  # what was left as it is, and why
    removed_files: int = 0  # merged files that nothing needs any more, and that were removed
    removed_bytes: int = 0  # their total length
    before: FileSizes = FileSizes()  # the files before
    after: FileSizes = FileSizes()  # the files afterwards; of a dry run, as before
    dry_run: bool = False  # whether nothing was changed


@dataclass(frozen=True, slots=True)
class Mergeable:
    """A file that may be merged, and the files of commits whose rows it has."""

    uri: str
    size_bytes: int
    parts: tuple[MergedPart, ...]
    date: str
    partition: tuple[FilePartition, ...]
    is_merged: bool

    @property
    def values(self) -> list[str | None]:
        return [each.value for each in self.partition]


def sizes_of(live: Sequence[LiveFile], rule: MergeRule) -> FileSizes:
    """How much of the table is in right-sized files."""
    target, partitions = rule.target_file_bytes, _by_partition(live)
    sizes = [each.file.size_bytes for each in live]
    alone = [files[0].file.size_bytes for files in partitions if len(files) == 1]
    return FileSizes(
        len(live),
        sum(sizes),
        right_sized_bytes=sum(size for size in sizes if is_right_sized(size, target)),
        lone_bytes=sum(size for size in alone if size < target and not is_right_sized(size, target)),
    )


def _by_partition(live: Sequence[LiveFile]) -> list[list[LiveFile]]:
    partitions = defaultdict[object, list[LiveFile]](list)
    for each in live:
        partitions[each.file.date, each.file.values].append(each)
    return list(partitions.values())


def mergeable_groups(
    state: State,
    changes: Changes,
    rule: MergeRule,
    live: Sequence[LiveFile],
    *,
    dates: Collection[str] | None,
    without: Collection[str],
) -> Iterator[list[Mergeable]]:
    """Groups of files that each become one file, partition after partition.

    Args:
        state: Has the records.
        changes: Has the partitions of files.
        rule: When files are merged.
        live: The files of the table.
        dates: Only files of these dates; None for all.
        without: Files that cannot be merged.
    """
    for files in _by_partition(sorted(live, key=lambda each: (each.file.date, each.uris[0]))):
        wanted = [
            each
            for each in files
            if (dates is None or each.file.date in dates)
            and each.file.uri not in without
            and rule.is_small(each.file.size_bytes)
        ]
        if not any(True for _ in rule.chosen([each.file for each in wanted])):
            continue  # the ledger need not be read
        alike = defaultdict[object, list[Mergeable]](list)
        for found in map_ordered(partial(_mergeable, state, changes), wanted):
            if found is not None:
                alike[found.date, found.partition].append(found)
        for each_alike in alike.values():
            yield from rule.chosen(each_alike)


def _mergeable(state: State, changes: Changes, live: LiveFile) -> Mergeable | None:
    """A file with its parts; None if the ledger disagrees with the table, or has a later generation."""
    if live.merged is not None:
        parts = tuple(live.merged.parts)
    else:
        found = _part(state, live.file.uri)
        parts = (found,) if found is not None else ()
    if not parts or live.differs:
        return None
    commits = ((_valid(state, part.key), part.generation) for part in parts)
    valid = [commit for commit, generation in commits if commit is not None and commit.generation == generation]
    if len(valid) < len(parts):
        return None
    return Mergeable(
        live.file.uri,
        live.file.size_bytes,
        parts,
        parts[0].date,
        changes.partitions_of(valid[0]).get(parts[0].uri, ()),
        is_merged=live.merged is not None,
    )


def _part(state: State, uri: str) -> MergedPart | None:
    key = state.layout.output_owner(uri)
    commit = _valid(state, key) if key is not None and key.id else None
    file = next((each for each in commit.outputs if each.final == uri), None) if commit is not None else None
    if commit is None or file is None:
        return None
    return MergedPart(
        date=commit.date,
        manifest_id=commit.manifest_id,
        generation=commit.generation,
        uri=uri,
        rows=file.rows,
        size_bytes=file.size_bytes,
    )


def _valid(state: State, key: ManifestKey) -> Commit | None:
    [found] = accounts(state, Scope(keys=[key]))
    return found.commit if found.fault is None else None  # `verify` reports a fault
