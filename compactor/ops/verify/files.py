"""Compares the files of one commit with its figures, without reading values, and finds files that no commit names.

A job commits before it publishes. So it is safe to list first and to read the commits then. Files in place are there
before their manifest is decided. Until then, and if another attempt is decided, no table lists them: an orphan is no
row too many, unless readers list the folders because there is no table.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import groupby, takewhile

from compactor.core.documents.changes import Part
from compactor.core.documents.records import Commit, StagedFile
from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import ObjectChanged, ObjectNotFound, RecordUnreadable, StagingError, StuckError
from compactor.core.layout import Layout, ManifestKey, canonical, folder, is_data
from compactor.core.map_ordered import map_ordered
from compactor.core.partitions import folders, parse_fields
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.engines.parquet_files import ParquetFacts, parquet_facts
from compactor.ledger.state import State
from compactor.ledger.table.orphans import Fate, InPlaceFiles
from compactor.ledger.visible import Moved, Visible
from compactor.ndjson.files.rejects import REJECTS_SCHEMA
from compactor.ops.verify.report import Discrepancy, Orphan
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import METADATA_COLUMNS

Owner = ManifestKey | None
OwnerOf = Callable[[str], Owner]

Surplus = Discrepancy | Orphan


def surplus_everywhere(state: State, *, has_table: bool = False) -> Iterator[Surplus]:
    """Search the folders of all dates, even of dates without any record; see `InPlaceFiles` for those of a table."""
    in_place = InPlaceFiles(state) if has_table else None
    store, layout = state.store, state.layout
    # Outside the folders of dates there may be other tables.
    outputs = (info for info in store.list(folder(layout.output)) if layout.output_owner(info.uri))
    yield from _surplus(state, outputs, layout.output_owner, in_place)
    yield from _surplus(state, store.list(layout.rejects_folder), layout.rejects_owner, in_place)


def surplus_of_date(state: State, date: str, *, has_table: bool = False) -> Iterator[Surplus]:
    """Search the folders of one date."""
    in_place = InPlaceFiles(state) if has_table else None
    for place, owner_of in _places(state.layout, date):
        yield from _surplus(state, state.store.list(place), owner_of, in_place)


def surplus_of_manifest(state: State, key: ManifestKey, *, has_table: bool = False) -> Iterator[Surplus]:
    """Search the folders of a manifest's date for files that are named after it, also in partitions if it has some."""
    in_place = InPlaceFiles(state) if has_table else None
    if in_place is not None:
        listed = state.store.list(state.layout.in_place_of(key))
        yield from _surplus(state, listed, state.layout.output_owner, in_place)
    for place, owner_of in _places(state.layout, key.date):
        named_after = _beginning_with(state.store, place, f"{key.id}-")
        if owner_of == state.layout.output_owner and _has_partitions(state, key):
            named_after = state.store.list(place)
        is_other = state.layout.in_place_attempt if in_place is not None else lambda _: None
        found = [info for info in named_after if owner_of(info.uri) == key and not is_other(info.uri)]
        yield from _surplus(state, found, owner_of, in_place)


def _has_partitions(state: State, key: ManifestKey) -> bool:
    """Whether a manifest has partitions, or an earlier generation of it had some."""
    try:
        newest = state.ledger.outcome(key)
        earlier = (state.ledger.outcome_of(key, number) for number in range(1, newest.generation))
        return any(isinstance(each, Commit) and each.partition_by for each in (newest, *earlier))
    except (ObjectNotFound, RecordUnreadable):
        return False


def _beginning_with(store: ObjectStore, place: str, beginning: str) -> Iterator[ObjectInfo]:
    start = place + beginning
    return takewhile(lambda info: info.uri.startswith(start), store.list(place, start_after=start))


def _places(layout: Layout, date: str) -> list[tuple[str, OwnerOf]]:
    return [
        (layout.output_folder_of(date), layout.output_owner),
        (layout.rejects_folder_of(date), layout.rejects_owner),
    ]


def _surplus(
    state: State, listed: Iterable[ObjectInfo], owner_of: OwnerOf, in_place: InPlaceFiles | None
) -> Iterator[Surplus]:
    data = (info for info in listed if is_data(info.uri))
    groups = ((owner, list(infos)) for owner, infos in groupby(data, key=lambda info: owner_of(info.uri)))
    for found in map_ordered(partial(_surplus_of, state, in_place), groups):
        yield from found


def _surplus_of(state: State, in_place: InPlaceFiles | None, group: tuple[Owner, list[ObjectInfo]]) -> list[Surplus]:
    owner, infos = group
    try:
        outcome = state.ledger.outcome(owner) if owner and owner.id else None
    except ObjectNotFound:
        outcome = None
    except RecordUnreadable:
        return []  # the record itself is a discrepancy
    files = (*outcome.outputs, *outcome.rejects) if isinstance(outcome, Commit) else ()
    named = {canonical(file.final) for file in files}
    if isinstance(outcome, Commit) and outcome.rebuild and not state.ledger.is_done(outcome.key, outcome.generation):
        named |= set(map(canonical, outcome.rebuild.removes))  # they go before the rebuilt files come
    manifest_id = owner.id if owner and outcome else ""
    found: list[Surplus] = []
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
_TRIES = 3  # a driver may publish a file again while it is read


@dataclass(slots=True)
class CommitFindings:
    """What is wrong with the files of a commit."""

    discrepancies: list[Discrepancy] = field(default_factory=list)  # those of this commit alone
    expired: Counter[tuple[Part, str]] = field(default_factory=Counter)  # files that are gone under a rule, with words
    lost_schema: Discrepancy | None = None  # the commit's schema version is missing; many commits may share it
    verified: int = 0  # files of rows that are as the ledger says, in place or merged
    missing: int = 0  # files of rows that are gone, without a rule


