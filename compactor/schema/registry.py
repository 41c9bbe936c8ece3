"""The schema registry: numbered, create-only versions under the state prefix, shared by all drivers."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from threading import Lock

from compactor.core.errors import SettingsError
from compactor.core.layout import Layout, schema_number
from compactor.core.partitions import PartitionField
from compactor.core.ports import Clock, ObjectStore
from compactor.schema.schema import (
    ColumnLimits,
    ColumnsUsed,
    DeclaredColumn,
    KeyLimits,
    Names,
    SchemaVersion,
    contradictions,
    extend,
    retirement_faults,
    without,
)

_TIMES = {"day": ("timestamp", "date"), "hour": ("timestamp",)}
_NO_BUCKETS = ("double", "boolean")
PARTITION_TYPES = "expected a type without parts"
"""What rows can be partitioned by."""


def partition_faults(
    fields: Sequence[PartitionField], declared: Sequence[DeclaredColumn], *, has_table: bool
) -> Iterator[str]:
    """Yield each reason why the schema file's columns do not suffice to partition rows."""
    types = {column.key: column.type for column in declared}
    for field in fields:
        found = types.get(field.key)
        where = f"output.partition_by: {str(field)!r}"
        if has_table and found is None:
            yield (
                f"{where}: its key has no column in the schema file -> expected one, because the table needs it "
                "for the partition"
            )
        elif has_table and field.transform in _TIMES and found not in _TIMES[field.transform]:
            yield f"{where}: the column is of type {found} -> expected {' or '.join(_TIMES[field.transform])}"
        elif has_table and field.transform == "bucket" and found in _NO_BUCKETS:
            yield f"{where}: the column is of type {found} -> expected a type with Iceberg buckets"
        elif found is not None and "<" in found:
            yield f"{where}: the column is of type {found} -> {PARTITION_TYPES}"
        elif field.transform == "hour" and found == "date":
            yield f"{where}: the column is of type date -> expected a type with a time"


def name_faults(names: Sequence[str], schema: SchemaVersion, declared: Sequence[DeclaredColumn]) -> Iterator[str]:
    """Yield a fault for each partition folder with a column's name, which readers confuse or refuse."""
    columns = {column.name.lower() for column in schema.columns} | {column.name.lower() for column in declared}
    for name in names:
        if name.lower() in columns:
            yield (
                f"output.partition_by: {name!r} is a column name -> expected a different folder name, as in NAME "
                "= day(KEY)"
            )


EMPTY_SCHEMA = SchemaVersion(version=0, created_at=datetime(1970, 1, 1, tzinfo=UTC), manifest_id="", columns=())


