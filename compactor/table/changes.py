"""Decides which files a batch adds to the table and removes from it, based on its manifests' commits."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compactor.core.documents.changes import Commit, DeadLetter, StagedFile, Why
from compactor.core.documents.table_records import BatchedManifest, MergedFile, MergedPart, TableBatch
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.partitions import parse_fields
from compactor.core.text.safe_text import quoted
from compactor.ledger.change_log import find_merge, is_released, merged_files
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.schema.schema import Column, SchemaVersion
from compactor.table.catalog import FilePartition, TableChange, TableFile
from compactor.table.unmerged import LiveFile, looked_up

LiveFiles = Callable[[], Iterable[TableFile]]
"""Lists the table's files at the head of a change."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Derives a batch's change from the ledger, and from the table's files if merged files may be involved.

    The last two attributes matter only for a rebuilt table.

    Attributes:
        schema_of: Returns a registry version by its number.
        is_expired: Whether a rule deleted the rows of a manifest's generation, so that they are omitted.
        is_moved: Whether a date's file was deleted after a merge: its rows come with the merged file.
    """

    state: State
    schema_of: Callable[[int], SchemaVersion]
    is_expired: Callable[[ManifestKey, int], bool] = lambda _key, _generation: False
    is_moved: Callable[[str, str], bool] = lambda _date, _uri: False

    def made_again(self) -> "Changes":
        """The same for a batch of a table that may be rebuilt, considering later removals."""
        visible = Visible(self.state)
        # guard: a repair of the table does without rows that expired
        # guard: a re-created table waits for the merged file that has the rows
        return replace(self, is_expired=visible.has_expired_rows, is_moved=visible.is_moved)

    def of(self, batch: TableBatch, schema_version: int, live: LiveFiles) -> TableChange:
        """The change of one batch.

        Raises:
            RecordUnreadable: A needed record is not a commit or a merge, or a file that must return is missing.
        """
        commits = list(map_ordered(self._commit, batch.manifests))
        added = tuple(file for commit in commits for file in self._added(commit))
        kept = {file.uri for file in added}
        removed = {uri for commit in commits for uri in self.replaced(commit.key, commit.generation)} - kept
        removed.update(batch.unmerged)
        if removed or batch.merge:
            further, gone = self._merged_anew(removed, self._merge(batch.merge), live)
            added, removed = added + further, removed | gone
        needed = max((file.version_in(commit) for commit in commits for file in commit.outputs), default=0)
        schema = self.schema_of(needed) if needed > schema_version else None
        keeps_rows = not commits and (batch.merge != "" or bool(batch.unmerged))
        return TableChange(batch.number, added, tuple(sorted(removed)), schema, keeps_rows=keeps_rows)

    def _merge(self, merge_id: str) -> Sequence[MergedFile]:
        if not merge_id:
            return ()
        merge = find_merge(self.state, merge_id)
        if merge is None:
            uri = self.state.layout.change(Why.MERGED, "", merge_id)
            raise RecordUnreadable(f"{uri}: no such record, but a table batch names it; expected a merge")
        return merge.files

    def _merged_anew(
        self, removed: Collection[str], files: Sequence[MergedFile], live: LiveFiles
    ) -> tuple[tuple[TableFile, ...], set[str]]:
        """Further files to add and remove: those of a merge, and merged files with rows from removed files.

        A merged file with rows from removed files is replaced by its parts. A file of the merge replaces files that
        have exactly its rows; if the table has others, or if the file is missing, nothing is replaced.

        A rebuilt table takes merges again. Files may then be missing: rebuilt ones, merged files that were merged again
        or replaced by their parts, and parts that come with a later merge.
        """
        gone, wanted = set(removed), {part.uri for file in files for part in file.parts}
        back, holders, apart = dict[str, MergedPart](), dict[str, LiveFile](), set[str]()
        untold, damaged = set(removed), set[str]()
        for each in looked_up(self.state, live(), skips_damaged=True):
            untold.difference_update(each.uris)
            if each.merged is None and self.state.layout.merge_of(each.file.uri):
                damaged.add(each.file.uri)
            if each.merged is not None and (each.file.uri in gone or not gone.isdisjoint(each.uris)):
                apart.add(each.file.uri)
                back.update({part.uri: part for part in each.merged.parts if part.uri not in gone})
            elif each.file.uri not in gone:
                holders.update({uri: each for uri in each.uris if uri in wanted})
        # guard: a damaged merge holds back a manifest whose rows may be in it
        if untold:  # their rows may be in a merged file whose record is unreadable
            merged_files(self.state, damaged)
        added = list[TableFile]()
        for file in files:
            inputs = self._inputs(file, back, holders)
            if inputs is not None and self.state.store.stat(file.uri) is not None:
                partition = self._partition_of(file.parts[0])
                added.append(TableFile(file.uri, file.size_bytes, file.rows, file.date, partition))
                apart.update(inputs - {file.uri})
                for part in file.parts:
                    back.pop(part.uri, None)
        returned = [part for part in back.values() if not self.is_moved(part.date, part.uri)]
        return (*added, *map_ordered(self._returned, returned)), apart

    def has_moved_rows(self, batch: TableBatch, live: LiveFiles = tuple) -> bool:
        """Whether only this batch brings some rows to a rebuilt table.

        Raises:
            RecordUnreadable: A record of removed parts of merged files is unreadable.
        """
        try:
            files = self._merge(batch.merge)
        except RecordUnreadable:
            return False  # its files are reported as missing, and stay where they are
        parts = [part for file in files for part in file.parts if self.is_moved(part.date, part.uri)]
        listed, ledger = live() if parts else (), self.state.ledger
        held = {uri for each in looked_up(self.state, listed, skips_damaged=True) for uri in each.uris}
        return any(
            part.uri not in held
            and not self.is_expired(part.key, part.generation)
            and not ledger.is_superseded(part.key, part.generation)
            for part in parts
        )

    def comes_back(self, batch: TableBatch, live: LiveFiles) -> bool:
        """Whether a refused batch must take effect after all: it has only a merge, whose record was restored.

        The lost table had the merged file, so its parts were removed, and this table lacks their rows.

        Raises:
            RecordUnreadable: A record of removed parts of merged files is unreadable.
        """
        if batch.manifests or not self.has_moved_rows(batch, live):
            return False
        # guard: a merge that the table never had is not restored
        return any(is_released(self.state, each.date, each.uri) for each in self._merge(batch.merge))

    def _inputs(self, file: MergedFile, back: Collection[str], holders: Mapping[str, LiveFile]) -> set[str] | None:
        """The table's files that a merged file replaces; None if they do not have exactly its rows."""
        uris = {part.uri for part in file.parts}
        found = {holders[uri].file.uri: holders[uri].uris for uri in uris if uri in holders}
        left = uris.difference(back, *found.values())
        is_whole = all(uris.issuperset(each) for each in found.values())
        absent = (part for part in file.parts if part.uri in left)
        # guard: a merged file takes the place of whole files of the table
        return set(found) if is_whole and all(self.is_moved(part.date, part.uri) for part in absent) else None

    def _returned(self, part: MergedPart) -> TableFile:
        if self.state.store.stat(part.uri) is None:
            raise RecordUnreadable(
                f"{part.uri}: missing, and its rows are in a merged file that must be removed; expected the file: "
                f"`compactor rebuild --manifest {quoted(part.manifest_id)}`"
            )
        return TableFile(part.uri, part.size_bytes, part.rows, part.date, self._partition_of(part))

    def _partition_of(self, part: MergedPart) -> tuple[FilePartition, ...]:
        commit = self._commit(part)
        return self.partitions_of(commit).get(part.uri, ())

    def partitions_of(self, commit: Commit) -> dict[str, tuple[FilePartition, ...]]:
        """The partition of each row file within the date, by its final name."""
        columns = self._columns(commit)
        return {file.final: _partition(commit, file, columns) for file in commit.outputs}

    def replaced(self, key: ManifestKey, generation: int) -> list[str]:
        """The row files of all earlier generations."""
        return [uri for earlier in range(1, generation) for uri in self.files_of(key, earlier)]

    def files_of(self, key: ManifestKey, generation: int) -> list[str]:
        """The row files of one generation."""
        commit = self._outcome(key, generation)
        return [file.final for file in commit.outputs] if isinstance(commit, Commit) else []

    def _commit(self, manifest: BatchedManifest) -> Commit:
        commit = self._outcome(manifest.key, manifest.generation)
        if not isinstance(commit, Commit):
            uri = self.state.layout.outcome(manifest.key, manifest.generation)
            raise RecordUnreadable(f"{uri}: a dead letter, but a table batch has it; expected a commit")
        return commit

    def _outcome(self, key: ManifestKey, generation: int) -> Commit | DeadLetter:
        """An outcome. It was recorded before its batch, so a missing one is lost."""
        try:
            return self.state.ledger.outcome_of(key, generation)
        except ObjectNotFound as exc:
            uri = self.state.layout.outcome(key, generation)
            raise RecordUnreadable(f"{uri}: missing, but a table batch needs it; expected an outcome") from exc

    def _added(self, commit: Commit) -> Iterator[TableFile]:
        store, ledger = self.state.store, self.state.ledger
        is_superseded = bool(commit.outputs) and ledger.is_superseded(commit.key, commit.generation)
        if is_superseded and not ledger.is_done(commit.key, commit.generation):
            return  # the later generation has its rows; the catalog may have refused these files
        if commit.outputs and self.is_expired(commit.key, commit.generation):
            return
        columns = self._columns(commit)
        for file in commit.outputs:
            # A rebuilt table starts with the first batch, but rebuilds have deleted files of early ones.
            # guard: a re-created table gets no files that a rebuild replaced and deleted
            is_there = not is_superseded or store.stat(file.final) is not None
            if is_there and not self.is_moved(commit.date, file.final):
                yield TableFile(file.final, file.size_bytes, file.rows, commit.date, _partition(commit, file, columns))

    def _columns(self, commit: Commit) -> dict[str, Column]:
        """The partition columns of a commit, by key; none if one of the keys has no column."""
        fields = parse_fields(commit.partition_by)
        if not fields:
            return {}
        columns = {column.key: column for column in self.schema_of(commit.schema_version).columns}
        found = {field.key: columns[field.key] for field in fields if field.key in columns}
        return found if all(field.key in found for field in fields) else {}


def _partition(commit: Commit, file: StagedFile, columns: Mapping[str, Column]) -> tuple[FilePartition, ...]:
    """The partition of a file within its date; empty if its rows have several."""
    if not columns or file.holds_others:  # guard: a file is in a partition of the table only if all its rows are
        return ()
    return tuple(
        FilePartition(
            field.name, field.transform, columns[field.key].field_id, columns[field.key].type, field.buckets, value
        )
        for field, value in zip(parse_fields(commit.partition_by), file.partition, strict=True)
    )
