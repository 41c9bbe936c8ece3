"""Keys become columns: safe names, once and for all, and versions that only append."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.schema.registry import EMPTY_SCHEMA
from compactor.schema.schema import (
    RESCUED_COLUMN,
    RESERVED_NAMES,
    DeclaredColumn,
    Names,
    RetiredColumn,
    SchemaVersion,
    contradictions,
    extend,
    parquet_columns,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def extended(
    schema: SchemaVersion, keys: Sequence[str], names: Names = "safe", max_columns: int = 2000
) -> SchemaVersion:
    sources = dict.fromkeys(keys, "/raw/1")
    return extend(schema, sources, names=names, max_columns=max_columns, manifest_id="m", now=NOW)


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
    """Safe names are lower case letters, digits and `_`; a name that is taken gets a number."""
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


def test_keys_up_to_a_version() -> None:
    """All keys of the versions up to the last one that any of the keys needs; without such a key, all."""
    first = extended(EMPTY_SCHEMA, ["a", "b", "c"], max_columns=2)
    schema = extended(extended(first, ["c", "d"]), ["e"])
    assert schema.keys_up_to(["b"]) == ("a", "b")
    assert schema.keys_up_to(["d", "a", "unknown"]) == ("a", "b", "c", "d")
    assert schema.keys_up_to(["e"]) == schema.keys_up_to([]) == ("a", "b", "c", "d", "e")


def test_a_retired_key_gets_no_column_again() -> None:
    """Another key takes the place, whichever caller offers the retired one."""
    retired = RetiredColumn(key="junk", name="junk", retired_in=2)
    schema = EMPTY_SCHEMA.model_copy(update={"version": 2, "retired": (retired,)})
    found = extend(schema, {"junk": "u", "new": "u"}, names="safe", max_columns=9, manifest_id="m", now=NOW)
    assert [column.key for column in found.columns] == ["new"]


def test_parquet_columns() -> None:
    """Metadata comes first, in one order however it was asked for, so that new keys append."""
    schema = extended(EMPTY_SCHEMA, ["a"])
    assert parquet_columns(schema, ["_manifest_id", "_source_file"]) == ("_source_file", "_manifest_id", "a")


def declaring(
    schema: SchemaVersion, keys: Sequence[str], *declared: DeclaredColumn, max_columns: int = 9
) -> SchemaVersion:
    sources = {key: f"/raw/{key}" for key in keys}
    return extend(schema, sources, declared=declared, names="safe", max_columns=max_columns, manifest_id="m", now=NOW)


def test_declared_columns_come_first() -> None:
    """The columns of the schema file come in its order, with their types, before keys that were found."""
    amount, at = DeclaredColumn("Amount", "amount", "decimal(9,2)"), DeclaredColumn("t", "at", "timestamp", "seconds")
    schema = declaring(EMPTY_SCHEMA, ["x", "t"], amount, at)
    assert [(column.key, column.name, column.type, column.epoch, column.source_uri) for column in schema.columns] == [
        ("Amount", "amount", "decimal(9,2)", None, ""),
        ("t", "at", "timestamp", "seconds", ""),
        ("x", "x", "string", None, "/raw/x"),
        (None, RESCUED_COLUMN, "map<string,string>", None, ""),
    ]
    assert declaring(schema, ["x"], amount, at) is schema


def test_columns_that_are_declared_later_append() -> None:
    """Further columns of the file follow all others, even beyond the limit; strings need no rescued data."""
    first = declaring(EMPTY_SCHEMA, ["a", "b"], max_columns=2)
    second = declaring(first, ["c"], DeclaredColumn("s", "s"), DeclaredColumn("a", "a"), max_columns=3)
    assert [column.name for column in second.columns] == ["a", "b", "s", RESCUED_COLUMN]
    third = declaring(second, [], DeclaredColumn("s", "s"), DeclaredColumn("n", "n", "long"), max_columns=3)
    assert [(column.name, column.added_in) for column in third.columns[4:]] == [("n", 3)]


def test_a_found_key_leaves_declared_names_alone() -> None:
    """A key whose safe name is declared for another key gets a number."""
    schema = declaring(EMPTY_SCHEMA, ["user.name"], DeclaredColumn("u", "user_name"))
    assert [column.name for column in schema.columns] == ["user_name", "user_name__2"]


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (DeclaredColumn("n", "n", "long"), []),
        (DeclaredColumn("new", "new", "long"), []),
        (
            DeclaredColumn("n", "n", "double"),
            ["type 'double' -> expected 'long', as it has been since schema version 2"],
        ),
        (DeclaredColumn("n", "m", "long"), ["name 'm' -> expected 'n', as it has been since schema version 2"]),
        (
            DeclaredColumn("a", "b", "long"),
            ["name 'b' -> expected 'a', as it has been since", "type 'long' -> expected 'string', as it has been"],
        ),
        (DeclaredColumn("at", "at", "timestamp"), ["epoch None -> expected 'seconds', as it has been since"]),
        (
            DeclaredColumn("b", "a"),
            ["name 'a' -> expected a different name, as this is the column of key 'a' since schema"],
        ),
    ],
)
def test_contradictions(declared: DeclaredColumn, expected: list[str]) -> None:
    """A column never changes: each difference is named, with the version that added the column."""
    schema = declaring(EMPTY_SCHEMA, ["a"])
    schema = declaring(schema, [], DeclaredColumn("n", "n", "long"), DeclaredColumn("at", "at", "timestamp", "seconds"))
    found = list(contradictions(schema, [declared]))
    assert len(found) == len(expected)
    for fault, part in zip(found, expected, strict=True):
        assert part in fault
        assert fault.startswith(f"schema.file: the column of key {declared.key!r}: ")
