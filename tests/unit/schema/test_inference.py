"""Promises of inference: the narrowest type that keeps every value exactly, whatever the order of the values."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor.ndjson.lines import Limits
from compactor.ndjson.nested_values import fitted
from compactor.ndjson.profiling import profile_file
from compactor.ndjson.rawjson import values
from compactor.schema.column_profile import Place, TableProfile, shape_of
from compactor.schema.column_types import MAX_LEVELS, canonical_text, parse_type, value_of
from compactor.schema.schema_of_settings import parse_schema_file
from compactor.schema.suggestion import SuggestionRules, infer, suggestion

NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(-(2**63) - 2, 2**63 + 2).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda number: f"{number:f}"[:60].rstrip(".")),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["-0", "0", "-0.0", "1.0", "1", "1e400", "1E-400", "0e99999999999", "1e99999999999", "0.1"]),
)
STRINGS = st.text() | st.dates().map(str) | st.sampled_from(["007", "5", "true", "", "2026-02-30", "2026-01-01 10:00"])
TIMES = st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
VALUES = st.one_of(
    NUMBERS, st.sampled_from(["true", "null", "[1]", '{"a":1}']), STRINGS.map(json.dumps), TIMES.map(json.dumps)
)
"""JSON values as a line has them; of each kind enough that a column may get any type."""


def profile_of(records: Iterable[tuple[Place, Mapping[str, tuple[str, str]]]], *, max_keys: int) -> TableProfile:
    found = TableProfile(max_keys)
    for place, record in records:
        found.add(place, record)
    return found


def profile(*written: str) -> TableProfile:
    records = [(Place(0, at), values(b'{"k": %s}' % each.encode())) for at, each in enumerate(written, 1)]
    return profile_of(records, max_keys=10)


def _line(fields: Iterable[tuple[str, str]]) -> str:
    return f"{{{', '.join(f'{json.dumps(key)}: {value}' for key, value in fields)}}}"


def inferred(*written: str) -> str:
    return infer(profile(*written).columns["k"]).type


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["1", "-5", "null"], "long"),
        (['{"$numberLong": "5"}', '{"$numberInt": "1"}', "7"], "long"),
        (['{"$numberDouble": "1.5"}', "1"], "double"),
        (['{"$numberDouble": "1.5"}', '{"$numberDouble": "NaN"}'], "string"),
        (['{"$numberDecimal": "0.12345678901234567890"}'], "decimal(38,19)"),
        (['{"$date": "2026-01-05T10:00:00Z"}', '{"$date": {"$numberLong": "-5"}}', '{"$date": 5}'], "timestamp"),
        (['{"$date": "2026-01-05"}'], "string"),
        (['{"$oid": "507f1f77bcf86cd799439011"}'], "objectid"),
        (['{"$oid": "507f1f77bcf86cd799439011"}', '"507f1f77bcf86cd799439011"'], "string"),
        (['{"$oid": "5"}'], "string"),
        (["1", "1.0"], "double"),
        (["1", "-0"], "double"),
        (["9223372036854775807"], "long"),
        (["9223372036854775808"], "decimal(38,0)"),
        (["18446744073709551616", "1"], "decimal(38,0)"),
        (["10000000000000000000"], "decimal(38,0)"),
        (["9" * 39], "string"),
        (["0.1", "1e300", "12.5"], "double"),
        (["0.1", "1e400"], "string"),
        (["1e-400"], "string"),
        (["9007199254740993", "1.5"], "decimal(38,1)"),
        (["9007199254740992", "1.5"], "double"),
        (["0.12345678901234567890"], "decimal(38,19)"),
        (["0.12345678901234567890", "-0"], "string"),
        (["12345678901234567.89"], "decimal(38,2)"),
        (['"007"', '"012"'], "string"),
        (['"5"', '"6"'], "string"),
        (["5", '"6"'], "string"),
        (["true", "false"], "boolean"),
        (["true", "1"], "string"),
        (['"true"'], "string"),
        (['"2026-01-05"', "null"], "date"),
        (['"2026-02-30"'], "string"),
        (['"2026-01-05"', '""'], "string"),
        (['"2026-01-05T10:00:00Z"', '"2026-01-05 10:00+02"'], "timestamp"),
        (['"2026-01-05T10:00:00.1234567Z"'], "timestamp_ns"),
        (['"2026-01-05T10:00:00.123456789+02"', '"2026-01-05 10:00Z"'], "timestamp_ns"),
        (['"2026-01-05T10:00:00.1234567Z"', '"9999-12-31T00:00:00Z"'], "string"),
        (['"9999-12-31T00:00:00Z"'], "timestamp"),
        (['"2026-01-05T10:00:00.1234567890Z"', '"2026-01-05T10:00:00.1234567891Z"'], "string"),
        (['"2026-01-05T10:00:00"', '"2026-01-05 10:00"'], "timestamp_ntz"),
        (['"2026-01-05 10:00:00.5"', "null"], "timestamp_ntz"),
        (['"2026-01-05T10:00:00.123456789"'], "string"),
        (['"2026-01-05T10:00:00"', '"2026-01-05T10:00:00Z"'], "string"),
        (['"2026-02-30 10:00:00"'], "string"),
        (['"2026-01-05T10:00:00Z"', '"2026-01-05"'], "string"),
        (["[1]", "1"], "string"),
        (["null"], "string"),
    ],
)
def test_the_type_of_values(written: Sequence[str], expected: str) -> None:
    """Numbers keep all digits, codes stay strings, and values of different kinds do."""
    assert inferred(*written) == expected


def nested_profile(written: Sequence[str], levels: int = MAX_LEVELS) -> TableProfile:
    found, limits = TableProfile(10), Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 24)
    lines = "".join(f'{{"k":{each}}}\n' for each in written)
    profile_file([lines.encode()], limits, found, file=0, levels=levels)
    return found


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["[1, 2]", "[]", "null", "[null]"], "list<long>"),
        (["[]"], "list<string>"),
        (['[1, "a"]'], "list<string>"),
        (["[[1.5], [2]]"], "list<list<double>>"),
        (["[1]", "{}"], "string"),
        (["[1]", "1"], "string"),
        (["{}"], "map<string, string>"),
        (['{"a": 1}', '{"b": "x", "a": null}'], "struct<a: long, b: string>"),
        (['{"a.b": 1, "c": 2}'], "map<string, long>"),
        (['{"a.b": 1, "c": "x"}'], "map<string, string>"),
        (['{"a": 1, "A": 2}'], "string"),
        ([json.dumps({f"k{at}": at for at in range(65)})], "map<string, long>"),
        (['{"at": {"$date": 5}, "n": {"$numberLong": "5"}}'], "struct<at: timestamp, n: long>"),
        (["[[[[[[1]]]]]]"], "list<list<list<list<list<string>>>>>"),
        (['[{"a": 1}, {"b": [true]}]'], "list<struct<a: long, b: list<boolean>>>"),
    ],
)
def test_the_type_of_nested_values(written: Sequence[str], expected: str) -> None:
    """Down to the deepest level of a type; a map for many keys, or for keys other than words."""
    assert infer(nested_profile(written).columns["k"]).type == expected
    assert infer(nested_profile(written, levels=0).columns["k"]).type == "string"


JSON = st.recursive(VALUES, lambda part: st.one_of(
    st.lists(part, max_size=3).map(lambda parts: f"[{','.join(parts)}]"),
    st.dictionaries(st.sampled_from(["a", "b", "c.d"]), part, max_size=3).map(
        lambda parts: f"{{{','.join(f'{json.dumps(key)}: {each}' for key, each in parts.items())}}}"
    ),
))  # fmt: skip


@given(st.lists(JSON, min_size=1, max_size=5))
def test_every_nested_value_fits(written: list[str]) -> None:
    """All of each value that was seen is in its column."""
    kind = parse_type(infer(nested_profile(written).columns["k"]).type)
    for each in written:
        source, text = values(b'{"k": %s}' % each.encode())["k"]
        assert source == "null" or fitted(text, kind)[1]


@given(st.lists(VALUES, max_size=8))
@example(["-0", "9007199254740993"])
def test_every_value_fits_exactly(written: list[str]) -> None:
    """No value that was seen is changed by its column, or goes to the rescued data."""
    column_type = parse_type(inferred(*written) if written else "string")
    for each in written:
        source, text = values(b'{"k": %s}' % each.encode())["k"]
        if source == "null":
            continue
        value = value_of(text, column_type)
        assert value is not None
        if isinstance(value, bool | str):
            assert value is (text == "true") if isinstance(value, bool) else value == text
        elif column_type.kind == "timestamp_ns":
            assert value_of(canonical_text(value, column_type), column_type) == value
        elif isinstance(value, int | Decimal):
            assert value == Decimal(text)
        elif isinstance(value, float):
            assert Decimal(repr(value)) == Decimal(text)
            assert str(value).startswith("-") == text.startswith("-")


@given(st.lists(st.tuples(st.text(max_size=12), VALUES), min_size=1, max_size=6), st.sampled_from(["safe", "exact"]))
def test_a_suggestion_is_a_schema_file(fields: list[tuple[str, str]], names: str) -> None:
    """Whatever keys and values hold, the file declares each key once, with its type, and acts on no terminal."""
    line = _line(fields)
    found = profile_of([(Place(0, 1), values(line.encode()))], max_keys=99)
    rules = SuggestionRules(names, max_columns=50)  # type: ignore[arg-type]
    text = suggestion(found, rules, header=["from \x1b[31m\n"], file_name=lambda _: "a\u202e\n.ndjson")
    assert all(character.isprintable() for row in text.split("\n") for character in row if character != "\xa0")
    limits: dict[str, Any] = {"max_columns": 50, "refused": {}}
    declared = parse_schema_file(text.encode(), "x", names=rules.names, **limits)
    assert [column.key for column in declared] == list(found.columns)
    assert [column.type for column in declared] == [infer(column).type for column in found.columns.values()]


def test_what_the_comments_say() -> None:
    """Counts, formats, and an example of each kind of misfit with its place."""
    found = profile('"2026-01-05T10:00:00Z"', '"2026-01-05 10:00:00.5+02:00"', "null")
    rules = SuggestionRules("safe", 10)
    text = suggestion(found, rules, header=["head"], file_name=lambda number: f"file-{number}")
    assert text == (
        "# head\n\n# 2 values, 1 null, 0 misfits\n"
        "# formats: yyyy-mm-dd hh:mm:ss.s±hh:mm (1), yyyy-mm-ddThh:mm:ssZ (1)\n"
        '[[columns]]\nname = "k"\ntype = "timestamp"\n'
    )
    named = profile('"Mon, 05 Jan 2026 10:00:00 GMT"', '"5 Jan 2026 10:00 +0100"', '"05/Jan/2026:10:00:00 +0100"')
    text = suggestion(named, rules, header=[], file_name=str)
    of_each = ("Ddd, dd Mon yyyy hh:mm:ss GMT (1)", "dd Mon yyyy hh:mm ±hhmm (1)", "dd/Mon/yyyy:hh:mm:ss ±hhmm (1)")
    assert f"# formats: {', '.join(of_each)}\n" in text
    assert 'type = "timestamp"\n' in text
    local = suggestion(profile('"2026-01-05 10:00:00"'), rules, header=[], file_name=str)
    assert "# formats: yyyy-mm-dd hh:mm:ss (1)\n# times without a zone: not instants" in local
    fine = profile('"2026-01-05T10:00:00Z"', '"2026-01-05T10:00:00.123456789Z"')
    text = suggestion(fine, rules, header=[], file_name=str)
    assert '# nanoseconds, needed for 1: "2026-01-05T10:00:00.123456789Z" (0:2)\n' in text
    text = suggestion(fine, replace(rules, has_nanoseconds=False), header=[], file_name=str)
    assert "1 misfit for timestamp, so it stays a string:" in text
    assert "1 finer than a microsecond:" in text
    mixed = profile("1", "2", "3", "4", '"n/\\u001ba"', "true", "[1, 2]")
    text = suggestion(mixed, rules, header=[], file_name=lambda number: f"file-{number}")
    assert text.splitlines()[1:5] == [
        "# 7 values, 0 null. 3 misfits for long, so it stays a string:",
        "#   1 boolean: true (file-0:6)",
        "#   1 object or array: [1, 2] (file-0:7)",
        '#   1 text: "n/\\u001ba" (file-0:5)',
    ]
    huge = suggestion(profile("0.5", "1e400"), rules, header=[], file_name=str)
    assert "# 2 values, 0 null. 1 misfit for double, so it stays a string:" in huge
    assert "#   1 number beyond double: 1e400 (0:2)" in huge


def test_keys_beyond_the_limits() -> None:
    """Keys that can have no column are counted and left out."""
    line = b'{"a": 1, "%s": 1, "b": 2, "c": 3}' % (b"k" * 257)
    found = profile_of([(Place(0, 1), values(line))], max_keys=4)
    text = suggestion(found, SuggestionRules("safe", 2), header=[], file_name=str)
    assert text.count("[[columns]]") == 2
    assert text.endswith("# 2 keys left out: at most schema.max_columns = 2 of at most 256 characters.\n")
    bounded = profile_of([(Place(0, 1), values(line))], max_keys=2)
    assert list(bounded.columns) == ["a", "k" * 257]
    assert bounded.has_further_keys


def test_shapes() -> None:
    """Times without a zone are told apart from other text."""
    assert shape_of("string", "2026-01-05 10:00:00") == "local_time"
    assert shape_of("string", "2026-01-05 10:00:00.1234567") == "text"
    assert shape_of("string", "2026-xx") == "text"
