"""Finds in the ledger what was written in a period, by one listing. Reads no record."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from compactor.core.layout import base_name, redrive_number
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.history.unsummarised import dates_of_records
from compactor.ledger.state import State
from compactor.ops.report.period import Period
from compactor.ops.report.reading.facts import CLOCK_TOLERANCE_SECONDS

DAYS_AT_ONCE = 4
"""Dates that are listed at once. Each holds the manifests that it found until they are taken."""

Listed = tuple[ManifestKey, datetime]
"""A manifest that may have ended in the period, and when the store wrote its last record."""


def finished_in(state: State, period: Period, counts: Counter[str]) -> Iterator[Listed]:
    """The manifests whose last record was written in a period, or near enough for clocks to differ.

    The ledger is filed by the date of the data, which says nothing about the time of the work, so all of it is listed,
    except the closed dates without a record of the period: one request for a thousand records, several dates at a time.
    Adds to `counts` what needs no read: redrives, and attempts that failed without an outcome.
    """
    near = period.widened(CLOCK_TOLERANCE_SECONDS)

    def listed(date: str) -> tuple[list[Listed], Counter[str]]:
        found, counted = list[Listed](), Counter[str]()
        for info in state.store.list(state.layout.ledger_folder_of(date)):
            name = base_name(info.uri)
            if name == "done.json" and near.holds(info.modified_at):
                found.append((ManifestKey(date, info.uri.rsplit("/", 2)[1]), info.modified_at))
            elif period.holds(info.modified_at):
                counted["failed_attempts"] += name.endswith("-failed.json")
                counted["redrives"] += redrive_number(name) is not None
        return found, counted

    dates = dates_of_records(state, near.since, near.until)
    for found, counted in map_ordered(listed, dates, threads=DAYS_AT_ONCE):
        counts.update(counted)
        yield from found
