"""Adds new columns to the output's table in the Glue Data Catalog. No manifest waits for it or fails with it."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta

from compactor.core.ports import Clock
from compactor.core.rules.backoff import is_over
from compactor.schema.catalog import CatalogTable, catalog_columns
from compactor.schema.schema import SchemaVersion
from compactor.telemetry.logs import log_event
from compactor.upkeep.tasks import IsStopping, Task

EVERY_SECONDS = 5.0
"""How often to check for a new schema version, which needs no call."""

COMPARE_SECONDS = 3600.0
"""How often to compare the table even without a new version: a deployment may have replaced its columns."""

FIRST_PAUSE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 900.0
"""The pauses after failures."""


def catalog_columns_task(
    table: CatalogTable, latest: Callable[[], SchemaVersion], metadata_columns: Collection[str], clock: Clock
) -> Task:
    """The task that does this while a run lasts, and at the end of a run with `once`.

    Args:
        table: The catalog's table.
        latest: Returns the latest schema version that this process knows.
        metadata_columns: The columns with each row's origin.
        clock: Determines when to compare.
    """
    known, compare_at = -1, datetime.min.replace(tzinfo=UTC)

    def update(_is_stopping: IsStopping) -> None:
        """Update the table if there is a new version, or a comparison is due."""
        nonlocal known, compare_at
        now, schema = clock.now(), latest()
        if schema.version == known and not is_over(compare_at, now, longest_seconds=COMPARE_SECONDS):
            return
        differed = table.add(catalog_columns(schema, metadata_columns))
        known, compare_at = schema.version, now + timedelta(seconds=COMPARE_SECONDS)
        if differed.missing:
            log_event("table.updated", table=table.name, columns=len(differed.missing), version=schema.version)
        if differed.other_types:
            log_event("table.differs", table=table.name, columns=len(differed.other_types))

    return Task(
        name="catalog columns",
        every_seconds=EVERY_SECONDS,
        run=update,
        has_note=False,
        thread="catalog",
        first_pause_seconds=FIRST_PAUSE_SECONDS,
        longest_pause_seconds=LONGEST_PAUSE_SECONDS,
        at_end=update,
    )
