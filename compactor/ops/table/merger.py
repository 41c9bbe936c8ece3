"""Merges small files of the table. Safe while jobs, rebuilds and other merges run.

No commit file is removed here: merged files only replace them in the table. The new files are written and verified,
then the merge is recorded, and then it goes through a numbered batch, as manifests do. So a kill leaves a batch that
any process applies, or unlisted files that the next call removes.
"""

import secrets
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from compactor.core.documents.changes import Commit
from compactor.core.documents.table_records import MergedFile, MergedPart
from compactor.core.errors import ObjectNotFound, OperatorError, StagingError, TableConflict
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.results import as_document
from compactor.engines.parquet_files import parquet_facts
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.change_log import is_released, merge_of, release
from compactor.ledger.sizing import is_right_sized
from compactor.ledger.state import State
from compactor.ops.table.removing import remove_leftovers
from compactor.table.applying import Applied, Refused
from compactor.table.catalog import FilePartition, TableHead
from compactor.table.changes import Changes
from compactor.table.committer import Committer
from compactor.table.merging.choosing import MergeRule
from compactor.table.merging.writing import MergedFiles
from compactor.table.unmerged import LiveFile
from compactor.telemetry.error_text import described

TRIES = 5
"""Consecutive merges that may fail because other files were replaced meanwhile."""

MERGED_AT_ONCE_BYTES = 2 * 1024**3
MERGED_AT_ONCE_FILES = 50
"""The most that one merge reads and creates: this much work is lost if a manifest is rebuilt meanwhile."""


@as_document(shows=("hit_rate",))
@dataclass(frozen=True, slots=True)
class FileSizes:
    """The files of the table at one instant."""

    files: int = 0  # files listed in the table
    size_bytes: int = 0  # their total size
    right_sized_bytes: int = 0  # the size of right-sized files
    lone_bytes: int = 0  # the size of smaller files that are alone in their partition

    @property
    def hit_rate(self) -> float:
        """The share of the bytes in right-sized or lone files; 1 without files."""
        return (self.right_sized_bytes + self.lone_bytes) / self.size_bytes if self.size_bytes else 1.0


@dataclass(frozen=True, slots=True)
class NotMerged:
    """Files that were not merged."""

    where: str  # the first of them
    why: str  # why they cannot be merged


@dataclass(frozen=True, slots=True)
class MergeReport:
    """The results of merging. With `--dry-run` nothing is changed."""

    table: str  # the table's name
    exists: bool = False  # whether it exists
    merged_files: int = 0  # files that were merged into others
    merged_bytes: int = 0  # their total size
    made_files: int = 0  # created merged files
    made_bytes: int = 0  # their total size; in a dry run, the size of the files to merge
    taken_apart: int = 0  # merged files that were replaced by their parts
    not_merged: tuple[NotMerged, ...] = ()  # unmerged files, with reasons
    removed_files: int = 0  # merged files that were removed as unneeded
    removed_bytes: int = 0  # their total size
    before: FileSizes = FileSizes()  # the files before
    after: FileSizes = FileSizes()  # the files afterwards; in a dry run, the same
    dry_run: bool = False  # whether nothing was changed


