"""The partition of each row: the same as one would find value by value."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import DecimalType, LongType, StringType

from compactor.core.partitions import PartitionField, PartitionValues, parse_fields
from compactor.engines.partitioned.buckets import bucket_of, buckets_of
from compactor.engines.partitioned.row_partitions import RowPartitions
from compactor.schema.column_types import ColumnType, value_of
from compactor.schema.schema import Column, SchemaVersion

ARROW = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "decimal(10,2)": pa.decimal128(10, 2),
}
MOMENTS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))  # noqa: DTZ001 - the offset is in the text
OFFSETS = st.integers(-18 * 60, 18 * 60)


def found(fields: str | list[str], kind: str, values: list[Any]) -> tuple[list[PartitionValues], int]:
    """The partition of each row of one column `k`, and how many have no time."""
    column = Column(key="k", name="k", added_in=1, type=kind, field_id=1)
    schema = SchemaVersion(version=1, created_at=datetime(2026, 1, 1, tzinfo=UTC), manifest_id="m", columns=(column,))
    partitions = RowPartitions(parse_fields([fields] if isinstance(fields, str) else fields), schema)
    codes = partitions.of(pa.record_batch({"k": pa.array(values, ARROW[kind])}))
    return [codes.values[at] for at in codes.rows.to_pylist()], codes.unparsed


def spelled(moment: datetime, offset: int, form: int) -> str:
    """A time as producers write it."""
    local = moment.replace(tzinfo=timezone(timedelta(minutes=offset)))
    text = local.replace(tzinfo=None).isoformat(
        sep="T" if form % 2 else " ", timespec="auto" if form % 3 else "minutes"
    )
    return f"{text}Z" if not offset else f"{text}{local:%z}" if form % 5 else local.isoformat()


@settings(max_examples=50)
@given(
    st.lists(st.builds(spelled, MOMENTS, OFFSETS | st.just(0), st.integers(0, 59)) | st.text(max_size=30), max_size=8)
)
@example(["2025-10-01T00:30:00+02:00", "2025-02-30T00:00:00Z", "2025-10-01T00:30", "2025-10-01T00:30Z", "2025-10-01"])
@example(
    [
        "2016-12-31T23:59:60Z",
        "2025-10-01T00:30:00.1234567Z",
        "2025-10-01T00:30:00.1234560Z",
        "1",
        "\n",
        "0000-01-01T00:00:00Z",
    ]
)
def test_times_of_texts(texts: list[str]) -> None:
    """A text has the day and the hour in UTC of its time, and none if it is no time in the schema file's sense."""

    def expected(text: str, form: str) -> PartitionValues:
        moment = value_of(text, ColumnType("timestamp"))
        if moment is None and form == "%Y-%m-%d":
            day = value_of(text, ColumnType("date"))
            return (None if day is None else str(day),)
        if not isinstance(moment, datetime):
            return (None,)
        return (moment.date().isoformat() + moment.strftime(form).removeprefix(moment.strftime("%Y-%m-%d")),)

    for transform, form in (("day", "%Y-%m-%d"), ("hour", "%Y-%m-%d-%H")):
        values, unparsed = found(f"{transform}(k)", "string", [*texts, None])
        assert values == [*(expected(text, form) for text in texts), (None,)]
        assert unparsed == sum(value is None for (value,) in values[:-1])


@pytest.mark.parametrize(
    ("field", "kind", "values", "expected"),
    [
        ("day(k, milliseconds)", "string", ["1759276799999", "1759276800000", "x"], ["2025-09-30", "2025-10-01", None]),
        ("hour(k, seconds)", "long", [-1, 3600], ["1969-12-31-23", "1970-01-01-01"]),
        ("day(k)", "long", [1759276800], [None]),
        ("day(k)", "timestamp", [datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), None], ["1969-12-31", None]),
        ("hour(k)", "timestamp", [datetime(1, 1, 1, 5, tzinfo=UTC)], ["0001-01-01-05"]),
        ("day(k)", "date", [date(2025, 9, 30)], ["2025-09-30"]),
        ("identity(k)", "string", ["", "a/b", None], ["", "a/b", None]),
        ("identity(k)", "boolean", [True, False], ["true", "false"]),
        ("identity(k)", "decimal(10,2)", [Decimal("1.50")], ["1.50"]),
        ("identity(k)", "double", [1e22], ["1e+22"]),
        ("bucket(k, 4)", "string", ["a", None], [str(BucketTransform(4).transform(StringType())("a")), None]),
        ("bucket(k, 9)", "double", [0.5], [str(bucket_of("0.5", 9))]),
        ("day(other)", "string", ["2025-09-30"], [None]),
    ],
)
def test_typed_columns(field: str, kind: str, values: list[Any], expected: list[str | None]) -> None:
    """Typed values are used as they are; numbers are times only with a unit."""
    assert found(field, kind, values)[0] == [(value,) for value in expected]


def test_several_fields() -> None:
    """Each row has the value of each field."""
    rows = ["2025-09-30T01:00:00Z", "x", "2025-09-30T02:00:00Z", None]
    assert found(["day(k)", "hour(k)"], "string", rows)[0] == [
        ("2025-09-30", "2025-09-30-01"),
        (None, None),
        ("2025-09-30", "2025-09-30-02"),
        (None, None),
    ]


@given(st.text(), st.integers(-(2**63), 2**63 - 1), st.integers(-(10**20), 10**20), st.integers(1, 65_536))
def test_buckets_are_those_of_iceberg(text: str, whole: int, unscaled: int, buckets: int) -> None:
    """Every writer and every reader of a table has to find the same bucket."""
    transform: Any = BucketTransform(buckets)
    decimal = Decimal(unscaled).scaleb(-3)
    assert bucket_of(text.encode(errors="replace").decode(), buckets) == transform.transform(StringType())(
        text.encode(errors="replace").decode()
    )
    assert bucket_of(whole, buckets) == transform.transform(LongType())(whole)
    assert bucket_of(decimal, buckets) == transform.transform(DecimalType(38, 3))(decimal)


@settings(max_examples=10)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=9), max_size=20), st.integers(1, 65_536))
def test_many_texts_are_hashed_as_one(texts: list[str], buckets: int) -> None:
    """Enough texts of one length are hashed together, with the same result in the same order, also of a slice."""
    many = [f"{text}{at % 10}" for text in [*texts, "", "é€😀"] for at in range(130)]
    hashed = buckets_of(pa.array(["left out", *many]).slice(1), buckets)
    assert hashed.to_pylist() == [bucket_of(text, buckets) for text in many]


def test_fields_have_no_column_in_common_with_others() -> None:
    """Only the columns that tell are read."""
    columns = tuple(Column(key=key, name=f"c_{key}", added_in=1) for key in "abc")
    schema = SchemaVersion(version=1, created_at=datetime(2026, 1, 1, tzinfo=UTC), manifest_id="m", columns=columns)
    assert RowPartitions((PartitionField("x", "identity", "b"), PartitionField("y", "day", "z")), schema).columns == [
        "c_b"
    ]
