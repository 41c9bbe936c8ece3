"""Partitions as settings name them, and their folders, whatever values the data has."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor.core.inputs.source_places import path_columns
from compactor.core.layout import Layout, ManifestKey, is_within, part_number
from compactor.core.partitions import EXPECTED, PartitionField, fits, folders, parse_field

LAYOUT = Layout(manifests="/w/manifests", output="/w/output", state="/w/state", output_folder="date={date}")
KEY = ManifestKey("2026-01-02", "m-1")
FIELDS = (PartitionField("who", "identity", "w"), PartitionField("day", "day", "t"))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("day(event_time)", PartitionField("event_time_day", "day", "event_time")),
        ("event_day = day(eventTime)", PartitionField("event_day", "day", "eventTime")),
        ("h=hour(t, milliseconds)", PartitionField("h", "hour", "t", epoch="milliseconds")),
        ("bucket(user id, 16)", PartitionField("user_id_bucket", "bucket", "user id", buckets=16)),
        ("identity(1)", PartitionField("key_1_value", "identity", "1")),
        ("identity(a,b)", PartitionField("a_b_value", "identity", "a,b")),
    ],
)
def test_fields(text: str, field: PartitionField) -> None:
    """Each form is read, and read again from what a record has of it."""
    assert parse_field(text) == field
    assert parse_field(str(field)) == field


@pytest.mark.parametrize(
    "text",
    [
        *("", "event_time", "day()", "week(t)", "day(t, 5)", "bucket(t)", "bucket(t, 0)", "bucket(t, 65537)"),
        *("2x = day(t)", "identity(t, 3)", "bucket(t, seconds)", "../x = day(t)", "_x = day(t)"),
    ],
)
def test_what_is_no_field(text: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ValueError, match=re.escape(EXPECTED)):
        parse_field(text)


HOSTILE = st.none() | st.text(st.characters(codec="utf-8"), max_size=40)


@given(HOSTILE, HOSTILE)
@example("../../etc", "..")
@example("a/b", "%2F")
@example("", None)
@example("__HIVE_DEFAULT_PARTITION__", "a=b")
@example("é" * 120, "-00000.snappy.parquet")
def test_folders_of_hostile_values(who: str | None, day: str | None) -> None:
    """No value leads out of the folder of its date, or hides the manifest from those who read names."""
    made = folders(FIELDS, (who, day))
    assert made.count("/") == len(FIELDS)
    assert fits(FIELDS, (who, day)) == (len(made.encode()) <= 240)
    uri = LAYOUT.output_file(KEY, 7, made)
    assert is_within(uri, LAYOUT.output_folder_of(KEY.date))
    assert LAYOUT.output_owner(uri) == KEY
    assert part_number(uri) == 7
    found = path_columns(uri)
    expected = {"who": who, "day": day, "date": KEY.date}
    assert found == {name: value for name, value in expected.items() if value and not value.startswith("__HIVE")}


def test_names_without_partitions() -> None:
    """They are as they were; and a folder that is no partition's has no owner."""
    assert LAYOUT.output_file(KEY, 7) == "/w/output/date=2026-01-02/m-1-00007.snappy.parquet"
    assert LAYOUT.output_owner("/w/output/date=2026-01-02/who=x/m-1-00007.snappy.parquet") == KEY
    assert LAYOUT.output_owner("/w/output/date=2026-01-02/who/m-1-00007.snappy.parquet") == ManifestKey(KEY.date, "")
