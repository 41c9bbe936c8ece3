"""Adds new columns to the table of the output beside the work of a run. No manifest waits for it or fails with it."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta

from compactor.core.ports import Clock
from compactor.core.rules.backoff import is_over, pause_seconds
from compactor.schema.catalog import CatalogTable, catalog_columns
from compactor.schema.schema import SchemaVersion
from compactor.telemetry.logs import log_event

FIRST_PAUSE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 900.0
"""The pauses after failures, as a call may take seconds, in which the run does not stop."""

CHECK_SECONDS = 3600.0
"""How often to compare the table although there is no new version: a deployment may have replaced its columns."""


class TableUpdater:
    """Adds the columns of the latest schema version to a table of the catalog.

    Args:
        table: The table.
        latest: Returns the latest schema version that this process knows.
        metadata_columns: The columns with the origin of each row.
        clock: Says when to compare again.
    """

    def __init__(
        self,
        table: CatalogTable,
        latest: Callable[[], SchemaVersion],
        metadata_columns: Collection[str],
        clock: Clock,
    ) -> None:
        self._table = table
        self._latest = latest
        self._metadata_columns = metadata_columns
        self._clock = clock
        self._version = -1
        self._next_check = datetime.min.replace(tzinfo=UTC)
        self._failures = 0

    def step(self) -> None:
        """Update the table if there is a new version or it is time to compare; never raises."""
        now = self._clock.now()
        try:
            schema = self._latest()
            is_new = schema.version != self._version and not self._failures
            if is_new or is_over(self._next_check, now, longest_seconds=CHECK_SECONDS):
                self._update(schema)
                self._version, self._failures = schema.version, 0
                self._next_check = now + timedelta(seconds=CHECK_SECONDS)
        except Exception as exc:  # noqa: BLE001 - no manifest may fail with the catalog
            self._failures += 1
            pause = pause_seconds(
                self._failures, first_seconds=FIRST_PAUSE_SECONDS, longest_seconds=LONGEST_PAUSE_SECONDS, chance=1.0
            )
            self._next_check = now + timedelta(seconds=pause)
            log_event("table.not_updated", table=self._table.name, pause_seconds=pause, error=exc)

    def _update(self, schema: SchemaVersion) -> None:
        differed = self._table.add(catalog_columns(schema, self._metadata_columns))
        if differed.missing:
            log_event("table.updated", table=self._table.name, columns=len(differed.missing), version=schema.version)
        if differed.other_types:
            log_event("table.differs", table=self._table.name, columns=len(differed.other_types))
