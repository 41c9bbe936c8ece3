"""Promises of the date of a file: its name counts within the window, and its arrival otherwise."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.inputs.dates import ARRIVAL, RULES, FileDate, date_of_file, possible_dates
from compactor.core.layout import is_date
from tests.support.housekeeping import ROOT

ARRIVED_AT = datetime(2025, 7, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))  # 2025-06-30 in UTC


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://b/2025-01-01/2025-06-21-x.ndjson", FileDate("2025-06-21", "name")),
        ("s3://b/2025-01-01/x.ndjson", FileDate("2025-01-01", "key")),
        ("s3://b/2025-13-01/x.ndjson", FileDate("2025-06-30", "arrival")),
        ("s3://b/x.ndjson", FileDate("2025-06-30", "arrival")),
        ("s3://b/2000-01-01-x", FileDate("2000-01-01", "name")),
        ("s3://b/1999-12-31-x", FileDate("2025-06-30", "arrival", "1999-12-31")),
        ("s3://b/2025-07-31-x", FileDate("2025-07-31", "name")),
        ("s3://b/2025-08-01-x", FileDate("2025-06-30", "arrival", "2025-08-01")),
        ("s3://b/2025-01-01/9999-12-31-x", FileDate("2025-06-30", "arrival", "9999-12-31")),
    ],
)
def test_the_date_of_a_file(uri: str, expected: FileDate) -> None:
    """The name's date comes first, then the key's, then the day of its arrival in UTC."""
    assert date_of_file(uri, ARRIVED_AT) == expected


@pytest.mark.parametrize(
    ("key", "date", "rule"),
    [
        ("year=2025/month=06/day=21/x", "2025-06-21", "parts"),
        ("YEAR=2025/region=eu/month=6/day=1/hour=13/x", "2025-06-01", "parts"),
        ("year=2025/month=06/x", "2025-06-30", "arrival"),
        ("year=2025/month=02/day=30/x", "2025-06-30", "arrival"),
        ("my_year=2025/month=06/day=21/x", "2025-06-30", "arrival"),
        ("dt=20250621/x", "2025-06-21", "hive"),
        ("date=2025062113/x", "2025-06-30", "arrival"),
        ("dt=20250621T13/x", "2025-06-21", "hive"),
        ("dt=2025-06-21/x", "2025-06-21", "key"),
        ("fire/2025/06/21/13/stream-1", "2025-06-21", "path"),
        ("2025/06/21/x", "2025-06-21", "path"),
        ("2025/13/01/2025/06/21/x", "2025-06-21", "path"),
        ("2025/06/21", "2025-06-30", "arrival"),
        ("logs/app-20250621.ndjson", "2025-06-21", "name_digits"),
        ("logs/20250621T130000Z.gz", "2025-06-21", "name_digits"),
        ("logs/events20250621.gz", "2025-06-21", "name_digits"),
        ("20250621/x", "2025-06-21", "key_digits"),
        ("logs/2025-06-21T13.ndjson", "2025-06-21", "name"),
        ("year=2024/month=01/day=01/2025-06-21.gz", "2025-06-21", "name"),
        ("dt=20250620/app-20250621.ndjson", "2025-06-20", "hive"),
        ("x-20250631", "2025-06-30", "arrival"),
        ("x-120250621", "2025-06-30", "arrival"),
        ("x-20250621130000", "2025-06-30", "arrival"),
        ("9f20250621ab", "2025-06-30", "arrival"),
        ("20250621-1b2c-4d5e-8f90-0123456789ab", "2025-06-30", "arrival"),
        ("x-20870621", "2025-06-30", "arrival"),
    ],
)
def test_dates_in_other_forms(key: str, date: str, rule: str) -> None:
    """Folders of years, months and days, Hive keys and digits give a date, after any `yyyy-mm-dd`; ids give none."""
    assert date_of_file(f"s3://b/{key}", ARRIVED_AT) == FileDate(date, rule)
    assert date_of_file(f"/in/{key}", ARRIVED_AT) == FileDate(date, rule)


@pytest.mark.parametrize("year", [1, 1970, 1980, 1999])
def test_a_time_that_is_no_arrival(year: int) -> None:
    """Files from archives and reproducible builds have times long past, and keep the dates in their names."""
    assert date_of_file("/r/2025-12-21-x", datetime(year, 1, 1, tzinfo=UTC)).date == "2025-12-21"
    assert date_of_file("/r/1998-12-21-x", datetime(year, 1, 1, tzinfo=UTC)).date == f"{year:04}-01-01"


def test_the_end_of_the_calendar() -> None:
    """An arrival just before the last day that a calendar has is no error."""
    assert date_of_file("/r/9999-12-31-x", datetime(9999, 12, 30, tzinfo=UTC)).date == "9999-12-31"


def test_the_ends_of_the_window() -> None:
    """Both are inclusive: the first day of 2000, and 31 days after the arrival."""
    days = ["1999-12-31", "2000-01-01", "2025-07-31", "2025-08-01"]
    assert [date_of_file(f"/r/{day}", ARRIVED_AT).rule != ARRIVAL for day in days] == [False, True, True, False]


@given(st.text() | st.dates().map(str), st.datetimes(timezones=st.just(UTC)))
def test_any_name(name: str, arrived_at: datetime) -> None:
    """Any name gives a real date, and a search looks under that date, too."""
    found = date_of_file(name, arrived_at)
    assert is_date(found.date)
    assert found.date in possible_dates(name, arrived_at)
    assert found.rule != ARRIVAL or found.date == arrived_at.date().isoformat()


def test_the_document_lists_the_rules() -> None:
    """Readers find each rule with its words, in the order in which rules are tried."""
    table = (
        (ROOT / "docs" / "reading.md")
        .read_text()
        .partition("<!-- date rules -->")[2]
        .partition("<!-- date rules end")[0]
    )
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    assert rows == [[f"`{rule}`", words] for rule, words in RULES.items()]
