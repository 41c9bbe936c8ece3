"""Promises of the date of a file: its name counts within the window, and its arrival otherwise."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.dates import DateWindow, FileDate, possible_dates
from compactor.core.layout import is_date

ARRIVED_AT = datetime(2025, 7, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))  # 2025-06-30 in UTC


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://b/2025-01-01/2025-06-21-x.ndjson", FileDate("2025-06-21", in_name=True)),
        ("s3://b/2025-01-01/x.ndjson", FileDate("2025-01-01", in_name=True)),
        ("s3://b/2025-13-01/x.ndjson", FileDate("2025-06-30", in_name=False)),
        ("s3://b/x.ndjson", FileDate("2025-06-30", in_name=False)),
        ("s3://b/2000-01-01-x", FileDate("2000-01-01", in_name=True)),
        ("s3://b/1999-12-31-x", FileDate("2025-06-30", in_name=False, ignored="1999-12-31")),
        ("s3://b/2025-07-31-x", FileDate("2025-07-31", in_name=True)),
        ("s3://b/2025-08-01-x", FileDate("2025-06-30", in_name=False, ignored="2025-08-01")),
        ("s3://b/2025-01-01/9999-12-31-x", FileDate("2025-06-30", in_name=False, ignored="9999-12-31")),
    ],
)
def test_the_date_of_a_file(uri: str, expected: FileDate) -> None:
    """The name's date comes first, then the key's, then the day of its arrival in UTC."""
    assert DateWindow().of_file(uri, ARRIVED_AT) == expected


@pytest.mark.parametrize("year", [1, 1970, 1980, 1999])
def test_a_time_that_is_no_arrival(year: int) -> None:
    """Files from archives and reproducible builds have times long past, and keep the dates in their names."""
    window = DateWindow()
    assert window.of_file("/r/2025-12-21-x", datetime(year, 1, 1, tzinfo=UTC)).date == "2025-12-21"
    assert window.of_file("/r/1998-12-21-x", datetime(year, 1, 1, tzinfo=UTC)).date == f"{year:04}-01-01"


def test_the_end_of_the_calendar() -> None:
    """An arrival just before the last day that a calendar has is no error."""
    assert DateWindow().of_file("/r/9999-12-31-x", datetime(9999, 12, 30, tzinfo=UTC)).date == "9999-12-31"


def test_settings_of_the_window() -> None:
    """Both ends of the window are inclusive."""
    window = DateWindow(earliest="2025-06-01", max_future_days=0)
    days = ["2025-05-31", "2025-06-01", "2025-06-30", "2025-07-01"]
    assert [window.of_file(f"/r/{day}", ARRIVED_AT).in_name for day in days] == [False, True, True, False]


@given(
    st.text() | st.dates().map(str),
    st.datetimes(timezones=st.just(UTC)),
    st.dates().map(str),
    st.integers(min_value=0, max_value=36_600),
)
def test_any_name(name: str, arrived_at: datetime, earliest: str, max_future_days: int) -> None:
    """Any name gives a real date, and a search that does not know the window looks under that date, too."""
    found = DateWindow(earliest, max_future_days).of_file(name, arrived_at)
    assert is_date(found.date)
    assert found.date in possible_dates(name, arrived_at)
    assert found.in_name or found.date == arrived_at.date().isoformat()
