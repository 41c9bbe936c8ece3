"""Tells whose rows an operator retired, for calls that ask it of every manifest on record."""

from dataclasses import dataclass
from functools import cached_property

from compactor.core.documents.expired import TAKES, Expiry
from compactor.core.layout import ManifestKey
from compactor.ledger.history.expired_log import ExpiredLog, ExpiredParts
from compactor.ledger.state import State


@dataclass(frozen=True)
class RetiredRows:
    """The rows that are gone under a rule. Reads which dates have some once, so make a new one for each call."""

    state: State

    def has(self, key: ManifestKey, generation: int) -> bool:
        """Whether the rows of a generation of a manifest are gone under a rule."""
        return key.date in self._dates and self._parts.of("rows", key, generation) is not None

    @cached_property
    def _dates(self) -> frozenset[str]:
        log = ExpiredLog(self.state)
        kinds = [kind for kind in Expiry if "rows" in TAKES[kind]]
        return frozenset(date for kind in kinds for date, _ in log.names(kind))

    @cached_property
    def _parts(self) -> ExpiredParts:
        return ExpiredParts(self.state)