@dataclass(frozen=True, slots=True)
class Mergeable:
    """A file that may be merged, and the commit files with its rows."""

    uri: str
    size_bytes: int
    parts: tuple[MergedPart, ...]
    date: str
    partition: tuple[FilePartition, ...]
    is_merged: bool

    @property
    def values(self) -> list[str | None]:
        return [each.value for each in self.partition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merger:
    """Merges the files of one table.

    Attributes:
        committer: Commits merges to the table.
        files: Writes merged files.
    """

    state: State
    committer: Committer
    files: MergedFiles
    name: str
    rule: MergeRule

    def merge(self, *, dates: Collection[str] | None = None, dry_run: bool = False) -> MergeReport:
        """Merge where it pays off, or only report it; then remove merged files that are no longer needed.

        Raises:
            TryAgainError: The catalog or the store does not respond, or the table keeps changing. Completed work stays;
                another call does the rest.
            OperatorError: An operator must act: the catalog refuses, or the table does not belong to this ledger.
        """
        found = self.committer.catalog.head()
        if found is None:
            return MergeReport(self.name, dry_run=dry_run)
        head = found if dry_run else self.committer.settled()
        run, live = _Run(), list(self.committer.live(head))
        before = _sizes_of(live, self.rule)
        small = _small_files(self.rule, live, dates, ())
        groups = [group for each in small for group in self.rule.chosen([file.file for file in each])]
        with self.state.meter.work("file", sum(map(len, groups))):
            while chosen := self._next(run, live, dates):
                if dry_run:
                    run.made += [(group, sum(each.size_bytes for each in group)) for group in chosen]
                    run.left_out.update(each.uri for group in chosen for each in group)
                    continue
                self._merge(run, head, chosen)
                head = self.committer.settled()
                live = list(self.committer.live(head))
        removed, removed_bytes = (0, 0) if dry_run else remove_leftovers(self.committer)
        return MergeReport(
            self.name,
            exists=True,
            merged_files=sum(len(group) for group, _ in run.made),
            merged_bytes=sum(each.size_bytes for group, _ in run.made for each in group),
            made_files=len(run.made),
            made_bytes=sum(size_bytes for _, size_bytes in run.made),
            not_merged=tuple(run.not_merged),
            removed_files=removed,
            removed_bytes=removed_bytes,
            before=before,
            after=_sizes_of(live, self.rule),
            dry_run=dry_run,
        )

    def undo(self, uris: Sequence[str]) -> MergeReport:
        """Have the table replace merged files with their parts.

        Raises:
            TryAgainError: As for `merge`.
            OperatorError: One of them is not a merged file of the table, or a file that must return is missing.
        """
        live = list(self.committer.live(self.committer.settled()))
        merged = {each.file.uri for each in live if each.merged is not None}
        if other := next((uri for uri in uris if uri not in merged), None):
            raise OperatorError(f"{other}: expected a merged file in table {self.name}")
        taken = self.committer.unmerge(uris)
        if not isinstance(taken, Applied):
            raise OperatorError(f"table {self.name}: {taken.error}")
        after = _sizes_of(list(self.committer.live(self.committer.settled())), self.rule)
        removed, removed_bytes = remove_leftovers(self.committer)
        return MergeReport(
            self.name,
            exists=True,
            taken_apart=len(uris),
            removed_files=removed,
            removed_bytes=removed_bytes,
            before=_sizes_of(live, self.rule),
            after=after,
        )

    def _next(self, run: "_Run", live: Sequence[LiveFile], dates: Collection[str] | None) -> list[list[Mergeable]]:
        """The groups of the next merge."""
        chosen, total = list[list[Mergeable]](), 0
        groups = _groups(self.state, self.committer.changes, self.rule, live, dates=dates, without=run.left_out)
        for group in groups:
            chosen.append(group)
            total += sum(each.size_bytes for each in group)
            if len(chosen) == run.at_once or total >= MERGED_AT_ONCE_BYTES:
                break
        return chosen

    def _merge(self, run: "_Run", head: TableHead, groups: Sequence[Sequence[Mergeable]]) -> None:
        """Write the files of one merge, and commit it to the table."""
        merge_id = f"{head.fence:08d}-{secrets.token_hex(4)}"
        made = list[tuple[MergedFile, Sequence[Mergeable]]]()
        try:
            for number, group in enumerate(groups, 1):
                uri = self.state.layout.merged_file(merge_id, number)
                if (file := self._written(run, uri, group)) is not None:
                    made.append((file, group))
                self.state.meter.add("file", len(group))
            if not made:
                return
            merge = merge_of(self.state, merge_id, head.fence, [file for file, _ in made])
            self._inherit(made)  # guard: a merged file takes over from the one before that alone has rows
            self.state.ledger.decide(merge)
        except Exception:
            self.state.store.delete([self.state.layout.merged_file(merge_id, each + 1) for each in range(len(groups))])
            raise
        taken = self.committer.merge(merge)
        if isinstance(taken, Refused):
            run.note_refused(made, taken)
            return
        is_taken = taken is not None and taken.files > 0
        run.failures = 0 if is_taken else run.failures + 1
        if is_taken:
            run.made += [(group, file.size_bytes) for file, group in made]
        elif taken is None:  # nothing names them, and nothing ever will
            self.committer.remainders.discard(merge.files)
        if run.failures == TRIES:
            raise TableConflict(f"table {self.name}: its files keep being replaced; {TRIES} merges failed")

    def _inherit(self, made: Sequence[tuple[MergedFile, Sequence[Mergeable]]]) -> None:
        """Record that parts of new files may be missing, if parts of the files that they were made from may be."""
        for file, group in made:
            if any(each.is_merged and is_released(self.state, each.date, each.uri) for each in group):
                release(self.state, file)

    def _written(self, run: "_Run", uri: str, group: Sequence[Mergeable]) -> MergedFile | None:
        """Write one file; None if the files cannot be merged, which does not stop other groups."""
        parts = [part for each in group for part in each.parts]
        try:
            rows, size_bytes = self.files.write(uri, parts, [each.uri for each in group])
        except (StagingError, ObjectNotFound) as error:
            self.state.store.delete([uri])
            damaged = [each for each in group if not self._is_whole(each)]
            run.leave_out(damaged or group, described(error))
            return None
        first = group[0]
        return MergedFile(
            uri=uri, rows=rows, size_bytes=size_bytes, date=first.date, partition=first.values, parts=parts
        )

    def _is_whole(self, file: Mergeable) -> bool:
        """Whether the footer of a file has the recorded rows, so that the file did not cause the failure."""
        try:
            return parquet_facts(self.state.store, file.uri).rows == sum(part.rows for part in file.parts)
        except (StagingError, ObjectNotFound):
            return False


@dataclass(slots=True)
class _Run:
    """One call's progress.

    Attributes:
        made: Groups that became one file each, with the length of that file.
        left_out: Files that stay unchanged.
        failures: Consecutive merges that failed because other files were replaced meanwhile.
        at_once: The most files that the next merge creates.
    """

    made: list[tuple[Sequence[Mergeable], int]] = field(default_factory=list)
    not_merged: list[NotMerged] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)
    failures: int = 0
    at_once: int = MERGED_AT_ONCE_FILES

    def note_refused(self, made: Sequence[tuple[MergedFile, Sequence[Mergeable]]], refused: Refused) -> None:
        """Note that the catalog refuses a merge. Later merges create one file each, until the faulty group is alone."""
        self.at_once = 1
        if len(made) == 1:
            self.leave_out(made[0][1], described(refused.error))

    def leave_out(self, group: Sequence[Mergeable], why: str) -> None:
        self.not_merged.append(NotMerged(group[0].uri, why))
        self.left_out.update(each.uri for each in group)


