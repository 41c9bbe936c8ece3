"""Compares a commit's files with its figures, without reading values, and finds uncommitted files.

A job commits before it publishes, so files are listed first and commits read after that. Only files in place are
written before their manifest is decided. If another attempt is decided, they are orphans: the table does not list them,
so they add no rows. Without a table, readers list the folders, and any such file is a discrepancy.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import groupby, takewhile

from compactor.core.documents.changes import Commit, Part, StagedFile
from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import ObjectChanged, ObjectNotFound, RecordUnreadable, StagingError, StuckError
from compactor.core.layout import ManifestKey, canonical, folder, is_data
from compactor.core.map_ordered import map_ordered
from compactor.core.partitions import folders, parse_fields
from compactor.core.ports import ObjectInfo
from compactor.core.text.formatting import count, rows_and_bytes
from compactor.engines.columns_file import columns_fault
from compactor.engines.parquet_files import ParquetFacts, parquet_facts
from compactor.ledger.state import State
from compactor.ledger.table.orphans import Fate, InPlaceFiles
from compactor.ledger.visible import Moved, Visible
from compactor.ndjson.files.rejects import REJECTS_SCHEMA
from compactor.ops.verify.report import Discrepancy, ExpiredFiles, Finding, Orphan, VerifyResult
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import METADATA_COLUMNS

Owner = ManifestKey | None
OwnerOf = Callable[[str], Owner]


def surplus(state: State, date: str | None = None, *, has_table: bool = False) -> Iterator[Finding]:
    """Find surplus files in the folders of a date, or of all dates, even without any record."""
    layout, in_place = state.layout, InPlaceFiles(state) if has_table else None
    outputs = state.store.list(layout.output_folder_of(date) if date else folder(layout.output))
    # Outside the folders of dates there may be other tables.
    owned = (info for info in outputs if layout.output_owner(info.uri))
    yield from _surplus(state, owned, layout.output_owner, in_place)
    rejects = state.store.list(layout.rejects_folder_of(date) if date else layout.rejects_folder)
    yield from _surplus(state, rejects, layout.rejects_owner, in_place)


def surplus_of_manifest(state: State, key: ManifestKey, *, has_table: bool = False) -> Iterator[Finding]:
    """Find surplus files with a manifest's name in its date's folders, and in its partitions, if any."""
    layout, in_place = state.layout, InPlaceFiles(state) if has_table else None
    if in_place is not None:
        yield from _surplus(state, state.store.list(layout.in_place_of(key)), layout.output_owner, in_place)
    outputs = layout.output_folder_of(key.date)
    named = state.store.list(outputs) if _has_partitions(state, key) else _beginning_with(state, outputs, key.id)
    owned = (info for info in named if layout.output_owner(info.uri) == key)
    others = (info for info in owned if in_place is None or not layout.in_place_attempt(info.uri))
    yield from _surplus(state, others, layout.output_owner, in_place)
    rejects = _beginning_with(state, layout.rejects_folder_of(key.date), key.id)
    owned = (info for info in rejects if layout.rejects_owner(info.uri) == key)
    yield from _surplus(state, owned, layout.rejects_owner, in_place)


def _has_partitions(state: State, key: ManifestKey) -> bool:
    """Whether a manifest, or an earlier generation of it, has partitions."""
    try:
        newest = state.ledger.outcome(key)
        earlier = (state.ledger.outcome_of(key, number) for number in range(1, newest.generation))
        return any(isinstance(each, Commit) and each.partition_by for each in (newest, *earlier))
    except (ObjectNotFound, RecordUnreadable):
        return False


def _beginning_with(state: State, place: str, manifest_id: str) -> Iterator[ObjectInfo]:
    start = f"{place}{manifest_id}-"
    return takewhile(lambda info: info.uri.startswith(start), state.store.list(place, start_after=start))


def _surplus(
    state: State, listed: Iterable[ObjectInfo], owner_of: OwnerOf, in_place: InPlaceFiles | None
) -> Iterator[Finding]:
    data = (info for info in listed if is_data(info.uri))
    groups = ((owner, list(infos)) for owner, infos in groupby(data, key=lambda info: owner_of(info.uri)))
    for found in map_ordered(partial(_surplus_of, state, in_place), groups):
        yield from found


def _surplus_of(state: State, in_place: InPlaceFiles | None, group: tuple[Owner, list[ObjectInfo]]) -> list[Finding]:
    owner, infos = group
    try:
        outcome = state.ledger.outcome(owner) if owner and owner.id else None
    except ObjectNotFound:
        outcome = None
    except RecordUnreadable:
        return []  # the record itself is a discrepancy
    files = (*outcome.outputs, *outcome.rejects) if isinstance(outcome, Commit) else ()
    named = {canonical(file.final) for file in files}
    if isinstance(outcome, Commit) and outcome.is_rebuilt and not state.ledger.is_done(outcome.key, outcome.generation):
        named |= set(map(canonical, outcome.removes))  # removed before the rebuilt files are published
    manifest_id = owner.id if owner and outcome else ""
    found: list[Finding] = []
    for info in infos:
        if canonical(info.uri) in named:
            continue
        fate = in_place.fate(info.uri) if in_place is not None else Fate.UNKNOWN
        if fate is Fate.ORPHANED:
            found.append(Orphan(info.uri, info.size_bytes))
        elif fate not in {Fate.UNDECIDED, Fate.UNREADABLE}:  # the record itself is a discrepancy
            expected = "no such file: no commit names it"
            found.append(Discrepancy(manifest_id, info.uri, expected, f"{info.size_bytes} bytes"))
    return found


_SCHEMAS_HELD = 32
_TRIES = 3  # a driver may republish a file while it is read


class CommitFiles:
    """Checks the files of commits. Safe for many threads."""

    def __init__(self, state: State, registry: SchemaRegistry) -> None:
        self.state, self._registry = state, registry
        self.visible = Visible(state)  # expired parts, and the merged files with rows of removed ones
        self._columns = lru_cache(maxsize=_SCHEMAS_HELD)(self._read_columns)

    def faults_of_columns(self) -> Iterator[Finding]:
        """Check the columns files. Readers of folders take the columns from the first of them."""
        layout, store = self.state.layout, self.state.store
        expected = "a Parquet file with columns of the output, and no rows; the next run with input rewrites it"
        for uri in [info.uri for info in store.list(layout.columns_folder) if layout.is_columns_file(info.uri)]:
            try:
                fault = columns_fault(store.read(uri), self._registry.latest())
            except ObjectNotFound:  # settings changed meanwhile
                continue
            except RecordUnreadable as exc:
                fault = f"unknown columns: {exc}"
            if fault:  # guard: a damaged columns file is found
                yield Discrepancy("", uri, expected, fault)

    def published(self, commit: Commit) -> Iterator[Finding]:
        """Check the files of a finished commit."""
        yield from _contradictions(commit)
        yield from self.lost_schemas(commit)
        for file in commit.outputs:
            yield from self._published(commit, "rows", file, self._columns(file.version_in(commit)))
        for file in commit.rejects:
            yield from self._published(commit, "rejects", file, list(REJECTS_SCHEMA.names))

    def _published(self, commit: Commit, part: Part, file: StagedFile, columns: list[str] | None) -> Iterator[Finding]:
        faults = list(self._faults(commit, file, columns))
        is_gone = bool(faults) and self.state.store.stat(file.final) is None
        expired = self.visible.deletion(part, commit.key, commit.generation) if is_gone else None
        given_up = self.visible.given_up(commit, file.final) if is_gone and expired is None else None
        if (gone := expired or given_up) is not None:  # guard: a file deleted without a record is missing
            yield ExpiredFiles(commit.date, part, gone.words, dismissed=given_up is not None)
            return
        yield from faults
        if part == "rows":
            yield VerifyResult(output_files_verified=int(not faults), output_files_missing=int(is_gone))

    def lost_schemas(self, commit: Commit) -> Iterator[Discrepancy]:
        """A commit's schema versions that are unreadable."""
        for version in {commit.schema_version, *(output.version_in(commit) for output in commit.outputs)}:
            if self._columns(version) is None:
                uri = self.state.layout.schema(version)
                yield Discrepancy("", uri, "a schema version that commits name", "none that can be read")

    def staged(self, commit: Commit) -> Iterator[Discrepancy]:
        """Check the files of an unfinished commit."""
        for file in (*commit.outputs, *commit.rejects):
            # In this order: a job publishes a file before it deletes it from staging.
            if all(self.state.store.stat(uri) is None for uri in (file.staged, file.final)):
                yield Discrepancy(
                    commit.manifest_id, file.staged, f"{count(file.rows, 'row')}, staged or published", "neither"
                )

    def _read_columns(self, version: int) -> list[str] | None:
        try:
            return [column.name for column in self._registry.version(version).columns]
        except (ObjectNotFound, StuckError, ValueError):  # ValueError: the object is not a schema version
            return None

    def _faults(self, commit: Commit, file: StagedFile, columns: list[str] | None) -> Iterator[Discrepancy]:
        expected = rows_and_bytes(file.rows, file.size_bytes)
        facts = self._facts(file.final)
        if isinstance(facts, str):
            moved = self._moved(commit, file)
            # guard: rows are verified in the merged file that has the only copy
            fault = facts if moved is None else self._merged_fault(moved.file, columns)
            if fault:
                yield Discrepancy(commit.manifest_id, file.final, expected, fault, is_lost=True)
            return
        if (facts.rows, facts.size_bytes) != (file.rows, file.size_bytes):
            yield Discrepancy(
                commit.manifest_id, file.final, expected, rows_and_bytes(facts.rows, facts.size_bytes), is_lost=True
            )
        # A key may have a metadata column's name, from a release without that column.
        found = [name for name in facts.columns if name not in METADATA_COLUMNS or name in (columns or ())]
        if columns is not None and found != columns:
            yield Discrepancy(commit.manifest_id, file.final, f"columns {columns}", f"columns {found}", is_lost=True)

    def _moved(self, commit: Commit, file: StagedFile) -> Moved | None:
        """The merged file with the rows of a missing file."""
        if self.state.store.stat(file.final) is not None:
            return None
        found = self.visible.moved(commit.date, file.final)
        return found if found is not None and found.rows == file.rows else None

    def _merged_fault(self, merged: MergedFile, columns: list[str] | None) -> str:
        facts = self._facts(merged.uri)
        if isinstance(facts, str):
            return f"its rows are only in {merged.uri}: {facts}"
        if (facts.rows, facts.size_bytes) != (merged.rows, merged.size_bytes):
            return f"its rows are only in {merged.uri}, with {rows_and_bytes(facts.rows, facts.size_bytes)}"
        lost = [name for name in columns or () if name not in facts.columns]
        return f"its rows are only in {merged.uri}, without columns {lost}" if lost else ""

    def _facts(self, uri: str) -> ParquetFacts | str:
        """The footer of a file, or why it is unreadable."""
        fault = ""
        for _ in range(_TRIES):
            try:
                return parquet_facts(self.state.store, uri)
            except (ObjectChanged, ObjectNotFound, StagingError) as exc:
                fault = str(exc).removeprefix(f"{uri}: ")
                if isinstance(exc, StagingError):
                    break
        return fault


