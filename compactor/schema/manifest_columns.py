"""Gives the keys of one manifest their columns, within the limits of a manifest and a day."""

from collections.abc import Mapping

from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import KeyLimits, SchemaVersion


class ManifestColumns:
    """The columns of one attempt at a manifest.

    The manifest that begins the table has the limit of the day alone.

    Attributes:
        added: The names of the columns that the manifest added.
    """

    def __init__(self, registry: SchemaRegistry, manifest_id: str) -> None:
        self.added: set[str] = set()
        self._registry = registry
        self._manifest_id = manifest_id
        # Without room no key makes a new version, so that a newer one would not be met with.
        if not registry.key_limits(max_new=None).max_new_columns:
            registry.refresh()
        self._is_first = registry.latest().keys <= registry.declared_keys
        self._from_keys: set[str] = set()

    @property
    def key_limits(self) -> KeyLimits:
        """Which of its keys may become columns now."""
        return self._registry.key_limits(self._max_new)

    def __call__(self, keys: Mapping[str, str], *, rescued_from: str = "") -> SchemaVersion:
        """Return a version with a column for each of these keys that may have one; create it if necessary.

        Args:
            keys: In first-seen order, each with the URI of the first file that has it.
            rescued_from: The first file with keys that can get no column; empty if there is none.
        """
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
