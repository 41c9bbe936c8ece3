"""Decides to which date a file belongs: the date in its name or key, or the day of its arrival."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

from compactor.core.inputs.named_dates import ARRIVAL, NamedDate, named_date

EARLIEST_DATE = "2000-01-01"
MAX_FUTURE_DAYS = 31


@dataclass(frozen=True, slots=True)
class FileDate:
    """The date of a file.

    Attributes:
        date: As `yyyy-mm-dd`.
        rule: Which of `RULES` gave it.
        ignored: The date in the name or key, if it is outside the window and therefore does not count; else empty.
    """

    date: str
    rule: str
    ignored: str = ""


@dataclass(frozen=True, slots=True)
class DateWindow:
    """The dates that a name may give. A file that is named after any other date belongs to the day of its arrival.

    The window depends on the arrival and not on the time of the decision, so that every process decides alike, whenever
    it does.

    Attributes:
        earliest: The first date.
        max_future_days: How many days after a file's arrival the last date is.
    """

    earliest: str = EARLIEST_DATE
    max_future_days: int = MAX_FUTURE_DAYS

    def of_file(self, uri: str, arrived_at: datetime) -> FileDate:
        """The date of a file: by the first of `RULES` that finds one.

        Args:
            uri: The file.
            arrived_at: The time of its event, else of its last write.
        """
        return self.of_named(named_date(uri), arrived_at)

    def of_named(self, named: NamedDate | None, arrived_at: datetime) -> FileDate:
        """The date of a file or manifest that names a date, or none."""
        if named is not None and self._holds(named.date, arrived_at):
            return FileDate(named.date, named.rule)
        ignored = named.date if named is not None and named.is_certain else ""
        return FileDate(_day(arrived_at), ARRIVAL, ignored)

    def _holds(self, named: str, arrived_at: datetime) -> bool:
        if named < self.earliest:
            return False
        arrival = _day(arrived_at)
        # Archives and reproducible builds set times such as 1970 or 1980, which are no arrivals.
        if arrival < self.earliest:
            return True
        last = min(date.fromisoformat(arrival).toordinal() + self.max_future_days, date.max.toordinal())
        return named <= date.fromordinal(last).isoformat()


DEFAULT_WINDOW = DateWindow()


def possible_dates(uri: str, arrived_at: datetime) -> set[str]:
    """The dates that a file can have by any window: for finding its manifest after the settings were changed.

    Earlier releases knew only the rules of `yyyy-mm-dd`, which come first, and that of the arrival.
    """
    named = named_date(uri)
    return {_day(arrived_at)} if named is None else {_day(arrived_at), named.date}


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()