class SchemaRegistry:
    """Caches the latest version, and creates the next one when a manifest has new keys.

    Args:
        declared: The schema file's columns, which come first in the next version.
        reserved: Names of partition folders, which no column may have.
        rescued_keys: Keys that get a column only if they are declared, because they do not come from the input.
    """

    def __init__(
        self,
        store: ObjectStore,
        layout: Layout,
        clock: Clock,
        *,
        names: Names,
        limits: ColumnLimits,
        declared: Sequence[DeclaredColumn] = (),
        reserved: Sequence[str] = (),
        rescued_keys: Collection[str] = (),
    ) -> None:
        self._store = store
        self._layout = layout
        self._clock = clock
        self._names: Names = names
        self.limits = limits
        self._declared = declared
        self._reserved = reserved
        self._rescued_keys = rescued_keys
        self.declared_keys = frozenset(column.key for column in declared)
        self._lock = Lock()
        self._latest: SchemaVersion | None = None

    def latest(self) -> SchemaVersion:
        """The newest version known to this driver; `EMPTY_SCHEMA` if there is none yet."""
        if self._latest is None:
            self._latest = self._newest_stored()
        return self._latest

    def refresh(self) -> None:
        """Check for a newer version from another process, which may have retired columns."""
        latest = self.latest()
        if self._store.stat(self._layout.schema(latest.version + 1)) is not None:
            self._latest = self._newest_stored()

    def version(self, number: int) -> SchemaVersion:
        """A version by its number. Versions never change."""
        if number == 0:
            return EMPTY_SCHEMA
        if self._latest is not None and self._latest.version == number:
            return self._latest
        return self._read(number)

    def versions(self) -> Iterator[SchemaVersion]:
        """All versions, oldest first.

        Raises:
            RecordUnreadable: A version is damaged.
        """
        return map(self._read, self._numbers())

    def check_declared(self) -> None:
        """Check that neither the schema file nor folder names contradict the latest version.

        Raises:
            SettingsError: Lists every contradiction.
        """
        self._check_declared(self.latest())

    def key_limits(self, max_new: int | None) -> KeyLimits:
        """Which new keys can become columns now.

        Args:
            max_new: The most columns that the manifest may still add; None if it has no own limit.
        """
        latest = self.latest()
        room = max(0, self.limits.max_columns - len(latest.keys | self.declared_keys))
        return KeyLimits(min(room, self._allowed(latest, max_new)))

    def used(self, schema: SchemaVersion) -> ColumnsUsed:
        return ColumnsUsed(len(schema.keys), self.limits.max_columns)

    def covering(
        self, keys: Mapping[str, str], manifest_id: str, *, rescued_from: str = "", max_new: int | None = None
    ) -> SchemaVersion:
        """A version with the declared columns and those for these keys, as far as they get one; created if necessary.

        If two drivers add keys at the same time, the second one to write builds on the first one's version.

        Args:
            keys: A manifest's keys in first-seen order, each with the first file's URI.
            manifest_id: The manifest, recorded in the version.
            rescued_from: The first file with keys that cannot get a column; empty if there is none.
            max_new: The most columns that the manifest may still add; None if it has no own limit.

        Raises:
            SettingsError: A driver with a contradicting schema file was first; the recorded version stays.
        """
        with self._lock:
            while True:
                latest = self.latest()
                self._check_declared(latest)
                wanted = extend(
                    latest,
                    keys,
                    rescued_from=rescued_from,
                    declared=self._declared,
                    names=self._names,
                    max_columns=self.limits.max_columns,
                    max_new=self._allowed(latest, max_new),
                    manifest_id=manifest_id,
                    now=self._clock.now(),
                    reserved=self._reserved,
                    rescued_keys=self._rescued_keys,
                )
                if wanted is latest or self._store.create(self._layout.schema(wanted.version), wanted.to_json()):
                    self._latest = wanted
                    return wanted
                self._latest = self._newest_stored()

    def retire(self, names: Sequence[str]) -> SchemaVersion:
        """Create a version without these columns, which frees their slots.

        Raises:
            SettingsError: Lists every column that cannot be retired.
        """
        while True:
            latest = self._newest_stored()
            if faults := list(retirement_faults(latest, names, self._declared)):
                raise SettingsError(faults)
            wanted = without(latest, names, now=self._clock.now())
            if self._store.create(self._layout.schema(wanted.version), wanted.to_json()):
                self._latest = wanted
                return wanted

    def _allowed(self, latest: SchemaVersion, max_new: int | None) -> int:
        of_day = max(0, self.limits.max_new_per_day - latest.new_on(self._clock.now()))
        return of_day if max_new is None else min(of_day, max_new)

    def _check_declared(self, schema: SchemaVersion) -> None:
        faults = [*contradictions(schema, self._declared), *name_faults(self._reserved, schema, self._declared)]
        if faults:
            raise SettingsError(faults)

    def _newest_stored(self) -> SchemaVersion:
        numbers = self._numbers()
        return self._read(numbers[-1]) if numbers else EMPTY_SCHEMA

    def _numbers(self) -> list[int]:
        found = (schema_number(info.uri) for info in self._store.list(self._layout.schemas_folder))
        return sorted(number for number in found if number is not None)

    def _read(self, number: int) -> SchemaVersion:
        uri = self._layout.schema(number)
        return SchemaVersion.read(self._store.read(uri), uri, "a schema version")


class ManifestColumns:
    """The columns for one attempt at a manifest: a `compactor.engines.engine.ColumnsFor`.

    A table's first manifest is limited only by the daily limit.
    """

    def __init__(self, registry: SchemaRegistry, manifest_id: str) -> None:
        self.added: set[str] = set()
        self._registry = registry
        self._manifest_id = manifest_id
        # Without room no key makes a new version, so a newer one would go unnoticed.
        if not registry.key_limits(max_new=None).max_new_columns:
            registry.refresh()
        self._is_first = registry.latest().keys <= registry.declared_keys
        self._from_keys: set[str] = set()

    @property
    def key_limits(self) -> KeyLimits:
        return self._registry.key_limits(self._max_new)

    def __call__(self, keys: Mapping[str, str], *, rescued_from: str = "") -> SchemaVersion:
        schema = self._registry.covering(keys, self._manifest_id, rescued_from=rescued_from, max_new=self._max_new)
        if schema.manifest_id == self._manifest_id:
            new = [column for column in schema.columns if column.added_in == schema.version]
            self.added.update(column.name for column in new)
            self._from_keys.update(column.key for column in new if column.key is not None and column.key in keys)
        return schema

    @property
    def _max_new(self) -> int | None:
        if self._is_first:
            return None
        return max(0, self._registry.limits.max_new_per_manifest - len(self._from_keys))
