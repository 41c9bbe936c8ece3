"""Decides which date a file belongs to: the date in its name or key, taken as written, or its arrival day."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import NamedTuple

from compactor.core.layout import base_name, canonical, first_date, is_date

ARRIVAL = "arrival"

RULES = {
    "name": "yyyy-mm-dd in its name",
    "key": "yyyy-mm-dd in its key",
    "parts": "year=, month= and day= in its key",
    "hive": "dt= or date= with yyyymmdd in its key",
    "path": "yyyy/mm/dd in its key",
    "name_digits": "yyyymmdd in its name",
    "key_digits": "yyyymmdd in its key",
    ARRIVAL: "the day of its event or last write, in UTC",
}
"""The ways to date a file, and what each rule looks for. The first rule that finds a calendar day wins. A text such as
yyyy-mm-ddThh has the date at its beginning."""

_PART = re.compile(r"(?:^|/)(year|month|day)=0*([0-9]{1,4})(?=/)", re.IGNORECASE)
_HIVE = re.compile(r"(?:^|/)(?:dt|date)=([0-9]{4})([0-9]{2})([0-9]{2})(?![0-9])[^/]*(?=/)", re.IGNORECASE)
_PATH = re.compile(r"/([0-9]{4})/([0-9]{2})/([0-9]{2})(?=/)")
_REST_OF_UUID = r"(?:-[0-9A-Fa-f]{4}){3}-"
_DIGITS = re.compile(
    rf"(?:^|[^0-9A-Za-z])[A-Za-z]*((?:19|20)[0-9]{{2}})([0-9]{{2}})([0-9]{{2}})(?![0-9A-SU-Za-su-z]|{_REST_OF_UUID})"
)
"""Eight digits at the end of a word, or before the `T` of a time. Other digits are mostly parts of ids and digests."""


class NamedDate(NamedTuple):
    """A date as `yyyy-mm-dd`, and which of `RULES` found it."""

    date: str
    rule: str

    @property
    def is_certain(self) -> bool:
        """Whether it can only be a date. Digits alone may be a number."""
        return not self.rule.endswith("digits")


def named_date(uri: str) -> NamedDate | None:
    """The date in the name or key of a file; None if there is none."""
    name, key = base_name(uri), canonical(uri)
    for rule, find in _FINDERS.items():
        found = find(name if rule in _OF_NAME else key)
        if found is not None:
            return NamedDate(found, rule)
    return None


def _of_parts(key: str) -> str | None:
    """The date in folders such as `year=2026/month=01/day=05`, which may have other folders in between."""
    parts: dict[str, str] = {}
    for found in _PART.finditer(key):
        parts.setdefault(found[1].lower(), found[2])
    if len(parts) < len(("year", "month", "day")):
        return None
    return _written(parts["year"], parts["month"].zfill(2), parts["day"].zfill(2))


def _first(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    """Find the first calendar day that a pattern matches in three groups."""

    def find(text: str) -> str | None:
        return next(filter(None, (_written(*found.groups()) for found in pattern.finditer(text))), None)

    return find


def _written(year: str, month: str, day: str) -> str | None:
    text = f"{year}-{month}-{day}"
    return text if is_date(text) else None


_FINDERS: Mapping[str, Callable[[str], str | None]] = {
    "name": first_date,
    "key": first_date,
    "parts": _of_parts,
    "hive": _first(_HIVE),
    "path": _first(_PATH),
    "name_digits": _first(_DIGITS),
    "key_digits": _first(_DIGITS),
}
_OF_NAME = frozenset({"name", "name_digits"})


EARLIEST_DATE = "2000-01-01"
"""The earliest date accepted from a name. Earlier ones, such as 1970-01-01 and 1980-01-01, come from unset clocks and
archives."""

MAX_FUTURE_DAYS = 31
"""How many days after its arrival a file may be dated: enough for a monthly plan, but not for a wrong year."""


@dataclass(frozen=True, slots=True)
class FileDate:
    """The date of a file.

    Attributes:
        date: As `yyyy-mm-dd`.
        rule: Which of `RULES` gave it.
        ignored: The date in the name or key, if it is outside the window and therefore ignored; else empty.
    """

    date: str
    rule: str
    ignored: str = ""


def date_of_file(uri: str, arrived_at: datetime) -> FileDate:
    """The date of a file, by the first of `RULES` that finds one.

    The accepted dates depend on the arrival, not on the time of the decision, so all processes decide alike at any
    time.

    Args:
        uri: The file.
        arrived_at: The time of its event, else of its last write.
    """
    return date_of_name(named_date(uri), arrived_at)


def date_of_name(named: NamedDate | None, arrived_at: datetime) -> FileDate:
    """The date of a file or manifest whose name has a date, or none."""
    if named is not None and _may_be(named.date, arrived_at):
        return FileDate(named.date, named.rule)
    ignored = named.date if named is not None and named.is_certain else ""
    return FileDate(_day(arrived_at), ARRIVAL, ignored)


def _may_be(named: str, arrived_at: datetime) -> bool:
    if named < EARLIEST_DATE:
        return False
    arrival = _day(arrived_at)
    # Archives and reproducible builds set times such as 1970 or 1980, which are not arrivals.
    if arrival < EARLIEST_DATE:
        return True
    last = min(date.fromisoformat(arrival).toordinal() + MAX_FUTURE_DAYS, date.max.toordinal())
    return named <= date.fromordinal(last).isoformat()


def possible_dates(uri: str, arrived_at: datetime) -> set[str]:
    """All dates that a file could have had under any window: to find its manifest after the settings were changed."""
    named = named_date(uri)
    return {_day(arrived_at)} if named is None else {_day(arrived_at), named.date}


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()
