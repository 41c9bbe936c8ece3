"""The port for table catalogs, with pyiceberg."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import SUPPORTED_TABLE_FORMAT_VERSION

from compactor.adapters.iceberg.change import Change
from compactor.adapters.iceberg.data_files import data_files, live_data_files, table_file
from compactor.adapters.iceberg.errors import FileGone, preparing, reading, refused_or_unknown
from compactor.adapters.iceberg.opening import CatalogPlace, open_catalog
from compactor.adapters.iceberg.partitions import SPEC, Specs
from compactor.adapters.iceberg.schemas import (
    PARTITIONS,
    PLACEHOLDER,
    extended_schema,
    first_schema,
    new_metadata_columns,
)
from compactor.adapters.iceberg.upkeep import files_of_all_snapshots, folder_of, history_of, listed, removed
from compactor.core.errors import (
    CompactorError,
    OperatorError,
    SettingsError,
    StoreUnavailable,
    TableCommitUnknown,
    TableConflict,
)
from compactor.core.text.safe_text import visible
from compactor.schema.schema import FILE_DATE, SchemaVersion
from compactor.table.catalog import TableChange, TableFile, TableHead
from compactor.table.columns import TableColumn, faults, table_columns
from compactor.table.upkeep import TableFolder, TableHistory

OWNER, FENCE, SCHEMA_VERSION = "compactor.owner", "compactor.batch", "compactor.schema-version"
REFUSED = "compactor.refused-batch"  # absent before the first one
"""The properties that the product needs. Unlike snapshot summaries, they never expire."""

_TARGET, _TARGET_BYTES = "commit.manifest.target-size-bytes", str(1024 * 1024)  # 1 MB
"""The size of manifests: one commit in a hundred merges small ones into the last, and rewrites that one.

With pyiceberg's 8 MB, it would write 30,000 entries. A table created without this gets it with the next commit.
"""

_SETTINGS = {
    _TARGET: _TARGET_BYTES,
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
"""The properties of a new table; all but the second keep a commit's cost constant."""

_TRIES = 5  # to complete a new table while others do the same


