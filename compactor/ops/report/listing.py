"""Finds in the ledger what was written in a period, by one listing: reads no record."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.layout import Layout, base_name, redrive_number
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.ledger.ledger import Ledger
from compactor.ops.report.facts import CLOCK_TOLERANCE_SECONDS
from compactor.ops.report.period import Period

DAYS_AT_ONCE = 4
"""Days that are listed at once. Each holds the manifests of the period that it found, until they are taken."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A manifest that may have come to its end in the period; `written_at` is when the store wrote that down."""

    key: ManifestKey
    written_at: datetime


@dataclass(slots=True)
class ListedCounts:
    """What is counted on the way, without reading it.

    Attributes:
        failed_attempts: Attempts that ended without an outcome in the period.
        redrives: How often something was put back in the period.
    """

    failed_attempts: int = 0
    redrives: int = 0


@dataclass(slots=True)
class _Day:
    listed: list[Listed] = field(default_factory=list)
    counts: ListedCounts = field(default_factory=ListedCounts)


def finished_in(
    store: ObjectStore, layout: Layout, ledger: Ledger, period: Period, counts: ListedCounts
) -> Iterator[Listed]:
    """The manifests whose end was written in a period, or near enough for clocks to differ.

    The ledger is filed by the day of the data, which says nothing about the day of the work, so all of it is listed
    once: one request for a thousand records, several days at a time.

    Args:
        store: Where the ledger is.
        layout: The places.
        ledger: Knows its days.
        period: What is asked for.
        counts: Is added to.
    """

    def look(date: str) -> _Day:
        return _listed_date(store, layout, date, period)

    for found in map_ordered(look, ledger.dates(), threads=DAYS_AT_ONCE):
        counts.failed_attempts += found.counts.failed_attempts
        counts.redrives += found.counts.redrives
        yield from found.listed


def _listed_date(store: ObjectStore, layout: Layout, date: str, period: Period) -> _Day:
    found = _Day()
    near = period.widened(CLOCK_TOLERANCE_SECONDS)
    for info in store.list(layout.ledger_folder_of(date)):
        if not near.holds(info.modified_at):
            continue
        name = base_name(info.uri)
        if name == "done.json":
            found.listed.append(Listed(ManifestKey(date, info.uri.rsplit("/", 2)[1]), info.modified_at))
        elif period.holds(info.modified_at):
            found.counts.failed_attempts += name.endswith("-failed.json")
            found.counts.redrives += redrive_number(name) is not None
    return found