@dataclass(frozen=True, kw_only=True)
class CommitFiles:
    """Checks the files of commits. Safe for many threads."""

    state: State
    registry: SchemaRegistry
    # Made at once: from Python 3.12 on, threads that first ask for a `cached_property` may make one each.
    visible: Visible = field(init=False)  # what expired, and where rows of files are that are gone
    _columns: Callable[[int], list[str] | None] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "visible", Visible(self.state))
        object.__setattr__(self, "_columns", lru_cache(maxsize=_SCHEMAS_HELD)(self._read_columns))

    def published(self, commit: Commit) -> CommitFindings:
        """Check the files of a commit whose manifest is done."""
        found = CommitFindings(list(_contradictions(commit)))
        for version in {commit.schema_version, *[output.version_in(commit) for output in commit.outputs]}:
            if self._columns(version) is None:
                uri = self.state.layout.schema(version)
                found.lost_schema = Discrepancy("", uri, "a schema version that commits name", "none that can be read")
        for output in commit.outputs:
            faults = self._check_file(commit, output, self._columns(output.version_in(commit)))
            self._add(found, commit, output, "rows", faults)
        for rejects in commit.rejects:
            faults = self._check_file(commit, rejects, list(REJECTS_SCHEMA.names))
            self._add(found, commit, rejects, "rejects", faults)
        return found

    def _add(
        self, found: CommitFindings, commit: Commit, file: StagedFile, part: Part, faults: Iterator[Discrepancy]
    ) -> None:
        """Add what is wrong with a file, unless it is gone and expired."""
        known = list(faults)
        is_gone = bool(known) and self.state.store.stat(file.final) is None
        if is_gone:
            expired = self.visible.taken(part, commit.key, commit.generation)
            if expired is not None:  # guard: a file that is gone without a record is missing
                found.expired[part, expired.words] += 1
                return
        found.discrepancies += known
        if part == "rows":
            found.verified += not known
            found.missing += is_gone

    def staged(self, commit: Commit) -> CommitFindings:
        """Check the files of a commit whose manifest is not done yet."""
        lost = [
            Discrepancy(commit.manifest_id, file.staged, f"{file.rows} rows, staged or published", "neither")
            for file in (*commit.outputs, *commit.rejects)
            # In this order: a job publishes a file before it deletes it from staging.
            if all(self.state.store.stat(uri) is None for uri in (file.staged, file.final))
        ]
        return CommitFindings(lost)

    def _read_columns(self, version: int) -> list[str] | None:
        try:
            return [column.name for column in self.registry.version(version).columns]
        except (ObjectNotFound, StuckError, ValueError):  # ValueError: the object is not a schema version
            return None

    def _check_file(self, commit: Commit, file: StagedFile, columns: list[str] | None) -> Iterator[Discrepancy]:
        expected = f"{file.rows} rows, {file.size_bytes} bytes"
        facts = self._facts(file.final)
        if isinstance(facts, str):
            moved = self._moved(commit, file)
            # guard: rows are verified in the merged file that alone has them
            fault = facts if moved is None else self._merged_fault(moved.file, columns)
            if fault:
                yield Discrepancy(commit.manifest_id, file.final, expected, fault)
            return
        if (facts.rows, facts.size_bytes) != (file.rows, file.size_bytes):
            yield Discrepancy(commit.manifest_id, file.final, expected, f"{facts.rows} rows, {facts.size_bytes} bytes")
        # A key may have the name of a metadata column, from a release that had no such column.
        found = [name for name in facts.columns if name not in METADATA_COLUMNS or name in (columns or ())]
        if columns is not None and found != columns:
            yield Discrepancy(commit.manifest_id, file.final, f"columns {columns}", f"columns {found}")

    def _moved(self, commit: Commit, file: StagedFile) -> Moved | None:
        """Where the rows of a file are that is gone because it was merged."""
        if self.state.store.stat(file.final) is not None:
            return None
        found = self.visible.moved(commit.date, file.final)
        return found if found is not None and found.rows == file.rows else None

    def _merged_fault(self, merged: MergedFile, columns: list[str] | None) -> str:
        """What is wrong with a merged file that alone has the rows; empty if nothing is."""
        facts = self._facts(merged.uri)
        if isinstance(facts, str):
            return f"its rows are in {merged.uri} alone: {facts}"
        if (facts.rows, facts.size_bytes) != (merged.rows, merged.size_bytes):
            return f"its rows are in {merged.uri} alone, with {facts.rows} rows, {facts.size_bytes} bytes"
        lost = [name for name in columns or () if name not in facts.columns]
        return f"its rows are in {merged.uri} alone, without columns {lost}" if lost else ""

    def _facts(self, uri: str) -> ParquetFacts | str:
        """The footer of a file, or why it cannot be read."""
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
    """The figures of a commit that do not add up by themselves."""
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
            yield Discrepancy(commit.manifest_id, f"{what} of the commit", f"{expected} rows", f"{found} rows")
    yield from _misnamed(commit)


def _misnamed(commit: Commit) -> Iterator[Discrepancy]:
    """Files whose folders are not those of their partition, by the record of the commit alone."""
    fields = parse_fields(commit.partition_by)
    for file in commit.outputs:
        expected = folders(fields, tuple(file.partition)) if len(file.partition) == len(fields) else None
        if expected is None or not file.final.rpartition("/")[0].endswith(f"/{expected}"[:-1]):
            named = f"the folders of its {len(fields)} partition values"
            yield Discrepancy(commit.manifest_id, file.final, named, "others")