@dataclass(slots=True, kw_only=True)
class IcebergTable:
    """`compactor.table.catalog.TableCatalog`: one table in a catalog, which is opened on first use.

    Attributes:
        name: The table's name with its namespace: `lake.events`.
        location: The metadata folder of a new table; empty if the catalog decides.
    """

    place: CatalogPlace
    name: str
    metadata_columns: Collection[str]
    location: str = ""
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)
    _opened: Catalog | None = field(default=None, init=False, repr=False)

    def head(self) -> TableHead | None:
        table = self._load()
        return None if table is None or not self._is_complete(table) else self._head_of(table)

    def create(self, owner: str, schema: SchemaVersion) -> TableHead:
        last: CompactorError | None = None
        for _ in range(_TRIES):
            table = self._load() or self._created(owner)
            if self._is_complete(table):
                return self._head_of(table)
            if table.properties[OWNER] != owner:
                raise OperatorError(
                    f"{self._where}: {visible(table.properties[OWNER])} has started to create it -> expected one "
                    "table per stream: choose a different one in the settings"
                )
            change = Change(table)
            change.use_schema(first_schema(self._columns(schema)))
            change.use_partitions(PARTITIONS)
            change.set_properties({FENCE: "0", SCHEMA_VERSION: str(schema.version)})
            try:
                change.send(self._catalog())
            except Exception as error:  # whatever it was, the next round sees the result
                last = refused_or_unknown(error, self._where)
                if isinstance(last, OperatorError):
                    raise last from error
        raise StoreUnavailable(
            f"{self._where}: missing after {_TRIES} attempts to create it; the last failure: {last}"
        ) from last

    def commit(self, head: TableHead, change: TableChange) -> int:
        table = self._at(head)
        with self._whole(table), preparing(self._where):
            sent, snapshot_id = self._prepared(table, change)
        return self._sent(table, sent, snapshot_id)

    def snapshot_of(self, batch: int) -> int | None:
        table = self._load()
        for snapshot in table.metadata.snapshots if table else ():
            if snapshot.summary is not None and snapshot.summary.additional_properties.get(FENCE) == str(batch):
                return snapshot.snapshot_id
        return None

    def live_files(self, snapshot_id: int | None = None) -> Iterator[TableFile]:
        table = self._load()
        if table is None:
            return
        snapshot = table.current_snapshot() if snapshot_id is None else table.snapshot_by_id(snapshot_id)
        if snapshot is None and snapshot_id is not None:
            raise OperatorError(f"{self._where}: has no snapshot {snapshot_id} -> expected an unexpired one")
        specs = table.specs()
        with self._whole(table), reading(self._where):
            for entry in live_data_files(table.io, snapshot) if snapshot else ():
                yield table_file(entry, specs)

    def files_below(self, folder: str) -> frozenset[str]:
        table = self._load()
        if table is None:
            return frozenset()
        with self._whole(table), reading(self._where):
            return frozenset(uri for uri in files_of_all_snapshots(table) if uri.startswith(folder))

    def history(self) -> tuple[TableHead, TableHistory] | None:
        table = self._load()
        if table is None or not self._is_complete(table):
            return None
        with self._whole(table), reading(self._where):
            return self._head_of(table), history_of(table)

    def expire(self, head: TableHead, snapshot_ids: Collection[int]) -> None:
        table = self._at(head)
        with self._whole(table), preparing(self._where):
            change = Change(table)
            change.expire(snapshot_ids)
            if isinstance(self._catalog(), MetastoreCatalog):  # others may refuse the whole change
                change.remove_schemas(snapshot_ids)
        self._sent(table, change)

    def merge_manifests(self, head: TableHead) -> int:
        table = self._at(head)
        with self._whole(table), preparing(self._where):
            change = Change(table)
            snapshot_id = change.merge_manifests()
        return self._sent(table, change, snapshot_id)

    def folder(self, without: Collection[int] = ()) -> TableFolder | None:
        if (table := self._load()) is None or self.place.kind == "s3tables":
            return None  # S3 Tables does not allow listing its files, and removes them itself
        with reading(self._where):
            files = listed(table)
        table = self._load()  # files written earlier have been committed, or are not named in it
        if table is None or files is None:
            return None
        with self._whole(table), reading(self._where):
            return folder_of(table, files, without)

    def remove(self, names: Iterable[str]) -> int:
        table = self._load()
        with reading(self._where):
            return removed(table, names) if table else 0

    def _at(self, head: TableHead) -> Table:
        """Load the table in the state on which a change is based.

        Raises:
            TableConflict: The table has changed since.
            OperatorError: Another program has raised its format to one that pyiceberg can only read.
        """
        table = self._load()
        if table is None or self._head_of(table) != head:
            raise TableConflict(f"{self._where}: the table has changed since it was read")
        if (found := table.metadata.format_version) > SUPPORTED_TABLE_FORMAT_VERSION:
            raise OperatorError(
                f"{self._where}: has format version {found} -> expected at most {SUPPORTED_TABLE_FORMAT_VERSION}, "
                "to which it cannot be downgraded: drop it in its catalog, but not its files, then `compactor "
                "table repair`"
            )
        return table

    def _sent(self, table: Table, change: Change, snapshot_id: int | None = None) -> int:
        """Send a change once; return its snapshot, or the current one."""
        catalog = self._catalog()
        try:
            answer = change.send(catalog)
        except Exception as error:
            raise refused_or_unknown(error, self._where) from error
        if snapshot_id is not None and answer.metadata.snapshot_by_id(snapshot_id) is None:
            raise TableCommitUnknown(f"{self._where}: the commit response has no snapshot {snapshot_id}")
        with suppress(Exception):  # the change is in the table, whatever happens to replaced metadata
            if isinstance(catalog, MetastoreCatalog):  # others delete old metadata themselves
                # As in pyiceberg's Table. If it moves, old metadata stays until `table maintain` removes it.
                catalog._delete_old_metadata(table.io, table.metadata, answer.metadata)  # noqa: SLF001
        return snapshot_id or answer.metadata.current_snapshot_id or 0

    def _prepared(self, table: Table, change: TableChange) -> tuple[Change, int]:
        made, notes = Change(table), {FENCE: str(change.batch)}
        if change.is_refused:
            Specs(table.metadata, table.schema())  # is the table to blame, or the batch?
            made.set_properties({**notes, REFUSED: str(change.batch)})
            return made, made.use_files([], [], notes)
        properties = {**notes, **({} if _TARGET in table.properties else {_TARGET: _TARGET_BYTES})}
        columns = new_metadata_columns(table.metadata, self.metadata_columns)
        if change.schema is not None:
            properties[SCHEMA_VERSION] = str(change.schema.version)
            columns = self._columns(change.schema)
        extended = extended_schema(table.metadata, columns)
        if extended is not None:
            made.use_schema(extended)
        schema = extended or table.schema()
        specs = Specs(table.metadata, schema)
        added = data_files(table.io, table.metadata, schema, change.added, specs)
        default = added[-1].spec_id if added else table.metadata.default_spec_id
        if made.use_specs(specs.added, default):
            properties[SPEC] = str(default)
        made.set_properties(properties)
        removed = self._removed(table, change.removed)
        return made, made.use_files(added, removed, notes, keeps_rows=change.keeps_rows)

    def _columns(self, schema: SchemaVersion) -> tuple[TableColumn, ...]:
        if found := list(faults(schema, self.metadata_columns, [FILE_DATE])):
            raise SettingsError(found)
        return table_columns(schema, self.metadata_columns)

    def _removed(self, table: Table, uris: Sequence[str]) -> list[DataFile]:
        """The entries of the files to remove that are in the table."""
        wanted, snapshot = set(uris), table.current_snapshot()
        entries = live_data_files(table.io, snapshot) if wanted and snapshot else ()
        return [entry for entry in entries if entry.file_path in wanted]

    def _load(self) -> Table | None:
        try:
            return self._loaded()
        except FileGone as first:  # the metadata, which another change may just have replaced
            try:
                return self._loaded()
            except FileGone as error:
                raise (self._lost(error) if error.said == first.said else error) from error

    def _loaded(self) -> Table | None:
        with reading(self._where):
            try:
                return self._catalog().load_table(self.name)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    @contextmanager
    def _whole(self, table: Table) -> Iterator[None]:
        """Distinguish files that a table has lost from files removed by a change after the read.

        Raises:
            TableConflict: It has changed.
            OperatorError: It has lost a file.
        """
        try:
            yield
        except FileGone as error:
            now = self._load()
            if now is None or now.metadata_location != table.metadata_location:
                raise TableConflict(f"{self._where}: the table has changed since it was read ({error.said})") from error
            raise self._lost(error) from error

    def _lost(self, error: FileGone) -> OperatorError:
        return OperatorError(
            f"{error} -> expected all files in its metadata: restore this one, or drop the table in its catalog, "
            "but not its files, then `compactor table repair`"
        )

    def _created(self, owner: str) -> Table:
        """The table without its columns, or a table that another process created first."""
        catalog = self._catalog()
        properties = {**_SETTINGS, OWNER: owner}
        with reading(self._where):
            try:
                return catalog.create_table(self.name, PLACEHOLDER, self.location or None, properties=properties)
            except NoSuchNamespaceError:
                catalog.create_namespace_if_not_exists(self.name.rpartition(".")[0])
            except TableAlreadyExistsError:
                return catalog.load_table(self.name)
            return catalog.create_table(self.name, PLACEHOLDER, self.location or None, properties=properties)

    def _is_complete(self, table: Table) -> bool:
        """Whether a table has its columns; false between the two steps that create one.

        Raises:
            OperatorError: The compactor did not create it.
        """
        if OWNER not in table.properties:  # guard: a table made by a person is left alone
            raise OperatorError(
                f"{self._where}: has no property {OWNER} -> expected a table created by the compactor, or none: "
                "choose a different one in the settings"
            )
        return SCHEMA_VERSION in table.properties

    def _head_of(self, table: Table) -> TableHead:
        properties, metadata = table.properties, table.metadata
        try:
            owner, fence, version = properties[OWNER], int(properties[FENCE]), int(properties[SCHEMA_VERSION])
            refused = int(properties.get(REFUSED, "0"))
        except (KeyError, ValueError) as error:
            raise OperatorError(
                f"{self._where}: the properties {OWNER}, {FENCE} and {SCHEMA_VERSION} are not as commits write "
                "them -> expected these: `compactor table repair`"
            ) from error
        return TableHead(owner, str(metadata.table_uuid), metadata.current_snapshot_id, fence, version, refused)

    def _catalog(self) -> Catalog:
        with self._lock:
            if self._opened is None:
                self._opened = open_catalog(self.place)
            return self._opened

    @property
    def _where(self) -> str:
        return f"table {self.name} in {self.place.shown}"
