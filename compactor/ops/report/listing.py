"""Finds in the ledger what was written in a period, by one listing. Reads no record."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from compactor.core.layout import Layout, base_name, redrive_number
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.ledger.ledger import Ledger
from compactor.ops.report.facts import CLOCK_TOLERANCE_SECONDS
from compactor.ops.report.period import Period

DAYS_AT_ONCE = 4
"""Dates that are listed at once. Each holds the manifests that it found until they are taken."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A manifest that may have ended in the period, and when the store wrote its last record."""

    key: ManifestKey
    written_at: datetime


@dataclass(slots=True)
class ListedCounts:
    """Counts of the period that need no read; failed attempts are those without an outcome."""

    failed_attempts: int = 0
    redrives: int = 0


def finished_in(
    store: ObjectStore, layout: Layout, ledger: Ledger, period: Period, counts: ListedCounts
) -> Iterator[Listed]:
    """The manifests whose last record was written in a period, or near enough for clocks to differ.

    The ledger is filed by the date of the data, which says nothing about the time of the work, so all of it is listed:
    one request for a thousand records, several dates at a time. Adds to `counts`.
    """
    near = period.widened(CLOCK_TOLERANCE_SECONDS)

    def listed(date: str) -> tuple[list[Listed], ListedCounts]:
        found, counted = list[Listed](), ListedCounts()
        for info in store.list(layout.ledger_folder_of(date)):
            name = base_name(info.uri)
            if name == "done.json" and near.holds(info.modified_at):
                found.append(Listed(ManifestKey(date, info.uri.rsplit("/", 2)[1]), info.modified_at))
            elif period.holds(info.modified_at):
                counted.failed_attempts += name.endswith("-failed.json")
                counted.redrives += redrive_number(name) is not None
        return found, counted

    for found, counted in map_ordered(listed, ledger.dates(), threads=DAYS_AT_ONCE):
        counts.failed_attempts += counted.failed_attempts
        counts.redrives += counted.redrives
        yield from found
