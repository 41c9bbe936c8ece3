"""Collects the keys of a file's records, in bounded memory."""

from collections.abc import Iterable

from compactor.schema.schema import KeyLimits


class NewKeys:
    """The keys without a column, and which of the others there are.

    Args:
        columns: The keys that have a column.
        limits: Which other keys to collect.

    Attributes:
        known: The keys that need no closer check. The caller adds those of a record, and calls `collect` if any is new,
            until `is_complete`.
        has_further: Some keys were not collected: they are too long for a column, or there were too many.
    """

    def __init__(self, columns: frozenset[str], limits: KeyLimits) -> None:
        self.known: set[str] = set()
        self.has_further = False
        self._columns = columns
        self._limits = limits
        self._collected: dict[str, None] = {}

    @property
    def collected(self) -> tuple[str, ...]:
        """The collected keys, in first-seen order."""
        return tuple(self._collected)

    @property
    def present(self) -> frozenset[str]:
        """The keys with a column that some record may have."""
        return self._columns if self.is_complete else self._columns & self.known

    @property
    def is_complete(self) -> bool:
        """Whether no record can add anything: so many keys were collected as may be, and there are others."""
        return self.has_further and len(self._collected) >= self._limits.max_keys

    def collect(self, keys: Iterable[str]) -> None:
        """Collect the keys of a record that may become columns, and forget the others."""
        for key in keys:
            if key in self._columns or key in self._collected:
                continue
            if len(self._collected) < self._limits.max_keys and len(key) <= self._limits.max_key_characters:
                self._collected[key] = None
            else:
                self.has_further = True
                self.known.discard(key)