def _sizes_of(live: Sequence[LiveFile], rule: MergeRule) -> FileSizes:
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


def _groups(
    state: State,
    changes: Changes,
    rule: MergeRule,
    live: Sequence[LiveFile],
    *,
    dates: Collection[str] | None,
    without: Collection[str],
) -> Iterator[list[Mergeable]]:
    """Groups of files that each become one file, partition after partition; `dates` None is for all dates."""
    # The ledger need not be read for other partitions.
    for wanted in _small_files(rule, live, dates, without):
        alike = defaultdict[object, list[Mergeable]](list)
        for found in map_ordered(partial(_mergeable, state, changes), wanted):
            if found is not None:
                alike[found.date, found.partition].append(found)
        for each_alike in alike.values():
            yield from rule.chosen(each_alike)


def _small_files(
    rule: MergeRule, live: Sequence[LiveFile], dates: Collection[str] | None, without: Collection[str]
) -> Iterator[list[LiveFile]]:
    """The small files of each partition with groups worth merging."""
    for files in _by_partition(sorted(live, key=lambda each: (each.file.date, each.uris[0]))):
        wanted = [
            each
            for each in files
            if (dates is None or each.file.date in dates)
            and each.file.uri not in without
            and rule.is_small(each.file.size_bytes)
        ]
        if any(True for _ in rule.chosen([each.file for each in wanted])):
            yield wanted


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
    return found.commit if found.fault is None else None  # `verify` reports the fault