def _contradictions(commit: Commit) -> Iterator[Discrepancy]:
    """A commit's internal inconsistencies."""
    for file in commit.files:
        accounted = file.records + file.rejected_lines + file.blank_lines + file.erased_rejects
        if accounted != file.lines:
            yield Discrepancy(commit.manifest_id, file.uri, f"{file.lines} lines", f"{accounted} accounted for")
    for what, files, expected in (
        ("outputs", commit.outputs, sum(file.records for file in commit.files) - commit.erased_rows),
        ("rejects", commit.rejects, sum(file.reject_rows for file in commit.files)),
    ):
        found = sum(file.rows for file in files)
        if found != expected:
            yield Discrepancy(commit.manifest_id, f"{what} of the commit", count(expected, "row"), count(found, "row"))
    yield from _misnamed(commit)


def _misnamed(commit: Commit) -> Iterator[Discrepancy]:
    """Files outside their partition's folders, judging by the commit alone."""
    fields = parse_fields(commit.partition_by)
    for file in commit.outputs:
        expected = folders(fields, tuple(file.partition)) if len(file.partition) == len(fields) else None
        if expected is None or not file.final.rpartition("/")[0].endswith(f"/{expected}"[:-1]):
            named = f"the folders of its {len(fields)} partition values"
            yield Discrepancy(commit.manifest_id, file.final, named, "others")
