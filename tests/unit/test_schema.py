"""Keys become columns: safe names, once and for all, and versions that only append."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.registry import EMPTY_SCHEMA
from compactor.schema import (
    RESCUED_COLUMN,
    RESERVED_NAMES,
    Names,
    SchemaVersion,
    column_name,
    extend,
    merge_keys,
    parquet_columns,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def extended(
    schema: SchemaVersion, keys: Sequence[str], names: Names = "safe", max_columns: int = 2000
) -> SchemaVersion:
    return extend(schema, keys, names=names, max_columns=max_columns, manifest_id="m", now=NOW)


def names_of(*keys: str, names: Names = "safe") -> list[str]:
    return [column.name for column in extended(EMPTY_SCHEMA, keys, names).columns]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["user.name"], ["user_name"]),
        (["ID", "id", "Id"], ["id", "id__2", "id__3"]),
        (["id__2", "id", "ID"], ["id__2", "id", "id__3"]),
        (
            [
                "a b",
                "a;b",
                "a,b",
                "a{b",
                "a}b",
                "a(b",
                "a)b",
                "a=b",
                "a\tb",
                "a\nb",
                'a"b',
                "a`b",
                "a'b",
                "a\\b",
                "a_b",
            ],
            ["a_b", *[f"a_b__{number}" for number in range(2, 16)]],
        ),
        (["", "_"], ["_", "___2"]),
        (
            ["_manifest_id", "_Source_File", "_processed_at", "_rescued_data"],
            ["_manifest_id__2", "_source_file__2", "_processed_at__2", "_rescued_data__2"],
        ),
        (["größe", "Größe", "日本"], ["gr__e", "gr__e__2", "__"]),
        (["1st"], ["1st"]),
        (["x" * 300, "x" * 301], ["x" * 200, "x" * 200 + "__2"]),
    ],
)
def test_safe_names(keys: list[str], expected: list[str]) -> None:
    """Safe names are lower case letters, digits and `_`; what is taken gets a number."""
    assert names_of(*keys) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["user.name", "ID", "id", "größe", " ", "a;b"], ["user.name", "ID", "id", "größe", " ", "a;b"]),
        (["", "_", "_manifest_id"], ["_", "___2", "_manifest_id__2"]),
    ],
)
def test_exact_names(keys: list[str], expected: list[str]) -> None:
    """Exact names are the keys; only the empty key and reserved names get another."""
    assert names_of(*keys, names="exact") == expected


KEYS = st.lists(
    st.one_of(st.text(max_size=8), st.sampled_from(["id", "ID", "Id", "id__2", "ID__2", "_", "", *RESERVED_NAMES])),
    unique=True,
    max_size=20,
)


@given(batches=st.lists(KEYS, max_size=5), max_columns=st.integers(1, 30), names=st.sampled_from(["safe", "exact"]))
def test_versions_only_append(batches: list[list[str]], max_columns: int, names: Names) -> None:
    """Whatever keys come: names are unique, reserved ones are free, every key is found, and columns stay in place."""
    schema = EMPTY_SCHEMA
    for keys in batches:
        before, schema = schema, extended(schema, keys, names, max_columns)
        assert schema.columns[: len(before.columns)] == before.columns
        assert schema.version == before.version + (schema != before)
        assert all(column.added_in == schema.version for column in schema.columns[len(before.columns) :])
        assert len(schema.keys) <= max_columns
        assert schema.has_rescued or set(keys) <= schema.keys
        assert extended(schema, keys, names, max_columns) is schema
    found = [column.name.lower() if names == "safe" else column.name for column in schema.columns]
    assert len(set(found)) == len(found)
    assert all(found)
    assert RESERVED_NAMES.isdisjoint(column.name for column in schema.columns if column.key is not None)


@given(keys=KEYS)
def test_safe_alphabet(keys: list[str]) -> None:
    """No safe name holds anything that Athena or the Glue catalogue would refuse."""
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789_")
    assert all(set(name) <= allowed and 0 < len(name) <= 255 for name in names_of(*keys))


def test_overflow() -> None:
    """Keys beyond the limit share one column of rescued data, which comes once; known keys keep their columns."""
    first = extended(EMPTY_SCHEMA, ["a", "b", "c"], max_columns=2)
    assert [column.name for column in first.columns] == ["a", "b", RESCUED_COLUMN]
    assert extended(first, ["d", "a"], max_columns=2) is first
    wider = extended(first, ["c"], max_columns=3)
    assert [column.name for column in wider.columns] == ["a", "b", RESCUED_COLUMN, "c"]


def test_nothing_new_is_no_version() -> None:
    """Keys that are known, or none at all, make no version."""
    assert extended(EMPTY_SCHEMA, []) is EMPTY_SCHEMA
    schema = extended(EMPTY_SCHEMA, ["a"])
    assert extended(schema, ["a"]) is schema


def test_merge_keys() -> None:
    """Keys of several files are listed once each, as first seen."""
    assert merge_keys([["b", "a"], [], ["a", "c"]]) == ("b", "a", "c")


def test_parquet_columns() -> None:
    """Metadata comes first, in one order however it was asked for, so that new keys append."""
    schema = extended(EMPTY_SCHEMA, ["a"])
    assert parquet_columns(schema, ["_manifest_id", "_source_file"]) == ("_source_file", "_manifest_id", "a")


def test_column_name_leaves_free_names() -> None:
    """A name that nobody has is not changed."""
    assert column_name("a", set(), names="safe") == "a"
